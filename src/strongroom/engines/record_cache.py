"""Committed records in memory, for reads of a few: a hit costs a tenth of what SQLite asks.

Lives here: what is kept, and when it may be told. Must not live here: reading or writing it.

The rule that keeps it from ever telling of two moments: what a commit writes is let go of before
that commit can be seen, and is not kept again until it is over. So every record here is as it is
both before and after whatever commit may be under way, and any of them together are one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from strongroom.engines.base import Record, Ref

SIZE_BYTES_MAX: Final = 8 * 1024 * 1024
# A reference, a record, their parts, and their place in the dictionary.
_OVERHEAD_BYTES: Final = 600
# Larger values would push out many small ones, and save less than they cost.
_VALUE_BYTES_MAX: Final = 16 * 1024


class RecordCache:
    """Records that were read, and that some are absent; when there are too many, those that were
    kept first go first. On the event loop."""

    def __init__(self, size_bytes_max: int = SIZE_BYTES_MAX) -> None:
        self._size_bytes_max = size_bytes_max
        self._size_bytes = 0
        self._known: dict[Ref, Record | None] = {}
        self._barred: frozenset[Ref] = frozenset()

    def get(self, refs: Sequence[Ref]) -> list[Record | None] | None:
        """The records from one snapshot, in the order asked; None unless all are here."""
        known = self._known
        try:
            return [known[ref] for ref in refs]
        except KeyError:
            return None

    def keep(self, refs: Sequence[Ref], records: Sequence[Record | None]) -> None:
        """Remember what was just read, in one snapshot."""
        for ref, record in zip(refs, records, strict=True):
            if ref in self._known or ref in self._barred:
                continue
            size_bytes = _size_bytes(ref, record)
            if size_bytes <= _VALUE_BYTES_MAX:
                self._known[ref] = record
                self._size_bytes += size_bytes
        while self._size_bytes > self._size_bytes_max:
            self._forget(next(iter(self._known)))

    def bar(self, refs: Iterable[Ref]) -> None:
        """A commit that writes these is about to begin; there is one at a time."""
        self._barred = frozenset(refs)
        for ref in self._barred & self._known.keys():
            self._forget(ref)

    def lift(self) -> None:
        """It is over, however it ended."""
        self._barred = frozenset()

    def _forget(self, ref: Ref) -> None:
        self._size_bytes -= _size_bytes(ref, self._known.pop(ref))


def _size_bytes(ref: Ref, record: Record | None) -> int:
    value = b"" if record is None else record.value
    return _OVERHEAD_BYTES + len(ref.partition.name) + len(ref.key.name) + len(value)
