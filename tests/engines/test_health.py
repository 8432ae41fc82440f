"""The embedded engine's health while its disk hangs: the check returns in bounded time."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

from strongroom.clock import ManualClock
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.testing.contract.subject import face, put
from strongroom.values import Health

_SOON_S = 0.05
_LONG_S = 60.0


class _Files(OsFiles):
    """A disk that may fail to report its free space."""

    fails = False
    is_full = False

    def free_bytes(self, path: str) -> int:
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if self.is_full:
            return 0
        return super().free_bytes(path)


def test_a_disk_that_hangs_is_not_healthy(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await open_store(tmp_path / "data", ManualClock(), test_clock=True)
        hangs = threading.Event()
        held = store._committer.between_groups(hangs.wait)
        await asyncio.sleep(0)
        for _ in range(3):
            assert await store.health(_SOON_S) is Health.STALLED
        assert len(store._committer._queue) == 1, "all who ask wait for one answer"
        hangs.set()
        assert await store.health(_LONG_S) is Health.SERVING
        await held
        await put(store, (face(), b"goes on"))
        await store.close()

    asyncio.run(prove())


def test_a_disk_that_does_not_say_what_is_free_is_not_healthy(tmp_path: Path) -> None:
    async def prove() -> None:
        files = _Files()
        options = EmbeddedOptions(files=files, log_ahead=False)
        store = await open_store(tmp_path / "data", ManualClock(), test_clock=True, options=options)
        files.fails = True
        assert await store.health(_LONG_S) is Health.STALLED
        files.fails = False
        assert await store.health(_LONG_S) is Health.SERVING
        await store.close()

    asyncio.run(prove())


def test_without_the_space_kept_back_it_is_full_until_that_is_there_again(tmp_path: Path) -> None:
    async def prove() -> None:
        files = _Files()
        files.is_full = True
        options = EmbeddedOptions(files=files, log_ahead=False, ballast_bytes=64 * 1024)
        store = await open_store(tmp_path / "data", ManualClock(), test_clock=True, options=options)
        assert await store.health(_LONG_S) is Health.FULL
        files.is_full = False
        for _ in range(500):
            if await store.health(_LONG_S) is Health.SERVING:
                break
            await asyncio.sleep(0.01)
        assert await store.health(_LONG_S) is Health.SERVING
        await store.close()

    asyncio.run(prove())
