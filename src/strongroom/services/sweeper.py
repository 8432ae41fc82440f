"""The sweeper runs the background jobs that commits leave behind, at its own pace.

Lives here: when each job runs, and what happens when a job fails. Must not live here: the work of a
job (the wings' `sweep.py`, containers/container_sweep.py, copies/jobs.py). A job is deleted only
after its work is done. All work is idempotent, since it may run again after a crash. A job that
cannot be decoded is kept and logged, because a newer version may know it.

Each gateway has a sweeper. Four rules let them share the jobs:
 1. A sweeper starts only jobs that its gateway owns, and it takes an exclusive hold on each. It
    then reads the job again, because another gateway may have finished it meanwhile.
 2. A job starts only when no commit older than its due time can still happen. So the commit that
    ordered the job has happened or never will. The same holds for every write that was decided
    before a deletion. No older commit can add anything after the job has run.
 3. A job commits nothing more once its hold is lost.
 4. A job on the files of a share is done by the gateway that serves the share. If none serves it,
    the owner of the job takes the share.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from strongroom.auth.request import Service
from strongroom.engines.base import EngineError, Face, Position, Unavailable
from strongroom.engines.endings import to_its_end
from strongroom.engines.gateways import ExclusiveRight
from strongroom.services.blob.accesses import write_accesses
from strongroom.services.blob.containers.container_sweep import expire_container, sweep_container
from strongroom.services.blob.copies.jobs import run_copy
from strongroom.services.blob.states.retention import expire_blob
from strongroom.services.blob.sweep import sweep_blob, sweep_tags
from strongroom.services.blob.types.uploads import expire_upload
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.decisions import Decision
from strongroom.services.core.place_records import is_alive
from strongroom.services.core.runner import Services
from strongroom.services.core.turns import Turn
from strongroom.services.earlier_commits import EarlierCommits
from strongroom.services.file.copies.jobs import run_copy as run_file_copy
from strongroom.services.file.opens.share_holds import ShareHolds
from strongroom.services.file.snapshots.past_sweep import sweep_snapshot
from strongroom.services.file.snapshots.sweep import expire_share, sweep_file, sweep_share
from strongroom.services.line_sweep import sweep_lines
from strongroom.services.queue.sweep import expire_messages, sweep_messages
from strongroom.services.table.sweep import sweep_table
from strongroom.services.unfinished_jobs import UnfinishedJobs
from strongroom.store.core import keys, records
from strongroom.store.core.records import DamagedRecord, Job, JobKind
from strongroom.values import JobFacts

_PAGE: Final = 64
_POLL_INTERVAL_S: Final = 1.0
_OWNERS_INTERVAL_S: Final = 0.1
_OTHERS_MAX: Final = 64
# A copy waits for the network, and a container may take long. Neither may delay the other jobs.
_CONCURRENT_JOBS_MAX: Final = 8
_CONCURRENT_COPIES_MAX: Final = 4
_END_S: Final = 5.0
_FIRST: Final = Position(b"", b"")
_COPIES: Final = b"copies"
_IN_SHARES: Final = frozenset(
    {JobKind.SWEEP_FILE, JobKind.SWEEP_SNAPSHOT, JobKind.SWEEP_SHARE, JobKind.COPY_FILE}
)
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Sweeper:
    """Run the background jobs of one server.

    Arguments:
        services: its store holds the jobs; `services.work` is set when a job is due at once.
        pause_s: pause after each commit of removals, so that requests are served first.
    """

    def __init__(self, services: Services, pause_s: float = 0.0) -> None:
        self._services = services
        self._sources = services.held.of(CopySources)
        self._share_holds = services.held.of(ShareHolds)
        self._earlier_commits = EarlierCommits(services)
        self._pause_s = pause_s
        self._running: dict[bytes, asyncio.Task[bool]] = {}
        self._lanes: dict[bytes, bytes] = {}
        self._next = _FIRST
        self._of_others: set[bytes] = set()
        self._unfinished = UnfinishedJobs()
        self._done = 0

    def facts(self) -> JobFacts:
        return JobFacts(len(self._running), self._unfinished.failing, self._done)

    async def run(self) -> None:
        """Run due jobs until cancelled.

        An error is logged once and the work is tried again, since the error may be temporary. No
        step ends another one: while there is no space for times of access, jobs may free some.
        """
        services = self._services
        steps: tuple[Callable[[], Awaitable[None]], ...] = (
            functools.partial(write_accesses, services),
            functools.partial(sweep_lines, services),
            self._sources.close_ended,
            self._start_due,
        )
        waits = False
        try:
            while True:
                services.work.clear()
                errors = [error for one in steps if (error := await _error_of(one)) is not None]
                if errors and not waits:
                    _log_wait(errors[0])
                waits = bool(errors)
                await self._wait_for_work()
        finally:
            await self._stop()

    async def run_once(self) -> int:
        """Run every job that is due now, copies included. Return the number of finished jobs."""
        finished = 0
        await write_accesses(self._services)
        while True:
            await self._sources.close_ended()
            await self._start_due()
            outcomes = await asyncio.gather(*self._running.values())
            if not any(outcomes) and self._next == _FIRST:
                return finished
            finished += sum(outcomes)

    async def _stop(self) -> None:
        for task in self._running.values():
            task.cancel()
        if self._running:
            # A commit that hangs is left to the end of the store, and its hold with it.
            await asyncio.wait(self._running.values(), timeout=_END_S)
        await self._earlier_commits.stop()

    async def _wait_for_work(self) -> None:
        """Return when a job is due at once, or belongs to this gateway by now, or after a while."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _POLL_INTERVAL_S
        pause_s = _OWNERS_INTERVAL_S if self._of_others else _POLL_INTERVAL_S
        while loop.time() < end_s:
            try:
                async with asyncio.timeout(pause_s):
                    await self._services.work.wait()
                return
            except TimeoutError:
                # A gateway that leaves hands its jobs over. Asking for owners costs no call.
                own = set(filter(self._services.store.gateways.owns, self._of_others))
                if own:
                    # Each is told once: it may have to wait for room, as any job of this gateway.
                    self._of_others -= own
                    return

    async def _start_due(self) -> None:
        """Start jobs that are due and not running yet, the oldest first.

        When all slots are taken, the next call continues at this position. So jobs that must wait
        do not block younger ones.
        """
        now = await self._services.store.now()
        until = Position(keys.number(now), b"")
        start: Position | None = self._next
        if start == _FIRST:
            self._of_others.clear()
            self._unfinished.begin_pass()
        while start is not None:
            page = await self._services.store.scan(keys.JOBS, start, until, _PAGE)
            for face in page.faces():
                if len(self._running) >= _CONCURRENT_JOBS_MAX:
                    self._next = Position(face.partition, face.key)
                    return
                if self._may_start(face):
                    self._start(face, now)
                self._unfinished.see(face.partition, self._running)
            start = page.resume
        self._next = _FIRST
        self._unfinished.end_pass(self._running)

    def _may_start(self, face: Face) -> bool:
        now_s = asyncio.get_running_loop().time()
        if face.partition in self._running:
            return False
        if not self._unfinished.may_be_tried(face.partition, now_s):
            return False
        lane = _lane(face)
        taken = sum(lane == other for other in self._lanes.values())
        if taken >= (_CONCURRENT_COPIES_MAX if lane == _COPIES else 1):
            return False
        share = _share_of(face)
        if share is not None and self._share_holds.has(share):
            return True
        name = _hold_name(face)
        if self._services.store.gateways.owns(name) or self._has_open_source(face):
            return True
        if len(self._of_others) < _OTHERS_MAX:
            self._of_others.add(name)
        return False

    def _has_open_source(self, face: Face) -> bool:
        """Return whether the job is a copy whose source this gateway already has open."""
        if _lane(face) != _COPIES:
            return False
        job = records.JOB.decode(face.value)
        return self._sources.is_open(job.token)

    async def _leave(self, face: Face) -> None:
        """Leave a job to another gateway, and close the source that this one has opened for it."""
        if self._has_open_source(face):
            source = self._sources.take(records.JOB.decode(face.value).token)
            if source is not None:
                await source.close()

    def _start(self, face: Face, now: int) -> None:
        name = face.partition
        task = asyncio.create_task(self._run_job(face, now), name=f"job {name.hex()}")
        self._running[name] = task
        self._lanes[name] = _lane(face)
        task.add_done_callback(functools.partial(self._ended, name))

    def _ended(self, name: bytes, done: asyncio.Task[bool]) -> None:
        del self._running[name], self._lanes[name]
        if done.cancelled() or done.exception() is not None:
            return
        if done.result() or self._next != _FIRST:
            self._services.work.set()

    async def _run_job(self, face: Face, now: int) -> bool:
        """Return whether the job is finished. A failure is logged, and the job is retried later.
        `now` is store time, later than the job's due time."""
        name, share = face.partition, _share_of(face)
        try:
            if share is not None and not await self._share_holds.take(self._services, share):
                await self._leave(face)
                return False
            hold = await self._services.store.gateways.hold(_hold_name(face))
            if hold is None:
                await self._leave(face)
                return False
            try:
                if not await self._do(face, now, _HeldServices(self._services, hold)):
                    return False
            finally:
                hold.release()
        except (EngineError, DamagedRecord, OSError) as error:
            self._schedule_retry(name, f"a background job is tried again later: {error}")
            return False
        except Exception:
            _log.exception("a background job failed")
            self._schedule_retry(name, "it is tried again later")
            return False
        self._unfinished.forget(name)
        self._done += 1
        return True

    def _schedule_retry(self, name: bytes, message: str) -> None:
        if self._unfinished.note_failure(name, asyncio.get_running_loop().time()):
            _log.warning("%s", message)

    async def _do(self, face: Face, now: int, services: Services) -> bool:
        """Do the work of a job and remove the job. Return False when it must wait for readers."""
        await self._earlier_commits.have_ended(now)
        ref = keys.job_ref(face.partition)
        if await services.store.read([ref]) == [None]:
            # Another gateway has done the job since this one scanned for jobs.
            await self._leave(face)
            return True
        if not await self._work(face, records.JOB.decode(face.value), services):
            return False
        removal = RemovalBatch(services, 0.0)
        await removal.add(ref.partition, (ref.key,))
        await removal.commit()
        return True

    async def _work(self, face: Face, job: Job, services: Services) -> bool:
        """Do the work of one job. Return False when it must wait for readers."""
        removal = RemovalBatch(services, self._pause_s)
        due, stamp = keys.job_times(face.partition)
        if job.kind is JobKind.SWEEP_BLOB:
            partition = keys.blob(job.generation, job.blob)
            waiting = await sweep_blob(
                services, removal, partition, stamp, self._unfinished.sweeps.get(face.partition)
            )
            await removal.commit()
            if waiting is not None:
                self._unfinished.sweeps[face.partition] = waiting
            return waiting is None
        given = _Given(services, removal, job, due, stamp, self._pause_s)
        return await _WORK[job.kind](given) is not False


