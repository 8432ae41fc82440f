"""A walk over all records of a database in order, with the names of records on damaged pages.

Lives here: the walk, and how it continues after damage. The values on a page with a wrong checksum
are never used. Only the names on it are read, to tell an operator which records are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import apsw

from strongroom.engines.base import Key, Partition, Record, Ref
from strongroom.engines.embedded.records.checksummed_pages import is_damage, stop_verifying

# The pairs are indexed by `Key.hidden`.
_RECORDS: Final = (
    "SELECT keyspace, partition, key, value, version FROM face "
    "WHERE (keyspace, partition, key) >= (?, ?, ?) ORDER BY keyspace, partition, key",
    "SELECT keyspace, partition, key, value, version FROM hidden "
    "WHERE (keyspace, partition, key) >= (?, ?, ?) ORDER BY keyspace, partition, key",
)
_NAMES: Final = tuple(statement.replace(", value, version", "") for statement in _RECORDS)
_VALUE: Final = (
    "SELECT value FROM face WHERE keyspace = ? AND partition = ? AND key = ?",
    "SELECT value FROM hidden WHERE keyspace = ? AND partition = ? AND key = ?",
)

WalkPosition = tuple[bytes, bytes, bytes]
"""Where a walk begins in a table: keyspace, partition, name."""
Walked = tuple[Ref, Record | None]
"""A record; None = it is damaged."""


def walk(connection: apsw.Connection, connect: Callable[[], apsw.Connection]) -> Iterator[Walked]:
    """Yield all records, in order, face keys first.

    Arguments:
        connection: verifies pages.
        connect: makes another connection to the same database.

    Raises: apsw.Error, when not even names can be read.
    """
    for hidden in (False, True):
        yield from _Walk(connection, connect, hidden).records()


def walk_from(
    connection: apsw.Connection,
    connect: Callable[[], apsw.Connection],
    hidden: bool,
    position: WalkPosition,
) -> Iterator[Walked]:
    """Yield the records of one table from `position` on, as `walk` does. Raises apsw.Error."""
    return _Walk(connection, connect, hidden, position).records()


class _Walk:
    """The walk over one table. `_position` is where the next record may begin."""

    def __init__(
        self,
        connection: apsw.Connection,
        connect: Callable[[], apsw.Connection],
        hidden: bool,
        position: WalkPosition = (b"", b"", b""),
    ) -> None:
        self._connection = connection
        self._connect = connect
        self._hidden = hidden
        self._position = position

    def records(self) -> Iterator[Walked]:
        went_on_at: WalkPosition | None = None
        while True:
            try:
                yield from self._readable()
            except apsw.IOError as error:
                if not is_damage(error):
                    raise
                _snapshot_again(self._connection)
            else:
                return
            is_stuck = went_on_at == self._position
            if not (yield from self._damaged(is_stuck)):
                return
            went_on_at = self._position

    def _readable(self) -> Iterator[Walked]:
        rows = self._connection.cursor().execute(_RECORDS[self._hidden], self._position)
        for keyspace, partition, name, value, version in rows:
            self._position = (keyspace, partition, name + b"\0")
            yield self._ref(keyspace, partition, name), Record(value, version)

    def _damaged(self, is_stuck: bool) -> Generator[Walked, None, bool]:
        """Yield the names from here on, up to the first readable record. Return whether there is
        one.

        Arguments:
            is_stuck: count the first record as damaged, although it can be read by itself: the walk
                has failed at it before.
        """
        other = self._connect()
        stop_verifying(other)
        try:
            for names in other.cursor().execute(_NAMES[self._hidden], self._position):
                self._position = names
                if not is_stuck and self._is_readable(names):
                    return True
                is_stuck = False
                self._position = (*names[:2], names[2] + b"\0")
                yield self._ref(*names), None
            return False
        finally:
            other.close(force=True)

    def _is_readable(self, names: Any) -> bool:
        try:
            self._connection.execute(_VALUE[self._hidden], names).fetchall()
        except apsw.IOError as error:
            if not is_damage(error):
                raise
            _snapshot_again(self._connection)
            return False
        return True

    def _ref(self, keyspace: bytes, partition: bytes, name: bytes) -> Ref:
        return Ref(Partition(keyspace, partition), Key(self._hidden, name))


def _snapshot_again(connection: apsw.Connection) -> None:
    """Begin a new snapshot: SQLite ends one when a page cannot be read."""
    if not connection.in_transaction:
        connection.execute("BEGIN")
