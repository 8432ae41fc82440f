"""Two gateways serve one store: which of them does a job, and the outcome of a late commit."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, TypeVar

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.memory.updates import MemoryUpdates
from strongroom.errors.core import CONTAINER_NOT_FOUND
from strongroom.semantics.table.entities import EntityChange
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.services.table import tables
from strongroom.store.core import keys, records
from strongroom.store.core.records import Job, JobKind
from tests.services import blob_calls, container_calls, queue_calls
from tests.services.container_calls import refused, run
from tests.services.service_engine import ServiceEngine, settle
from tests.services.sweeps import drop_container
from tests.services.table import test_entities

T = TypeVar("T")
BODY = b"x" * 10_000


class UncheckedUpdates(MemoryUpdates):
    def _are_inputs_unchanged(self, pairs: Any) -> bool:
        return True


class Unchecked(ServiceEngine):
    """An engine that does not check the records of other partitions when it commits."""

    _updates_type = UncheckedUpdates


def pair(engine: type[ServiceEngine] = ServiceEngine) -> list[Services]:
    store = engine(ManualClock())
    return [container_calls.services(store), container_calls.services(store.second())]


class Gate:
    """Delays the next commit of a gateway until it is opened.

    Arguments:
        all_of_them: delay the later commits, too.
    """

    def __init__(self, on: Services, all_of_them: bool = False) -> None:
        assert isinstance(on.store, ServiceEngine)
        self.reached = asyncio.Event()
        self._open = asyncio.Event()
        self._all = all_of_them
        on.store.before_commit = self._pass

    async def _pass(self) -> None:
        if self._all or not self.reached.is_set():
            self.reached.set()
            await self._open.wait()

    def open(self) -> None:
        self._open.set()


class Doing(Sweeper):
    """Counts the finished jobs, and checks that no two of a lane run at once."""

    done: Counter[bytes]
    lanes: set[tuple[int, str]]

    async def _work(self, face: Any, job: Job, services: Services) -> bool:
        lane = job.generation, job.blob
        assert lane not in self.lanes, "two at once in a lane"
        self.lanes.add(lane)
        try:
            await settle()
            finished = await super()._work(face, job, services)
        finally:
            self.lanes.remove(lane)
        self.done[face.partition] += finished
        return finished


def sweepers(both: list[Services]) -> list[Doing]:
    done, lanes, found = Counter[bytes](), set[tuple[int, str]](), [Doing(on) for on in both]
    for sweeper in found:
        sweeper.done, sweeper.lanes = done, lanes
    return found


async def jobs_of_blobs(on: Services) -> None:
    """Order 60 jobs: three for each of 20 blobs."""
    for number in range(20):
        name = f"b{number}"
        for turn in range(3):
            await blob_calls.stage(on, name, "00", BODY + b"%d" % turn)
            await blob_calls.commit(on, name, ["00"])
            await blob_calls.snapshot(on, name)


def test_each_job_is_done_once_and_no_two_of_a_lane_at_once() -> None:
    async def test() -> None:
        both = pair()
        await container_calls.create(both[0])
        await jobs_of_blobs(both[0])
        ordered = queue_calls.jobs(both[0])
        assert ordered >= 60
        await _second_later(both[0])
        first, second = sweepers(both)
        shares = await _sweep_all(both[0], first, second)
        assert set(first.done.values()) == {1} and sum(first.done.values()) == ordered
        assert all(shares), "one gateway did it all"
        assert queue_calls.jobs(both[0]) == 0

    run(test)


def test_the_jobs_of_a_gateway_that_died_are_done_by_the_other() -> None:
    async def test() -> None:
        both = pair()
        await container_calls.create(both[0])
        await jobs_of_blobs(both[0])
        await _second_later(both[0])
        first, second = sweepers(both)
        gate = Gate(both[0], all_of_them=True)
        dying = asyncio.create_task(first.run_once())
        await gate.reached.wait()
        assert isinstance(both[0].store, ServiceEngine)
        both[0].store.stop_heartbeats()
        # The first one's unfinished jobs are repeated: whether they were done is unknown.
        second.lanes = set()
        going_on = asyncio.create_task(second.run_once())
        await settle()
        assert queue_calls.jobs(both[1]) > 0, "it still has what it began"
        both[1].store.advance(11)
        await _beating(both[1], going_on)
        await _sweep_all(both[1], second)
        assert queue_calls.jobs(both[1]) == 0
        before = blob_calls.left(both[1])
        gate.open()
        await settle()
        assert blob_calls.left(both[1]) == before, "a dead gateway has committed"
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)

    run(test)


@pytest.mark.parametrize("engine", [ServiceEngine, Unchecked])
def test_a_put_held_back_over_deletion_and_sweep_leaves_nothing(
    engine: type[ServiceEngine],
) -> None:
    """B-DEC-04: it is refused, or if an engine accepts it, it is swept."""

    async def test() -> None:
        first, second = pair(engine)
        await container_calls.create(first)
        gate = Gate(first)
        putting = asyncio.create_task(blob_calls.put(first, "late", BODY))
        await gate.reached.wait()
        await drop_container(second)
        second.store.advance(1)
        sweeping = asyncio.create_task(_swept([second, first]))
        await settle()
        assert not sweeping.done(), "the sweep did not wait for what was under way"
        gate.open()
        if engine is ServiceEngine:
            row = CONTAINER_NOT_FOUND
            assert await refused(putting) == (row.status, row.code)
        else:
            await putting
        await _beating(second, sweeping)
        await _sweep_all(second, Sweeper(first), Sweeper(second))
        assert blob_calls.left(second) == ([], [])

    run(test)


async def _swept(both: list[Services]) -> None:
    """Let both gateways do the jobs that they own."""
    await asyncio.gather(*(Sweeper(on).run_once() for on in both))


async def _second_later(on: Services) -> None:
    """Return when all jobs so far are due, at all gateways."""
    assert isinstance(on.store, ServiceEngine)
    on.store.advance(1)
    await on.store.beat_all()


async def _sweep_all(on: Services, *sweepers: Sweeper) -> list[int]:
    """Let the gateways do jobs until none is left, or for a while. One that sees a job before it
    owns it does it later. Return how many each has done."""
    shares = [0] * len(sweepers)
    for _ in range(20):
        done = await _beating(on, asyncio.gather(*(one.run_once() for one in sweepers)))
        shares = [all_before + now for all_before, now in zip(shares, done, strict=True)]
        if not queue_calls.jobs(on):
            break
    return shares


async def _beating(on: Services, work: asyncio.Future[T]) -> T:
    """Wait for work during which heartbeats go on: it may have to wait for them."""
    assert isinstance(on.store, ServiceEngine)
    while not work.done():
        await on.store.beat_all()
        await asyncio.sleep(0.01)
    return await work


@pytest.mark.parametrize("engine", [ServiceEngine, Unchecked])
def test_an_insert_held_back_over_deletion_and_sweep_leaves_nothing(
    engine: type[ServiceEngine],
) -> None:
    async def test() -> None:
        first, second = pair(engine)
        await test_entities.table(first)
        gate = Gate(first)
        inserting = asyncio.create_task(test_entities.write(first, EntityChange.INSERT, A="1"))
        await gate.reached.wait()
        await tables.delete_table(second, await test_entities.placed(second))
        second.store.advance(1)
        sweeping = asyncio.create_task(_swept([second, first]))
        await settle()
        assert not sweeping.done(), "the sweep did not wait for what was under way"
        gate.open()
        await asyncio.gather(inserting, return_exceptions=True)
        await _beating(second, sweeping)
        await _sweep_all(second, Sweeper(first), Sweeper(second))
        assert blob_calls.left(second) == ([], [])

    run(test)


@pytest.mark.parametrize("engine", [ServiceEngine, Unchecked])
def test_a_message_held_back_over_clearing_and_sweep_leaves_nothing(
    engine: type[ServiceEngine],
) -> None:
    async def test() -> None:
        first, second = pair(engine)
        await queue_calls.create(first)
        # A retrieval checks its own key only: the queue's record is an input.
        await queue_calls.put(second, "x")
        gate = Gate(first)
        getting = asyncio.create_task(queue_calls.get(first))
        await gate.reached.wait()
        await queue_calls.drop(second)
        second.store.advance(1)
        sweeping = asyncio.create_task(_swept([second, first]))
        await settle()
        assert not sweeping.done(), "the sweep did not wait for what was under way"
        gate.open()
        await asyncio.gather(getting, return_exceptions=True)
        await _beating(second, sweeping)
        await _sweep_all(second, Sweeper(first), Sweeper(second))
        assert blob_calls.left(second) == ([], [])

    run(test)


def test_a_job_that_is_seen_before_its_commit_waits_for_it() -> None:
    """On an engine whose steps become visible one by one, a deletion's job exists while its
    container still does."""

    async def test() -> None:
        first, second = pair()
        made = await container_calls.create(first)
        await blob_calls.put(first, "b", BODY)
        gate = Gate(second)
        deleting = asyncio.create_task(drop_container(second))
        await gate.reached.wait()
        assert isinstance(second.store, ServiceEngine)
        stamp = second.store.gateways.state.last_stamp
        name = f"{container_calls.ACCOUNT}/photos"
        job = Job(JobKind.SWEEP_CONTAINER, made.etag, token=name)
        ref = keys.job(stamp, stamp, JobKind.SWEEP_CONTAINER)
        await queue_calls.overwrite(first, ref, records.JOB.encode(job))
        first.store.advance(1)
        sweeping = asyncio.create_task(_swept([first, second]))
        await settle()
        assert not sweeping.done(), "the job was judged before its commit was"
        gate.open()
        await deleting
        await _beating(first, sweeping)
        await _sweep_all(first, Sweeper(first), Sweeper(second))
        assert blob_calls.left(first) == ([], [])

    run(test)
