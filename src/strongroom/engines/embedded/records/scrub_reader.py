"""The statements with which the scrub reads all records, some at a time.

Lives here: SQL, and which pages it makes SQLite read. Must not live here: when each is read
(scrub/). Every page of a table's tree is read, with the further pages of long values, and SQLite
verifies each (checksummed_pages.py). Free pages are not: they hold nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import apsw

from strongroom.engines.base import Ref
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import connect, is_damage
from strongroom.engines.embedded.records.record_walk import WalkPosition, walk_from
from strongroom.engines.embedded.records.segment_sums import SegmentSum, segment_sums
from strongroom.engines.embedded.records.sqlite import Reader

_CACHE_KIB: Final = 1024
# A page that cannot be read is damaged, whether or not it comes with an error of the disk.
_UNREADABLE: Final = frozenset(
    {apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_CORRUPTFS}
)
# One row for many records: a row more is a switch of threads more. The sum needs the whole values,
# so SQLite reads all of their pages.
_READ: Final = tuple(
    f"SELECT sum(length(value)) FROM (SELECT value FROM {table} "  # noqa: S608
    "WHERE (keyspace, partition, key) >= (?, ?, ?) ORDER BY keyspace, partition, key LIMIT ?)"
    for table in ("face", "hidden")
)
_NEXT: Final = tuple(
    f"SELECT keyspace, partition, key FROM {table} "  # noqa: S608
    "WHERE (keyspace, partition, key) >= (?, ?, ?) "
    "ORDER BY keyspace, partition, key LIMIT 1 OFFSET ?"
    for table in ("face", "hidden")
)
_NEXT_SEGMENT: Final = (
    "SELECT min(id) FROM (SELECT min(id) AS id FROM segments WHERE id > ?1 "
    "UNION ALL SELECT min(segment) FROM contents WHERE segment > ?1)"
)
# The last reads a page of the table of contents even if there are none.
_SMALL_TABLES: Final = (
    "SELECT * FROM segments",
    "SELECT * FROM meta",
    "SELECT * FROM sqlite_schema",
    "SELECT max(id) FROM contents",
)


class ReadRecords(NamedTuple):
    """Some records that were read.

    Attributes:
        next: where to go on; None = these were the last of the table.
        read_bytes: what SQLite read of its files.
        damaged: those that cannot be read.
    """

    next: WalkPosition | None
    read_bytes: int
    damaged: Sequence[Ref]


def is_unreadable(error: apsw.Error) -> bool:
    """Return whether an error says that a page is damaged, and not that the reader is."""
    if isinstance(error, apsw.CorruptError):
        return True
    return is_damage(error) or getattr(error, "extendedresult", 0) in _UNREADABLE


class ScrubReader(Reader):
    """A connection for the scrub. Used by one thread at a time.

    Raises: apsw.Error, in each of its methods.
    """

    def __init__(self, path: str, vfs: str | None) -> None:
        super().__init__(path, vfs, scanning=True)
        self._connection.pragma("cache_size", -_CACHE_KIB)

    def forget_pages(self) -> None:
        """Each page is then read from the file again."""
        self.release()
        self._connection.pragma("shrink_memory")

    def records_bytes(self) -> int:
        """The length of the used part of the database."""
        pages, free = (int(self._pragma(name)) for name in ("page_count", "freelist_count"))
        return PAGE_BYTES * (pages - free)

    def _pragma(self, name: str) -> Any:
        return self._execute(f"PRAGMA {name}").get

    def read_small_tables(self) -> None:
        """What the store keeps beside records and contents."""
        for statement in _SMALL_TABLES:
            self._execute(statement).fetchall()

    def read_records(self, hidden: bool, position: WalkPosition, count: int) -> ReadRecords:
        """Up to `count` records of one table from `position` on, in one snapshot. If some are
        damaged, they are named, and those after them are read as well as possible."""
        before = self._pages_read()
        try:
            self._execute("BEGIN")
            self._execute(_READ[hidden], (*position, count)).fetchall()
            following = self._execute(_NEXT[hidden], (*position, count)).fetchone()
        except apsw.Error as error:
            if not is_unreadable(error):
                raise
            self.release()
            return self._walked(hidden, position, count)
        finally:
            self.release()
        return ReadRecords(following, self._pages_read(before) * PAGE_BYTES, ())

    def _walked(self, hidden: bool, position: WalkPosition, count: int) -> ReadRecords:
        def other() -> apsw.Connection:
            return connect(self._path, self._vfs, _CACHE_KIB)

        damaged: list[Ref] = []
        last: Ref | None = None
        seen = 0
        before = self._pages_read()
        walking = walk_from(self._connection, other, hidden, position)
        try:
            for ref, record in itertools.islice(walking, count):
                seen, last = seen + 1, ref
                if record is None:
                    damaged.append(ref)
        finally:
            walking.close()  # type: ignore[attr-defined]  # it is a generator
            self.release()
        following = None
        if last is not None and seen == count:
            (keyspace, partition), (_, name) = last
            following = (keyspace, partition, name + b"\0")
        return ReadRecords(following, self._pages_read(before) * PAGE_BYTES, damaged)

    def is_readable(self, ref: Ref) -> bool:
        """True also if there is no record of that name."""
        (keyspace, partition), (hidden, name) = ref
        reading = self.read_records(hidden, (keyspace, partition, name), 1)
        return ref not in reading.damaged

    def next_segment(self, after: int) -> int | None:
        """Whose id is above `after`."""
        segment = self._execute(_NEXT_SEGMENT, (after,)).get
        return None if segment is None else int(segment)

    def segment_sum(self, segment: int) -> SegmentSum:
        """Zeros if the records do not know it."""
        sums = segment_sums(self._execute, segment)
        return sums[0] if sums else SegmentSum(segment, 0, 0, 0, sealed=False)

    def _pages_read(self, before: int = 0) -> int:
        """Counted since it had read `before`."""
        current, _ = self._connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)
        return current - before
