"""The answer to a copy that is pending waits for its end (B-CPY-17)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from strongroom.engines.base import Record, Ref, Unavailable
from strongroom.limits import COPY_AT_ONCE_BYTES_MAX
from strongroom.operations.blob import blob, copy
from strongroom.services.blob.copies import copying
from strongroom.services.blob.copies.copying import CopyResult
from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.runner import Services
from tests.services import blob_calls as do
from tests.services.container_calls import Bytes, Sender, run
from tests.services.service_engine import settle
from tests.services.sweeps import drop_container, fresh, swept

LARGE = b"x" * (COPY_AT_ONCE_BYTES_MAX + 1)
LONG_S = 600.0
SOON_S = 20.0


class Hold:
    """Keep each copy pending until `release`."""

    def __init__(self) -> None:
        self._released = asyncio.Event()

    def is_held(self, destination: str) -> bool:
        return not self._released.is_set()

    async def wait_until_released(self, destination: str) -> None:
        await self._released.wait()

    def release(self) -> None:
        self._released.set()


class Leaver(Sender):
    """The client of a waiting request, which may disconnect."""

    def __init__(self) -> None:
        super().__init__(Bytes(b""))
        self._callbacks: list[Callable[[], None]] = []

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def leave(self) -> None:
        self.is_disconnected = True
        for callback in self._callbacks:
            callback()


async def waiting_for(on: Services, client: Leaver | None = None) -> asyncio.Task[CopyResult]:
    """Start a copy whose response waits."""
    await do.put(on, "source", LARGE)
    answer = asyncio.create_task(do.start_copy(on, "source", "copy", LONG_S, client))
    store: Any = on.store
    for _ in range(1000):
        if store.watching():
            break
        await asyncio.sleep(0.001)
    assert store.watching() == 1 and not answer.done()
    assert await do.read(on, "copy") == b""
    return answer


async def answered(answer: asyncio.Task[CopyResult]) -> CopyResult:
    async with asyncio.timeout(SOON_S):
        return await answer


def test_its_success() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        answer = await waiting_for(on)
        await swept(on, sweeper)
        made = await answered(answer)
        found = await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)
        assert (made.copy_status, made.etag) == ("success", found.blob.etag)
        assert (made.copy_id, made.modified) == (found.blob.copy.id, found.blob.modified)
        assert found.blob.size_bytes == len(LARGE)

    run(test)


def test_its_abortion() -> None:
    """B-CPY-07 B-CPY-17: a waiting request does not prevent the abort."""

    async def test() -> None:
        on, sweeper = await fresh()
        answer = await waiting_for(on)
        pending = await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)
        await do.run(on, copy.ABORT_COPY, "copy", copying.AbortCopy(pending.blob.copy.id))
        assert (await answered(answer)).copy_status == "aborted"
        await swept(on, sweeper)
        assert await do.read(on, "copy") == b""

    run(test)


def test_its_failure() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        answer = await waiting_for(on)
        await on.held.of(CopySources).close()  # so that the source is opened again
        await do.put(on, "source", b"another")
        await swept(on, sweeper)
        assert (await answered(answer)).copy_status == "failed"

    run(test)


def test_a_store_that_cannot_be_read_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy has begun: an error would let the client begin it again."""

    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "source", LARGE)
        read = on.store.read

        async def lost(reads: Sequence[Ref]) -> list[Record | None]:
            records = await read(reads)
            pairs = zip(reads, records, strict=True)
            if any(ref.partition.name == b"copy" and record for ref, record in pairs):
                raise Unavailable("the database cannot be reached")
            return records

        monkeypatch.setattr(on.store, "read", lost)
        answer = await answered(asyncio.create_task(do.start_copy(on, "source", "copy", LONG_S)))
        monkeypatch.undo()
        found = await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)
        assert (answer.copy_status, answer.copy_id) == ("pending", found.blob.copy.id)

    run(test)


def test_a_server_that_stops_answers_as_it_is() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        answer = await waiting_for(on)
        on.waiting.stop()
        on.store.stop_waiting()
        assert (await answered(answer)).copy_status == "pending"
        await swept(on, sweeper)
        assert await do.read(on, "copy") == LARGE

    run(test)


def test_a_client_that_has_gone_is_not_waited_for() -> None:
    async def test() -> None:
        on, _ = await fresh()
        client = Leaver()
        answer = await waiting_for(on, client)
        client.leave()
        assert (await answered(answer)).copy_status == "pending"

    run(test)


def test_a_clock_that_is_moved_ends_no_wait() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        answer = await waiting_for(on)
        on.store.advance(10 * LONG_S)
        await settle()
        assert not answer.done()
        await swept(on, sweeper)
        assert (await answered(answer)).copy_status == "success"

    run(test)


def test_after_its_time_it_is_answered_as_pending() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "source", LARGE)
        made = await do.start_copy(on, "source", "copy", 0.05)
        assert made.copy_status == "pending"
        await swept(on, sweeper)
        assert await do.read(on, "copy") == LARGE

    run(test)


@pytest.mark.parametrize("gone", [False, True])
def test_a_blob_that_is_another_by_now_is_answered_as_begun(gone: bool) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "source", LARGE)
        real = on.waiting.until_answered
        begun = []

        async def later(
            wait_s: float, attempt: Callable[[], Awaitable[CopyResult]], _: object
        ) -> CopyResult:
            begun.append((await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)).blob)
            await swept(on, sweeper)
            if gone:
                await do.delete(on, "copy")
                await drop_container(on)
                await swept(on, sweeper)
            else:
                await do.put(on, "copy", b"by other means")
            return await real(wait_s, attempt)

        on.waiting.until_answered = later  # type: ignore[assignment,method-assign]  # a double
        made = await do.start_copy(on, "source", "copy", LONG_S)
        assert (made.copy_status, made.etag) == ("pending", begun[0].etag)

    run(test)


def test_a_small_copy_that_is_held_is_pending() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        hold = on.held.of(CopySources).hold = Hold()
        await do.put(on, "source", b"small")
        made = await do.start_copy(on, "source", "copy")
        assert made.copy_status == "pending"
        work = asyncio.create_task(swept(on, sweeper))
        await settle()
        assert await do.read(on, "copy") == b""
        hold.release()
        await work
        assert await do.read(on, "copy") == b"small"

    run(test)
