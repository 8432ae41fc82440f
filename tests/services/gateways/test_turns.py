"""Requests at several gateways that wait for the same thing are served in order of arrival."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import Any

import pytest

from strongroom.engines.base import EngineError, Step, Unavailable
from strongroom.semantics.core import lines
from strongroom.services.core import turns
from strongroom.services.line_sweep import remove_ended_lines, sweep_lines
from strongroom.values import TICKS_PER_S
from tests.services import queue_calls
from tests.services.container_calls import run
from tests.services.engine_calls import EngineCalls
from tests.services.gateway_histories import DEAD_S, LATE_S, until
from tests.services.lines import HELD, LONG_S, Gateways, served
from tests.services.service_engine import settle

KINDS = pytest.mark.parametrize("kind", HELD)
WAITERS = 12


async def started(kind: str) -> tuple[Gateways, Any]:
    """Return two gateways, and the lease that somebody has there; None = there is no message."""
    gateways, held = Gateways(), HELD[kind]
    await held.make(gateways.all[0])
    return gateways, None if kind == "messages" else await held.get(gateways.all[0], 0)


async def order(kind: str) -> list[int]:
    """Return in which order waiters are served that arrive at two gateways, some in a row at one of
    them."""
    gateways, got = await started(kind)
    waiters = [await gateways.arrive(HELD[kind], (n % 5) % 2) for n in range(WAITERS)]
    found = await served(waiters, HELD[kind], gateways.all[1], got)
    assert gateways.lines() == []
    return found


@KINDS
def test_who_waited_first_is_served_first_over_all_gateways(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-WAI-08, Q-GET-08, F-LSE-04: each is woken by a commit, and by no poll."""
    monkeypatch.setattr(turns, "_POLL_TICKS", 10 * LONG_S * TICKS_PER_S)
    assert run(lambda: order(kind)) == list(range(WAITERS))


