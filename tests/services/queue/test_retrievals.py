"""Messages put, got, peeked at, updated and deleted; order, time, many clients, waiting."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Item, Partition
from strongroom.errors import queue as queue_errors
from strongroom.services.core.runner import Services
from strongroom.services.queue import messages, retrievals
from strongroom.services.queue.claims import Claims
from strongroom.services.queue.messages import MessageView
from strongroom.services.queue.retrievals import GetMessages
from strongroom.store.core.records import DamagedRecord
from strongroom.store.queue.message_records import TEXT
from strongroom.values import TICKS_PER_S
from tests.services import queue_calls as given
from tests.services.container_calls import refused, run
from tests.services.service_engine import ServiceEngine, settle


async def fresh(store: Any = None) -> Services:
    on = given.services(store)
    await given.create(on)
    return on


def test_what_was_put_is_got_hidden_and_got_again() -> None:
    """Q-PUT-01, Q-GET-01, Q-GET-02."""

    async def scenario() -> None:
        on = await fresh()
        made = await given.put(on, " text\n")
        (got,) = await given.get(on, 32, 10)
        assert (got.text, got.message.id, got.message.dequeued) == (" text\n", made.message.id, 1)
        assert got.receipt != made.receipt
        assert await given.get(on) == ()
        given.pass_time(on, 9.5)
        assert await given.get(on) == ()
        given.pass_time(on, 0.5)
        (again,) = await given.get(on)
        assert (again.message.id, again.message.dequeued) == (made.message.id, 2)
        assert again.message.inserted == made.message.inserted

    run(scenario)


def test_first_in_first_out_and_back_behind_the_others() -> None:
    """Q-GET-05."""

    async def scenario() -> None:
        on = await fresh()
        for number in range(70):
            await given.put(on, str(number))
        assert given.texts(await given.get(on, 32, 60)) == [str(n) for n in range(32)]
        assert given.texts(await given.get(on, 3, 5)) == ["32", "33", "34"]
        given.pass_time(on, 5)
        assert given.texts(await given.get(on, 1)) == ["35"]
        await given.get(on, 32)
        assert given.texts(await given.get(on, 5)) == ["68", "69", "32", "33", "34"]

    run(scenario)


def test_a_delayed_message_comes_when_it_is_due() -> None:
    """Q-PUT-03."""

    async def scenario() -> None:
        on = await fresh()
        await given.put(on, "later", visibility_s=10)
        await given.put(on, "now")
        assert given.texts(await given.get(on, 2, 60)) == ["now"]
        given.pass_time(on, 10)
        assert given.texts(await given.get(on, 2)) == ["later"]

    run(scenario)


def test_peeking_changes_nothing() -> None:
    """Q-PEK-01."""

    async def scenario() -> None:
        on = await fresh()
        await given.put(on, "one")
        await given.put(on, "x" * 50_000)
        before = given.stored(on)
        for _ in range(2):
            seen = await given.peek(on)
            assert given.texts(seen) == ["one", "x" * 50_000]
            assert [(view.receipt, view.message.dequeued) for view in seen] == [(None, 0)] * 2
        assert given.stored(on) == before
        await given.get(on)
        assert given.texts(await given.peek(on)) == ["x" * 50_000]

    run(scenario)


def test_a_receipt_ends_with_the_next_retrieval_update_or_deletion() -> None:
    """Q-PUT-02, Q-POP-02, Q-UPD-01, Q-DEL-01."""

    async def scenario() -> None:
        on = await fresh()
        put = await given.put(on)
        updated = await given.update(on, put, 0, "changed")
        assert await refused(given.update(on, put)) == (404, "MessageNotFound")
        (got,) = await given.get(on, 1, 5)
        assert (got.text, got.message.dequeued) == ("changed", 1)
        assert await refused(given.delete(on, updated)) == (404, "MessageNotFound")
        given.pass_time(on, 60)
        # It is visible again, but was not got: the receipt is still valid.
        late = await given.update(on, got, 0)
        await given.delete(on, late)
        for receipt in (put, updated, got, late):
            assert await refused(given.delete(on, receipt)) == (404, "MessageNotFound")
        assert await given.count(on) == 0
        assert given.message_records(on) == 1 and given.problems(on) == []

    run(scenario)


def test_a_receipt_is_for_one_message_of_one_queue() -> None:
    """Q-POP-01, Q-POP-03."""

    async def scenario() -> None:
        on = await fresh()
        await given.create(on, "other")
        one, two = await given.put(on), await given.put(on)
        elsewhere = await given.put(on, queue="other")
        for receipt in (two.receipt, elsewhere.receipt):
            wanted = messages.DeleteMessage(receipt or "")
            attempt = messages.delete_message(
                on, await given.placed(on, wanted, message=one.message.id)
            )
            assert await refused(attempt) == (404, "MessageNotFound")
        wanted = messages.DeleteMessage("invalid")
        attempt = messages.delete_message(on, await given.placed(on, wanted, message="x"))
        assert await refused(attempt) == (400, "InvalidQueryParameterValue")
        assert await given.count(on) == 2

    run(scenario)


@pytest.mark.parametrize("sizes", [(10, 60_000), (60_000, 10), (60_000, 65_536), (65_536, 50_000)])
def test_a_text_may_grow_and_shrink(sizes: tuple[int, int]) -> None:
    """Q-UPD-02."""

    async def scenario() -> None:
        on = await fresh()
        first, second = ("a" * sizes[0], "é" * (sizes[1] // 2))
        await given.put(on, first)
        (got,) = await given.get(on)
        assert got.text == first
        updated = await given.update(on, got, 0, second)
        assert given.problems(on) == []
        (again,) = await given.get(on)
        assert again.text == second
        assert await refused(given.delete(on, updated)) == (404, "MessageNotFound")
        await given.delete(on, again)
        assert given.message_records(on) == 1 and given.problems(on) == []

    run(scenario)


def test_an_expired_message_is_gone_for_every_verb() -> None:
    """Q-GET-06, Q-POP-02, Q-UPD-04."""

    async def scenario() -> None:
        on = await fresh()
        put = await given.put(on, ttl_s=10)
        (got,) = await given.get(on, 1, 5)
        attempt = given.update(on, got, 11)
        assert await refused(attempt) == (400, "OutOfRangeQueryParameterValue")
        given.pass_time(on, 10)
        assert await given.get(on) == () and await given.peek(on) == ()
        for receipt in (put, got):
            assert await refused(given.update(on, receipt)) == (404, "MessageNotFound")
            assert await refused(given.delete(on, receipt)) == (404, "MessageNotFound")

    run(scenario)


def test_what_stands_before_the_living_is_removed_in_passing() -> None:
    """Q-GET-06: also when there are more than one retrieval removes."""

    async def scenario() -> None:
        on = await fresh()
        for _ in range(300):
            await given.put(on, ttl_s=10)
        await given.put(on, "alive")
        given.pass_time(on, 10)
        assert given.texts(await given.get(on, 32, 1)) == ["alive"]
        assert await given.count(on) == 301 - 64
        given.pass_time(on, 1)
        assert given.texts(await given.peek(on)) == ["alive"]
        assert given.problems(on) == []

    run(scenario)


def test_of_many_consumers_each_message_has_one() -> None:
    """Q-GET-07: 64 at once, with several timeouts, some of whom fail; counts are exact."""

    async def scenario() -> None:
        on = await fresh()
        held: dict[str, list[tuple[int, int]]] = {}
        done: set[str] = set()

        async def consume(number: int) -> None:
            for turn in range(12):
                for view in await given.get(on, 1 + number % 4, 5):
                    message = view.message
                    held.setdefault(message.id, []).append((message.dequeued, message.visible))
                    if (number + turn) % 3 and await deleted(on, view):
                        done.add(message.id)
                if number == turn:
                    given.pass_time(on, 5)
                await asyncio.sleep(0)

        made = {(await given.put(on, str(number))).message.id for number in range(200)}
        await asyncio.gather(*(consume(number) for number in range(64)))
        given.pass_time(on, 5)
        left: set[str] = set()
        while views := await given.get(on, 32):
            left |= {view.message.id for view in views}
        assert done | left == made
        assert not done & left
        assert given.problems(on) == []
        for retrievals_of_one in held.values():
            in_order = sorted(retrievals_of_one)
            assert [count for count, _ in in_order] == list(range(1, len(in_order) + 1))
            for (_, until), (_, next_until) in itertools.pairwise(in_order):
                assert next_until - 5 * TICKS_PER_S >= until, "two held one message"

    run(scenario)


async def deleted(on: Services, view: MessageView) -> bool:
    """Delete a message. Return False when its timeout has passed and another client has got it."""
    found = await asyncio.gather(given.delete(on, view), return_exceptions=True)
    assert found[0] is None or getattr(found[0], "row", None) is queue_errors.MESSAGE_NOT_FOUND
    return found[0] is None


def test_a_claim_that_is_not_used_is_free_again() -> None:
    async def scenario() -> None:
        on = await fresh()
        await given.put(on)
        call = await given.placed(on, GetMessages(1, 30))
        waiting = asyncio.ensure_future(retrievals.get_messages(on, call))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert on.disposable.of(Claims).count(next(iter(message_partitions(on)))) == 0
        assert len(await given.get(on)) == 1

    run(scenario)


def message_partitions(on: Services) -> set[Partition]:
    return {ref.partition for ref in given.stored(on) if ref.partition.keyspace[:1] == b"m"}


def test_who_waits_gets_the_message_that_comes() -> None:
    """Q-GET-08: one that is put, one whose visibility timeout ends, one that is updated."""

    async def scenario() -> None:
        on = await fresh()
        waiting = asyncio.ensure_future(given.get(on, 32, 30, wait_s=20))
        await settle()
        assert not waiting.done()
        await given.put(on, "put")
        (got,) = await asyncio.wait_for(waiting, 15)
        assert got.text == "put"
        waiting = asyncio.ensure_future(given.get(on, 32, 30, wait_s=20))
        await settle()
        given.pass_time(on, 30)
        (got,) = await asyncio.wait_for(waiting, 15)
        assert got.message.dequeued == 2
        waiting = asyncio.ensure_future(given.get(on, 32, 30, wait_s=20))
        await settle()
        await given.update(on, got, 0)
        (got,) = await asyncio.wait_for(waiting, 15)
        assert got.message.dequeued == 3

    run(scenario)


def test_who_waited_first_is_served_first() -> None:
    """Q-GET-08."""

    async def scenario() -> None:
        on = await fresh()
        clock: Any = on.clock
        waiting = []
        for _ in range(16):
            # Two gateways order what comes at different times.
            clock.advance(0.001)
            waiting.append(asyncio.ensure_future(given.get(on, 1, 30, wait_s=20)))
            await settle()
        for number in range(16):
            await given.put(on, str(number))
        found = await asyncio.wait_for(asyncio.gather(*waiting), 20)
        assert [view.text for (view,) in found] == [str(number) for number in range(16)]

    run(scenario)


def test_waiting_ends_empty_or_with_the_queue() -> None:
    """Q-GET-08."""

    async def scenario() -> None:
        on = await fresh()
        assert await given.get(on, wait_s=1) == ()
        waiting = asyncio.ensure_future(given.get(on, wait_s=20))
        await settle()
        await given.drop(on)
        assert await refused(asyncio.wait_for(waiting, 15)) == (404, "QueueNotFound")
        await given.create(on)
        waiting = asyncio.ensure_future(given.get(on, wait_s=20))
        await settle()
        await given.clear(on)
        await given.put(on, "after the clearing")
        assert given.texts(await asyncio.wait_for(waiting, 15)) == ["after the clearing"]

    run(scenario)


class Between:
    """A store on which something is done once, between a page of messages and the next read."""

    def __init__(self, store: ServiceEngine) -> None:
        self._store = store
        self.act: Callable[[], Awaitable[object]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read_range(self, *asked: Any) -> list[Item]:
        page = await self._store.read_range(*asked)
        if page and self.act is not None:
            act, self.act = self.act, None
            await act()
        return page


@pytest.mark.parametrize("before", [3_000, 60_000, 10])
@pytest.mark.parametrize("after", [3_000, 60_000, 10])
@pytest.mark.parametrize("look", [given.peek, given.get])
def test_a_text_is_never_a_part_of_another(look: Any, before: int, after: int) -> None:
    """Q-PEK-01, Q-UPD-02: a text is updated between the reads of its message and of the text."""

    async def scenario() -> None:
        store = Between(ServiceEngine(ManualClock()))
        on = await fresh(store)
        made = await given.put(on, "b" * before)

        async def update() -> None:
            await given.update(on, made, 0, "a" * after)

        store.act = update
        (seen,) = await look(on)
        assert seen.text in ("a" * after, "b" * before)
        assert store.act is None

    run(scenario)


@pytest.mark.parametrize("look", [given.peek, given.get])
@pytest.mark.parametrize("whole", [True, False])
def test_a_clearing_between_message_and_text_is_no_error(look: Any, whole: bool) -> None:
    """This holds even if the sweep has removed the texts, but not yet the messages."""

    async def scenario() -> None:
        memory = ServiceEngine(ManualClock())
        store = Between(memory)
        on = await fresh(store)
        await given.put(on, "b" * 60_000)

        async def clear() -> None:
            await given.clear(on)
            if whole:
                await given.sweep(on)
            for ref in given.texts_in(memory):
                await given.overwrite(on, ref, None)

        store.act = clear
        assert await look(on) == ()

    run(scenario)


@pytest.mark.parametrize("look", [given.peek, given.get])
def test_a_damaged_text_is_a_damaged_record(look: Any) -> None:
    async def scenario() -> None:
        on = await fresh()
        await given.put(on, "é" * 3_000)
        (ref,) = given.texts_in(on.store)
        await given.overwrite(on, ref, TEXT.encode(b"\xff"))
        with pytest.raises(DamagedRecord, match="UTF-8"):
            await look(on)

    run(scenario)
