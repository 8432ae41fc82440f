"""Retrievals that repeatedly lose the messages that they have read to another gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.clock import ManualClock
from strongroom.services.core.runner import Services
from strongroom.values import TICKS_PER_S
from tests.services import queue_calls as given
from tests.services.container_calls import Bytes, Sender, run
from tests.services.service_engine import ServiceEngine

LOSSES = 40


async def beside_a_rival(messages: int, losses: int, number: int = 0) -> tuple[Services, list[int]]:
    """Return the services of a gateway that shares a queue with a rival, without seeing its claims.

    Before each of its first `losses` retrievals is decided, the rival takes the messages that it
    has read. Returns the services, and how often that has happened.

    Arguments:
        number: of the gateway of these services.
    """
    stores = [ServiceEngine(ManualClock())]
    stores.append(stores[0].second())
    rival = given.services(stores[1 - number])
    ours = Losing(stores[number], lambda: given.get(rival, 32 if messages < 32 else 1))
    on = given.services(ours)
    await given.create(rival)
    for number in range(messages):
        await given.put(rival, str(number))
    ours.left = losses
    return on, ours.lost


class Losing:
    """A store at which another gateway's retrieval always comes first."""

    left = 0

    def __init__(self, store: ServiceEngine, rival: Callable[[], Awaitable[Any]]) -> None:
        self._store = store
        self._rival = rival
        self.lost = [0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def update(self, *arguments: Any) -> Any:
        if self.left > self.lost[0]:
            self.lost[0] += 1
            await self._rival()
        return await self._store.update(*arguments)


@pytest.mark.parametrize("wait_s", [0, 1])
def test_a_queue_is_not_called_empty_while_others_get_its_messages(wait_s: int) -> None:
    """Q-GET-07: messages are left, however often a retrieval loses them."""

    async def scenario() -> None:
        on, lost = await beside_a_rival(100, LOSSES)
        got = await given.get(on, wait_s=wait_s)
        assert lost == [LOSSES]
        assert given.texts(got) == [str(LOSSES)]

    run(scenario)


def test_a_queue_whose_last_message_went_to_another_is_empty() -> None:
    async def scenario() -> None:
        on, lost = await beside_a_rival(3, 1)
        assert await given.get(on, 2) == ()
        assert lost == [1]

    run(scenario)


def test_a_client_that_has_gone_does_not_keep_looking() -> None:
    async def scenario() -> None:
        on, lost = await beside_a_rival(100, LOSSES)
        client = Sender(Bytes(b""))
        client.is_disconnected = True
        assert await given.get(on, client=client) == ()
        assert lost == [1]

    run(scenario)


def test_a_gateway_that_loses_begins_apart_and_comes_back_to_the_oldest() -> None:
    """Q-GET-01: no message waits for ever for a gateway that does not take it."""

    async def scenario() -> None:
        on, _ = await beside_a_rival(100, 1, number=1)
        assert on.store.gateways.number == 1
        # Message 0 was lost; from then on the 8 oldest are left to the other gateway.
        got = [given.texts(await given.get(on))[0] for _ in range(17)]
        assert got[:3] == ["9", "10", "11"]
        assert got[-1] == "1", got

    run(scenario)


def test_a_gateway_apart_gets_what_there_is() -> None:
    async def scenario() -> None:
        on, _ = await beside_a_rival(34, 1, number=1)
        assert on.store.gateways.number == 1
        got: list[str | None] = []
        while views := await given.get(on, 5):
            got.extend(given.texts(views))
        assert sorted(map(str, got)) == sorted(map(str, range(1, 34)))

    run(scenario)


def test_messages_that_expire_between_look_and_decision_are_lost_to_nobody() -> None:
    """Q-GET-06: the clock stands still while stamps rise, so a retrieval sees them as alive."""

    async def scenario() -> None:
        on = given.services()
        await given.create(on)
        view = await given.put(on, ttl_s=10)
        left_ticks = view.message.expires - on.clock.wall_ticks()
        on.store.advance((left_ticks - 1) / TICKS_PER_S)
        await given.put(on, "takes the last stamp before that", visibility_s=60)
        async with asyncio.timeout(60):
            assert await given.get(on) == ()
        assert await given.count(on) == 1

    run(scenario)
