"""One body of a place, written or read in threads.

Lives here: `ThreadedWriting` and `ThreadedReading`. Must not live here: threads, and what an error
means (threaded.py).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Protocol, TypeVar

from strongroom.engines.base import DataDamaged, EngineError
from strongroom.engines.bodies.blocking import (
    BlockingReading,
    BlockingWriting,
    NotDurable,
    PlaceLimits,
)

T = TypeVar("T")


class Threads(Protocol):
    """Where calls run. See ThreadedBodies."""

    limits: PlaceLimits

    async def look(self) -> object: ...

    async def call(self, work: Callable[[], T]) -> T: ...

    def begun(self, work: Callable[[], T]) -> asyncio.Future[T]: ...

    async def piece_begun(self, work: Callable[[], None]) -> asyncio.Future[None]: ...

    def error_of(self, error: OSError | TimeoutError) -> EngineError: ...

    def in_background(self, work: Coroutine[object, object, None]) -> object: ...


class ThreadedWriting:
    """See BodyWriting. Some pieces are on their way while the next one is gathered."""

    def __init__(self, bodies: Threads, body: BlockingWriting) -> None:
        self._bodies = bodies
        self._body = body
        self._under_way: deque[asyncio.Future[None]] = deque()
        self._is_given_up = False

    async def write(self, data: bytes) -> None:
        now_s = asyncio.get_running_loop().time()
        for piece in self._body.pieces(data, now_s):
            while len(self._under_way) >= self._body.pieces_at_once:
                await self._oldest()
            self._begin(await self._bodies.piece_begun(piece))

    async def finish(self) -> None:
        while self._under_way:
            await self._oldest()
        self._begin(self._bodies.begun(self._body.finish))
        await self._oldest(self._bodies.limits.long_s)

    def _begin(self, call: asyncio.Future[None]) -> None:
        call.add_done_callback(self._ended)
        self._under_way.append(call)

    def _ended(self, call: asyncio.Future[None]) -> None:
        """A sync that failed counts for all bodies, also if nobody waits for it any more."""
        if not call.cancelled() and isinstance(error := call.exception(), NotDurable):
            self._bodies.error_of(error)

    async def _oldest(self, limit_s: float | None = None) -> None:
        """Return when the oldest call under way has ended."""
        try:
            async with asyncio.timeout(self._bodies.limits.call_s if limit_s is None else limit_s):
                await asyncio.shield(self._under_way[0])
        except (OSError, TimeoutError) as error:
            raise self._bodies.error_of(error) from None
        self._under_way.popleft()

    def give_up(self) -> None:
        if not self._is_given_up:
            self._is_given_up = True
            self._bodies.in_background(self._removed())

    async def _removed(self) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way)
        try:
            # However long it takes: until then it may have a descriptor.
            await self._bodies.begun(self._body.give_up)
        except OSError as error:
            self._bodies.error_of(error)  # whoever sweeps finds it
        except EngineError:
            pass


class ThreadedReading:
    """See OpenedBody."""

    def __init__(self, bodies: Threads, body: BlockingReading, name: str) -> None:
        self._bodies = bodies
        self._body: BlockingReading | None = body
        self._name = name
        self.size_bytes = body.size_bytes

    async def read(self, offset: int, length: int) -> bytes:
        body = self._body
        if body is None:
            raise ValueError("the body is closed")
        found = await self._bodies.call(lambda: _read(body, offset, length))
        if isinstance(found, FileNotFoundError):
            await self._bodies.look()  # a place that is not there misses nothing
            raise DataDamaged(f"{self._name}: {found.strerror}")
        return found

    def close(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            self._bodies.begun(body.close).add_done_callback(_retrieved)


def _read(body: BlockingReading, offset: int, length: int) -> bytes | FileNotFoundError:
    try:
        return body.read(offset, length)
    except FileNotFoundError as error:
        return error


def _retrieved(call: asyncio.Future[None]) -> None:
    if not call.cancelled():
        call.exception()
