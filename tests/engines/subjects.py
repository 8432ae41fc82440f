"""The project's own engines as subjects of the contract suite.

Lives here: how the memory engine and the embedded engine are started, filled up and broken. Must
not live here: cases.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
from pathlib import Path
from typing import Final

from strongroom.clock import ManualClock
from strongroom.engines.base import StorageEngine
from strongroom.engines.embedded.disk.directory import DirectoryLayout
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.memory import MemoryEngine
from strongroom.testing.contract.subject import HeldCommits
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.disks.sqlite import DiskVfs

_BALLAST_BYTES: Final = 1024 * 1024
_SEGMENT_BYTES: Final = 1024 * 1024
_vfs_numbers = itertools.count()


class Held:
    """Commits that wait until `release`; see HeldCommits."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._open = asyncio.Event()

    async def __call__(self) -> None:
        self._reached.set()
        await self._open.wait()

    @property
    def is_reached(self) -> bool:
        """Whether a commit waits, or has waited."""
        return self._reached.is_set()

    async def reached(self) -> None:
        await self._reached.wait()

    def release(self) -> None:
        self._open.set()


class MemorySubject:
    """The memory engine, with as many gateways as a case asks for.

    Arguments:
        make: the class of the engine, or a mutant of it.
    """

    store: StorageEngine

    def __init__(self, make: type[MemoryEngine] = MemoryEngine) -> None:
        self.clock = ManualClock()
        self._memory = make(self.clock)
        self._others: list[MemoryEngine] = []
        self._held: list[Held] = []
        # A commit that is cut off leaves nothing, or all of its steps.
        self._cuts = itertools.cycle((0, 1_000_000))

    async def start(self) -> None:
        self.store = self._memory

    async def second(self, skew_s: float = 0.0) -> StorageEngine:
        other = self._memory.second(skew_s)
        self._others.append(other)
        return other

    def hold_commits(self, store: StorageEngine) -> HeldCommits:
        held = Held()
        self._held.append(held)
        self._gateway(store).before_commit = held
        return held

    def stop_heartbeats(self, store: StorageEngine) -> None:
        self._gateway(store).gateways.is_beating = False

    def resume_heartbeats(self, store: StorageEngine) -> None:
        self._gateway(store).gateways.is_beating = True

    def _gateway(self, store: StorageEngine) -> MemoryEngine:
        (found,) = [one for one in (self._memory, *self._others) if one is store]
        return found

    async def restart(self) -> None:
        self._memory = self._memory.restarted()
        self.store = self._memory

    async def stop(self) -> None:
        for held in self._held:
            held.release()
        for one in (*self._others, self._memory):
            await one.close()

    def fill(self) -> None:
        self._memory.data.capacity_bytes = self._memory.data.size_bytes

    def free(self) -> None:
        self._memory.data.capacity_bytes = None

    def break_next_commit(self) -> None:
        self._memory.cut_after_steps(next(self._cuts))

    def damage(self, content_id: int) -> None:
        self._memory.damage(content_id)


class EmbeddedSubject:
    """The embedded engine on a simulated disk, with small segments.

    Arguments:
        directory: an empty directory.
    """

    store: StorageEngine

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock()
        self.disk = Disk(directory)
        self._vfs = DiskVfs(self.disk, f"strongroom-subject-{next(_vfs_numbers)}")
        self._path = directory / "data"
        self.options = EmbeddedOptions(
            files=DiskFiles(self.disk),
            vfs=self._vfs.name,
            segment_bytes=_SEGMENT_BYTES,
            ballast_bytes=_BALLAST_BYTES,
            log_ahead=False,  # a disk that is full has no room for the log either
        )

    async def start(self) -> None:
        self.store = await open_store(self._path, self.clock, test_clock=True, options=self.options)

    async def restart(self) -> None:
        await self.store.close()
        self.disk.fault = None
        await self.start()

    async def stop(self) -> None:
        await self.store.close()
        self._vfs.unregister()

    def fill(self) -> None:
        self.disk.capacity_bytes = self.disk.used_bytes()

    def free(self) -> None:
        self.disk.capacity_bytes = None

    def break_next_commit(self) -> None:
        self.disk.fault = _fail_sync_of_log

    def damage(self, content_id: int) -> None:
        layout = DirectoryLayout(str(self._path))
        reader = Reader(layout.records, self._vfs.name, scanning=True)
        place = reader.locate(content_id)
        reader.close()
        assert place is not None, "it was adopted"
        with open(layout.segment(place.segment), "r+b") as file:
            file.seek(place.offset + place.length // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))


def _fail_sync_of_log(operation: str, path: str) -> int | None:
    return errno.EIO if operation == "sync" and path.endswith("-wal") else None
