"""Pages of committed records in memory, for scans that are asked for again and again.

Lives here: which pages are kept, and when they may be told. Must not live here: reading them, or
what is made of them.

The rule is that of record_cache.py. A page in which a commit writes is let go of before that commit
can be seen; and what was read is kept only if no commit has begun to write in it since before its
snapshot was taken. So every page here is as it would be read now.

What is asked for once is not kept, and what is large is not either: a listing of a million records
must not push out the few that are looked at all the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from strongroom.engines.base import Page, Position, Ref
from strongroom.engines.records_sqlite import Slices
from strongroom.engines.seen_once import SeenOnce

SIZE_BYTES_MAX: Final = 8 * 1024 * 1024
PAGE_BYTES_MAX: Final = 2 * 1024 * 1024
# A record's three values and its version as objects, and as much again for what readers make of
# it.
_OVERHEAD_BYTES: Final = 600
_ASKED_ONCE_PLACES: Final = 1024


class Asked(NamedTuple):
    """What a scan is asked for; see Engine.scan."""

    keyspace: bytes
    first: Position
    until: Position | None
    max_records: int
    max_bytes: int


class _Kept:
    """A page that is kept, or that is being read and may be."""

    __slots__ = ("asked", "end", "page", "size_bytes")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.end = asked.until
        self.page: Page | None = None
        self.size_bytes = 0

    def holds(self, place: tuple[bytes, bytes]) -> bool:
        """Whether a record there belongs to the page, or would."""
        return self.asked.first <= place and (self.end is None or place < self.end)


class PageCache:
    """Pages that were asked for again. On the event loop."""

    def __init__(self, size_bytes_max: int = SIZE_BYTES_MAX) -> None:
        self._left_bytes = size_bytes_max
        self._pages: dict[Asked, _Kept] = {}  # the one that was asked for last at the end
        self._by_keyspace: dict[bytes, list[_Kept]] = {}  # with those that are being read
        self._asked_once = SeenOnce(_ASKED_ONCE_PLACES)
        self._barred: Iterable[Ref] = ()

    def get(self, asked: Asked) -> Page | None:
        """The page, as it would be read now."""
        kept = self._pages.pop(asked, None)
        if kept is None:
            return None
        self._pages[asked] = kept
        return kept.page

    def reading(self, asked: Asked, slices: Slices[Page]) -> Slices[Page]:
        """Read as `slices` does, which takes its snapshot in its first step; keep the page if that
        was not for the first time."""
        kept = self._begin(asked)
        try:
            page = yield from slices
            if kept is not None:
                self._keep(kept, page)
        finally:
            if kept is not None and kept.page is None:
                self._let_go(kept)
        return page

    def bar(self, refs: Iterable[Ref]) -> None:
        """A commit that writes these is about to begin; there is one at a time."""
        self._barred = refs
        for (keyspace, partition), (hidden, name) in refs:
            if not hidden and keyspace in self._by_keyspace:
                place = (partition, name)
                for kept in [one for one in self._by_keyspace[keyspace] if one.holds(place)]:
                    self._let_go(kept)

    def lift(self) -> None:
        """It is over."""
        self._barred = ()

    def _begin(self, asked: Asked) -> _Kept | None:
        if not self._asked_once.again(asked):
            return None
        kept = _Kept(asked)
        for (keyspace, partition), (hidden, name) in self._barred:
            if not hidden and keyspace == asked.keyspace and kept.holds((partition, name)):
                return None
        self._by_keyspace.setdefault(asked.keyspace, []).append(kept)
        return kept

    def _keep(self, kept: _Kept, page: Page) -> None:
        asked = kept.asked
        is_there = kept in self._by_keyspace.get(asked.keyspace, ())
        size_bytes = _size_bytes(page)
        if not is_there or asked in self._pages or size_bytes > PAGE_BYTES_MAX:
            return
        kept.page, kept.size_bytes = page, size_bytes
        kept.end = page.resume or asked.until
        self._pages[asked] = kept
        self._left_bytes -= size_bytes
        while self._left_bytes < 0:
            self._let_go(next(iter(self._pages.values())))

    def _let_go(self, kept: _Kept) -> None:
        """Forget a page, or not to keep one when it has been read. Idempotent."""
        others = self._by_keyspace.get(kept.asked.keyspace, [])
        if kept not in others:
            return
        others.remove(kept)
        if not others:
            del self._by_keyspace[kept.asked.keyspace]
        if kept.page is not None:
            del self._pages[kept.asked]
            self._left_bytes += kept.size_bytes


def _size_bytes(page: Page) -> int:
    names = sum(map(len, page.partitions)) + sum(map(len, page.keys))
    return names + sum(map(len, page.values)) + _OVERHEAD_BYTES * (len(page.values) + 1)
