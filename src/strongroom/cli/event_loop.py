"""The process's event loop, which runs until the end.

Lives here: a replacement for asyncio.run, which fails under pressure. Must not live here: what
runs, or how signals reach the loop (platform/event_loops.py). asyncio.run starts a new thread to
shut down its pool. When memory is short, that thread may die before it signals that it runs. The
process then waits for it for ever. Source: the Python documentation, "Runners".
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from strongroom.platform.event_loops import new_event_loop

T = TypeVar("T")


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine on a new event loop; return its result, or raise its error."""
    loop = new_event_loop()
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
