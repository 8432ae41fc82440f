"""The sweeper: does the jobs that commits leave behind, at its own pace, one after another.

Lives here: which job is due, in what order, what happens when one cannot be done. Must not live
here: the work itself (sweeping.py, copy_jobs.py). A job is deleted when its work is done, never
before; an unknown kind is kept and told in the log, since a newer version may know it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from strongroom.engines.base import EngineError, Face, Position, Step, Unavailable, Write
from strongroom.services.copy_jobs import run_copy
from strongroom.services.runner import Services
from strongroom.services.sweeping import commit_steps, expire_upload, sweep_blob, sweep_container
from strongroom.store import keys, records
from strongroom.store.bodies import Reading
from strongroom.store.records import CorruptRecord, Job, JobKind

_PAGE: Final = 64
_LOOK_S: Final = 1.0
_COPIES_MAX: Final = 4
_log = logging.getLogger(__name__)


class Sweeper:
    """Background work of one server.

    Arguments:
        services: whose store holds the jobs; `services.work` is set when one is due at once.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._held: dict[bytes, frozenset[Reading]] = {}
        self._copies: dict[bytes, asyncio.Task[None]] = {}
        self._told: set[bytes] = set()

    async def run(self) -> None:
        """Work until cancelled, or until the engine has stopped."""
        try:
            while True:
                self._services.work.clear()
                try:
                    await self._round(wait_for_copies=False)
                except Unavailable:
                    return
                except EngineError as error:
                    _log.warning("background work waits: %s", error)
                await self._rest()
        finally:
            for task in self._copies.values():
                task.cancel()
            await asyncio.gather(*self._copies.values(), return_exceptions=True)

    async def run_once(self) -> int:
        """Do everything that is due now, copies included. Returns how many jobs were finished."""
        finished = 0
        while done := await self._round(wait_for_copies=True):
            finished += done
        return finished

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(_LOOK_S):
                await self._services.work.wait()
        except TimeoutError:
            return

    async def _round(self, wait_for_copies: bool) -> int:
        """One pass over the jobs that are due."""
        until = Position(keys.number(await self._services.store.now() + 1), b"")
        finished, start = 0, Position(b"", b"")
        while True:
            page = await self._services.store.scan(keys.JOBS, start, until, _PAGE)
            for face in page.faces:
                finished += await self._attend(face, wait_for_copies)
            if page.resume is None:
                return finished
            start = page.resume

    async def _attend(self, face: Face, wait_for_copies: bool) -> bool:
        """Do one job if it can be done now; whether it is finished."""
        try:
            job = records.JOB.decode(face.value)
        except CorruptRecord as error:
            if face.partition not in self._told:
                self._told.add(face.partition)
                _log.error("a job that cannot be read is kept: %s", error)
            return False
        if job.kind is not JobKind.COPY or wait_for_copies:
            return await self._do(face, job)
        self._start_copy(face, job)
        return False

    def _start_copy(self, face: Face, job: Job) -> None:
        if face.partition in self._copies or len(self._copies) >= _COPIES_MAX:
            return

        async def copy() -> None:
            try:
                await self._do(face, job)
            finally:
                del self._copies[face.partition]
                self._services.work.set()

        self._copies[face.partition] = asyncio.create_task(copy())

    async def _do(self, face: Face, job: Job) -> bool:
        try:
            if not await self._work(face, job):
                return False
        except Unavailable:
            raise
        except EngineError as error:
            _log.warning("a job is tried again later: %s", error)
            return False
        except CorruptRecord as error:
            _log.error("a job cannot be done, the data is damaged: %s", error)
            return False
        ref = keys.job_ref(face.partition)
        self._held.pop(face.partition, None)
        await commit_steps(self._services, (Step(ref.partition, (Write(ref.key, None),)),))
        return True

    async def _work(self, face: Face, job: Job) -> bool:
        _, stamp = keys.job_times(face.partition)
        if job.kind is JobKind.SWEEP_BLOB:
            if not self._readers_left(face, job):
                return False
            await sweep_blob(self._services, job, stamp)
        elif job.kind is JobKind.SWEEP_CONTAINER:
            return await sweep_container(self._services, job)
        elif job.kind is JobKind.EXPIRE_UPLOAD:
            await expire_upload(self._services, job)
        else:
            await run_copy(self._services, job)
        return True

    def _readers_left(self, face: Face, job: Job) -> bool:
        """Whether those who read the blob when the job was first looked at have finished; who came
        later reads what was committed later."""
        held = self._held.get(face.partition)
        if held is None:
            held = self._services.readers.snapshot(keys.blob(job.generation, job.blob))
            self._held[face.partition] = held
        return all(reading.done for reading in held)
