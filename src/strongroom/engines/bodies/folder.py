"""Bodies as files in a folder that all gateways mount: NFS, CephFS, or a disk of one machine.

Lives here: `FolderBodies`: which call runs in which thread, for how long it is waited for, and what
an error means. Must not live here: the files (layout.py).
"""

from __future__ import annotations

import asyncio
import errno
import functools
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import BinaryIO, Final, TypeVar

from strongroom.engines.base import Busy, EngineError, Full
from strongroom.engines.bodies.base import (
    BodiesAway,
    BodiesBroken,
    BodiesUnfit,
    BodyMissing,
    FoundBody,
)
from strongroom.engines.bodies.layout import BodyFolder, make_ready, write_all
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.urls import SCHEME
from strongroom.engines.bodies.workers import Workers
from strongroom.platform.files import pread, sync_data

T = TypeVar("T")

_THREADS: Final = 8
_CALL_S: Final = 10.0
_LOOK_S: Final = 5.0
_SYNC_S: Final = 120.0
"""What is left to be written then may be long; writing back begins with each piece."""
_END_S: Final = 5.0
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
_TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)


class FolderBodies:
    """A folder that keeps the bodies of one store; make it with `open_folder`.

    Arguments:
        folder: opened, with its mark.
        looking: a thread of its own, so that calls that hang do not delay a look.
    """

    def __init__(self, folder: BodyFolder, looking: Workers) -> None:
        self._folder = folder
        self._looking = looking
        self._workers = Workers(_THREADS, "bodies")
        self._away: BodiesAway | None = None
        self._broken: BodiesBroken | None = None
        self._callback: Callable[[EngineError], None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.shown = SCHEME + folder.path

    @property
    def mark(self) -> BodiesMark:
        """As it was read last."""
        return self._folder.mark

    def why_away(self) -> BodiesAway | None:
        return self._away

    def on_broken(self, callback: Callable[[EngineError], None]) -> None:
        self._callback = callback

    async def begin(self, body_id: int) -> FolderWriting:
        self._check()
        creating = functools.partial(self._folder.create, body_id)
        undo = functools.partial(self._folder.undo_create, body_id)
        descriptor = await self.call(creating, undo)
        return FolderWriting(self, self._folder, body_id, descriptor)

    async def open(self, body_id: int) -> FolderBody:
        self._check()
        opening = functools.partial(self._folder.open, body_id)
        try:
            file, size_bytes = await self._workers.run(
                opening, _CALL_S, lambda made: made[0].close()
            )
        except FileNotFoundError:
            await self.look()  # a folder that is not there misses nothing
            raise BodyMissing(f"{self.shown} has no body {body_id}") from None
        except (OSError, TimeoutError) as error:
            raise self.error_of(error) from None
        return FolderBody(self, file, size_bytes)

    async def remove(self, body_ids: Sequence[int]) -> None:
        self._check()
        await self.call(functools.partial(self._folder.remove, body_ids), limit_s=_SYNC_S)

    async def ids(self) -> AsyncIterator[Sequence[int]]:
        for number in range(self._folder.folders):
            self._check()
            yield await self.call(functools.partial(self._folder.ids, number), limit_s=_SYNC_S)

    async def states(self, body_ids: Sequence[int]) -> Sequence[FoundBody]:
        self._check()
        return await self.call(functools.partial(self._folder.states, body_ids), limit_s=_SYNC_S)

    async def look(self) -> BodiesMark:
        try:
            mark = await self._looking.run(self._folder.look, _LOOK_S)
        except (OSError, TimeoutError) as error:
            self._away = self._failure(error)
        except BodiesAway as error:
            self._away = error
        else:
            self._away = None
            return mark
        raise self._away

    async def put_mark(self, mark: BodiesMark) -> None:
        self._check()
        try:
            loop = asyncio.get_running_loop()
            until_s = loop.time() + _CALL_S
            putting = functools.partial(self._folder.put_mark, mark, lambda: loop.time() > until_s)
            await self._looking.run(putting, _CALL_S)
        except (OSError, TimeoutError) as error:
            raise self._failure(error) from None

    async def call(
        self,
        work: Callable[[], T],
        undo: Callable[[T], object] | None = None,
        limit_s: float = _CALL_S,
    ) -> T:
        """Run a call in a thread. Raises: Full, Busy, BodiesAway."""
        try:
            return await self._workers.run(work, limit_s, undo)
        except (OSError, TimeoutError) as error:
            raise self.error_of(error) from None

    def begun(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run a call in a thread, however long it takes."""
        return self._workers.submit(work)

    def error_of(self, error: OSError | TimeoutError) -> EngineError:
        number = None if isinstance(error, TimeoutError) else error.errno
        if number in _NO_SPACE:
            return Full()
        if number in _TOO_MANY:
            return Busy(f"no file can be opened at present: {error}")
        self.in_background(self._look_quietly())
        return self._failure(error)

    def _failure(self, error: OSError | TimeoutError) -> BodiesAway:
        if isinstance(error, TimeoutError) and not error.errno:
            return BodiesAway(f"{self.shown} does not answer")
        return BodiesAway(f"{self.shown} cannot be used: {error.strerror}")

    def broke(self, error: OSError) -> BodiesBroken:
        """Take note that a sync failed: what of the written files is durable is not known."""
        text = f"a sync in {self.shown} has failed ({error.strerror}), so this gateway ends"
        self._broken = BodiesBroken(text)
        if self._callback is not None:
            self._callback(self._broken)
        return self._broken

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._away is not None:
            raise self._away

    async def _look_quietly(self) -> None:
        try:
            await self.look()
        except EngineError:
            pass  # it is kept for those who ask

    def in_background(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=_END_S)
            for task in left:
                task.cancel()
        self._workers.stop()
        self._looking.stop()


class FolderWriting:
    """See BodyWriting. One piece is on its way while the next one is gathered."""

    def __init__(
        self, bodies: FolderBodies, folder: BodyFolder, body_id: int, descriptor: int
    ) -> None:
        self._bodies = bodies
        self._folder = folder
        self._id = body_id
        self._descriptor = descriptor
        self._at = 0
        self._under_way: asyncio.Future[None] | None = None
        self._is_given_up = False

    async def write(self, data: bytes) -> None:
        await self._settled()
        work = functools.partial(write_all, self._descriptor, data, self._at)
        self._under_way = self._bodies.begun(work)
        self._at += len(data)

    async def finish(self) -> None:
        await self._settled()
        self._under_way = self._bodies.begun(self._sync)
        try:
            async with asyncio.timeout(_SYNC_S):
                await asyncio.shield(self._under_way)
        except TimeoutError as error:
            raise self._bodies.error_of(error) from None
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise Full from None  # of this file only, which is removed
            raise self._bodies.broke(error) from None
        await self._bodies.call(functools.partial(self._folder.check_name, self._id))

    def _sync(self) -> None:
        try:
            sync_data(self._descriptor)
        finally:
            self._close()
        self._folder.sync_name(self._id)

    async def _settled(self) -> None:
        """Return when the last piece was written."""
        if self._under_way is None:
            return
        try:
            async with asyncio.timeout(_CALL_S):
                await asyncio.shield(self._under_way)
        except (OSError, TimeoutError) as error:
            raise self._bodies.error_of(error) from None

    def give_up(self) -> None:
        if not self._is_given_up:
            self._is_given_up = True
            self._bodies.in_background(self._removed())

    async def _removed(self) -> None:
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        try:
            await self._bodies.call(self._remove)
        except EngineError:
            pass  # whoever sweeps finds it

    def _remove(self) -> None:
        try:
            self._close()
        finally:
            self._folder.remove((self._id,))

    def _close(self) -> None:
        """Idempotent. A close that fails has closed the descriptor too, and its number may be
        another file's by now."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class FolderBody:
    """See OpenedBody."""

    def __init__(self, bodies: FolderBodies, file: BinaryIO, size_bytes: int) -> None:
        self._bodies = bodies
        self._file: BinaryIO | None = file
        self.size_bytes = size_bytes

    async def read(self, offset: int, length: int) -> bytes:
        file = self._file
        if file is None:
            raise ValueError("the body is closed")
        return await self._bodies.call(lambda: _read(file, offset, length))

    def close(self) -> None:
        """A read under way keeps the file open."""
        file, self._file = self._file, None
        if file is not None:
            self._bodies.begun(lambda: _close(file)).add_done_callback(_retrieved)


async def open_folder(path: str) -> FolderBodies:
    """Open a folder that has a mark. Raises: BodiesUnfit; BodiesAway: it does not answer."""
    looking = Workers(1, "bodies-look")
    try:
        return FolderBodies(await _first(looking, path, lambda: BodyFolder(path)), looking)
    except BaseException:
        looking.stop()
        raise


async def make_folder_ready(path: str, mark: BodiesMark) -> None:
    """See layout.make_ready. Raises: BodiesUnfit, BodiesAway."""
    looking = Workers(1, "bodies-look")
    try:
        await _first(looking, path, lambda: make_ready(path, mark), _SYNC_S)
    finally:
        looking.stop()


async def _first(looking: Workers, path: str, work: Callable[[], T], limit_s: float = _LOOK_S) -> T:
    try:
        return await looking.run(work, limit_s)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise BodiesUnfit(f"{SCHEME}{path} cannot be used: {error.strerror}") from None
    except TimeoutError:
        raise BodiesAway(f"{SCHEME}{path} does not answer") from None
    except OSError as error:
        raise BodiesAway(f"{SCHEME}{path} cannot be used: {error.strerror}") from None


def _read(file: BinaryIO, offset: int, length: int) -> bytes:
    data = pread(file.fileno(), length, offset)
    while data and len(data) < length:
        more = pread(file.fileno(), length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def _close(file: BinaryIO) -> None:
    file.close()


def _retrieved(closing: asyncio.Future[None]) -> None:
    if not closing.cancelled():
        closing.exception()
