"""The readers and writers of sparse content in this process.

Lives here: the registers by which a long read sees one committed state while writes continue.

Why a reader sees one state. It registers, and waits for the mutations that are being decided at
that time. Only then does it read the owner's record; the version of that record is its position. A
mutation that decides later finds the reader in the register, and keeps the versions of leaves that
it may still need. Until the reader has a position, mutations keep everything. So only data outside
of the reader's state is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from strongroom.engines.base import Partition
from strongroom.store.core.extents.change import Pins

T = TypeVar("T")

_ANYWHERE: Final = 1 << 64


class MapReaders:
    """The readers and mutations of all maps, by their partitions. This state is in memory only: it
    ends with the process, and so do the reads."""

    def __init__(self) -> None:
        self._readers: dict[Partition, set[MapReading]] = {}
        self._mutations: dict[Partition, set[asyncio.Event]] = {}

    def begin(self, partition: Partition) -> MapReading:
        """Register a reader before it reads the owner's record. It calls `wait_for_mutations` and
        `set_position`, and `end` when done."""
        running = tuple(self._mutations.get(partition, ()))
        reading = MapReading(self, partition, running)
        self._readers.setdefault(partition, set()).add(reading)
        return reading

    def finish(self, reading: MapReading) -> None:
        """Idempotent."""
        _remove(self._readers, reading.partition, reading)

    @contextmanager
    def mutating(self, partition: Partition) -> Iterator[None]:
        """Wrap each update that decides a mutation of a map in this partition."""
        over = asyncio.Event()
        self._mutations.setdefault(partition, set()).add(over)
        try:
            yield
        finally:
            over.set()
            _remove(self._mutations, partition, over)

    def pins(self, partition: Partition, snapshot: int) -> Pins:
        """Return the present readers of earlier states; call it again in each decision. `snapshot`
        is the newest snapshot's stamp, 0 = there is none."""
        readers = self._readers.get(partition, ())
        return Pins(snapshot, max((reading.at for reading in readers), default=0))

    def positions(self, partition: Partition) -> frozenset[int] | None:
        """Return the stamps at which readers read; None while a reader has no position yet."""
        stamps = frozenset(reading.at for reading in self._readers.get(partition, ()))
        return None if _ANYWHERE in stamps else stamps


class MapReading:
    def __init__(
        self, readers: MapReaders, partition: Partition, running: tuple[asyncio.Event, ...]
    ) -> None:
        self._readers = readers
        self._running = running
        self.partition = partition
        self.at = _ANYWHERE

    async def wait_for_mutations(self) -> None:
        """Return when the mutations that were running at the beginning are over."""
        for over in self._running:
            await over.wait()

    def set_position(self, at: int) -> None:
        """Record that the reader reads the state of the stamp `at`: the version of the owner's
        record, or a snapshot's stamp."""
        self.at = at

    def end(self) -> None:
        """Idempotent."""
        self._readers.finish(self)


def _remove(register: dict[Partition, set[T]], partition: Partition, one: T) -> None:
    members = register.get(partition)
    if members is not None:
        members.discard(one)
        if not members:
            del register[partition]
