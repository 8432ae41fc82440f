"""A connection's requests: each begins at once, in the name of a task that can go on with it.

Lives here: the steps of what begins, and how the task takes over. Must not live here: what it does,
when it begins (http/stages.py). The first step of a task waits for a turn of the loop, and so would
every answer that needs no waiting. Each further step costs one more callback than a result has.
Source: the Python documentation, "Extending asyncio", section "Task lifetime support"; Python 3.12
has eager tasks for the same reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol

from strongroom.wire.core.http import Request

# What asks for the current task must get it (asyncio.timeout does): each step needs both.
_enter_task, _leave_task = asyncio.tasks._enter_task, asyncio.tasks._leave_task


class Begun:
    """What begins, and may wait for something. It goes on when that is over; or the task in whose
    name it began awaits this, and goes on with it from then on.

    `asks_for_turn`: it waits for nothing but that others come first.
    """

    __slots__ = ("_coroutine", "_error", "_waits_for", "asks_for_turn")

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._waits_for: Any = None
        self.asks_for_turn = False
        self._error: BaseException | None = None

    def go_on(self, task: asyncio.Task[None]) -> bool:
        """Run until it waits, for the first time or again; whether it has ended well.

        Arguments:
            task: waits itself, and is to go on with what has begun; until then what asks for the
                current task gets this one. No other may be running. It also gets whatever is
                raised: if that came out here, the task would do again what has failed.
        """
        loop = task.get_loop()
        _enter_task(loop, task)
        try:
            waits_for = self._coroutine.send(None)
        except StopIteration:
            return True
        except BaseException as error:  # as a step of a task does, which ends with any
            self._coroutine = _failed(error)
            self._waits_for, self.asks_for_turn = None, False
            return False
        finally:
            _leave_task(loop, task)
        if waits_for is not None:
            # As a task does that waits for it: so others can, too.
            waits_for._asyncio_future_blocking = False
        self._waits_for, self.asks_for_turn = waits_for, waits_for is None
        return False

    def cancel(self, error: BaseException) -> None:
        """The task was cancelled before it took over: so is what this waits for, as a task would do
        it, or `error` is raised there."""
        if self._waits_for is None or not self._waits_for.cancel():
            self._error = error

    def is_ready(self) -> bool:
        """Whether it can go on, once it has begun."""
        waits_for = self._waits_for
        return self.asks_for_turn if waits_for is None else waits_for.done()

    def tell_when_ready(self, callback: Callable[[object], None]) -> bool:
        """Have `callback` called; False when only the task can go on with it."""
        if self._waits_for is None:
            return False
        self._waits_for.add_done_callback(callback)
        return True

    def __await__(self) -> Generator[Any, Any, None]:
        rest = self._coroutine.__await__()
        waits_for, error = self._waits_for, self._error
        while error is not None or not _is_over(waits_for):
            if error is None:
                if waits_for is not None:
                    waits_for._asyncio_future_blocking = True
                try:
                    yield waits_for
                except GeneratorExit:
                    self._coroutine.close()
                    raise
                except BaseException as raised:  # what it waits for failed, or is cancelled
                    error = raised
                else:
                    break
            try:
                waits_for = self._coroutine.throw(error)
            except StopIteration:
                return
            error = None
        yield from rest


def _is_over(waits_for: Any) -> bool:
    """Whether a turn of the loop would be waited for in vain. A bare `yield` asks for one."""
    return waits_for is not None and waits_for.done()


async def _failed(error: BaseException) -> None:
    raise error


class Serving(Protocol):
    """A connection, as its work needs it."""

    @property
    def is_ending(self) -> bool:
        """Whether no further request will come."""
        ...

    def serve(self, request: Request) -> Coroutine[Any, Any, None]:
        """Handle a request to the end of its answer. It then sets `request` of its work anew."""
        ...


class Work:
    """The requests of one connection, one after the other.

    A request is begun by `start`, or by the task, never by both. The task goes on with what `start`
    left, and is the current task of either.

    Arguments:
        connection: handles each request.
        loop: the running loop.
        take_up: called with this when what a request waited for is there.

    Attributes:
        request: the one that is here and not yet answered.
        task: ends with the connection.
    """

    __slots__ = ("_begun", "_connection", "_loop", "_take_up", "_waiter", "request", "task")

    def __init__(
        self,
        connection: Serving,
        loop: asyncio.AbstractEventLoop,
        take_up: Callable[[Work], None],
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._take_up = take_up
        self._waiter: asyncio.Future[None] | None = None  # of the task, while it is idle
        self._begun: Begun | None = None  # what it has to go on with
        self.request: Request | None = None
        self.task = loop.create_task(self._run())

    def wake(self) -> None:
        """Have the task look what there is to do."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def waiting(self) -> Request | None:
        """The request that is here, if it can begin or go on and the task leaves that to others."""
        waiter, begun = self._waiter, self._begun
        if waiter is None or waiter.done() or not (begun is None or begun.is_ready()):
            return None
        return self.request

    def start(self) -> bool:
        """Begin with the request that is here, or go on with it, in the name of the task, which
        goes on with what is left. Not within another task.

        Returns: whether it only lets others come first. Then call this again, or wake the task.
        """
        request = self.waiting()
        if request is None:
            return False
        begun = self._begun or Begun(self._connection.serve(request))
        if begun.go_on(self.task):
            self._begun = None
            if self.request is not None:
                self.wake()
            return False
        self._begun = begun
        if begun.asks_for_turn:
            return True
        if not begun.tell_when_ready(self._come_back):
            self.wake()
        return False

    def _come_back(self, waited_for: object) -> None:
        if self._begun is not None:  # the task has not taken over
            self._take_up(self)

    async def _run(self) -> None:
        connection = self._connection
        while not connection.is_ending or self.request is not None or self._begun is not None:
            if (begun := self._take_over()) is not None:
                await begun
            elif self.request is not None:
                await connection.serve(self.request)
            else:
                self._waiter = self._loop.create_future()
                try:
                    await self._waiter
                except asyncio.CancelledError as error:
                    if self._begun is None:
                        raise
                    self._begun.cancel(error)
                self._waiter = None

    def _take_over(self) -> Begun | None:
        begun, self._begun = self._begun, None
        return begun
