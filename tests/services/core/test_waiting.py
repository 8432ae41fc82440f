"""A caller that has read and is about to wait misses no event that wakes all waiters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Key, Partition, Ref
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.core.process_state import ProcessState
from strongroom.services.core.waiting import MustWait, Waiting
from tests.services.container_calls import run
from tests.services.service_engine import ServiceEngine, settle

RECORD = Ref(Partition(b"x", b"y"), Key(False, b"z"))
LONG_S = 60
SOON_S = 5


async def looked_again(waiting: Waiting, between: Callable[[], object], looks: int = 2) -> int:
    """Return how often a waiter reads until it is answered. `between` runs in the turn between its
    first decision and its sleep."""
    seen: list[None] = []

    async def attempt() -> int:
        seen.append(None)
        if len(seen) == looks:
            return len(seen)
        # Run it before the first turn of the sleepers, which are started after the decision.
        asyncio.get_running_loop().call_soon(between)
        raise MustWait(StorageError(errors.NOT_MODIFIED), [(RECORD, None)])

    async with asyncio.timeout(SOON_S):
        return await waiting.until_answered(LONG_S, attempt)


def test_a_clock_that_is_moved_in_between_is_noticed() -> None:
    async def test() -> None:
        store = ServiceEngine(ManualClock())
        assert await looked_again(Waiting(store, ProcessState()), lambda: store.advance(30)) == 2

    run(test)


def test_one_that_is_moved_within_the_look_is_noticed_too() -> None:
    async def test() -> None:
        store = ServiceEngine(ManualClock())
        looks: list[None] = []

        async def attempt() -> int:
            looks.append(None)
            if len(looks) == 1:
                store.advance(30)
                raise MustWait(StorageError(errors.NOT_MODIFIED), [(RECORD, None)])
            return len(looks)

        async with asyncio.timeout(SOON_S):
            assert await Waiting(store, ProcessState()).until_answered(LONG_S, attempt) == 2

    run(test)


def test_a_stop_in_between_sends_the_waiter_home() -> None:
    async def test() -> None:
        store = ServiceEngine(ManualClock())
        waiting = Waiting(store, ProcessState())

        def stop() -> None:
            waiting.stop()
            store.stop_waiting()

        with pytest.raises(StorageError) as refused:
            await looked_again(waiting, stop, looks=3)
        assert refused.value.row is errors.NOT_MODIFIED

    run(test)


def test_nothing_else_makes_it_look_again() -> None:
    async def test() -> None:
        store = ServiceEngine(ManualClock())
        looks: list[None] = []

        async def attempt() -> None:
            looks.append(None)
            raise MustWait(StorageError(errors.NOT_MODIFIED), [(RECORD, None)])

        sleeping = asyncio.create_task(
            Waiting(store, ProcessState()).until_answered(LONG_S, attempt)
        )
        await settle()
        assert len(looks) == 1 and not sleeping.done()
        sleeping.cancel()

    run(test)
