"""A page of face records, read slice by slice from one snapshot.

Lives here: the statements of a scan, and how far it goes. Must not live here: the other statements
of a reader (sqlite.py), when the next slice is read (scans.py).

A scan is one snapshot. Until it is exhausted or closed, its connection shows that snapshot to
others too. With a condition, SQLite filters the records of a slice. A slice then is a number of
records that are examined, whether they satisfy the condition or not. So a scan whose condition no
record satisfies pauses as often.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import apsw

from strongroom.engines.base import SCAN_EXAMINED_MAX, Page, Position
from strongroom.engines.conditions import Condition
from strongroom.engines.embedded.records.condition_sql import SqlExpression, expression_of
from strongroom.slices import Steps

# The number of records that are taken from SQLite at a time: a tenth of a millisecond's work.
SLICE_RECORDS: Final = 256
# The number of records that it examines for a condition at a time: half a millisecond.
_SLICE_EXAMINED_RECORDS: Final = 1024

_COLUMNS: Final = "SELECT partition, key, value, version FROM face"
# The pairs are indexed by whether there is an upper bound.
_SCAN: Final = (
    f"{_COLUMNS} WHERE keyspace = ? AND (partition, key) >= (?, ?) ORDER BY partition, key LIMIT ?",
    f"{_COLUMNS} WHERE keyspace = ? AND (partition, key) >= (?, ?) AND (partition, key) < (?, ?) "
    "ORDER BY partition, key LIMIT ?",
)
# Comparisons of pairs cost as much as the condition. Records of one partition, and those of whole
# partitions, are found without them.
_INSIDE: Final = (
    "WHERE keyspace = ? AND partition = ? AND key >= ?",
    "WHERE keyspace = ? AND partition = ? AND key >= ? AND key < ?",
)
_WHOLE: Final = (
    "WHERE keyspace = ? AND partition >= ?",
    "WHERE keyspace = ? AND partition >= ? AND partition < ?",
)
_SLICE_END: Final = "SELECT partition, key FROM face {} ORDER BY partition, key LIMIT 1 OFFSET ?"


class ScanRequest(NamedTuple):
    """The arguments of a scan; see Engine.scan."""

    keyspace: bytes
    first: Position
    until: Position | None
    max_records: int
    max_bytes: int
    where: Condition | None = None


class FaceScan:
    """The scan for one page.

    Attributes:
        last: the last record that was read, or where the scan begins.
    """

    def __init__(self, connection: apsw.Connection, request: ScanRequest) -> None:
        self._connection = connection
        # A separate cursor: it is closed when the scan stops early, to end its read transaction.
        self._cursor = connection.cursor()
        self._request = request
        self._columns: tuple[list[Any], ...] = ([], [], [], [])
        self._size_bytes = 0
        self.last = request.first

    def read(self) -> Steps[Page]:
        where = self._request.where
        expression = None if where is None else expression_of(where)
        try:
            resume = yield from (self._all() if expression is None else self._filtered(expression))
        finally:
            self._cursor.close(force=True)
        partitions, names, values, versions = self._columns
        return Page(partitions, names, values, versions, resume)

    def _all(self) -> Steps[Position | None]:
        keyspace, first, until, max_records = self._request[:4]
        bounds = first if until is None else first + until
        given = (keyspace, *bounds, max_records + 1)
        rows = self._cursor.execute(_SCAN[until is not None], given)
        # Take batches, since a loop over single rows costs more than the rows.
        while batch := list(itertools.islice(rows, SLICE_RECORDS)):
            resume = self._take(batch)
            if resume is not None:
                return resume
            yield
        return None

    def _filtered(self, expression: SqlExpression) -> Steps[Position | None]:
        ends_snapshot = not self._connection.in_transaction
        if ends_snapshot:
            self._cursor.execute("BEGIN")
        try:
            first, until = self._request.first, self._request.until
            if until is not None and until <= first:
                return None
            for _ in range(0, SCAN_EXAMINED_MAX, _SLICE_EXAMINED_RECORDS):
                source, bounds, following = self._slice(first)
                resume = self._take(self._matching_rows(source, bounds, expression))
                if resume is not None or following is None:
                    return resume
                first = following
                yield
            return first
        finally:
            # SQLite itself ends the transaction when a page cannot be read.
            if ends_snapshot and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _slice(self, first: Position) -> tuple[str, tuple[bytes, ...], Position | None]:
        """The slice that begins at `first`, as a clause and its values, and where the next slice
        begins (None = nothing is left)."""
        keyspace, until = self._request.keyspace, self._request.until
        last = None if until is None or until.partition != first.partition else until.key
        if first.key or last is not None:
            return self._slice_inside(first, last)
        bounds: tuple[bytes, ...] = (keyspace, first.partition)
        if until is not None:
            bounds = (*bounds, until.partition)
        end = self._end(_WHOLE[until is not None], bounds)
        if end is None:
            rest = None if until is None or not until.key else Position(until.partition, b"")
            return _WHOLE[until is not None], bounds, rest
        if end.partition == first.partition:
            return _INSIDE[True], (keyspace, *first, end.key), end
        following = Position(end.partition, b"")
        return _WHOLE[True], (keyspace, first.partition, end.partition), following

    def _slice_inside(
        self, first: Position, last: bytes | None
    ) -> tuple[str, tuple[bytes, ...], Position | None]:
        bounds: tuple[bytes, ...] = (self._request.keyspace, *first)
        if last is not None:
            bounds = (*bounds, last)
        end = self._end(_INSIDE[last is not None], bounds)
        if end is not None:
            return _INSIDE[True], (*bounds[:3], end.key), end
        rest = Position(first.partition + b"\0", b"") if last is None else None
        return _INSIDE[last is not None], bounds, rest

    def _end(self, source: str, bounds: tuple[bytes, ...]) -> Position | None:
        """The first record after a slice of these; None when they all fit into one slice."""
        for one in self._cursor.execute(
            _SLICE_END.format(source), (*bounds, _SLICE_EXAMINED_RECORDS)
        ):
            return Position(*one)
        return None

    def _matching_rows(
        self, source: str, bounds: tuple[bytes, ...], expression: SqlExpression
    ) -> list[Any]:
        statement = f"{_COLUMNS} {source} AND {expression.sql} ORDER BY partition, key LIMIT ?"
        room = self._request.max_records - len(self._columns[0])
        return self._cursor.execute(statement, (*bounds, *expression.values, room + 1)).fetchall()

    def _take(self, batch: Sequence[Any]) -> Position | None:
        """As far as there is room. Return the position of the first row left over."""
        if not batch:
            return None
        parts = tuple(zip(*batch, strict=True))
        room = self._request.max_records - len(self._columns[0])
        count, weight = _count_that_fits(parts, room, self._request.max_bytes - self._size_bytes)
        for column, part in zip(self._columns, parts, strict=True):
            column += part[:count]
        if count < len(batch):
            return Position(*batch[count][:2])
        self._size_bytes += weight
        self.last = Position(*batch[-1][:2])
        return None


def _count_that_fits(
    rows: Sequence[Sequence[Any]], records: int, size_bytes: int
) -> tuple[int, int]:
    """Return how many of the rows (partition, key, value, version), by column, fit, and their size.
    The last of them may exceed the space that is left."""
    partitions, names, values, _ = rows
    weight = sum(map(len, partitions)) + sum(map(len, names)) + sum(map(len, values))
    if len(values) <= records and weight < size_bytes:
        return len(values), weight
    weight = count = 0
    while count < min(len(values), records) and weight < size_bytes:
        weight += len(partitions[count]) + len(names[count]) + len(values[count])
        count += 1
    return count, weight