async def _error_of(step: Callable[[], Awaitable[None]]) -> Exception | None:
    """Do a step. Any error is returned: nobody would notice the end of the sweeper."""
    try:
        await step()
    except Exception as error:
        return error
    return None


def _log_wait(error: Exception) -> None:
    is_known = isinstance(error, EngineError)
    _log.warning("background work waits: %s", error, exc_info=None if is_known else error)


class _Given(NamedTuple):
    """What the work of a job may need.

    Attributes:
        due: when the job was due.
        stamp: when it was made.
        pause_s: how long to pause between two commits.
    """

    services: Services
    removal: RemovalBatch
    job: Job
    due: int
    stamp: int
    pause_s: float


async def _sweep_container(to: _Given) -> bool:
    if await _is_container_alive(to.services, to.job):
        return True
    return await sweep_container(to.services, to.removal, to.job.generation, to.stamp)


# False when it must wait for readers.
_WORK: Final[Mapping[JobKind, Callable[[_Given], Awaitable[bool | None]]]] = {
    JobKind.SWEEP_CONTAINER: _sweep_container,
    JobKind.EXPIRE_CONTAINER: lambda to: expire_container(
        to.services, to.removal, to.job, to.stamp
    ),
    JobKind.SWEEP_FILE: lambda to: sweep_file(to.services, to.removal, to.job, to.stamp),
    JobKind.SWEEP_SNAPSHOT: lambda to: sweep_snapshot(to.services, to.removal, to.job, to.stamp),
    JobKind.SWEEP_SHARE: lambda to: sweep_share(to.services, to.removal, to.job, to.stamp),
    JobKind.SWEEP_MESSAGES: lambda to: sweep_messages(to.services, to.removal, to.job, to.stamp),
    JobKind.EXPIRE_MESSAGES: lambda to: expire_messages(to.services, to.job, to.due, to.pause_s),
    JobKind.SWEEP_TABLE: lambda to: sweep_table(to.services, to.removal, to.job),
    JobKind.EXPIRE_SHARE: lambda to: expire_share(to.services, to.job, to.stamp),
    JobKind.EXPIRE_BLOB: lambda to: expire_blob(to.services, to.job, to.due),
    JobKind.EXPIRE_UPLOAD: lambda to: expire_upload(to.services, to.job),
    JobKind.SWEEP_TAGS: lambda to: sweep_tags(to.services, to.removal, to.job),
    JobKind.COPY: lambda to: run_copy(to.services, to.job),
    JobKind.COPY_FILE: lambda to: run_file_copy(to.services, to.job),
}


