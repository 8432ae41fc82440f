"""One page of a listing, read from a keyspace with bounded work.

Lives here: the loop between the engine's scan and the rules of listing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from strongroom import limits
from strongroom.engines import base
from strongroom.engines.base import Position
from strongroom.semantics.core.listing import READ_RECORDS_MAX, PageBuilder
from strongroom.services.core.runner import Services
from strongroom.slices import SliceTurns, Steps

T = TypeVar("T")

# Decoding this many records takes some tenths of a millisecond.
_ROWS_AT_ONCE: Final = 256

Rows = Callable[[base.Page], Iterable[tuple[bytes, bytes, T | None]]]
"""rows(page) -> (name, key, item) of each record. `item` None = the listing omits the record. Rows
below `PageBuilder.listed_prefix` may be left out."""


async def fill(services: Services, keyspace: bytes, page: PageBuilder[T], rows: Rows[T]) -> None:
    """Read until the page is complete, or until the limit of records or bytes per page is reached.

    Each read returns each partition in a committed state, no older than the start of the read. It
    continues where the last one ended. So a record that does not change meanwhile is listed exactly
    once.
    """
    scanned = least = scanned_bytes = 0
    while not page.done:
        too_many = scanned >= limits.LIST_SCANNED_RECORDS_MAX
        if too_many or scanned_bytes >= limits.LIST_SCANNED_BYTES_MAX:
            page.cut()
            return
        # Where many records are invisible, a small page must not read in small steps. Where a
        # prefix lets the scan skip ahead, it must not read far.
        want = max(page.records_wanted, least)
        until = None if page.until is None else Position(*page.until)
        part = await services.store.scan(keyspace, Position(*page.first), until, want)
        await services.turns.run(_taken(page, iter(rows(part)), len(part.values)))
        page.resume_at(part.resume)
        scanned += len(part.values)
        scanned_bytes += sum(map(len, part.values))
        least = min(2 * want, READ_RECORDS_MAX) if page.first == part.resume else 0


async def feed(
    turns: SliceTurns,
    page: PageBuilder[T],
    rows: Sequence[tuple[bytes, bytes, T | None]],
    resume: Position | None,
) -> None:
    await turns.run(_taken(page, iter(rows), len(rows)))
    page.resume_at(resume)


def _taken(
    page: PageBuilder[T], rows: Iterator[tuple[bytes, bytes, T | None]], count: int
) -> Steps[None]:
    for _ in range(0, count, _ROWS_AT_ONCE):
        if page.add(islice(rows, _ROWS_AT_ONCE)):
            break
        yield
