"""The jobs that a sweeper begins when it shares them with others, and when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.engines.base import Unavailable
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.core import keys
from strongroom.values import JobFacts
from tests.services import blob_calls
from tests.services.container_calls import ACCOUNT, run
from tests.services.queue_calls import jobs
from tests.services.service_engine import settle
from tests.services.sweeps import drop_container, fresh, swept


class Hold:
    """A hold that can be lost."""

    def __init__(self) -> None:
        self.is_lost = False
        self.released = False

    @property
    def is_held(self) -> bool:
        return not self.is_lost

    def release(self) -> None:
        self.released = True


class Shared:
    """The gateways of a store, controlled by a test.

    Attributes:
        owned: whether this gateway owns all jobs.
        taken: whether another gateway has all holds.
        after_hold: called when a hold was given.
        settled: `wait_for_earlier_commits` returns once this is set.
        asked: set once somebody has asked who owns a job.
    """

    def __init__(self, gateways: Any) -> None:
        self._gateways = gateways
        self.owned = True
        self.taken = False
        self.holds: list[Hold] = []
        self.asked_quiet: list[int] = []
        self.settled = asyncio.Event()
        self.settled.set()
        self.asked = asyncio.Event()
        self.after_hold: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateways, name)

    def owns(self, name: bytes) -> bool:
        self.asked.set()
        return self.owned

    async def hold(self, name: bytes) -> Hold | None:
        if self.taken:
            return None
        self.holds.append(Hold())
        if self.after_hold is not None:
            await self.after_hold()
        return self.holds[-1]

    async def wait_for_earlier_commits(self, stamp: int) -> None:
        self.asked_quiet.append(stamp)
        await self.settled.wait()


async def with_job() -> tuple[Services, Sweeper, Shared]:
    """Delete a container of two blobs, so that its job waits for a sweeper."""
    on, sweeper = await fresh()
    gateways = Shared(on.store.gateways)
    on.store.gateways = gateways  # type: ignore[misc]  # a double
    for name in "ab":
        await blob_calls.put(on, name, b"x" * 10_000)
    await drop_container(on)
    assert jobs(on) == 1
    return on, sweeper, gateways


def test_a_job_that_another_gateway_owns_is_left_to_it() -> None:
    async def test() -> None:
        on, sweeper, gateways = await with_job()
        gateways.owned = False
        assert await swept(on, sweeper) == 0
        assert jobs(on) == 1 and not gateways.holds
        gateways.owned = True
        assert await swept(on, sweeper) == 1
        assert jobs(on) == 0

    run(test)


def test_a_job_is_taken_over_as_soon_as_its_gateway_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("strongroom.services.sweeper._POLL_INTERVAL_S", 3600.0)

    async def test() -> None:
        on, sweeper, gateways = await with_job()
        begun = asyncio.Event()

        async def begin() -> None:
            begun.set()

        gateways.owned, gateways.after_hold = False, begin
        on.store.advance(1)
        running = asyncio.create_task(sweeper.run())
        try:
            await gateways.asked.wait()
            await settle()
            assert not begun.is_set()
            gateways.owned = True
            await begun.wait()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    run(test)


def test_jobs_that_must_wait_for_room_are_not_looked_for_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job of another gateway becomes this one's while this one has no room for jobs."""
    monkeypatch.setattr("strongroom.services.sweeper._POLL_INTERVAL_S", 3600.0)
    monkeypatch.setattr("strongroom.services.sweeper._OWNERS_INTERVAL_S", 0.01)

    async def test() -> None:
        on, sweeper, gateways = await with_job()
        starts = 0
        again = asyncio.Event()

        async def start_due() -> None:
            nonlocal starts
            starts += 1
            if starts == 2:
                again.set()

        gateways.owned = False
        on.store.advance(1)
        await sweeper._start_due()
        assert sweeper._of_others
        monkeypatch.setattr(sweeper, "_start_due", start_due)  # there is no room
        gateways.owned = True
        running = asyncio.create_task(sweeper.run())
        await again.wait()
        await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert starts == 2

    run(test)


def test_a_job_is_not_done_without_its_hold() -> None:
    async def test() -> None:
        on, sweeper, gateways = await with_job()
        gateways.taken = True
        assert await swept(on, sweeper) == 0
        assert jobs(on) == 1
        gateways.taken = False
        assert await swept(on, sweeper) == 1
        assert blob_calls.left(on) == ([], [])
        assert gateways.holds[-1].released

    run(test)


