"""Committed records in memory, for reads of a few: a hit costs a tenth of what SQLite asks.

Lives here: what is kept, and when it may be told. Must not live here: reading or writing it.

A hit always equals one committed snapshot, by this rule. The records that a commit writes are
dropped before it can be seen, and are not kept again until it is over. So a commit under way
changes no record that is here, and all records here together are one snapshot.

What is read once is not kept (seen_once.py): it may be one of a million.

What is kept lies in two halves. When the younger is full the older is dropped, and they change
places; what is asked for meanwhile moves to the younger. So nothing is ever looked for to be thrown
away, and what is asked for stays.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from strongroom.engines.base import Record, Ref
from strongroom.engines.embedded.records.seen_once import SeenOnce

SIZE_BYTES_MAX: Final = 8 * 1024 * 1024
# A reference, a record, their parts, and their place in the dictionary.
_OVERHEAD_BYTES: Final = 600
# Larger values would push out many small ones, and save less than they cost.
_VALUE_BYTES_MAX: Final = 16 * 1024

# As many as can be kept, or so.
_READ_ONCE_PLACES: Final = 8192

_Half = dict[Ref, Record | None]


class Uncached(enum.Enum):
    """The result for a record that is not cached; None says that there is none."""

    UNKNOWN = enum.auto()


UNKNOWN: Final = Uncached.UNKNOWN


class RecordCache:
    """Records that were read again, and that some are absent. On the event loop."""

    def __init__(self, size_bytes_max: int = SIZE_BYTES_MAX) -> None:
        self._half_bytes = size_bytes_max // 2
        self._left_bytes = self._half_bytes  # in the younger half
        self._read_once = SeenOnce(_READ_ONCE_PLACES)
        self._younger: _Half = {}
        self._older: _Half = {}
        self._barred: Collection[Ref] = ()
        self._missed: list[Ref] = []  # of these, what was known

    def get(self, refs: Sequence[Ref]) -> list[Record | None] | None:
        """The records from one snapshot, in the order asked; None unless all are here."""
        found = list(map(self._younger.get, refs))
        return self._get_older(refs) if None in found else found

    def look(self, ref: Ref) -> Record | Uncached | None:
        """As `get`, of one record."""
        found = self._younger.get(ref, UNKNOWN)
        if found is UNKNOWN and ref in self._older:
            found = self._older.pop(ref)
            self._put(ref, found)
            self._turn_when_full()
        return found

    def _get_older(self, refs: Sequence[Ref]) -> list[Record | None] | None:
        """As `get`, where one of them is absent, or not in the younger half."""
        found: list[Record | None] = []
        for ref in refs:
            record = self.look(ref)
            if record is UNKNOWN:
                return None
            found.append(record)
        return found

    def keep(self, refs: Sequence[Ref], records: Sequence[Record | None]) -> None:
        """Remember what was just read, in one snapshot, if that was not for the first time."""
        if not self._read_once.again(refs[-1]):
            return
        for ref, record in zip(refs, records, strict=True):
            if ref not in self._younger and ref not in self._barred:
                self._put(ref, record)
        self._turn_when_full()

    def bar(self, refs: Collection[Ref]) -> None:
        """A commit that writes these is about to begin; there is one at a time.

        Arguments:
            refs: they stay as they are until it is over.
        """
        self._barred = refs
        self._missed = [ref for ref in refs if self._forget(ref)]

    def lift(self, committed: Mapping[Ref, Record | None]) -> None:
        """It is over. What it wrote is kept where something was kept before.

        Arguments:
            committed: all that it wrote; nothing when it failed.
        """
        self._barred = ()
        for ref in self._missed:
            if ref in committed:
                self._put(ref, committed[ref])
        self._turn_when_full()

    def _forget(self, ref: Ref) -> bool:
        """Whether it was known."""
        if ref in self._younger:
            self._left_bytes += _size_bytes(ref, self._younger.pop(ref))
            self._older.pop(ref, None)
            return True
        if ref in self._older:
            del self._older[ref]
            return True
        return False

    def _put(self, ref: Ref, record: Record | None) -> None:
        size_bytes = _size_bytes(ref, record)
        if size_bytes <= _VALUE_BYTES_MAX:
            self._younger[ref] = record
            self._left_bytes -= size_bytes

    def _turn_when_full(self) -> None:
        if self._left_bytes < 0:
            self._older, self._younger = self._younger, {}
            self._left_bytes = self._half_bytes


def _size_bytes(ref: Ref, record: Record | None) -> int:
    (_, partition), (_, name) = ref
    size_bytes = _OVERHEAD_BYTES + len(partition) + len(name)
    return size_bytes if record is None else size_bytes + len(record[0])
