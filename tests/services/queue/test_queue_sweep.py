"""The sweeper and messages: expired ones are removed without any retrieval, and no others."""

from __future__ import annotations

import asyncio

from strongroom.services.core.runner import Services
from tests.services import queue_calls as given
from tests.services.container_calls import run


async def fresh() -> Services:
    on = given.services()
    await given.create(on)
    await given.sweep(on)
    return on


def test_expired_messages_are_swept_where_nobody_reads() -> None:
    """Q-QUE-04, Q-QUE-05."""

    async def scenario() -> None:
        on = await fresh()
        for number in range(150):
            await given.put(on, "x" * (60_000 if number % 50 == 0 else 5), ttl_s=10 + number % 3)
        await given.put(on, "stays", ttl_s=-1)
        await given.put(on, "hidden", visibility_s=600)
        (hidden,) = await given.get(on, 1, 5)
        assert await given.count(on) == 152
        given.pass_time(on, 10)
        await given.sweep(on)
        assert await given.count(on) == 52
        given.pass_time(on, 10)
        for _ in range(3):
            await given.sweep(on)
        assert await given.count(on) == 2 and given.problems(on) == []
        assert given.texts(await given.peek(on)) == ["stays"]
        assert hidden.message.expires

    run(scenario)


def test_a_shorter_life_is_swept_in_its_own_time() -> None:
    """Q-QUE-05: although a later job was ordered before."""

    async def scenario() -> None:
        on = await fresh()
        await given.put(on, "week")
        await given.put(on, "short", ttl_s=5)
        given.pass_time(on, 6)
        await given.sweep(on)
        assert await given.count(on) == 1
        given.pass_time(on, 7 * 24 * 3600)
        await given.sweep(on)
        assert await given.count(on) == 0
        assert given.jobs(on) == 0 and given.message_records(on) == 1

    run(scenario)


def test_jobs_do_not_pile_up() -> None:
    async def scenario() -> None:
        on = await fresh()
        await given.put(on, "week")
        for number in range(50):
            await given.put(on, str(number), ttl_s=3)
            given.pass_time(on, 4)
            await given.sweep(on)
        assert await given.count(on) == 1
        assert given.jobs(on) == 1 and given.problems(on) == []

    run(scenario)


def test_a_message_that_moves_while_it_expires_goes_once() -> None:
    """Q-QUE-04: retrievals, updates and deletions race with the sweep; the count stays exact."""

    async def scenario() -> None:
        on = await fresh()

        async def use() -> None:
            for number in range(40):
                await given.put(on, str(number), ttl_s=2 + number % 3)
                for view in await given.get(on, 2, 1):
                    if number % 3 == 0:
                        await given.update(on, view, 0)
                    elif number % 3 == 1:
                        await given.delete(on, view)

        async def pass_time() -> None:
            for _ in range(60):
                on.store.advance(0.05)
                await given.sweep(on)
                await asyncio.sleep(0)

        outcomes = await asyncio.gather(use(), use(), pass_time(), return_exceptions=True)
        assert all(one is None or "NotFound" in str(one) for one in outcomes), outcomes
        assert given.problems(on) == []
        given.pass_time(on, 10)
        for _ in range(3):
            await given.sweep(on)
        assert await given.count(on) == 0
        assert given.message_records(on) == 1 and given.problems(on) == []

    run(scenario)


def test_the_sweep_of_a_queue_that_is_gone_takes_its_jobs_too() -> None:
    """Q-QUE-02."""

    async def scenario() -> None:
        on = await fresh()
        for number in range(500):
            await given.put(on, str(number))
        await given.put(on, "x" * 65_000)
        await given.drop(on)
        assert given.message_records(on) > 1000
        await given.sweep(on)
        assert given.message_records(on) == 0 and given.jobs(on) == 0

    run(scenario)
