"""The sweeper: no named content is ever dropped, and no unnamed content stays."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.base import (
    Commit,
    Full,
    Item,
    Page,
    Partition,
    Step,
    Unavailable,
    Write,
    Written,
)
from strongroom.engines.memory.contents import MemoryContents
from strongroom.limits import COPY_AT_ONCE_BYTES_MAX, UNCOMMITTED_LIFETIME_S
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.services import sweeper as sweeper_module
from strongroom.services.blob import sweep as blob_sweep
from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.blob.bodies.readers import Readers, Reading
from strongroom.store.core import keys
from strongroom.store.core.records import JobKind
from tests.services import blob_calls as do
from tests.services.container_calls import ACCOUNT, create, run
from tests.services.sweeps import drop_container, fresh, swept

BIG = 30_000
INCLUDE, ONLY = DeleteSnapshots.INCLUDE, DeleteSnapshots.ONLY


def test_replaced_block_lists_and_unlisted_blocks_go() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        for generation in range(3):
            for number in range(4):
                await do.stage(on, "b", f"{number}", bytes((generation, number)) * BIG)
            await do.commit(on, "b", ["0", "2"])
        assert await swept(on, sweeper) > 0
        wanted = b"".join(bytes((2, number)) * BIG for number in (0, 2))
        assert await do.read(on, "b") == wanted
        assert len(do.left(on)[1]) == 2

    run(test)


def test_what_a_snapshot_shares_stays_until_the_last_of_them_is_gone() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put_block(on, "b", b"x" * BIG)
        first = await do.snapshot(on, "b")
        second = await do.snapshot(on, "b")
        await do.put(on, "b", b"y" * BIG)
        await swept(on, sweeper)
        assert await do.read(on, "b", first) == b"x" * BIG
        await do.delete(on, "b", ticks=first)
        await swept(on, sweeper)
        assert await do.read(on, "b", second) == b"x" * BIG
        await do.delete(on, "b", ticks=second)
        await swept(on, sweeper)
        assert await do.read(on, "b") == b"y" * BIG
        assert len(do.left(on)[1]) == 1

    run(test)


def test_a_blob_that_is_read_keeps_its_blocks_until_the_reader_has_finished() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put_block(on, "b", b"x" * BIG)
        reading = await begin_reading(on, "b")
        await do.put(on, "b", b"")
        assert await swept(on, sweeper) == 0
        assert len(do.left(on)[1]) == 1
        late = await begin_reading(on, "b")
        reading.end()
        assert await swept(on, sweeper) > 0
        assert do.left(on)[1] == []
        late.end()

    run(test)


async def begin_reading(on: Services, name: str) -> Reading:
    """Begin a reader of a blob, which protects the parts of the blob's body."""
    place = await on.place(Service.BLOB, ACCOUNT, "photos")
    assert place is not None
    return on.held.of(Readers).begin(keys.blob(place.generation, name), on.store.gateways)


def when_it_reads(on: Services, prefix: bytes, act: Callable[[], Awaitable[None]]) -> None:
    """Run `act` once, just before a range that starts with `prefix` is read."""
    real = on.store.read_range
    done: list[bytes] = []

    async def read_range(
        partition: Partition, hidden: bool, first: bytes, until: bytes | None, max_records: int
    ) -> list[Item]:
        if first[:1] == prefix and not done:
            done.append(first)
            await act()
        return await real(partition, hidden, first, until, max_records)

    on.store.read_range = read_range  # type: ignore[method-assign]  # a double


@pytest.mark.parametrize("prefix", [keys.snapshot_range()[0], keys.RETIRED, keys.STAGED])
def test_a_body_that_is_replaced_while_the_blob_is_swept_is_not_forgotten(prefix: bytes) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        for text in ("old", "new"):
            await do.put_block(on, "b", text.encode() * BIG)
        when_it_reads(on, prefix, lambda: do.put(on, "b", b""))
        await swept(on, sweeper)
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)


@pytest.mark.parametrize("prefix", [keys.snapshot_range()[0], keys.RETIRED, keys.STAGED])
def test_a_snapshot_that_is_taken_while_the_blob_is_swept_keeps_its_content(prefix: bytes) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        for text in ("old", "first"):
            await do.put_block(on, "b", text.encode() * BIG)
        taken: list[int] = []

        async def overtake() -> None:
            await do.stage(on, "b", "2", b"second" * BIG)
            await do.commit(on, "b", ["2"])
            taken.append(await do.snapshot(on, "b"))
            await do.put(on, "b", b"third")

        when_it_reads(on, prefix, overtake)
        await swept(on, sweeper)
        await swept(on, sweeper)
        assert await do.read(on, "b", taken[0]) == b"second" * BIG
        assert len(do.left(on)[1]) == 1

    run(test)