def test_a_job_that_was_done_before_its_hold_was_free_is_not_done_again() -> None:
    async def test() -> None:
        on, sweeper, gateways = await with_job()
        scanned: list[bytes] = []
        scan = on.store.scan

        async def watched(keyspace: bytes, *arguments: Any) -> Any:
            scanned.append(keyspace)
            return await scan(keyspace, *arguments)

        async def done_elsewhere() -> None:
            gateways.after_hold = None
            assert await Sweeper(on).run_once() == 1
            on.store.scan = watched  # type: ignore[method-assign, assignment]  # a double

        gateways.after_hold = done_elsewhere
        await swept(on, sweeper)
        assert jobs(on) == 0
        assert {keyspace[:1] for keyspace in scanned} <= {b"j"}, scanned

    run(test)


def test_a_job_that_lost_its_hold_commits_nothing_more() -> None:
    async def test() -> None:
        on, sweeper, gateways = await with_job()
        scan = on.store.scan

        async def losing(*arguments: Any) -> Any:
            for hold in gateways.holds:
                hold.is_lost = True
            return await scan(*arguments)

        on.store.scan = losing  # type: ignore[method-assign, assignment]  # a double
        before = blob_calls.left(on)
        assert await swept(on, sweeper) == 0
        assert blob_calls.left(on) == before
        assert gateways.holds and all(hold.released for hold in gateways.holds)

    run(test)


def test_a_job_begins_when_no_older_commit_can_happen_any_more() -> None:
    async def test() -> None:
        on, sweeper, gateways = await with_job()
        before = blob_calls.left(on)
        gateways.settled.clear()
        sweeping = asyncio.create_task(swept(on, sweeper))
        await settle()
        assert blob_calls.left(on) == before
        newest = max(record.version for _, record in before[0])
        assert gateways.asked_quiet[-1] > newest, "the commit that ordered it counts as older"
        gateways.settled.set()
        assert await sweeping == 1
        assert blob_calls.left(on) == ([], [])

    run(test)


async def away() -> None:
    raise Unavailable("no heartbeat")


def test_what_a_sweeper_cannot_ask_it_asks_again_later() -> None:
    async def test() -> None:
        on, sweeper, gateways = await with_job()
        gateways.after_hold = away
        assert await swept(on, sweeper) == 0
        gateways.after_hold = None
        assert await Sweeper(on).run_once() == 1

    run(test)


def test_a_job_that_failed_here_and_was_done_elsewhere_is_forgotten() -> None:
    async def test() -> None:
        on, sweeper, gateways = await with_job()
        gateways.after_hold = away
        assert await swept(on, sweeper) == 0
        await sweeper.run_once()
        assert sweeper.facts() == JobFacts(running=0, failing=1, done=0)
        gateways.after_hold = None
        assert await Sweeper(on).run_once() == 1
        await sweeper.run_once()
        assert sweeper.facts() == JobFacts(running=0, failing=0, done=0)

    run(test)


def test_a_job_that_waited_for_readers_here_and_was_done_elsewhere_is_forgotten() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await blob_calls.put_block(on, "b", b"x" * 30_000)
        place = await on.place(Service.BLOB, ACCOUNT, "photos")
        assert place is not None
        partition = keys.blob(place.generation, "b")
        reading = on.held.of(Readers).begin(partition, on.store.gateways)
        await blob_calls.put(on, "b", b"")
        assert await swept(on, sweeper) == 0
        assert sweeper._unfinished.sweeps
        reading.end()
        assert await Sweeper(on).run_once() > 0
        await sweeper.run_once()
        assert not sweeper._unfinished.sweeps

    run(test)


def test_a_job_that_is_cancelled_keeps_its_hold_until_its_commit_has_ended() -> None:
    """Another gateway would begin the job while this one still removes what it reads."""

    async def test() -> None:
        on, sweeper, gateways = await with_job()
        reached, goes_on = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            reached.set()
            await goes_on.wait()

        on.store.before_commit = wait  # type: ignore[attr-defined]  # of the store in memory
        on.store.advance(1)
        running = asyncio.create_task(sweeper.run())
        await reached.wait()
        running.cancel()
        await settle()
        assert not gateways.holds[-1].released
        goes_on.set()
        await asyncio.gather(running, return_exceptions=True)
        assert gateways.holds[-1].released

    run(test)
