"""The disposable state of a process may be cleared at any time: only an order of waiters changes.

Each test runs many callers on a store that clears the state before and after each of its
operations, so between any two steps of any caller. The order of waiters is such state, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from strongroom.clock import ManualClock
from strongroom.services.core.process_state import ProcessState
from strongroom.services.core.runner import Services
from strongroom.services.queue.claims import Claims
from tests.services import blob_calls, container_calls, queue_calls
from tests.services.container_calls import run
from tests.services.service_engine import ServiceEngine, settle

WATCHED = ("update", "read", "read_range", "scan", "wait", "now")


def forgetful() -> tuple[Services, list[int]]:
    """Return services whose disposable state is cleared at each step; and how often it was not
    empty."""
    store = ServiceEngine(ManualClock())
    on = container_calls.services(store)
    thrown = [0]

    def forget() -> None:
        thrown[0] += bool(on.disposable._objects)
        on.disposable.clear()

    for name in WATCHED:
        setattr(store, name, _forgetting(getattr(store, name), forget))
    return on, thrown


def _forgetting(operation: Callable[..., Any], forget: Callable[[], None]) -> Callable[..., Any]:
    async def watched(*arguments: Any, **named: Any) -> Any:
        forget()
        try:
            return await operation(*arguments, **named)
        finally:
            forget()

    return watched


def test_it_is_made_again_when_it_is_asked_for() -> None:
    state = ProcessState()
    first = state.of(Claims)
    assert state.of(Claims) is first
    state.clear()
    assert state.of(Claims) is not first


def test_a_crowd_of_consumers_gets_every_message_once() -> None:
    async def test() -> None:
        on, thrown = forgetful()
        await queue_calls.create(on)
        for number in range(60):
            await queue_calls.put(on, str(number))
        got: list[str | None] = []

        async def consume() -> None:
            while views := await queue_calls.get(on, count=3):
                got.extend(queue_calls.texts(views))
                for view in views:
                    await queue_calls.delete(on, view)

        await asyncio.gather(*(consume() for _ in range(8)))
        assert sorted(map(str, got)) == sorted(map(str, range(60)))
        assert await queue_calls.count(on) == 0
        assert thrown[0] > 0

    run(test)


def test_a_consumer_that_waits_is_woken() -> None:
    async def test() -> None:
        on, _ = forgetful()
        await queue_calls.create(on)
        waiting = [asyncio.create_task(queue_calls.get(on, wait_s=60)) for _ in range(3)]
        await asyncio.sleep(0)
        for number in range(3):
            await queue_calls.put(on, str(number))
        found = [queue_calls.texts(views) for views in await asyncio.gather(*waiting)]
        assert sorted(found) == [["0"], ["1"], ["2"]]

    run(test)


def test_a_crowd_that_waits_for_a_lease_gets_it_one_by_one() -> None:
    async def test() -> None:
        on, thrown = forgetful()
        await container_calls.create(on)
        await blob_calls.put(on, "b", b"x")
        held: list[str] = []
        served: list[int] = []

        async def hold(number: int) -> None:
            lease_id = await blob_calls.acquire(on, "b", wait_s=30)
            assert not held, "two hold it"
            held.append(lease_id)
            await settle()
            served.append(number)
            held.remove(lease_id)
            await blob_calls.release(on, "b", lease_id)

        await asyncio.gather(*(hold(number) for number in range(12)))
        assert sorted(served) == list(range(12))
        assert thrown[0] > 0

    run(test)


def test_a_block_list_is_committed_beside_stagers() -> None:
    async def test() -> None:
        on, thrown = forgetful()
        await container_calls.create(on)
        await blob_calls.stage(on, "b", "00", b"x")

        async def stage(number: int) -> None:
            for _ in range(20):
                await blob_calls.stage(on, "b", f"{number:02}", b"y")

        stagers = [asyncio.create_task(stage(number)) for number in range(1, 5)]
        await blob_calls.commit(on, "b", ["00"])
        await asyncio.gather(*stagers)
        assert await blob_calls.read(on, "b") == b"x"
        assert thrown[0] > 0

    run(test)
