"""What the scrub needs of a store.

Lives here: the parts of the store that it uses, and the thread that reads for it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from strongroom.engines.embedded.bodies.contents import EmbeddedContents
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.commit.group_commit import Committer
from strongroom.engines.embedded.disk.directory import DataDirectory, DirectoryLayout
from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.disk.threads import started_pool
from strongroom.engines.embedded.log.checkpoints import Checkpointer
from strongroom.engines.embedded.log.live_check import LogMoment
from strongroom.engines.embedded.records.scrub_reader import ScrubReader

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ScrubSource:
    """The parts of a store. Used on the event loop.

    Arguments:
        contents: opens a content, which pins its segment.
    """

    directory: DataDirectory
    contents: EmbeddedContents
    segments: SegmentStore
    committer: Committer
    checkpointer: Checkpointer

    @property
    def layout(self) -> DirectoryLayout:
        return self.directory.layout

    @property
    def files(self) -> Files:
        return self.directory.files

    async def log_moment(self) -> LogMoment:
        """Between two commits. Raises EngineError, OSError."""
        moments: list[LogMoment] = []
        await self.committer.between_groups(lambda: moments.append(self.checkpointer.moment()))
        return moments[0]

    def live_bytes(self) -> int:
        return self.segments.sizes()[1]

    def may_write(self) -> bool:
        """Return whether there is space for more than users' data."""
        return not self.committer.full_disk.is_low

    def connect(self) -> ScrubReader:
        return ScrubReader(self.layout.records, self.checkpointer.vfs)


class ScrubThread:
    """The thread that reads, and its connection to the records. Neither exists before it is needed.

    Arguments:
        connect: opens the connection.
    """

    def __init__(self, connect: Callable[[], ScrubReader]) -> None:
        self._connect = connect
        self._pool: ThreadPoolExecutor | None = None
        self._reader: ScrubReader | None = None

    async def run(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Raises what `work` raises; MemoryError if the thread cannot be started."""
        self._pool = self._pool or started_pool(1, "strongroom-scrub")
        call = functools.partial(work, *given, **named)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def ask(self, question: Callable[[ScrubReader], T]) -> T:
        """Asked on the thread. Raises apsw.Error."""
        return await self.run(lambda: question(self._opened()))

    async def close(self) -> None:
        """End the thread after its present work, and close the connection. Idempotent."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.submit(self._close_reader)
            await asyncio.to_thread(pool.shutdown)

    def _opened(self) -> ScrubReader:
        if self._reader is None:
            self._reader = self._connect()
        return self._reader

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