def test_who_began_to_read_while_a_sweep_waits_is_waited_for_too() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        place = await on.place(Service.BLOB, ACCOUNT, "photos")
        assert place is not None
        partition = keys.blob(place.generation, "b")
        for text in ("1", "2"):
            await do.put_block(on, "b", text.encode() * BIG)
        await swept(on, sweeper)
        first = on.held.of(Readers).begin(partition, on.store.gateways)
        await do.put_block(on, "b", b"3" * BIG)
        await swept(on, sweeper)
        second = on.held.of(Readers).begin(partition, on.store.gateways)
        await do.put(on, "b", b"")
        assert await swept(on, sweeper) == 0
        first.end()
        await swept(on, sweeper)
        assert len(do.left(on)[1]) == 1, "what the second reader began with is still there"
        second.end()
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)


def test_a_sweep_that_waited_spares_what_was_given_up_meanwhile() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        place = await on.place(Service.BLOB, ACCOUNT, "photos")
        assert place is not None
        partition = keys.blob(place.generation, "b")
        readings = []
        for version in (b"0", b"1", b"2"):
            readings.append(on.held.of(Readers).begin(partition, on.store.gateways))
            await do.put_block(on, "b", version * BIG)
            await swept(on, sweeper)
        assert len(do.left(on)[1]) == 3
        for count, reading in zip((3, 2, 1), readings, strict=True):
            reading.end()
            await swept(on, sweeper)
            assert len(do.left(on)[1]) == count, "each reader's body stays until it has finished"
        assert await do.read(on, "b") == b"2" * BIG

    run(test)


def test_a_container_with_many_retired_bodies_leaves_nothing() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        for number in range(300):
            await do.put_block(on, "b", bytes((number % 256,)))
        await drop_container(on)
        await swept(on, sweeper)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


class Broken(MemoryContents):
    """Contents to which no more bodies can be written."""

    tries = 0

    async def write(self, *given: object, **more: object) -> Written:
        self.tries += 1
        raise Full


def test_a_job_that_fails_is_tried_again_but_not_at_once() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "source", bytes(COPY_AT_ONCE_BYTES_MAX + 1))
        await do.start_copy(on, "source", "copy")
        contents = on.store.contents
        contents.__class__ = Broken
        assert isinstance(contents, Broken)
        on.store.advance(1)
        sweeper = Sweeper(on)
        for _ in range(5):
            assert await sweeper.run_once() == 0
        assert contents.tries == 1

    run(test)


