"""Calls on queues and messages, as requests would make them, on a store in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Record, Ref, Step, Write
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.queue import messages, queues, retrievals
from strongroom.services.queue.messages import DeleteMessage, MessageView, PutMessage, UpdateMessage
from strongroom.services.queue.queues import CreateQueue
from strongroom.services.queue.retrievals import GetMessages, PeekMessages
from strongroom.services.sweeper import Sweeper
from strongroom.store.core import gateway_keys, keys
from strongroom.store.integrity import Integrity
from tests.services import container_calls as given
from tests.services.service_engine import ServiceEngine

QUEUE = "tasks"


def services(store: Any = None) -> Services:
    return given.services(store)


def call(wanted: Any = None, *, queue: str = QUEUE, message: str = "", **more: Any) -> Call[Any]:
    return given.call(wanted, service=Service.QUEUE, container=queue, blob=message, **more)


async def placed(on: Services, wanted: Any = None, **more: Any) -> Call[Any]:
    """Return a call on an existing queue, authorized by its present state."""
    place = await on.place(Service.QUEUE, given.ACCOUNT, more.get("queue", QUEUE))
    return call(wanted, place=place, **more)


async def create(on: Services, queue: str = QUEUE, **metadata: str) -> bool:
    wanted = CreateQueue(tuple(metadata.items()))
    return await queues.create_queue(on, await placed(on, wanted, queue=queue))


async def put(on: Services, text: str = "text", queue: str = QUEUE, **more: int) -> MessageView:
    return await messages.put_message(on, await placed(on, PutMessage(text, **more), queue=queue))


async def get(
    on: Services, count: int = 1, visibility_s: int = 30, wait_s: int = 0, **more: Any
) -> tuple[MessageView, ...]:
    wanted = GetMessages(count, visibility_s)
    return await retrievals.get_messages(on, await placed(on, wanted, wait_s=wait_s, **more))


async def peek(on: Services, count: int = 32) -> tuple[MessageView, ...]:
    return await retrievals.peek_messages(on, await placed(on, PeekMessages(count)))


async def update(
    on: Services, view: MessageView, visibility_s: int = 0, text: str | None = None
) -> MessageView:
    assert view.receipt is not None
    wanted = UpdateMessage(view.receipt, visibility_s, text)
    return await messages.update_message(on, await placed(on, wanted, message=view.message.id))


async def delete(on: Services, view: MessageView, queue: str = QUEUE) -> None:
    assert view.receipt is not None
    wanted = DeleteMessage(view.receipt)
    made = await placed(on, wanted, message=view.message.id, queue=queue)
    await messages.delete_message(on, made)


async def clear(on: Services) -> None:
    await queues.clear_messages(on, await placed(on))


async def drop(on: Services, queue: str = QUEUE) -> None:
    await queues.delete_queue(on, await placed(on, queue=queue))


async def count(on: Services) -> int:
    return (await queues.count_queue(on, await placed(on))).count


def texts(views: Sequence[MessageView]) -> list[str | None]:
    return [view.text for view in views]


def pass_time(on: Services, seconds: float) -> None:
    """Move the clock, a little further than that: the clock stands still while stamps rise."""
    on.store.advance(seconds + 0.01)


async def sweep(on: Services) -> int:
    """Do all jobs that are due, and return how many were finished. The clock is moved, because it
    stands still while stamps rise."""
    on.store.advance(1)
    return await Sweeper(on).run_once()


def problems(on: Services) -> list[str]:
    """Return the doctor's findings on a store in memory."""
    store = on.store
    assert isinstance(store, ServiceEngine)
    return [f"{one.place}: {one.problem}" for one in Integrity(MemorySnapshot(store)).findings()]


class MemorySnapshot:
    """A store in memory, in the form that the doctor inspects."""

    def __init__(self, store: ServiceEngine) -> None:
        self._store = store

    def records(self) -> Iterator[tuple[Ref, Record]]:
        return iter(sorted(self._store.records(), key=lambda item: (item[0].key.hidden, item[0])))

    def content_ids(self) -> Iterator[int]:
        return self._store.content_ids()

    def read_content(self, content_id: int) -> Iterator[bytes]:
        raise AssertionError("queues have no contents")


def stored(on: Services) -> dict[Ref, Record]:
    """Return all records of a store in memory."""
    store = on.store
    assert isinstance(store, ServiceEngine)
    return dict(store.records())


def texts_in(store: Any) -> list[Ref]:
    """Return the keys of the chunks of long texts in a store in memory."""
    return [
        ref
        for ref, _ in store.records()
        if ref.partition.keyspace[:1] == b"m" and ref.key.hidden and ref.key.name[:1] == keys.TEXT
    ]


async def overwrite(on: Services, ref: Ref, value: bytes | None) -> None:
    """Change a record without the service's knowledge; None = remove it."""
    step = Step(ref.partition, (Write(ref.key, value),))
    await on.store.update(ref.partition, (), lambda found, stamp: Commit(None, (step,)))


def message_records(on: Services) -> int:
    """Return how many records queues' messages have, in all keyspaces together. The ledgers of
    several gateways count as one."""
    refs = [ref for ref in stored(on) if ref.partition.keyspace[:1] == b"m"]
    return sum(not gateway_keys.ledger_gateway(ref.key.name) for ref in refs)


def jobs(on: Services) -> int:
    """Return how many jobs are ordered."""
    return sum(ref.partition.keyspace == keys.JOBS for ref in stored(on))
