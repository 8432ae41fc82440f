"""The records in SQLite: the schema, and the statements of the writer and of the readers.

Lives here: the SQL of records, and nothing else. Must not live here: when to commit
(group_commit.py), threads, or files. A reader sees only durable data: with synchronous=FULL the log
is synced before its index shows the new frames to any reader.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import apsw

from strongroom.engines.base import (
    DataDamaged,
    EngineError,
    Item,
    Key,
    Page,
    Partition,
    Record,
    Ref,
    record_of,
)
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import (
    BUSY_TIMEOUT_MS,
    checkpoint,
    connect,
    is_damage,
    record_name,
    unreadable,
)
from strongroom.engines.embedded.records.face_scan import (
    SLICE_RECORDS,
    FaceScan,
    ScanRequest,
)
from strongroom.engines.embedded.records.record_walk import Walked, walk
from strongroom.engines.embedded.records.segment_sums import SegmentSum, segment_sums
from strongroom.slices import Steps

_WRITER_CACHE_KIB: Final = 12 * 1024
# For a million records, enough for all pages above the leaves, and for the leaves that are often
# read: a page from the file takes 3 us more than its checksum. Single records are cached in
# record_cache.py.
_READER_CACHE_KIB: Final = 8 * 1024
_SCANNER_CACHE_KIB: Final = 2 * 1024

SCHEMA: Final = """
CREATE TABLE face (
    keyspace BLOB NOT NULL, partition BLOB NOT NULL, key BLOB NOT NULL,
    version INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (keyspace, partition, key)
) WITHOUT ROWID;
CREATE TABLE hidden (
    keyspace BLOB NOT NULL, partition BLOB NOT NULL, key BLOB NOT NULL,
    version INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (keyspace, partition, key)
) WITHOUT ROWID;
CREATE TABLE contents (
    id INTEGER PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL,
    length INTEGER NOT NULL, crc64 INTEGER NOT NULL
);
CREATE INDEX contents_of_segment ON contents (segment);
CREATE TABLE segments (
    id INTEGER PRIMARY KEY, live_bytes INTEGER NOT NULL, sealed INTEGER NOT NULL
);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('ceiling', 0);
"""

# The pairs are indexed by `Key.hidden`, or by whether there is an upper bound.
_GET: Final = (
    "SELECT value, version FROM face WHERE keyspace = ? AND partition = ? AND key = ?",
    "SELECT value, version FROM hidden WHERE keyspace = ? AND partition = ? AND key = ?",
)
# Two records in one statement. It sees one snapshot without a transaction.
_GET_BOTH: Final = tuple(
    tuple(
        f"{first.replace(' FROM', ', 0 FROM')} UNION ALL {second.replace(' FROM', ', 1 FROM')}"
        for second in _GET
    )
    for first in _GET
)
_PUT: Final = (
    "REPLACE INTO face VALUES (?, ?, ?, ?, ?)",
    "REPLACE INTO hidden VALUES (?, ?, ?, ?, ?)",
)
_DELETE: Final = (
    "DELETE FROM face WHERE keyspace = ? AND partition = ? AND key = ?",
    "DELETE FROM hidden WHERE keyspace = ? AND partition = ? AND key = ?",
)
_RANGE: Final = (
    (
        "SELECT key, value, version FROM face WHERE keyspace = ? AND partition = ? "
        "AND key >= ? ORDER BY key LIMIT ?",
        "SELECT key, value, version FROM face WHERE keyspace = ? AND partition = ? "
        "AND key >= ? AND key < ? ORDER BY key LIMIT ?",
    ),
    (
        "SELECT key, value, version FROM hidden WHERE keyspace = ? AND partition = ? "
        "AND key >= ? ORDER BY key LIMIT ?",
        "SELECT key, value, version FROM hidden WHERE keyspace = ? AND partition = ? "
        "AND key >= ? AND key < ? ORDER BY key LIMIT ?",
    ),
)
_KEYSPACE: Final = (
    "SELECT keyspace FROM face WHERE keyspace {} ? AND keyspace < ? ORDER BY keyspace LIMIT 1"
)
_ADOPT: Final = "INSERT INTO contents VALUES (?, ?, ?, ?, ?)"
_LOCATE: Final = "SELECT segment, offset, length, crc64 FROM contents WHERE id = ?"
_LIVE: Final = (
    "INSERT INTO segments VALUES (?, ?, 0) "
    "ON CONFLICT DO UPDATE SET live_bytes = live_bytes + excluded.live_bytes"
)
_CRC_MODULUS: Final = 1 << 64


_Row = tuple[bytes, bytes, bytes, int, bytes]


class Location(NamedTuple):
    """The place of a content in the segment files."""

    segment: int
    offset: int
    length: int
    crc64: int


class SegmentRow(NamedTuple):
    """The row of a segment; `reach_bytes`: where the last content of an open one ends."""

    id: int
    live_bytes: int
    sealed: bool
    reach_bytes: int = 0


def signed(crc64: int) -> int:
    """Return a CRC64 as the signed integer that SQLite stores."""
    return crc64 - _CRC_MODULUS if crc64 >= _CRC_MODULUS // 2 else crc64


def location_of(row: tuple[Any, ...]) -> Location:
    """Return the location in a row of `contents` without its id."""
    return Location(row[0], row[1], row[2], row[3] % _CRC_MODULUS)


def _find(execute: Callable[..., Any], ref: Ref) -> Any:
    """None when there is none. Raises apsw.Error, DataDamaged."""
    (keyspace, partition), (hidden, name) = ref
    try:
        return execute(_GET[hidden], (keyspace, partition, name)).get
    except apsw.IOError as error:
        if not is_damage(error):
            raise
        raise unreadable(error, f"the {record_name(ref)}") from error


class Writer:
    """The only connection that writes. Used by one thread at a time: the loop's or the commits'."""

    def __init__(self, path: str, vfs: str | None, create: bool) -> None:
        self.connection = connect(path, vfs, _WRITER_CACHE_KIB, SCHEMA if create else None)
        cursor = self.connection.cursor()
        self._execute, self._execute_many = cursor.execute, cursor.executemany

    def begin(self) -> None:
        self._execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._execute("COMMIT")

    def rollback(self) -> None:
        """Unless SQLite has done so itself."""
        if self.connection.in_transaction:
            self._execute("ROLLBACK")

    def get(self, ref: Ref) -> Record | None:
        """As this transaction sees it. Raises apsw.Error; DataDamaged, after which SQLite has
        rolled the transaction back."""
        row = _find(self._execute, ref)
        return None if row is None else Record._make(row)

    def put_all(self, records: Mapping[Ref, Record | None]) -> None:
        """Records whose value here is None are deleted."""
        puts: tuple[list[_Row], list[_Row]] = ([], [])
        for ((keyspace, partition), (hidden, name)), record in records.items():
            if record is None:
                self._execute(_DELETE[hidden], (keyspace, partition, name))
            else:
                value, version = record
                puts[hidden].append((keyspace, partition, name, version, value))
        for statement, rows in zip(_PUT, puts, strict=True):
            if rows:
                self._execute_many(statement, rows)

    def adopt(self, contents: Sequence[tuple[int, Location]]) -> None:
        """The bytes of the contents are counted by `count_live`."""
        rows = [(one, at[0], at[1], at[2], signed(at[3])) for one, at in contents]
        self._execute_many(_ADOPT, rows)

    def drop(self, content_id: int) -> Location | None:
        """None when it is gone. Its bytes are counted by `count_live`."""
        row = self._execute(_LOCATE, (content_id,)).get
        if row is None:
            return None
        self._execute("DELETE FROM contents WHERE id = ?", (content_id,))
        return location_of(row)

    def count_live(self, changes: Iterable[tuple[int, int]]) -> None:
        """Change segments' live bytes: (segment, how many more) each. What is done for a segment
        often is written once."""
        more: dict[int, int] = {}
        for segment, length in changes:
            more[segment] = more.get(segment, 0) + length
        if more:
            self._execute_many(_LIVE, list(more.items()))

    def move(self, content_id: int, source: Location, target: Location) -> bool:
        """From a content to its copy. Return False if the content is no longer at `source`."""
        self._execute(
            "UPDATE contents SET segment = ?, offset = ? "
            "WHERE id = ? AND segment = ? AND offset = ?",
            (target.segment, target.offset, content_id, source.segment, source.offset),
        )
        if not self.connection.changes():
            return False
        self._execute(_LIVE, (source.segment, -source.length))
        self._execute(_LIVE, (target.segment, target.length))
        return True

    def seal(self, segment: int) -> None:
        """It will never grow again."""
        self._execute(
            "INSERT INTO segments VALUES (?, 0, 1) ON CONFLICT DO UPDATE SET sealed = 1", (segment,)
        )

    def forget_segment(self, segment: int) -> bool:
        """Return False when it has contents."""
        if self._execute("SELECT id FROM contents WHERE segment = ? LIMIT 1", (segment,)).get:
            return False
        self._execute("DELETE FROM segments WHERE id = ?", (segment,))
        return True

    def raise_ceiling(self, ceiling: int) -> None:
        """No time up to it may be given again."""
        self._execute("UPDATE meta SET value = ? WHERE name = 'ceiling'", (ceiling,))

    def ceiling(self) -> int:
        return int(self._execute("SELECT value FROM meta WHERE name = 'ceiling'").get)

    def last_content(self) -> int:
        """The largest id in use, 0 when there is none."""
        return int(self._execute("SELECT ifnull(max(id), 0) FROM contents").get)

    def segments(self) -> list[SegmentRow]:
        rows = self._execute(
            "SELECT id, live_bytes, sealed, CASE WHEN sealed THEN 0 ELSE "
            "(SELECT max(offset + length) FROM contents WHERE segment = segments.id) END "
            "FROM segments ORDER BY id"
        )
        return [SegmentRow(row[0], row[1], bool(row[2]), row[3] or 0) for row in rows]

    def spare_bytes(self) -> int:
        """How many more bytes fit into the database before its file grows. Raises apsw.Error."""
        return PAGE_BYTES * int(self._execute("PRAGMA freelist_count").get)

    def truncate_log(self, timeout_ms: int) -> bool:
        """Write all of the log back to the database and empty it. Return False when readers prevent
        that.

        Call it between transactions only: it blocks all other work. Raises apsw.Error.
        """
        self.connection.set_busy_timeout(timeout_ms)
        try:
            return checkpoint(self.connection, truncate=True)
        finally:
            self.connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    def close(self) -> None:
        self.connection.close()


# Like `_make`, but without a Python call for each row.
_item = cast("Callable[[Any], Item]", functools.partial(tuple.__new__, Item))


class Reader:
    """A connection that sees committed, durable records. Used by one thread at a time.

    Arguments:
        scanning: whether it is for long reads, which need less memory.
        is_bound: whether the pages are bound to their numbers; they are not in format 3.

    Attributes:
        has_snapshot: whether a snapshot is held.
    """

    def __init__(
        self, path: str, vfs: str | None, scanning: bool, *, is_bound: bool = True
    ) -> None:
        self._path, self._vfs, self._is_bound = path, vfs, is_bound
        cache_kib = _SCANNER_CACHE_KIB if scanning else _READER_CACHE_KIB
        self._connection = connect(path, vfs, cache_kib, is_bound=is_bound)
        self._connection.pragma("query_only", True)
        self._execute = self._connection.cursor().execute
        self.has_snapshot = False

    def scanner(self) -> Reader:
        """For long reads of the same records."""
        return Reader(self._path, self._vfs, scanning=True, is_bound=self._is_bound)

    def begin_snapshot(self) -> None:
        """Until `end_snapshot`. To begin and to end a snapshot takes longer than to find a record
        in it."""
        if not self.has_snapshot:
            self._execute("BEGIN")
            self.has_snapshot = True

    def end_snapshot(self) -> None:
        """Later reads see newer commits."""
        if self.has_snapshot:
            self.has_snapshot = False
            self.release()

    def get(self, ref: Ref) -> Record | None:
        """Raises apsw.Error, DataDamaged."""
        try:
            row = _find(self._execute, ref)
        except DataDamaged:
            self.end_snapshot()  # SQLite has ended the snapshot
            raise
        return None if row is None else record_of(row)

    def get_all(self, refs: Sequence[Ref]) -> list[Record | None]:
        """From one snapshot, in the order of `refs`."""
        if len(refs) == 1:
            return [self.get(refs[0])]
        if len(refs) == 2:
            return self._get_both(*refs)
        if self.has_snapshot:
            return [self.get(ref) for ref in refs]
        self._execute("BEGIN")
        try:
            return [self.get(ref) for ref in refs]
        finally:
            self.release()

    def _get_both(self, one: Ref, other: Ref) -> list[Record | None]:
        first, (is_first_hidden, first_name) = one
        second, (is_second_hidden, second_name) = other
        statement = _GET_BOTH[is_first_hidden][is_second_hidden]
        names = (*first, first_name, *second, second_name)
        found: list[Record | None] = [None, None]
        try:
            for value, version, at in self._execute(statement, names):
                found[at] = record_of((value, version))
        except apsw.IOError as error:
            for ref in (one, other) if is_damage(error) else ():
                self.get(ref)  # raises, with the record's name
            raise
        return found

    def range(self, ref: Ref, until: bytes | None, max_records: int) -> Steps[list[Item]]:
        """Of one partition from `ref` on, in order, from one snapshot."""
        (keyspace, partition), (hidden, first) = ref
        bounds = (first,) if until is None else (first, until)
        # A separate cursor: it is closed when the read stops early, to end its read transaction.
        cursor = self._connection.cursor()
        items: list[Item] = []
        try:
            rows = cursor.execute(
                _RANGE[hidden][until is not None], (keyspace, partition, *bounds, max_records)
            )
            while batch := list(map(_item, itertools.islice(rows, SLICE_RECORDS))):
                items += batch
                yield
        except apsw.Error as error:
            name = items[-1].name if items else first
            raise self._unreadable(error, Ref(ref.partition, Key(hidden, name))) from error
        finally:
            cursor.close(force=True)
        return items

    def scan(self, request: ScanRequest) -> Steps[Page]:
        scanning = FaceScan(self._connection, request)
        try:
            return (yield from scanning.read())
        except apsw.Error as error:
            partition, name = scanning.last
            last = Ref(Partition(request.keyspace, partition), Key(False, name))
            raise self._unreadable(error, last) from error

    def _unreadable(self, error: apsw.Error, last: Ref) -> EngineError:
        """When reading failed after the record `last`."""
        self.end_snapshot()
        return unreadable(error, f"what follows the {record_name(last)}")

    def locate(self, content_id: int) -> Location | None:
        """None unless it is adopted. Raises apsw.Error, DataDamaged."""
        try:
            row = self._execute(_LOCATE, (content_id,)).get
        except apsw.IOError as error:
            self.end_snapshot()
            raise unreadable(error, f"the place of content {content_id}") from error
        return None if row is None else location_of(row)

    def contents_of(self, segment: int, after: int, limit: int) -> list[tuple[int, Location]]:
        """Up to `limit`, with ids above `after`, ascending."""
        rows: list[tuple[Any, ...]] = self._execute(
            "SELECT id, segment, offset, length, crc64 FROM contents "
            "WHERE segment = ? AND id > ? ORDER BY id LIMIT ?",
            (segment, after, limit),
        ).fetchall()
        return [(row[0], location_of(row[1:])) for row in rows]

    def snapshot(self) -> None:
        """Keep reading the current state until `release`, or until a page is damaged."""
        self._execute("BEGIN")
        self._execute("SELECT value FROM meta").fetchall()

    def release(self) -> None:
        if self._connection.in_transaction:
            # Not a commit, which would fail on damage that was found in the meantime.
            self._connection.execute("ROLLBACK")

    def segment_sums(self) -> list[SegmentSum]:
        return segment_sums(self._execute)

    def content_ids(self) -> Iterator[int]:
        for row in self._connection.cursor().execute("SELECT id FROM contents ORDER BY id"):
            yield row[0]

    def keyspaces(self, first: bytes, until: bytes) -> Steps[list[bytes]]:
        """Of face records from `first` on and before `until`, in order. Each takes one look-up."""
        keyspaces: list[bytes] = []
        row = self._execute(_KEYSPACE.format(">="), (first, until)).get
        while row is not None:
            keyspaces.append(row)
            yield
            row = self._execute(_KEYSPACE.format(">"), (row, until)).get
        return keyspaces

    def records(self) -> Iterator[Walked]:
        """In order, face keys first. Raises apsw.Error."""
        return walk(
            self._connection,
            lambda: connect(self._path, self._vfs, _SCANNER_CACHE_KIB, is_bound=self._is_bound),
        )

    def findings(self) -> Iterator[str]:
        """The errors that SQLite itself finds, until it can read no further. Raises apsw.Error."""
        for (problem,) in self._execute("PRAGMA main.integrity_check"):
            # One row may name several problems, below a title.
            lines = str(problem).splitlines()
            yield from (line for line in lines if line != "ok" and not line.startswith("***"))

    def close(self) -> None:
        self._connection.close()
