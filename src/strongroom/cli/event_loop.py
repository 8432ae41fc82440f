"""Running one coroutine to its end, like asyncio.run, without a thread that begins at the end.

Lives here: that one function. Must not live here: what is run. asyncio.run waits for its pool in a
new thread. Where memory is short that thread may end before it tells that it runs, and the process
waits for it for ever. Source: the Python documentation, "Runners".
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine on a new event loop. Returns and raises what it does."""
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
            loop.close()  # its pool ends by itself: nobody waits for that work any more


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