@KINDS
@pytest.mark.parametrize("rule", ["first_ahead", "with_ticket"])
def test_without_a_rule_of_the_line_the_order_is_another(
    kind: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks at the tickets of others, or nobody writes one."""
    without = {"first_ahead": lambda *given: None, "with_ticket": lambda line, *given: line}
    monkeypatch.setattr(lines, rule, without[rule])
    assert run(lambda: order(kind)) != list(range(WAITERS))


@KINDS
def test_waiters_that_give_up_are_passed_over(kind: str) -> None:
    """B-WAI-08: their time is over, or their client has gone."""

    async def test() -> None:
        held = HELD[kind]
        gateways, got = await started(kind)
        late = await gateways.arrive(held, 0, 0.01)
        gone = await gateways.arrive(held, 0)
        first = await gateways.arrive(held, 1)
        second = await gateways.arrive(held, 0)
        gone.cancel()
        await asyncio.gather(late, gone, return_exceptions=True)
        assert await served([first, second], held, gateways.all[0], got) == [0, 1]
        assert gateways.lines() == []

    run(test)


@KINDS
def test_a_gateway_that_stops_leaves_no_ticket(kind: str) -> None:
    """B-WAI-09."""

    async def test() -> None:
        gateways, got = await started(kind)
        stopped = [await gateways.arrive(HELD[kind], 0) for _ in range(3)]
        waiter = await gateways.arrive(HELD[kind], 1)
        gateways.all[0].waiting.stop()
        gateways.store(0).advance(0)
        await asyncio.gather(*stopped, return_exceptions=True)
        assert await served([waiter], HELD[kind], gateways.all[1], got) == [0]
        assert gateways.lines() == []

    run(test)


@KINDS
def test_a_gateway_that_stands_still_holds_up_others_until_it_is_dead(kind: str) -> None:
    """B-WAI-08: its ticket counts until then, and is removed by the next commit on the line."""

    async def test() -> None:
        held = HELD[kind]
        gateways, got = await started(kind)
        lost = await gateways.arrive(held, 0)
        waiters = [await gateways.arrive(held, 1) for _ in range(2)]
        gateways.store(0).stop_heartbeats()
        gateways.store(1).advance(LATE_S)
        with pytest.raises(EngineError):
            await lost
        await held.give(gateways.all[1], got)
        await settle()
        assert not waiters[0].done()
        gateways.store(1).advance(DEAD_S - LATE_S)
        got = await asyncio.wait_for(waiters[0], LONG_S)
        assert await served(waiters[1:], held, gateways.all[1], got) == [0]
        assert gateways.lines() == []

    run(test)


def test_the_death_of_a_gateway_is_noticed_though_no_record_changes() -> None:
    """B-WAI-08."""

    async def test() -> None:
        held = HELD["blob"]
        gateways, got = await started("blob")
        lost = await gateways.arrive(held, 0)
        waiter = await gateways.arrive(held, 1)
        gateways.store(0).stop_heartbeats()
        # The clock goes on, and wakes nobody.
        gateways.clock.advance(LATE_S)
        await held.give(gateways.all[1], got)
        with pytest.raises(EngineError):
            await lost
        assert not waiter.done()
        gateways.clock.advance(DEAD_S - LATE_S)
        await asyncio.wait_for(waiter, LONG_S / 3)

    run(test)


@KINDS
def test_a_ticket_that_is_left_behind_counts_until_its_time_is_over(kind: str) -> None:
    async def test() -> None:
        held = HELD[kind]
        gateways, got = await started(kind)
        gone = await gateways.arrive(held, 0)

        async def fail() -> None:
            raise Unavailable("the network is cut")

        gateways.store(0).before_commit = fail
        gone.cancel()
        await asyncio.wait((gone,))
        gateways.store(0).before_commit = None
        waiter = await gateways.arrive(held, 1)
        await held.give(gateways.all[1], got)
        await settle()
        assert not waiter.done() and len(gateways.lines()) == 1
        gateways.store(1).advance(LONG_S)
        await asyncio.wait_for(waiter, LONG_S)
        assert gateways.lines() == []

    run(test)


@KINDS
def test_a_grant_that_fails_costs_nobody_else_the_place(kind: str) -> None:
    async def test() -> None:
        held = HELD[kind]
        gateways, got = await started(kind)
        failed, *waiters = [await gateways.arrive(held, at) for at in (0, 0, 1, 0)]

        async def fail() -> None:
            gateways.store(0).before_commit = None
            raise Unavailable("the network is cut")

        gateways.store(0).before_commit = fail
        await held.give(gateways.all[1], got)
        with pytest.raises(Unavailable):
            await failed
        got = await asyncio.wait_for(waiters[0], LONG_S)
        assert await served(waiters[1:], held, gateways.all[1], got) == [0, 1]
        assert gateways.lines() == []

    run(test)


@KINDS
def test_waiters_of_a_gateway_that_was_alone_are_served_beside_those_of_a_new_one(
    kind: str,
) -> None:
    async def test() -> None:
        held, gateways = HELD[kind], Gateways(1)
        await held.make(gateways.all[0])
        got = None if kind == "messages" else await held.get(gateways.all[0], 0)
        waiters = [await gateways.arrive(held, 0) for _ in range(3)]
        gateways.join()
        waiters += [await gateways.arrive(held, 1) for _ in range(3)]
        order = await served(waiters, held, gateways.all[0], got)
        assert [one for one in order if one < 3] == [0, 1, 2]
        assert [one for one in order if one >= 3] == [3, 4, 5]
        assert gateways.lines() == []

    run(test)


async def emptied(gateways: Gateways, count: int) -> list[int]:
    """Put messages for some consumers at each gateway, who get one at a time and wait. Return at
    which gateway each was got."""
    for number in range(count):
        await queue_calls.put(gateways.all[number % 2], str(number))
    got: list[int] = []

    async def consume(at: int) -> None:
        while await queue_calls.get(gateways.all[at], wait_s=LONG_S):
            got.append(at)

    consumers = [asyncio.create_task(consume(number % 2)) for number in range(6)]
    await asyncio.wait_for(until(lambda: len(got) == count), LONG_S)
    await settle()
    for consumer in consumers:
        consumer.cancel()
    await asyncio.gather(*consumers, return_exceptions=True)
    return got


def test_while_there_is_plenty_gateways_do_not_hold_up_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The line is written only at the beginning and at the end of the plenty."""
    written: list[Step] = []
    change = turns.change

    def noted(*given: Any) -> tuple[Step, ...]:
        steps = change(*given)
        written.extend(steps)
        return steps

    async def test() -> None:
        gateways, _ = await started("messages")
        monkeypatch.setattr(turns, "change", noted)
        got = await emptied(gateways, 90)
        assert set(got) == {0, 1}
        assert gateways.lines() == []
        # Decisions run twice here, and again after a conflict.
        assert len(written) < 90
        # Afterwards there is an order again.
        waiters = [await gateways.arrive(HELD["messages"], (n % 5) % 2) for n in range(WAITERS)]
        again = await served(waiters, HELD["messages"], gateways.all[1], None)
        assert again == list(range(WAITERS))

    run(test)


def test_what_a_dead_gateway_left_is_swept_and_what_others_wait_in_is_not() -> None:
    async def test() -> None:
        gateways, _ = await started("blob")
        waiters = [await gateways.arrive(HELD["blob"], 0)]
        await HELD["messages"].make(gateways.all[1])
        waiters += [await gateways.arrive(HELD["messages"], at) for at in (0, 1)]
        await remove_ended_lines(gateways.all[1])
        assert len(gateways.lines()) == 2
        gateways.store(0).stop_heartbeats()
        gateways.store(1).advance(DEAD_S)
        await asyncio.gather(*waiters[:2], return_exceptions=True)
        await sweep_lines(gateways.all[1])
        assert len(gateways.lines()) == 1 and not waiters[2].done()
        waiters[2].cancel()

    run(test)


def test_a_gateway_that_is_alone_sweeps_no_lines() -> None:
    async def test() -> None:
        gateways = Gateways(1)
        calls = EngineCalls(gateways.store(0))
        await sweep_lines(gateways.all[0])
        assert calls.names == []

    run(test)


@KINDS
@pytest.mark.parametrize("seed", range(4))
def test_whoever_comes_and_goes_the_first_one_left_is_next(kind: str, seed: int) -> None:
    async def test() -> None:
        chance, held, gateways = random.Random(seed), HELD[kind], Gateways(3)
        await held.make(gateways.all[0])
        got = None if kind == "messages" else await held.get(gateways.all[0], 0)
        line: deque[asyncio.Task[Any]] = deque()
        for step in range(60):
            act = chance.choice(("arrive", "arrive", "give", "leave")) if step < 40 else "give"
            if act == "arrive":
                line.append(await gateways.arrive(held, chance.randrange(3)))
            elif line and act == "leave":
                gone = chance.choice(line)
                line.remove(gone)
                gone.cancel()
            elif line:
                await held.give(chance.choice(gateways.all), got)
                got = await asyncio.wait_for(line.popleft(), 5)
            await settle()
            assert not any(one.done() for one in line)
        assert not line and gateways.lines() == []

    run(test)


@KINDS
@pytest.mark.parametrize("count", [1, 2])
def test_the_calls_of_a_request_that_may_wait(kind: str, count: int) -> None:
    """One gateway reads and writes no line. Over two, a request that need not wait writes nothing
    more, and asks for the time when it arrives."""

    async def test() -> None:
        held, gateways = HELD[kind], Gateways(count)
        await held.make(gateways.all[0])
        await held.give(gateways.all[0], None) if kind == "messages" else None
        calls = EngineCalls(gateways.store(0))
        await held.get(gateways.all[0], LONG_S)
        ledgers = "read" if count == 1 else "read_range"
        searched = [ledgers, "now", "read_range"] if kind == "messages" else []
        arrived = ["now"] * (count > 1)
        assert calls.names == ["read", *arrived, "read", *searched, "update"]
        waiter = await gateways.arrive(held, 0)
        assert len(gateways.lines()) == count - 1
        waiter.cancel()

    run(test)