def test_one_blob_is_swept_by_one_job_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one sweep would remove the block list by which another finds the live contents."""
    active: list[Partition] = []
    most = 0

    async def watched(
        services: Services, removal: Any, partition: Partition, ended: int, held: Any
    ) -> Any:
        nonlocal most
        active.append(partition)
        most = max(most, active.count(partition))
        await asyncio.sleep(0.001)
        result = await blob_sweep.sweep_blob(services, removal, partition, ended, held)
        active.remove(partition)
        return result

    async def test() -> None:
        on, sweeper = await fresh()
        for number in range(5):
            for name in ("a", "b"):
                await do.stage(on, name, "1", bytes((number,)) * BIG)
                await do.commit(on, name, ["1"])
        monkeypatch.setattr(sweeper_module, "sweep_blob", watched)
        assert await swept(on, sweeper) >= 10
        assert most == 1
        assert len(do.left(on)[1]) == 2

    run(test)


def test_jobs_that_wait_for_readers_do_not_hold_up_others() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        place = await on.place(Service.BLOB, ACCOUNT, "photos")
        assert place is not None
        names = [f"{number:02}" for number in range(20)]
        for name in names:
            await do.stage(on, name, "1", b"x" * BIG)
            await do.commit(on, name, ["1"])
        await swept(on, sweeper)
        generation = place.generation
        readings = [
            on.held.of(Readers).begin(keys.blob(generation, name), on.store.gateways)
            for name in names[:-1]
        ]
        for name in names:
            await do.put(on, name, b"")
        assert await swept(on, sweeper) == 1
        assert len(do.left(on)[1]) == len(readings)
        for reading in readings:
            reading.end()
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)


def test_a_deleted_container_leaves_nothing_behind() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        for number in range(300):
            await do.put(on, f"small {number}", b"s")
        await do.put(on, "large", b"l" * BIG)
        await do.put_block(on, "listed", b"x" * BIG)
        await do.snapshot(on, "listed")
        await do.snapshot(on, "large")
        await do.stage(on, "listed", "2", b"y")
        await do.stage(on, "staged only", "1", b"z")
        await drop_container(on)
        await create(on)
        await do.put(on, "large", b"new")
        await swept(on, sweeper)
        assert await do.read(on, "large") == b"new"
        assert await do.read(on, "listed") is None
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_a_container_that_is_read_is_swept_later() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put_block(on, "b", b"x" * BIG)
        reading = await begin_reading(on, "b")
        await swept(on, sweeper)
        await drop_container(on)
        assert await swept(on, sweeper) == 0
        reading.end()
        assert await swept(on, sweeper) > 0
        assert do.left(on) == ([], [])

    run(test)


def test_an_upload_ends_a_week_after_its_last_block() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.stage(on, "idle", "1", b"x")
        await do.stage(on, "touched", "1", b"x")
        await do.put(on, "committed", b"kept")
        await do.stage(on, "committed", "1", b"x")
        on.store.advance(UNCOMMITTED_LIFETIME_S - 10)
        assert await swept(on, sweeper) == 0
        await do.stage(on, "touched", "2", b"x")
        on.store.advance(20)
        await swept(on, sweeper)
        await swept(on, sweeper)
        assert len(do.left(on)[1]) == 2, "the two blocks of the upload that was touched"
        assert await do.read(on, "committed") == b"kept"
        await do.commit(on, "touched", ["1", "2"])
        on.store.advance(2 * UNCOMMITTED_LIFETIME_S)
        await swept(on, sweeper)
        assert await do.read(on, "touched") == b"xx"

    run(test)


def test_a_large_copy_goes_on_after_its_answer() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        data = random.Random(1).randbytes(COPY_AT_ONCE_BYTES_MAX + 1)
        await do.put(on, "source", data)
        made = await do.start_copy(on, "source", "copy")
        assert made.copy_status == "pending"
        assert await do.read(on, "copy") == b""
        assert await swept(on, sweeper) > 0
        assert await do.read(on, "copy") == data
        await do.put(on, "copy", b"")
        await do.put(on, "source", b"")
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)


def test_a_copy_that_lost_its_open_source_opens_it_again() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        data = random.Random(2).randbytes(COPY_AT_ONCE_BYTES_MAX + 1)
        await do.put(on, "source", data)
        await do.start_copy(on, "source", "copy")
        await on.held.of(CopySources).close()
        await swept(on, sweeper)
        assert await do.read(on, "copy") == data

    run(test)


def test_a_copy_of_a_source_that_changed_meanwhile_fails() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "source", bytes(COPY_AT_ONCE_BYTES_MAX + 1))
        await do.start_copy(on, "source", "copy")
        await on.held.of(CopySources).close()
        await do.put(on, "source", b"another")
        await swept(on, sweeper)
        assert await do.read(on, "copy") == b""

    run(test)


def test_a_copy_whose_container_is_gone_is_given_up() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "source", bytes(COPY_AT_ONCE_BYTES_MAX + 1))
        await do.start_copy(on, "source", "copy")
        await drop_container(on)
        for _ in range(3):
            await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_the_running_sweeper_is_woken_by_a_commit_that_leaves_work() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        clock = on.clock
        assert isinstance(clock, ManualClock)
        task = asyncio.create_task(sweeper.run())
        await do.put_block(on, "b", b"x" * BIG)
        await do.put(on, "b", b"")
        for _ in range(1000):
            if do.left(on)[1] == []:
                break
            clock.advance(0.001)
            await asyncio.sleep(0.005)
        assert do.left(on)[1] == []
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(test)


def test_the_running_sweeper_outlasts_an_engine_that_cannot_read_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        scan, failures = on.store.scan, [Unavailable("the records cannot be read")]

        async def fails_once(*arguments: Any) -> Page:
            if failures:
                raise failures.pop()
            return await scan(*arguments)

        monkeypatch.setattr(on.store, "scan", fails_once)
        await do.put(on, "b", b"x" * BIG)
        await drop_container(on)
        on.store.advance(1)
        task = asyncio.create_task(sweeper.run())
        for _ in range(1000):
            on.work.set()
            await asyncio.sleep(0.005)
            if do.left(on) == ([], []):
                break
        assert do.left(on) == ([], [])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(test)


def test_a_job_that_cannot_be_read_is_kept() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        ref = keys.job(1, 1, 9)
        step = Step(ref.partition, (Write(ref.key, b"\x63 from the future"),))
        await on.store.update(ref.partition, (), lambda found, stamp: Commit(None, (step,)))
        assert await swept(on, sweeper) == 0
        assert len(await on.store.read([ref])) == 1
        assert (await on.store.read([ref]))[0] is not None

    run(test)


def test_every_kind_of_job_has_its_work() -> None:
    # Sweeps of blobs may have to wait for readers that they remember, so they are no row.
    assert {JobKind.SWEEP_BLOB, *sweeper_module._WORK} == set(JobKind)
