"""Waits inside a plain function, while the event loop runs: for engines that are opened by a call.

A store in memory is made by a constructor, one in a database by awaiting its server. Tests of the
services make both in the same way. Lives here: that wait. Must not live here: what is awaited.

It uses private parts of asyncio, so only runs over PostgreSQL import it. There is no other way: the
connections of an engine belong to the loop on which they were opened, so neither a loop of another
thread nor one before the test's can open it. Tests also make engines in the midst of a test, when
a gateway joins or starts again, by plain calls of the engine in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def _nothing() -> None:
    pass


def awaited(work: Coroutine[Any, Any, T]) -> T:
    """Run the event loop of the caller until the work has ended, and return its result."""
    loop: Any = asyncio.get_running_loop()
    task, caller = loop.create_task(work), asyncio.current_task()
    # The turn in progress takes as many handles from the queue as were there when it began.
    taken = len(loop._ready)
    if caller is not None:
        asyncio.tasks._leave_task(loop, caller)
    try:
        while not task.done():
            loop._run_once()
    finally:
        if caller is not None:
            asyncio.tasks._enter_task(loop, caller)
        for _ in range(taken):
            loop.call_soon(_nothing)
    return task.result()  # type: ignore[no-any-return]  # the loop is of any kind
