"""Histories of append blobs, page blobs and blobs of two blocks over several gateways.

Lives here: the clients' next calls. The models and the requests are those of the histories over one
server (tests/conformance). Must not live here: recording (registers.py).
"""

from __future__ import annotations

import random
from collections.abc import Hashable

from tests.conformance import appending, pages
from tests.conformance.client import Client
from tests.conformance.concurrency.test_body_histories import (
    etag_of,
    next_call,
    send_list,
    send_to_log,
    send_to_pages,
)
from tests.conformance.history_models import (
    CELLS,
    PAGE_BLOB_BYTES,
    Append,
    Appended,
    AppendModel,
    Cells,
    Increment,
    PageModel,
    ReadBlocks,
    ReadCells,
    WriteCells,
    Written,
    block,
)
from tests.proof.gateways.registers import Registers, Send


def lists(container: str) -> Registers:
    """Return the history of blobs whose blocks are staged at several gateways."""
    return Registers([f"/{container}/l{number}" for number in range(2)], next_call)


def list_client(client: Client) -> Send:
    return lambda target, call: send_list(client, target, call)


def logs(client: Client, container: str) -> Registers:
    """Make append blobs, and return their history."""
    targets = [f"/{container}/log{number}" for number in range(2)]
    for target in targets:
        appending.create(client, target)
    return Registers(targets, _next_append, AppendModel(), _end)


def log_client(client: Client) -> Send:
    return lambda target, call: send_to_log(client, target, call)


def _next_append(chance: random.Random, content: int, end: int | None) -> Hashable:
    """`end`: where the client's last block ended."""
    end = end or 0
    kinds = (Append(content), Append(content, position=end), Append(content, size_max=end + 25_000))
    return chance.choice((ReadBlocks(), *kinds))


def _end(call: Hashable, result: Hashable) -> int | None:
    if isinstance(call, Append) and isinstance(result, Appended):
        return result.offset + len(block(call.number))
    return None


def paged(client: Client, container: str) -> Registers:
    """Make page blobs, and return their history."""
    targets = [f"/{container}/pages{number}" for number in range(2)]
    made = {name: etag_of(pages.create(client, name, PAGE_BLOB_BYTES)) for name in targets}
    return Registers(targets, _next_pages, PageModel(made), _number_and_etag)


def page_client(client: Client) -> Send:
    return lambda target, call: send_to_pages(client, target, call)


def _next_pages(chance: random.Random, content: int, last: tuple[int, int] | None) -> Hashable:
    """`last`: the number and the ETag that the client saw last."""
    first = chance.randrange(CELLS)
    count = chance.randrange(1, CELLS - first + 1)
    mark = content if chance.randrange(4) else 0
    number, etag = last or (0, 1)
    plain = WriteCells(first, count, mark)
    of_number = WriteCells(first, count, mark, number=number)
    of_etag = WriteCells(first, count, mark, if_match=etag)
    return chance.choice((ReadCells(), ReadCells(), plain, of_number, of_etag, Increment()))


def _number_and_etag(call: Hashable, result: Hashable) -> tuple[int, int] | None:
    return (result.number, result.etag) if isinstance(result, Cells | Written) else None
