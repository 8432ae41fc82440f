"""Two gateways at one queue: each writes its own ledger, and the queue's count is their sum."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.services.core.runner import Services
from strongroom.services.queue.messages import MessageView
from strongroom.store.core import gateway_keys, keys
from strongroom.store.queue.message_records import LEDGER
from tests.services import queue_calls as given
from tests.services.container_calls import run
from tests.services.gateways.test_two_gateways import pair
from tests.services.service_engine import ServiceEngine, settle

Act = Callable[[Services, MessageView], Awaitable[object]]
FIRST_LEDGER = gateway_keys.ledger(0)


async def put(on: Services, view: MessageView) -> None:
    await given.put(on)


async def delete(on: Services, view: MessageView) -> None:
    await given.delete(on, view)


async def update(on: Services, view: MessageView) -> None:
    await given.update(on, view)


class HeldCommits:
    """Holds back the commits of a gateway, and counts the decisions that were made for them."""

    def __init__(self, on: Services) -> None:
        assert isinstance(on.store, ServiceEngine)
        self.decisions = 0
        self.reached = asyncio.Event()
        self.released = asyncio.Event()
        on.store.before_commit = self._pass

    async def _pass(self) -> None:
        self.decisions += 1
        self.reached.set()
        await self.released.wait()


async def together(first: Act, second: Act) -> list[int]:
    """Let two gateways decide on one queue before either commits; the first one commits first.
    Return how often each has decided."""
    both = pair()
    await given.create(both[0])
    for on in both:
        await given.put(on)
        await given.put(on)
    views = [(await given.get(on, visibility_s=600))[0] for on in both]
    held = [HeldCommits(on) for on in both]
    tasks = []
    for on, act, view, one in zip(both, (first, second), views, held, strict=True):
        tasks.append(asyncio.ensure_future(act(on, view)))
        await one.reached.wait()
    for task, one in zip(tasks, held, strict=True):
        one.released.set()
        await task
    assert given.problems(both[0]) == []
    return [one.decisions for one in held]


PAIRS: list[tuple[Act, Act]] = [(put, put), (put, delete), (delete, put), (delete, delete)]


@pytest.mark.parametrize(("first", "second"), [*PAIRS, (update, put)], ids=lambda one: one.__name__)
def test_no_gateway_decides_again_because_of_the_other(first: Act, second: Act) -> None:
    """Although both change the count."""

    async def scenario() -> None:
        assert await together(first, second) == [1, 1]

    run(scenario)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda one: one.__name__)
def test_with_one_ledger_for_both_the_later_one_decides_again(
    first: Act, second: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_keys, "ledger", lambda gateway: FIRST_LEDGER)

    async def scenario() -> None:
        assert await together(first, second) == [1, 2]

    run(scenario)


def counts(on: Services) -> dict[int, int]:
    """Return the count of each gateway's ledger of the only queue, by its number."""
    return {
        gateway: LEDGER.decode(record.value).count
        for ref, record in given.stored(on).items()
        if (gateway := gateway_keys.ledger_gateway(ref.key.name)) is not None
    }


@pytest.mark.parametrize("putting", [0, 1])
def test_a_gateway_that_deletes_what_the_other_has_put_counts_below_zero(putting: int) -> None:
    async def scenario() -> None:
        both = pair()
        await given.create(both[0])
        for number in range(5):
            view = await given.put(both[putting], str(number))
            assert [await given.count(on) for on in both] == [1, 1]
            await given.delete(both[1 - putting], view)
            assert [await given.count(on) for on in both] == [0, 0]
        assert counts(both[0]) == {putting: 5, 1 - putting: -5}
        assert given.problems(both[0]) == []

    run(scenario)


