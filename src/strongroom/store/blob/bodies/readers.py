"""Who reads a body that is in parts: its parts are not swept before they finish.

Lives here: the readers of this process, by blob. Must not live here: sweeping.
"""

from __future__ import annotations

from strongroom.engines.base import Partition


class Readers:
    """Who is reading a body made of many contents: its contents are not dropped before they
    finish."""

    def __init__(self) -> None:
        self._active: dict[Partition, set[Reading]] = {}

    def begin(self, partition: Partition) -> Reading:
        """Register before looking at the head; call `end` when done."""
        reading = Reading(self, partition)
        self._active.setdefault(partition, set()).add(reading)
        return reading

    def finish(self, reading: Reading) -> None:
        """Forget a reader. Idempotent."""
        active = self._active.get(reading.partition)
        if active is not None:
            active.discard(reading)
            if not active:
                del self._active[reading.partition]

    def snapshot(self, partition: Partition) -> frozenset[Reading]:
        """Who reads now; those that come later see what was committed before."""
        return frozenset(self._active.get(partition, ()))


class Reading:
    """One reader of one partition."""

    __slots__ = ("_readers", "done", "partition")

    def __init__(self, readers: Readers, partition: Partition) -> None:
        self._readers = readers
        self.partition = partition
        self.done = False

    def end(self) -> None:
        """The reader is finished. Idempotent."""
        if not self.done:
            self.done = True
            self._readers.finish(self)
