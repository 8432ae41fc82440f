"""The readers of bodies in parts: the parts are not swept before they finish.

Lives here: the readers of this process by blob, and how other processes learn of them. Source: the
contract of readers in engines/gateways.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from strongroom.engines.base import Partition
from strongroom.engines.gateways import READING_S_MAX, Gateways, ReaderMark
from strongroom.store.blob.bodies.blocks import Span
from strongroom.store.core.extents import MapReaders, MapReading


class Readers:
    """The readers of one process. A sweep of this process waits for the readers of one blob; other
    gateways learn of all readers together, through their marks.

    Attributes:
        maps: the readers of bodies that change in place, with their stamps.
    """

    def __init__(self) -> None:
        self.maps = MapReaders()
        self._active: dict[Partition, set[Reading]] = {}

    def begin(self, partition: Partition, gateways: Gateways) -> Reading:
        """Register a reader. Call this before you read the head, and `end` when done. Raises
        Unavailable.

        For a body that changes in place, call `wait_for_mutations` before you read the head and
        `set_position` after it.
        """
        mark = gateways.begin_reading()
        reading = Reading(self, partition, mark, self.maps.begin(partition))
        self._active.setdefault(partition, set()).add(reading)
        return reading

    def finish(self, reading: Reading) -> None:
        """Idempotent."""
        active = self._active.get(reading.partition)
        if active is not None:
            active.discard(reading)
            if not active:
                del self._active[reading.partition]

    def snapshot(self, partition: Partition) -> frozenset[Reading]:
        """Later readers see everything that was committed before."""
        return frozenset(self._active.get(partition, ()))


class Reading:
    """One reader of one partition. After READING_S_MAX it names the contents that it still reads.
    So a client that stalls protects nothing else on other gateways.

    Attributes:
        left: the spans that are still to be read, the present one included; None = not known.
    """

    __slots__ = ("_map", "_mark", "_readers", "_timer", "done", "is_kept", "left", "partition")

    def __init__(
        self, readers: Readers, partition: Partition, mark: ReaderMark, in_map: MapReading
    ) -> None:
        self._map = in_map
        self._readers = readers
        self._mark = mark
        self._timer = asyncio.get_running_loop().call_later(READING_S_MAX, self.narrow)
        self.partition = partition
        self.left: Collection[Span] | None = None
        self.is_kept = False
        self.done = False

    def keep(self) -> Callable[[], None]:
        """Keep the reader after the block that began it. Return the function that ends it."""
        self.is_kept = True
        return self.end

    async def wait_for_mutations(self) -> None:
        """Return when the changes that were in progress at the beginning are decided."""
        await self._map.wait_for_mutations()

    def set_position(self, position: int) -> None:
        """Record which state is read: `Body.position` of the body that was found."""
        self._map.set_position(position)

    def narrow(self) -> None:
        """Name the contents that are left, now and again after each READING_S_MAX."""
        self._timer.cancel()
        if self.left is not None:
            self._mark.narrow({span.content for span in self.left})
        self._timer = asyncio.get_running_loop().call_later(READING_S_MAX, self.narrow)

    def end(self) -> None:
        """Idempotent."""
        if not self.done:
            self.done = True
            self._timer.cancel()
            self._map.end()
            self._mark.end()
            self._readers.finish(self)
