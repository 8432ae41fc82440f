"""Runs one coroutine to its end, like asyncio.run, but starts no thread at shutdown.

Lives here: that one function. Must not live here: the coroutine. asyncio.run starts a new thread to
shut down its pool. When memory is short, that thread may die before it signals that it runs, and
then the process waits for it for ever. Source: the Python documentation, "Runners".
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
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
            loop.close()  # does not wait for its thread pool: no result of it is needed any more


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
