"""A store is closed while its threads still write and sync: no object is used from two threads, and
no caller waits for ever."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from strongroom.engines.base import EngineError, Unavailable
from strongroom.testing.contract.subject import pieces
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import SEGMENT_BYTES, store_on


class _SlowSync:
    """A fault that blocks syncs of segments until the test releases it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, operation: str, path: str) -> int | None:
        if operation == "sync" and path.endswith(".seg"):
            self.reached.set()
            self.go_on.wait(30)
        return None


def test_a_segment_that_is_full_when_its_last_sync_ends_is_sealed_before_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def prove() -> None:
        slow, failed = _SlowSync(), list[EngineError]()
        disk = Disk(tmp_path)
        disk.fault = slow
        async with store_on(disk) as store:
            store.on_fatal(failed.append)
            body = bytes(SEGMENT_BYTES)
            writing = asyncio.create_task(store.contents.write(pieces(body), len(body)))
            await asyncio.to_thread(slow.reached.wait, 30)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            closing = asyncio.create_task(store.close())
            await asyncio.sleep(0.05)
            slow.go_on.set()
            await closing
            await asyncio.sleep(0.05)
        assert failed == []

    with caplog.at_level(logging.WARNING):
        asyncio.run(prove())
    assert caplog.messages == []
    log = tmp_path / "data" / "records.sqlite-wal"
    assert not log.exists() or log.stat().st_size == 0


def test_a_body_that_waits_for_its_sync_when_the_store_is_closed_is_refused(
    tmp_path: Path,
) -> None:
    async def prove() -> None:
        slow = _SlowSync()
        disk = Disk(tmp_path)
        disk.fault = slow
        async with store_on(disk) as store:
            first = asyncio.create_task(store.contents.write(pieces(bytes(1000)), 1000))
            await asyncio.to_thread(slow.reached.wait, 30)
            second = asyncio.create_task(store.contents.write(pieces(bytes(1000)), 1000))
            await asyncio.sleep(0.05)
            closing = asyncio.create_task(store.close())
            await asyncio.sleep(0.05)
            slow.go_on.set()
            await closing
            assert (await first).size_bytes == 1000
            with pytest.raises(Unavailable):
                await asyncio.wait_for(second, 60)

    asyncio.run(prove())
