"""The process's event loop: it runs until the end, and signals always reach it.

Lives here: replacements for asyncio's own functions, which fail under pressure. Must not live here:
what runs, or what a signal means. asyncio.run starts a new thread to shut down its pool. When
memory is short, that thread may die before it signals that it runs. The process then waits for it
for ever. asyncio learns from a socket which signal came. Threads that report results write there
too, and when some 280 reports wait, the signal is lost. Source: the Python documentation, "Runners"
and "signal: set_wakeup_fd".
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable
from typing import TypeVar

T = TypeVar("T")


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine on a new event loop; return its result, or raise its error."""
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        try:
            _cancel_all(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()  # does not wait for the thread pool, whose results are no longer needed


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


def on_signals(
    loop: asyncio.AbstractEventLoop, signals: Iterable[signal.Signals], act: Callable[[], None]
) -> None:
    """Call `act` on the loop when one of the signals comes, however busy the loop is.

    Arguments:
        act: is called once or twice for one signal, so it must be idempotent. It may call
            `loop.remove_signal_handler`.
    """

    def pass_on(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(act)

    for number in signals:
        # asyncio's handler wakes the loop if a signal comes just before the loop sleeps.
        loop.add_signal_handler(number, act)
        signal.signal(number, pass_on)
    # A full socket wakes the loop as well, so it is no reason for a traceback.
    signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)
