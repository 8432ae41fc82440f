"""A cache of committed records for small reads: a hit costs a tenth of a read from SQLite.

Lives here: which records are cached, and when they may be answered.

Hits always belong to one committed snapshot, by this rule. The records that a commit writes are
removed before the commit becomes visible, and are not cached again until it is over. So a commit in
progress changes no cached record, and all cached records together are one snapshot.

For the same reason, cached records agree with a snapshot of SQLite that is taken in the same turn
of the loop. What the commit writes is not cached. All other records are the same before and after
it.

A record that is read for the first time is not cached: it may be one of a million. That would cost
half as much as the read, and displace records that are read often.

The cache has two halves. When the younger is full, the older is dropped, and the younger takes its
place. A hit in the older half moves the record to the younger. So no search for a victim is needed,
and records in use stay.
"""

from __future__ import annotations

import enum
from array import array
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Final

from strongroom.engines.base import Record, Ref

SIZE_BYTES_MAX: Final = 8 * 1024 * 1024
# The memory of a reference, a record, their parts, and their place in the dictionary.
_OVERHEAD_BYTES: Final = 600
# Larger values would displace many small ones, and save less than they cost.
_VALUE_BYTES_MAX: Final = 16 * 1024

# About as many as can be cached.
_READ_ONCE_SLOTS: Final = 8192

_Half = dict[Ref, Record | None]


class Uncached(enum.Enum):
    """The result for a record that is not cached; None means that the record is absent."""

    UNKNOWN = enum.auto()


UNKNOWN: Final = Uncached.UNKNOWN


class RecentKeys:
    """Tells in little memory whether a key was requested before.

    It remembers the hashes of keys, each until another key maps to the same place.

    Arguments:
        places: how many can be remembered.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._marks = array("q", bytes(8 * places))

    def check_and_add(self, one: Hashable) -> bool:
        """Return whether a key was seen before, as far as that is remembered, and remember it."""
        mark = hash(one)
        place = mark % self._places
        was_seen = self._marks[place] == mark
        self._marks[place] = mark
        return was_seen


class RecordCache:
    """Records that were read more than once, absent ones included. Used on the event loop."""

    def __init__(self, size_bytes_max: int = SIZE_BYTES_MAX) -> None:
        self._half_bytes = size_bytes_max // 2
        self._left_bytes = self._half_bytes  # of the younger half
        self._read_once = RecentKeys(_READ_ONCE_SLOTS)
        self._younger: _Half = {}
        self._older: _Half = {}
        self._being_committed: Collection[Ref] = ()
        self._cached_before: list[Ref] = []  # those of them that were cached

    def get(self, refs: Sequence[Ref]) -> list[Record | None] | None:
        """From one snapshot, in the order of `refs`; None unless all are cached."""
        found = list(map(self._younger.get, refs))
        return self._get_older(refs) if None in found else found

    def get_one(self, ref: Ref) -> Record | Uncached | None:
        """Like `get`; UNKNOWN if it is not cached."""
        found = self._younger.get(ref, UNKNOWN)
        if found is UNKNOWN and ref in self._older:
            found = self._older.pop(ref)
            self._put(ref, found)
            self._rotate_when_full()
        return found

    def _get_older(self, refs: Sequence[Ref]) -> list[Record | None] | None:
        """Like `get`, where one is absent or not in the younger half."""
        records: list[Record | None] = []
        for ref in refs:
            record = self.get_one(ref)
            if record is UNKNOWN:
                return None
            records.append(record)
        return records

    def split(self, refs: Sequence[Ref]) -> tuple[list[Record | Uncached | None], list[Ref]]:
        """What is cached, in order, and the addresses of all others. See `completed`."""
        known = list(map(self.get_one, refs))
        return known, [ref for ref, one in zip(refs, known, strict=True) if one is UNKNOWN]

    def keep(self, refs: Sequence[Ref], records: Sequence[Record | None]) -> None:
        """Records that were just read, in one snapshot. Those of a first read are not kept."""
        if not self._read_once.check_and_add(refs[-1]):
            return
        for ref, record in zip(refs, records, strict=True):
            if ref not in self._younger and ref not in self._being_committed:
                self._put(ref, record)
        self._rotate_when_full()

    def begin_commit(self, refs: Collection[Ref]) -> None:
        """Prepare for a commit that writes these records; there is one at a time.

        Arguments:
            refs: the collection must not change until `end_commit`.
        """
        self._being_committed = refs
        self._cached_before = [ref for ref in refs if self._forget(ref)]

    def end_commit(self, committed: Mapping[Ref, Record | None]) -> None:
        """End that commit. The records that it wrote are cached again if they were cached before.

        Arguments:
            committed: all that it wrote; empty when it failed.
        """
        self._being_committed = ()
        for ref in self._cached_before:
            if ref in committed:
                self._put(ref, committed[ref])
        self._rotate_when_full()

    def _forget(self, ref: Ref) -> bool:
        """Return whether it was cached."""
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

    def _rotate_when_full(self) -> None:
        if self._left_bytes < 0:
            self._older, self._younger = self._younger, {}
            self._left_bytes = self._half_bytes


def completed(
    known: Sequence[Record | Uncached | None], read: Sequence[Record | None]
) -> list[Record | None]:
    """Return several records in their order: those that were cached, and those that were read."""
    rest = iter(read)
    return [next(rest) if one is UNKNOWN else one for one in known]


def _size_bytes(ref: Ref, record: Record | None) -> int:
    (_, partition), (_, name) = ref
    size_bytes = _OVERHEAD_BYTES + len(partition) + len(name)
    return size_bytes if record is None else size_bytes + len(record[0])
