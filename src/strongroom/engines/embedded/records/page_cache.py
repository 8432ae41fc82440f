"""Pages of committed records in memory, for scans that are asked for again and again.

Lives here: which pages are kept, and when they may be told. Must not live here: reading them, or
what is made of them.

The rule is that of record_cache.py. A page in which a commit writes is dropped before that commit
can be seen. A page that was read is kept only if no commit that began since its snapshot writes in
it. So every page here is as it would be read now.

Pages that are asked for once are not kept, nor are large ones. A listing of a million records must
not push out the few that are looked at all the time. There are few pages, because every write looks
through them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from strongroom.engines.base import Page, Position, Ref
from strongroom.engines.embedded.records.seen_once import SeenOnce
from strongroom.engines.embedded.records.sqlite import Slices

SIZE_BYTES_MAX: Final = 12 * 1024 * 1024
PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
PAGES_MAX: Final = 128
# With what readers make of a page and keep with it, as tests/services/test_repeated_queries.py
# measures it.
_VALUES_TIMES: Final = 3
_OVERHEAD_BYTES: Final = 1700
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

    __slots__ = ("asked", "end", "first", "page", "size_bytes")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.first: tuple[bytes, bytes] = asked.first
        self.end: tuple[bytes, bytes] | None = asked.until
        self.page: Page | None = None
        self.size_bytes = 0


class PageCache:
    """Pages that were asked for again. On the event loop."""

    def __init__(self, size_bytes_max: int = SIZE_BYTES_MAX) -> None:
        self._left_bytes = size_bytes_max
        self._pages: dict[Asked, _Kept] = {}  # the one that was asked for last at the end
        # With those that are being read.
        self._by_keyspace: dict[bytes, dict[_Kept, None]] = {}
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
                for kept in _holding(place, self._by_keyspace[keyspace]):
                    self._let_go(kept)

    def lift(self) -> None:
        """It is over."""
        self._barred = ()

    def _begin(self, asked: Asked) -> _Kept | None:
        if not self._asked_once.again(asked):
            return None
        kept = _Kept(asked)
        for (keyspace, partition), (hidden, name) in self._barred:
            if not hidden and keyspace == asked.keyspace and _holding((partition, name), [kept]):
                return None
        self._by_keyspace.setdefault(asked.keyspace, {})[kept] = None
        return kept

    def _keep(self, kept: _Kept, page: Page) -> None:
        asked = kept.asked
        is_there = kept in self._by_keyspace.get(asked.keyspace, ())
        size_bytes = _size_bytes(page)
        if not is_there or asked in self._pages or size_bytes > PAGE_BYTES_MAX:
            return
        kept.page, kept.size_bytes = page, size_bytes
        if page.resume is not None:
            # With the record there: when it goes, another is where to go on, or there is none.
            kept.end = (page.resume.partition, page.resume.key + b"\0")
        self._pages[asked] = kept
        self._left_bytes -= size_bytes
        while self._left_bytes < 0 or len(self._pages) > PAGES_MAX:
            self._let_go(next(iter(self._pages.values())))

    def _let_go(self, kept: _Kept) -> None:
        """Forget a page, or not to keep one when it has been read. Idempotent."""
        others = self._by_keyspace.get(kept.asked.keyspace, {})
        if kept not in others:
            return
        del others[kept]
        if not others:
            del self._by_keyspace[kept.asked.keyspace]
        if kept.page is not None:
            del self._pages[kept.asked]
            self._left_bytes += kept.size_bytes


def _holding(place: tuple[bytes, bytes], pages: Iterable[_Kept]) -> list[_Kept]:
    """Those to which a record there belongs, or would."""
    return [one for one in pages if one.first <= place and (one.end is None or place < one.end)]


def _size_bytes(page: Page) -> int:
    names = sum(map(len, page.partitions)) + sum(map(len, page.keys))
    values = _VALUES_TIMES * sum(map(len, page.values))
    return names + values + _OVERHEAD_BYTES * (len(page.values) + 1)
