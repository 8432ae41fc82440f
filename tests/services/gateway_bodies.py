"""Histories of append blobs, page blobs and leased blobs over several gateways that pause, die and
start (gateway_histories.py). The models are those of the histories over connections.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final

from strongroom.engines.base import EngineError
from strongroom.errors.core import StorageError
from strongroom.operations.blob import append, blob, page
from strongroom.semantics.blob.appends import AppendConditions
from strongroom.semantics.blob.pages import (
    NO_SEQUENCE_CONDITIONS,
    SequenceAction,
    SequenceConditions,
)
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.blob import attributes, blobs, leasing
from strongroom.services.blob.types.appends import AppendBlock
from strongroom.services.blob.types.pages.writing import PutPage, SetPageProperties
from strongroom.services.core.leasing import AcquireLease, ReleaseLease
from strongroom.services.core.runner import Services
from strongroom.testing.history import History, Model, Verdict, check
from strongroom.values import etag_text
from tests.conformance.history_models import (
    CELL,
    CELLS,
    DONE,
    PAGE_BLOB_BYTES,
    Append,
    Appended,
    AppendModel,
    Cells,
    GiveBack,
    GuardedModel,
    GuardedWrite,
    Increment,
    PageModel,
    ReadBlocks,
    ReadCells,
    Refused,
    Take,
    WriteCells,
    Written,
    block,
    blocks,
    cells_of,
    marks_of,
)
from tests.services import append_calls, blob_calls, container_calls, page_calls
from tests.services.container_calls import placed
from tests.services.gateway_histories import Act, played, status_of

NAMES: Final = "ab"
_INCREMENT: Final = SetPageProperties(sequence=(SequenceAction.INCREMENT, None))

Choose = Callable[[random.Random, int, str], Hashable]
Send = Callable[[Services, str, Hashable], Awaitable[Hashable]]


async def append_history(seed: int, steps: int, faults: int) -> Verdict:
    """Run a history of append blobs: blocks with and without conditions, and reads of the whole."""
    numbers = iter(range(1, 1_000_000))
    ends: dict[tuple[int, str], int] = {}

    async def prepare(on: Services) -> None:
        await container_calls.create(on)
        for name in NAMES:
            await append_calls.create(on, name)

    def choose(chance: random.Random, client: int, name: str) -> Hashable:
        own, end = next(numbers), ends.get((client, name), 0)
        kinds = (Append(own), Append(own, position=end), Append(own, size_max=end + 25_000))
        return chance.choice((ReadBlocks(), ReadBlocks(), *kinds))

    def saw(client: int, name: str, call: Hashable, result: Hashable) -> None:
        if isinstance(call, Append) and isinstance(result, Appended):
            ends[client, name] = result.offset + len(block(call.number))

    return await _history(seed, prepare, (choose, _send_to_log, saw), AppendModel(), steps, faults)


async def _send_to_log(on: Services, name: str, call: Hashable) -> Hashable:
    if isinstance(call, ReadBlocks):
        return blocks(await blob_calls.read(on, name) or b"")
    assert isinstance(call, Append)
    given = AppendBlock(conditions=AppendConditions(call.position, call.size_max))
    found = await blob_calls.run(on, append.APPEND_BLOCK, name, given, block(call.number))
    return Appended(found.offset, found.count)


async def page_history(seed: int, steps: int, faults: int) -> Verdict:
    """Run a history of page blobs: writes, clears and numbers, with and without conditions."""
    numbers = iter(range(1, 1_000_000))
    made: dict[str, int] = {}
    last: dict[tuple[int, str], tuple[int, int]] = {}

    async def prepare(on: Services) -> None:
        await container_calls.create(on)
        for name in NAMES:
            await page_calls.create(on, name, PAGE_BLOB_BYTES)
            view = await blob_calls.run(on, blob.GET_BLOB_PROPERTIES, name, None)
            made[name] = view.blob.etag

    def choose(chance: random.Random, client: int, name: str) -> Hashable:
        first = chance.randrange(CELLS)
        count = chance.randrange(1, CELLS - first + 1)
        mark = next(numbers) if chance.randrange(4) else 0
        number, etag = last.get((client, name), (0, 1))
        plain = WriteCells(first, count, mark)
        of_number = WriteCells(first, count, mark, number=number)
        of_etag = WriteCells(first, count, mark, if_match=etag)
        return chance.choice((ReadCells(), ReadCells(), plain, of_number, of_etag, Increment()))

    def saw(client: int, name: str, call: Hashable, result: Hashable) -> None:
        if isinstance(result, Cells | Written):
            last[client, name] = result.number, result.etag

    parts = choose, _send_to_pages, saw
    return await _history(seed, prepare, parts, PageModel(made), steps, faults)


async def _send_to_pages(on: Services, name: str, call: Hashable) -> Hashable:
    match call:
        case ReadCells():
            found = await blob_calls.run(on, blob.GET_BLOB, name, blobs.GetBlob())
            head, content = found.view.blob, await blob_calls.received(found)
            return Cells(head.etag, head.page.sequence_number, marks_of(content))
        case Increment():
            written = await blob_calls.run(on, page_calls.RESIZE, name, _INCREMENT)
        case WriteCells(first, count, mark, number, if_match):
            sequence = NO_SEQUENCE_CONDITIONS
            if number is not None:
                sequence = SequenceConditions(equal=number)
            conditions = Conditions()
            if if_match is not None:
                conditions = Conditions(if_match=(etag_text(if_match),))
            given = PutPage((first * CELL, count * CELL), sequence=sequence)
            kind, data = (page.PUT_PAGE, cells_of(mark, count)) if mark else (page.CLEAR_PAGES, b"")
            written = await blob_calls.run(on, kind, name, given, data, conditions=conditions)
        case _:
            raise TypeError(call)
    return Written(written.etag, written.sequence_number)


async def guarded_history(seed: int, steps: int, faults: int) -> Verdict:
    """Run a history of leases that do not end by themselves, and writes with and without their
    ids."""
    numbers = iter(range(1, 1_000_000))
    held: dict[tuple[int, str], str] = {}

    async def prepare(on: Services) -> None:
        await container_calls.create(on)
        for name in NAMES:
            await blob_calls.put(on, name, b"x")

    def choose(chance: random.Random, client: int, name: str) -> Hashable:
        kind, mine = chance.choice(("put", "metadata")), held.get((client, name))
        if mine is None:
            proposed = f"{client:08x}-0000-4000-8000-{next(numbers):012x}"
            call: Hashable = chance.choice((Take(proposed), GuardedWrite(None, kind)))
            if isinstance(call, Take):
                # With any answer, or without one, the client may hold the lease from now on.
                held[client, name] = proposed
            return call
        own = GuardedWrite(mine, kind)
        call = chance.choice((own, own, GuardedWrite(None, kind), GiveBack(mine)))
        if isinstance(call, GiveBack) and chance.randrange(3):
            del held[client, name]
        return call

    parts = choose, _send_under_lease, lambda client, name, call, result: None
    return await _history(seed, prepare, parts, GuardedModel(), steps, faults)


async def _send_under_lease(on: Services, name: str, call: Hashable) -> Hashable:
    match call:
        case Take(lease_id):
            given: Any = AcquireLease(-1, lease_id)
            asked = await placed(on, given, blob=name, rule=blob_calls.LEASES)
            await leasing.lease_blob(on, asked)
        case GiveBack(lease_id):
            asked = await placed(
                on, ReleaseLease(), blob=name, rule=blob_calls.LEASES, lease_id=lease_id
            )
            await leasing.lease_blob(on, asked)
        case GuardedWrite(lease_id, "put"):
            put = blobs.PutBlob()
            await blob_calls.run(on, blob.PUT_BLOB, name, put, b"y" * 9_000, lease_id=lease_id)
        case GuardedWrite(lease_id, _):
            given = attributes.SetMetadata((("v", "1"),))
            await blob_calls.run(on, blob.SET_BLOB_METADATA, name, given, lease_id=lease_id)
    return DONE


Parts = tuple[Choose, Send, Callable[[int, str, Hashable, Hashable], None]]


async def _history(
    seed: int,
    prepare: Callable[[Services], Awaitable[object]],
    parts: Parts,
    model: Model[Any],
    steps: int,
    faults: int,
) -> Verdict:
    """Play a history and check it.

    Arguments:
        parts: (chance, client, name) -> the next call; its sending; the part of a result that a
            client remembers.
    """
    choose, send, saw = parts
    history = History()

    def make(client: int) -> Act:
        async def act(on: Services, chance: random.Random, number: int) -> None:
            name = chance.choice(NAMES)
            call = choose(chance, client, name)
            record = history.invoke(f"client {number}", name, call)
            try:
                result = await send(on, name, call)
            except StorageError as error:
                status_of(error)
                result = Refused(error.row.code)
            except EngineError:
                record.unknown()
                return
            record.returned(result)
            saw(client, name, call, result)

        return act

    await played(seed, prepare, make, steps, faults)
    return check(history, model)
