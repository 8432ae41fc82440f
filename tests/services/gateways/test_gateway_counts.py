"""Three gateways change one queue and one blob at random: what they count apart always adds up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from strongroom import limits
from strongroom.clock import ManualClock
from strongroom.errors.core import StorageError
from strongroom.semantics.queue.messages import NEVER
from strongroom.services.core.runner import Services
from strongroom.services.queue.messages import MessageView
from strongroom.services.sweeper import Sweeper
from strongroom.store.integrity import Integrity
from tests.effort import scaled
from tests.services import blob_calls, container_calls, queue_calls
from tests.services.container_calls import run
from tests.services.queue_calls import MemorySnapshot
from tests.services.service_engine import ServiceEngine

CLIENTS = 6
STEPS = 25
BLOCKS_MAX = 12

Step = Callable[[Services, random.Random], Awaitable[object]]


async def put(on: Services, chance: random.Random) -> None:
    await queue_calls.put(on, ttl_s=chance.choice((-1, 2, 5, 60)))


async def take(on: Services, chance: random.Random) -> None:
    for view in await queue_calls.get(on, chance.randint(1, 4), 1):
        await (queue_calls.delete(on, view) if chance.random() < 0.6 else update(on, view))


async def update(on: Services, view: MessageView) -> None:
    await queue_calls.update(on, view)


async def clear(on: Services, chance: random.Random) -> None:
    if chance.random() < 0.2:
        await queue_calls.clear(on)


async def stage(on: Services, chance: random.Random) -> None:
    await blob_calls.stage(on, "b", f"{chance.randrange(20):02}", b"x")


async def commit(on: Services, chance: random.Random) -> None:
    if chance.random() < 0.3:
        await blob_calls.commit(on, "b", [f"{chance.randrange(20):02}" for _ in range(2)])


async def write(on: Services, chance: random.Random) -> None:
    if chance.random() < 0.1:
        await blob_calls.put(on, "b", b"other")


async def pass_time(on: Services, chance: random.Random) -> None:
    on.store.advance(chance.random())


WEIGHTS: dict[Step, int] = {
    put: 3,
    take: 2,
    clear: 1,
    stage: 4,
    commit: 1,
    write: 1,
    pass_time: 1,
}


async def client(gateways: list[Services], chance: random.Random) -> None:
    for _ in range(STEPS):
        (step,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        # A message or a block may be gone, or there are too many blocks.
        with suppress(StorageError):
            await step(chance.choice(gateways), chance)


async def swept(gateways: list[Services]) -> None:
    for _ in range(4):
        gateways[0].store.advance(1)
        for on in gateways:
            await Sweeper(on).run_once()


def problems(on: Services) -> list[str]:
    assert isinstance(on.store, ServiceEngine)
    found = Integrity(MemorySnapshot(on.store)).findings()
    return [f"{one.place}: {one.problem}" for one in found]


@pytest.mark.parametrize("seed", range(scaled(20)))
def test_the_doctor_finds_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """B-BLK-09, Q-QUE-04."""
    monkeypatch.setattr(limits, "UNCOMMITTED_BLOCKS_MAX", BLOCKS_MAX)

    async def scenario() -> None:
        store = ServiceEngine(ManualClock())
        engines = [store, store.second(), store.second()]
        gateways = [container_calls.services(one) for one in engines]
        await container_calls.create(gateways[0])
        await queue_calls.create(gateways[1])
        for turn in range(3):
            chances = [random.Random(f"{seed}.{turn}.{number}") for number in range(CLIENTS)]
            await asyncio.gather(*(client(gateways, chance) for chance in chances))
            assert problems(gateways[0]) == []
            await swept(gateways)
            assert problems(gateways[0]) == []
        gateways[0].store.advance(limits.UNCOMMITTED_LIFETIME_S + 60)
        await swept(gateways)
        left = await queue_calls.peek(gateways[0])
        assert all(view.message.expires == NEVER for view in left) and problems(gateways[0]) == []

    run(scenario)
