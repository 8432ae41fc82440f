"""List Queues: one page of an account's queues, by name.

Source: "List Queues".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines import base
from strongroom.semantics.core.listing import START, PageBuilder, Position, Prefix
from strongroom.services.core import pages
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.values import Metadata

METADATA: Final = "metadata"
INCLUDES: Final = frozenset((METADATA,))


class ListQueues(msgspec.Struct, frozen=True):
    """`start` is the decoded marker."""

    prefix: str = ""
    start: Position = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class QueueRow(msgspec.Struct, frozen=True, gc=False):
    name: str
    metadata: Metadata


class QueuePage(msgspec.Struct, frozen=True):
    """Rows in order of names, and where the next page begins (None = the end)."""

    items: list[QueueRow]
    marker: Position | None


async def list_queues(services: Services, call: Call[ListQueues]) -> QueuePage:
    """A page may be short and have a marker."""
    request = call.input
    page = PageBuilder[QueueRow](request.prefix, "", request.max_results, request.start)
    await pages.fill(services, keys.queues(call.target.account), page, _rows)
    # There is no delimiter, so there are no prefixes.
    return QueuePage([item for item in page.items if not isinstance(item, Prefix)], page.marker)


def _rows(page: base.Page) -> Iterator[tuple[bytes, bytes, QueueRow]]:
    decode = records.QUEUE.decode
    for name, key, value, _ in page.rows():
        yield name, key, QueueRow(name.decode(), decode(value).metadata)
