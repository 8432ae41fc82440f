"""Queues: created, read, changed, cleared and deleted; changes between decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from strongroom.engines.base import CommitUnknown
from strongroom.semantics.core.listing import START
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.runner import Services
from strongroom.services.queue import messages, queues
from strongroom.services.queue.list_queues import ListQueues, list_queues
from strongroom.services.queue.messages import PutMessage
from strongroom.services.queue.queues import SetQueueAcl
from strongroom.values import AccessPolicy
from tests.services import queue_calls as given
from tests.services.container_calls import refused, run
from tests.services.service_engine import ServiceEngine


def test_creation_is_idempotent_with_the_same_metadata_only() -> None:
    """Q-QUE-01."""

    async def scenario() -> None:
        on = given.services()
        assert await given.create(on, Kind="a", size="1")
        await given.put(on)
        assert not await given.create(on, size="1", kind="a")
        assert await given.count(on) == 1
        for metadata in ({}, {"kind": "b", "size": "1"}, {"kind": "a"}):
            assert await refused(given.create(on, **metadata)) == (409, "QueueAlreadyExists")

    run(scenario)


def test_of_many_creations_one_is_the_first() -> None:
    """Q-QUE-01."""

    async def scenario() -> None:
        on = given.services()
        made = await asyncio.gather(*(given.create(on) for _ in range(16)))
        assert sorted(made) == [False] * 15 + [True]

    run(scenario)


def test_without_a_queue_everything_says_so() -> None:
    """Q-ADR-03."""

    async def scenario() -> None:
        on = given.services()
        attempts: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: given.put(on),
            lambda: given.get(on),
            lambda: given.peek(on),
            lambda: given.clear(on),
            lambda: given.drop(on),
            lambda: given.count(on),
        )
        for attempt in attempts:
            assert await refused(attempt()) == (404, "QueueNotFound")

    run(scenario)


def test_a_queue_that_is_created_again_is_empty_at_once() -> None:
    """Q-QUE-02, Q-POP-03: and receipts of the old one are stale."""

    async def scenario() -> None:
        on = given.services()
        await given.create(on, kind="old")
        old = await given.put(on)
        await given.drop(on)
        assert await given.create(on)
        assert await given.count(on) == 0 and await given.peek(on) == ()
        assert await refused(given.delete(on, old)) == (404, "MessageNotFound")
        await given.put(on, "new")
        assert await given.sweep(on) > 0
        assert given.texts(await given.peek(on)) == ["new"]
        assert given.message_records(on) == 3 and given.problems(on) == []

    run(scenario)


def test_metadata_and_policies_are_replaced_and_messages_stay() -> None:
    """Q-QUE-06, Q-QUE-07."""

    async def scenario() -> None:
        on = given.services()
        await given.create(on, kind="a")
        first = await given.put(on)
        await queues.set_metadata(on, await given.placed(on, SetPlaceMetadata((("b", "2"),))))
        policies = (AccessPolicy("one", permission="raup"),)
        await queues.set_acl(on, await given.placed(on, SetQueueAcl(policies)))
        view = await queues.get_queue(on, await given.placed(on))
        assert (view.record.metadata, view.record.policies) == ((("b", "2"),), policies)
        await given.delete(on, first)

    run(scenario)


def test_clearing_takes_all_messages_and_their_receipts() -> None:
    """Q-DEL-02."""

    async def scenario() -> None:
        on = given.services()
        await given.create(on, kind="a")
        hidden, _ = await given.put(on, "one"), await given.put(on, "x" * 60_000)
        (hidden,) = await given.get(on)
        await given.clear(on)
        assert await given.count(on) == 0 and await given.get(on, 32) == ()
        assert await refused(given.delete(on, hidden)) == (404, "MessageNotFound")
        assert await refused(given.update(on, hidden)) == (404, "MessageNotFound")
        await given.put(on, "after")
        await given.sweep(on)
        # Only the ledger, the message and its expiry are left.
        assert given.message_records(on) == 3
        assert given.texts(await given.peek(on)) == ["after"]
        assert not await given.create(on, kind="a")

    run(scenario)


def test_what_was_authorized_for_another_queue_changes_nothing() -> None:
    """Q-QUE-03."""

    async def scenario() -> None:
        on = given.services()
        await given.create(on)
        late = await given.placed(on, PutMessage("late"))
        await given.drop(on)
        assert await refused(messages.put_message(on, late)) == (404, "QueueNotFound")
        await given.create(on)
        assert await refused(messages.put_message(on, late)) == (404, "QueueNotFound")
        assert await given.count(on) == 0

    run(scenario)


def test_puts_that_race_with_clearing_and_sweeping_are_seen_or_swept() -> None:
    """Q-QUE-03, Q-DEL-02: no invisible record is left behind."""

    async def scenario() -> None:
        on = given.services()
        await given.create(on)

        async def putting() -> None:
            for number in range(40):
                await given.put(on, str(number))
                await asyncio.sleep(0)

        async def clearing() -> None:
            for _ in range(20):
                await given.clear(on)
                await given.sweep(on)

        await asyncio.gather(putting(), putting(), clearing())
        await given.sweep(on)
        count = await given.count(on)
        assert len(await given.peek(on)) == min(count, 32)
        assert given.message_records(on) == 1 + 2 * count and given.problems(on) == []
        await given.drop(on)
        await given.sweep(on)
        assert given.message_records(on) == 0 and given.jobs(on) == 0

    run(scenario)


VERBS: dict[str, Callable[[Services], Awaitable[object]]] = {
    "create": given.create,
    "clear": given.clear,
    "delete": given.drop,
}


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("verb", VERBS)
def test_a_commit_that_is_cut_leaves_the_old_or_the_new(verb: str, steps: int) -> None:
    async def scenario() -> None:
        on = given.services()
        store = on.store
        assert isinstance(store, ServiceEngine)
        if verb != "create":
            await given.create(on)
            await given.put(on, "old")
        store.cut_after_steps(steps)
        with pytest.raises(CommitUnknown):
            await VERBS[verb](on)
        again = Services(store.restarted(), on.clock)
        await given.sweep(again)
        assert given.problems(again) == []
        await given.create(again)
        await given.put(again, "new")
        assert given.texts(await given.peek(again))[-1] == "new"

    run(scenario)


def test_lists_go_on_from_their_marker() -> None:
    """Q-LST-01, Q-LST-03."""

    async def scenario() -> None:
        on = given.services()
        names = sorted(f"queue-{number:02}" for number in range(7))
        for name in reversed(names):
            await given.create(on, name)
        found, start = [], START
        for _ in range(10):
            wanted = ListQueues(start=start, max_results=3)
            page = await list_queues(on, given.call(wanted, queue=""))
            found += [row.name for row in page.items]
            if page.marker is None:
                break
            start = page.marker
        assert found == names

    run(scenario)