def test_one_that_clears_the_queue_begins_anew_for_all() -> None:
    async def scenario() -> None:
        both = pair()
        await given.create(both[0])
        for clearing in both:
            for on in both:
                await given.put(on)
            await given.clear(clearing)
            assert [await given.count(on) for on in both] == [0, 0]
            await given.sweep(both[0])
            await given.sweep(both[1])
            assert counts(both[0]) == {0: 0}
        await given.put(both[1])
        await given.drop(both[0])
        for on in (*both, *both):
            await given.sweep(on)
        assert counts(both[0]) == {} and given.jobs(both[0]) == 0

    run(scenario)


@pytest.mark.parametrize("has_put", [False, True])
def test_who_waits_is_woken_by_a_message_at_the_other_gateway(has_put: bool) -> None:
    """The other one's ledger may be new."""

    async def scenario() -> None:
        waiting, putting = pair()
        await given.create(waiting)
        if has_put:
            await given.delete(waiting, await given.put(putting))
        task = asyncio.ensure_future(given.get(waiting, wait_s=60))
        await settle()
        await given.put(putting, "at last")
        async with asyncio.timeout(30):
            assert given.texts(await task) == ["at last"]

    run(scenario)


@pytest.mark.parametrize("lives", [(5, 60), (60, 5), (5, 5)])
def test_what_expires_is_swept_whoever_has_put_it(lives: tuple[int, int]) -> None:
    """Q-QUE-05: each in its time, and by either gateway."""

    async def scenario() -> None:
        both = pair()
        await given.create(both[0])
        for on, ttl_s in zip(both, lives, strict=True):
            await given.put(on, ttl_s=ttl_s)
        for seconds in sorted(set(lives)):
            given.pass_time(both[0], seconds + 2)
            for on in (*both, *both):
                await given.sweep(on)
            assert await given.count(both[0]) == sum(seconds < one for one in lives)
            assert given.problems(both[0]) == []
        assert given.jobs(both[0]) == 0

    run(scenario)


@pytest.mark.parametrize("putting", [0, 1])
def test_a_message_that_is_put_during_a_sweep_is_swept_too(putting: int) -> None:
    """Q-QUE-05: its gateway counts on the job that is at work, at whichever gateway."""

    async def scenario() -> None:
        both = pair()
        await given.create(both[0])
        await given.put(both[putting], ttl_s=5)
        given.pass_time(both[0], 7)
        late: list[MessageView] = []
        for on in both:
            on.store.read_range = after_reading(  # type: ignore[method-assign]  # a double
                on, keys.EXPIRY, late, lambda: given.put(both[putting], ttl_s=60)
            )
        for on in (*both, *both):
            await given.sweep(on)
        assert late and await given.count(both[0]) == 1
        assert given.problems(both[0]) == []

    run(scenario)


def after_reading(
    on: Services, kind: bytes, done: list[MessageView], act: Callable[[], Awaitable[MessageView]]
) -> Any:
    """Return a gateway's `read_range` that acts once, after a range of this kind was read."""
    real = on.store.read_range

    async def read_range(partition: Any, hidden: bool, first: bytes, *more: Any) -> Any:
        found = await real(partition, hidden, first, *more)
        if first == kind and not done:
            done.append(await act())
        return found

    return read_range


def test_a_retrieval_counts_the_expired_messages_of_the_other_gateway() -> None:
    """Q-GET-06: this gateway has no ledger before."""

    async def scenario() -> None:
        both = pair()
        await given.create(both[0])
        await given.put(both[0], ttl_s=1)
        given.pass_time(both[0], 2)
        assert await given.get(both[1]) == ()
        assert counts(both[0]) == {0: 1, 1: -1}
        assert await given.count(both[1]) == 0

    run(scenario)


def test_a_gateway_alone_stores_what_it_always_did() -> None:
    """Q-QUE-04: the only record of the count, in the form that earlier versions read."""

    async def scenario() -> None:
        on = given.services()
        await given.create(on)
        await given.delete(on, await given.put(on, ttl_s=-1))
        await given.put(on, ttl_s=-1)
        found = {r.key: v.value for r, v in given.stored(on).items() if r.key.name[:1] == b"n"}
        assert found == {FIRST_LEDGER: b"\x01\x92\x01\x00"}

    run(scenario)
