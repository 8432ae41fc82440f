"""A coroutine that begins at once, in the name of a task that can go on with it.

Lives here: its steps, and how the task takes over. Must not live here: what it does. The first step
of a task's own waits for a turn of the loop, and so would every answer that needs no waiting; each
further one costs a callback more than what it waits for can give.
Source: the Python documentation, "Extending asyncio", section "Task lifetime support"; Python 3.12
has eager tasks for the same reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any

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
