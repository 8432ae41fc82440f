"""An embedded store on a simulated disk, opened and closed around a block of a test.

Lives here: the set-up that several test modules share. Must not live here: tests.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from strongroom.clock import Clock, ManualClock
from strongroom.engines.embedded.bodies import segments
from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.disks.sqlite import DiskVfs

LARGE_BODY_BYTES: int = segments.LARGE_BODY_BYTES  # tests set it
SEGMENT_BYTES: Final = 128 * 1024
BALLAST_BYTES: Final = 4 * 1024 * 1024
_vfs_numbers = itertools.count()


def options_on(
    disk: Disk,
    vfs: DiskVfs,
    large_body_bytes: int,
    ballast_bytes: int,
    compact: bool = True,
    files: Callable[[Disk], Files] = DiskFiles,
    log_ahead: bool = True,
) -> EmbeddedOptions:
    """Return options for a store on the disk, with small segments."""
    return EmbeddedOptions(
        files=files(disk),
        vfs=vfs.name,
        segment_bytes=SEGMENT_BYTES,
        large_body_bytes=large_body_bytes,
        ballast_bytes=ballast_bytes,
        compact=compact,
        log_ahead=log_ahead,
    )


@asynccontextmanager
async def store_on(
    disk: Disk,
    clock: Clock | None = None,
    compact: bool = False,
    commits_on_loop: bool = False,
    log_ahead: bool = True,
) -> AsyncIterator[EmbeddedEngine]:
    """Open a store in `data` on the disk, with small segments. Commits run on the thread, so that
    none blocks the test's loop, unless `commits_on_loop`."""
    with DiskVfs(disk, f"strongroom-test-{next(_vfs_numbers)}") as vfs:
        options = options_on(
            disk, vfs, LARGE_BODY_BYTES, BALLAST_BYTES, compact, log_ahead=log_ahead
        )
        store = await open_store(
            Path(disk.root, "data"), clock or ManualClock(), test_clock=True, options=options
        )
        if not commits_on_loop:
            store._thread.use_thread_for(math.inf)
        try:
            yield store
        finally:
            await store.close()


class Gate:
    """A fault that blocks syncs of the log while it is shut."""

    def __init__(self) -> None:
        self.syncs = 0
        self.reached = threading.Event()
        self._open = threading.Event()
        self._open.set()

    def __call__(self, operation: str, path: str) -> int | None:
        if operation == "sync" and path.endswith("-wal"):
            self.syncs += 1
            self.reached.set()
            self._open.wait(30)
        return None

    def shut(self) -> None:
        """Block all syncs from now on."""
        self.reached.clear()
        self._open.clear()

    def open(self) -> None:
        """Let all syncs proceed."""
        self._open.set()
