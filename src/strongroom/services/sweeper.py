"""The sweeper: does the jobs that commits leave behind, at its own pace, beside the requests.

Lives here: which job is done when, and what happens when one cannot be done. Must not live here:
the work itself (the wings' `sweep.py`, containers/container_sweep.py, copies/jobs.py). A job is
deleted when its work is done, never before, and all work may be done again after a crash. A job
that cannot be read is kept, and the log says so: a newer version may know it.

Each gateway has a sweeper. Four rules let them share the jobs:
 1. A sweeper begins only jobs that its gateway owns, and takes a hold on what a job has to itself.
    It then looks whether the job is still there: another gateway may have done it meanwhile.
 2. A job begins only when no commit that is older than its due time can happen any more. So the
    commit that ordered it has happened or never will, and the same holds for every write that was
    decided before a deletion. What the work does not find then, no older commit adds later.
 3. Without its hold a job commits nothing more.
 4. A job on the files of a share is done by the gateway that serves the share. If none does, the
    owner of the job takes the share.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable
from typing import Final, TypeVar

from strongroom.auth.request import Service
from strongroom.engines.base import EngineError, Face, Position, Unavailable
from strongroom.engines.gateways import ExclusiveRight
from strongroom.services.blob.access import BlobState
from strongroom.services.blob.accesses import write_accesses
from strongroom.services.blob.changes import UPLOAD_LIFETIME_TICKS, BlobChange, upload_expiry
from strongroom.services.blob.containers.container_sweep import expire_container, sweep_container
from strongroom.services.blob.copies.jobs import run_copy
from strongroom.services.blob.kept_blobs import expire_blob
from strongroom.services.blob.sweep import WaitingSweep, sweep_blob, sweep_tags
from strongroom.services.blob.unattended import change_unattended
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.decisions import Decision
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.jobs import run_copy as run_file_copy
from strongroom.services.file.held.share_holds import ShareHolds
from strongroom.services.file.past_sweep import sweep_snapshot
from strongroom.services.file.sweep import expire_share, sweep_file, sweep_share
from strongroom.services.queue.sweep import expire_messages, sweep_messages
from strongroom.services.table.sweep import sweep_table
from strongroom.store.core import keys, records
from strongroom.store.core.records import DamagedRecord, Job, JobKind
from strongroom.values import Purpose

_PAGE: Final = 64
_LOOK_S: Final = 1.0
# A copy waits for the network, a container may take long: neither holds up the others.
_AT_ONCE_MAX: Final = 8
_COPIES_MAX: Final = 4
_RETRY_S: Final = (1.0, 60.0)
_FIRST: Final = Position(b"", b"")
_COPIES: Final = b"copies"
_IN_SHARES: Final = frozenset(
    {JobKind.SWEEP_FILE, JobKind.SWEEP_SNAPSHOT, JobKind.SWEEP_SHARE, JobKind.COPY_FILE}
)
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Sweeper:
    """Background work of one server.

    Arguments:
        services: whose store holds the jobs; `services.work` is set when one is due at once.
        pause_s: how long requests go first after each commit of removals.
    """

    def __init__(self, services: Services, pause_s: float = 0.0) -> None:
        self._services = services
        self._pause_s = pause_s
        self._running: dict[bytes, asyncio.Task[bool]] = {}
        self._lanes: dict[bytes, bytes] = {}
        self._next = _FIRST
        self._held: dict[bytes, WaitingSweep] = {}
        self._failures: dict[bytes, tuple[int, float]] = {}

    async def run(self) -> None:
        """Work until cancelled. The log says once what keeps it from working. That may pass: an
        engine that cannot read now may be able to in a second."""
        waits = False
        try:
            while True:
                self._services.work.clear()
                try:
                    await write_accesses(self._services)
                    await self._start_due()
                    waits = False
                except EngineError as error:
                    if not waits:
                        _log.warning("background work waits: %s", error)
                    waits = True
                await self._rest()
        finally:
            await self._stop()

    async def run_once(self) -> int:
        """Do everything that is due now, copies included. Returns how many jobs were finished."""
        finished = 0
        await write_accesses(self._services)
        while True:
            await self._start_due()
            outcomes = await asyncio.gather(*self._running.values())
            if not any(outcomes) and self._next == _FIRST:
                return finished
            finished += sum(outcomes)

    async def _stop(self) -> None:
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(_LOOK_S):
                await self._services.work.wait()
        except TimeoutError:
            return

    async def _start_due(self) -> None:
        """Start what is due and not under way, the oldest first. Where all places are taken, the
        next call goes on from there: so jobs that wait do not keep younger ones waiting."""
        await self._services.held.of(CopySources).give_up_ended()
        now = await self._services.store.now()
        until = Position(keys.number(now), b"")
        start: Position | None = self._next
        while start is not None:
            page = await self._services.store.scan(keys.JOBS, start, until, _PAGE)
            for face in page.faces():
                if len(self._running) >= _AT_ONCE_MAX:
                    self._next = Position(face.partition, face.key)
                    return
                if self._may_start(face):
                    self._start(face, now)
            start = page.resume
        self._next = _FIRST

    def _may_start(self, face: Face) -> bool:
        _, not_before = self._failures.get(face.partition, (0, 0.0))
        due = asyncio.get_running_loop().time() >= not_before
        if not due or face.partition in self._running:
            return False
        lane = _lane(face)
        taken = sum(lane == other for other in self._lanes.values())
        if taken >= (_COPIES_MAX if lane == _COPIES else 1):
            return False
        share = _share_of(face)
        if share is not None and self._services.held.of(ShareHolds).has(share):
            return True
        gateways = self._services.store.gateways
        return gateways.owns(_right(face)) or self._has_source(face)

    def _has_source(self, face: Face) -> bool:
        """Whether the job is a copy whose source this gateway has opened already."""
        if _lane(face) != _COPIES:
            return False
        job = records.JOB.decode(face.value)
        return self._services.held.of(CopySources).is_open(job.token)

    async def _leave(self, face: Face) -> None:
        """Leave a job to another gateway: a source that this one has opened for it is closed."""
        if self._has_source(face):
            source = self._services.held.of(CopySources).take(records.JOB.decode(face.value).token)
            if source is not None:
                await source.close()

    def _start(self, face: Face, now: int) -> None:
        name = face.partition
        task = asyncio.create_task(self._attend(face, now), name=f"job {name.hex()}")
        self._running[name] = task
        self._lanes[name] = _lane(face)
        task.add_done_callback(functools.partial(self._ended, name))

    def _ended(self, name: bytes, done: asyncio.Task[bool]) -> None:
        del self._running[name], self._lanes[name]
        if done.cancelled() or done.exception() is not None:
            return
        if done.result() or self._next != _FIRST:
            self._services.work.set()

    async def _attend(self, face: Face, now: int) -> bool:
        """Do one job; whether it is finished. The log says what goes wrong, and the job is tried
        again later.

        Arguments:
            now: store time, later than the job's due time.
        """
        name, share = face.partition, _share_of(face)
        try:
            if share is not None and not await self._takes(share):
                await self._leave(face)
                return False
            hold = await self._services.store.gateways.hold(_right(face))
            if hold is None:
                await self._leave(face)
                return False
            try:
                if not await self._do(face, now, _HeldServices(self._services, hold)):
                    return False
            finally:
                hold.release()
        except (EngineError, DamagedRecord, OSError) as error:
            self._put_off(name, f"a background job is tried again later: {error}")
            return False
        except Exception:
            _log.exception("a background job failed")
            self._put_off(name, "it is tried again later")
            return False
        self._held.pop(name, None)
        self._failures.pop(name, None)
        return True

    async def _takes(self, share: int) -> bool:
        """Whether this gateway serves the share with this generation."""
        return await self._services.held.of(ShareHolds).take(self._services, share)

    def _put_off(self, name: bytes, message: str) -> None:
        count, _ = self._failures.get(name, (0, 0.0))
        first_s, longest_s = _RETRY_S
        wait_s = min(first_s * 2**count, longest_s)
        self._failures[name] = (count + 1, asyncio.get_running_loop().time() + wait_s)
        if count == 0:
            _log.warning("%s", message)

    async def _do(self, face: Face, now: int, services: Services) -> bool:
        """Do the job, and remove it; False when it must wait for readers."""
        await services.store.gateways.quiet(now)
        ref = keys.job_ref(face.partition)
        if await services.store.read([ref]) == [None]:
            # Another gateway has done it since this one looked for jobs.
            await self._leave(face)
            return True
        if not await self._work(face, records.JOB.decode(face.value), services):
            return False
        removal = RemovalBatch(services, 0.0)
        await removal.add(ref.partition, (ref.key,))
        await removal.commit()
        return True

    async def _work(self, face: Face, job: Job, services: Services) -> bool:
        """The work of one job; False when it must wait for readers."""
        removal = RemovalBatch(services, self._pause_s)
        due, stamp = keys.job_times(face.partition)
        if job.kind is JobKind.SWEEP_BLOB:
            partition = keys.blob(job.generation, job.blob)
            held = await sweep_blob(
                services, removal, partition, stamp, self._held.get(face.partition)
            )
            await removal.commit()
            if held is not None:
                self._held[face.partition] = held
            return held is None
        if job.kind is JobKind.SWEEP_CONTAINER:
            if await _is_alive(services, job):
                return True
            return await sweep_container(services, removal, job.generation, stamp)
        if job.kind is JobKind.EXPIRE_CONTAINER:
            return await expire_container(services, removal, job, stamp)
        if job.kind is JobKind.SWEEP_FILE:
            return await sweep_file(services, removal, job, stamp)
        if job.kind is JobKind.SWEEP_SNAPSHOT:
            return await sweep_snapshot(services, removal, job, stamp)
        if job.kind is JobKind.SWEEP_SHARE:
            return await sweep_share(services, removal, job, stamp)
        if job.kind is JobKind.SWEEP_MESSAGES:
            await sweep_messages(services, removal, job, stamp)
        elif job.kind is JobKind.EXPIRE_MESSAGES:
            await expire_messages(services, job, due, self._pause_s)
        elif job.kind is JobKind.SWEEP_TABLE:
            await sweep_table(services, removal, job)
        elif job.kind is JobKind.EXPIRE_SHARE:
            await expire_share(services, job, stamp)
        elif job.kind is JobKind.EXPIRE_BLOB:
            await expire_blob(services, job, due)
        elif job.kind is JobKind.EXPIRE_UPLOAD:
            await _expire_upload(services, job)
        elif job.kind is JobKind.SWEEP_TAGS:
            await sweep_tags(services, removal, job)
        elif job.kind is JobKind.COPY_FILE:
            await run_file_copy(services, job)
        else:
            await run_copy(services, job)
        return True


class _HeldServices(Services):
    """The services of one job: they commit nothing more once its hold is lost."""

    def __init__(self, services: Services, hold: ExclusiveRight) -> None:
        self.__dict__.update(services.__dict__)
        self._hold = hold

    def commit(self, decision: Decision[T]) -> Awaitable[T]:
        """See Services.commit. Raises: Unavailable, too, when the hold is lost."""
        if self._hold.lost:
            raise Unavailable("another gateway may do this job now")
        return super().commit(decision)


def _lane(face: Face) -> bytes:
    """The jobs of one lane are not done at the same time, but those of _COPIES are, some of them.
    Two sweeps of one blob would remove the block lists by which the other knows what is alive."""
    try:
        job = records.JOB.decode(face.value)
    except DamagedRecord:
        return face.partition
    if job.kind in (JobKind.COPY, JobKind.COPY_FILE):
        return _COPIES
    return b"%d/%b" % (job.generation, job.blob.encode())


def _share_of(face: Face) -> int | None:
    """The generation of the share in which a job works; None = it works in none."""
    try:
        job = records.JOB.decode(face.value)
    except DamagedRecord:
        return None
    return job.generation if job.kind in _IN_SHARES else None


def _right(face: Face) -> bytes:
    """The name of the hold that a job needs: its lane, or one of its own among the copies."""
    lane = _lane(face)
    return b"job/%b" % (face.partition if lane == _COPIES else lane)


async def _is_alive(services: Services, job: Job) -> bool:
    """Whether a container's deletion was ordered, but its commit never happened. It cannot happen
    later: see rule 2."""
    account, name = job.token.split("/")
    place = await services.place(Service.BLOB, account, name)
    if place is not None and place.generation == job.generation:
        return True
    # Deleted by a later request, and kept: that deletion has a job of its own.
    kept = keys.deleted_place(keys.container(account, name), job.generation)
    return await services.store.read([kept]) != [None]


async def _expire_upload(services: Services, job: Job) -> None:
    """End an upload that nobody has touched for a week; one that was is looked at again later."""

    def decide(state: BlobState, change: BlobChange) -> None:
        upload = state.upload
        if upload is None or str(upload.number) != job.token:
            return
        if upload.touched + UPLOAD_LIFETIME_TICKS > state.now:
            change.put_job(upload_expiry(upload.number, upload.touched), job)
            return
        if state.head is not None and not state.head.committed:
            change.remove_head()
        change.end_upload()

    purpose = Purpose.FREEING
    await change_unattended(services, job.generation, job.blob, decide, purpose=purpose)
    services.work.set()
