"""A trial on a pool in memory, and what trials do.

Lives here: running one, and steps of it. Must not live here: the pool (fake_librados.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from strongroom.engines.bodies.threaded import ThreadedBodies
from strongroom.engines.bodies.threaded_body import ThreadedWriting
from tests.engines.bodies.contract import LONG, made
from tests.engines.bodies.places import TriedFake

Trial = Callable[[ThreadedBodies], Awaitable[None]]


def attempt(place: TriedFake, trial: Trial) -> None:
    """Run a trial on a pool that is ready; nothing of it stays open."""

    async def whole() -> None:
        async with made(place) as bodies:
            await trial(bodies)
        assert not place.ceph.open, "a client was not shut down"

    asyncio.run(whole())


async def go_on(writing: ThreadedWriting) -> None:
    """Write a long body, and finish it."""
    await writing.write(LONG)
    await writing.finish()


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something."""
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not come")
