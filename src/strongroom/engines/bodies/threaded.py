"""A place of bodies for callers that must not block: a folder or a pool, called in threads.

Lives here: `ThreadedBodies`: which call runs in which thread, and for how long it is waited for.
Must not live here: what an error means (usability.py), one body (threaded_body.py), the list of all
(threaded_list.py), the places (layout.py, rados/pool.py).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Final, TypeVar

from strongroom.engines.base import EngineError
from strongroom.engines.bodies.base import (
    BodiesAway,
    BodiesUnfit,
    BodyMissing,
    FoundBody,
)
from strongroom.engines.bodies.blocking import BlockingPlace
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.threaded_body import ThreadedReading, ThreadedWriting
from strongroom.engines.bodies.threaded_list import ThreadedList
from strongroom.engines.bodies.usability import Usability
from strongroom.engines.bodies.workers import PieceWorkers, Workers

T = TypeVar("T")

_OPEN_S: Final = 15.0
_READY_S: Final = 120.0
_PUT_MARK_S: Final = 10.0
_END_S: Final = 5.0
_REMOVED_AT_ONCE: Final = 64


class ThreadedBodies:
    """The bodies of one store in a place; make it with `open_threaded`.

    Arguments:
        place: opened, with its mark.
        looking: a thread of its own, so that calls that hang do not delay a look.
    """

    def __init__(self, place: BlockingPlace, looking: Workers) -> None:
        self._place = place
        self._looking = looking
        self.limits = place.limits
        self._workers = PieceWorkers(self.limits.threads, "bodies", self.limits.pieces)
        self._usability = Usability(place.shown, self._look_soon)
        self._tasks: set[asyncio.Task[None]] = set()
        self._quiet_look: asyncio.Task[None] | None = None
        self.shown = place.shown

    @property
    def mark(self) -> BodiesMark:
        """As it was read last."""
        return self._place.mark

    def why_away(self) -> BodiesAway | None:
        return self._usability.away

    def on_broken(self, callback: Callable[[EngineError], None]) -> None:
        self._usability.told_broken = callback

    async def begin(self, body_id: int) -> ThreadedWriting:
        self._usability.check()
        beginning = functools.partial(self._place.begin, body_id)
        return ThreadedWriting(self, await self.call(beginning, lambda made: made.give_up()))

    async def open(self, body_id: int) -> ThreadedReading:
        self._usability.check()
        opening = functools.partial(self._place.open, body_id)
        limit_s = self.limits.call_s
        try:
            body = await self._workers.run(opening, limit_s, lambda made: made.close())
        except FileNotFoundError:
            await self.look()  # a place that is not there misses nothing
            raise BodyMissing(f"{self.shown} has no body {body_id}") from None
        except (OSError, TimeoutError) as error:
            raise self.error_of(error) from None
        return ThreadedReading(self, body, f"body {body_id} in {self.shown}")

    async def remove(self, body_ids: Sequence[int]) -> None:
        for at in range(0, len(body_ids), _REMOVED_AT_ONCE):
            self._usability.check()
            some = body_ids[at : at + _REMOVED_AT_ONCE]
            await self.call(functools.partial(self._place.remove, some), limit_s=self.limits.long_s)

    async def ids(self) -> AsyncIterator[Sequence[int]]:
        pages = ThreadedList(self._place.pages())
        try:
            while True:
                self._usability.check()
                page = await self.call(pages.page, limit_s=self.limits.long_s)
                if page is None:
                    return
                yield page
        finally:
            pages.leave()

    async def states(self, body_ids: Sequence[int]) -> Sequence[FoundBody]:
        self._usability.check()
        asking = functools.partial(self._place.states, body_ids)
        return await self.call(asking, limit_s=self.limits.long_s)

    async def look(self) -> BodiesMark:
        try:
            mark = await self._looking.run(self._place.look, self.limits.look_s)
        except (OSError, TimeoutError) as error:
            away = self._usability.failure(error)
        except BodiesAway as error:
            away = error
        else:
            self._usability.away = None
            return mark
        self._usability.away = away
        raise away

    async def put_mark(self, mark: BodiesMark) -> None:
        self._usability.check()
        try:
            loop = asyncio.get_running_loop()
            until_s = loop.time() + _PUT_MARK_S
            putting = functools.partial(self._place.put_mark, mark, lambda: loop.time() > until_s)
            await self._looking.run(putting, _PUT_MARK_S)
        except (OSError, TimeoutError) as error:
            raise self._usability.failure(error) from None

    async def call(
        self,
        work: Callable[[], T],
        undo: Callable[[T], object] | None = None,
        limit_s: float | None = None,
    ) -> T:
        """Run a call in a thread. Raises: Full, Busy, BodiesAway."""
        limit_s = self.limits.call_s if limit_s is None else limit_s
        try:
            return await self._workers.run(work, limit_s, undo)
        except (OSError, TimeoutError) as error:
            raise self.error_of(error) from None

    def begun(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run a call in a thread, however long it takes."""
        return self._workers.submit(work)

    async def piece_begun(self, work: Callable[[], None]) -> asyncio.Future[None]:
        """As `begun`, when there is room for one more piece in memory. Raises: BodiesAway."""
        try:
            return await self._workers.submit_piece(work, self.limits.call_s)
        except TimeoutError as error:
            raise self.error_of(error) from None

    def error_of(self, error: OSError | TimeoutError) -> EngineError:
        return self._usability.error_of(error)

    def _look_soon(self) -> None:
        """Many calls may fail at once; one look is enough for all of them."""
        if self._quiet_look is None or self._quiet_look.done():
            self._quiet_look = self.in_background(self._look_quietly())

    async def _look_quietly(self) -> None:
        try:
            await self.look()
        except EngineError:
            pass  # it is kept for those who ask

    def in_background(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=_END_S)
            for task in left:
                task.cancel()
        self._workers.stop()
        closing = self._looking.submit(self._place.close)
        self._looking.stop()
        await asyncio.wait([closing], timeout=_END_S)


async def open_threaded(url: str, opened: Callable[[], BlockingPlace]) -> ThreadedBodies:
    """Open a place that has a mark. Raises: BodiesUnfit; BodiesAway: it does not answer."""
    looking = Workers(1, "bodies-look")
    try:
        place = await _first(looking, url, opened, _OPEN_S, lambda made: made.close())
        try:
            return ThreadedBodies(place, looking)
        except BaseException:
            looking.submit(place.close)
            raise
    except BaseException:
        looking.stop()
        raise


async def make_ready_in_thread(url: str, work: Callable[[], None]) -> None:
    """Run a call that makes a place ready. Raises: BodiesUnfit, BodiesAway."""
    looking = Workers(1, "bodies-look")
    try:
        await _first(looking, url, work, _READY_S)
    finally:
        looking.stop()


async def _first(
    looking: Workers,
    url: str,
    work: Callable[[], T],
    limit_s: float,
    undo: Callable[[T], object] | None = None,
) -> T:
    try:
        return await looking.run(work, limit_s, undo)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise BodiesUnfit(f"{url} cannot be used: {error.strerror}") from None
    except TimeoutError:
        raise BodiesAway(f"{url} does not answer") from None
    except OSError as error:
        raise BodiesAway(f"{url} cannot be used: {error.strerror}") from None