class _HeldServices(Services):
    """The services of one job, which refuse to commit once the job's hold is lost. A job that is
    cancelled waits for its commit, since its hold ends then."""

    def __init__(self, services: Services, hold: ExclusiveRight) -> None:
        self.__dict__.update(services.__dict__)
        self._hold = hold

    def commit(self, decision: Decision[T], turn: Turn | None = None) -> Awaitable[T]:
        if self._hold.is_lost:
            raise Unavailable("another gateway may do this job now")
        return to_its_end(super().commit(decision, turn))


def _lane(face: Face) -> bytes:
    """Return the lane of a job. Jobs of one lane never run at the same time, except in _COPIES.

    Two concurrent sweeps of one blob would remove the block lists that tell the other which
    contents are still referenced.
    """
    try:
        job = records.JOB.decode(face.value)
    except DamagedRecord:
        return face.partition
    if job.kind in (JobKind.COPY, JobKind.COPY_FILE):
        return _COPIES
    return b"%d/%b" % (job.generation, job.blob.encode())


def _share_of(face: Face) -> int | None:
    """Return the generation of the share in which a job works; None for any other job."""
    try:
        job = records.JOB.decode(face.value)
    except DamagedRecord:
        return None
    return job.generation if job.kind in _IN_SHARES else None


def _hold_name(face: Face) -> bytes:
    """Return the name of the exclusive hold that a job needs: its lane, or the job itself if it is
    a copy."""
    lane = _lane(face)
    return b"job/%b" % (face.partition if lane == _COPIES else lane)


async def _is_container_alive(services: Services, job: Job) -> bool:
    """As `is_alive`, for a container, which may be soft-deleted."""
    if await is_alive(services, Service.BLOB, job):
        return True
    account, name = job.token.split("/")
    # A later request deleted the container and kept it: that deletion has a job of its own.
    kept = keys.deleted_place(keys.container(account, name), job.generation)
    return await services.store.read([kept]) != [None]
