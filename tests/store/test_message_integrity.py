"""The doctor's check of queues: used queues have no findings, and each damage is found."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest

from strongroom.engines.base import Commit, Key, Partition, Ref, Step, Write
from strongroom.services.core.runner import Services
from strongroom.store.core import gateway_keys, keys
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import Ledger
from tests.services import queue_calls as given
from tests.services.container_calls import run


async def used() -> Services:
    """Return services with queues of every kind of record: hidden, long, expiring, cleared,
    deleted."""
    on = given.services()
    await given.create(on)
    await given.create(on, "gone")
    await given.put(on, "cleared")
    await given.clear(on)
    await given.put(on, "short")
    await given.put(on, "x" * 65_000)
    await given.put(on, "stays", ttl_s=-1)
    await given.put(on, "later", visibility_s=60)
    (got,) = await given.get(on)
    await given.update(on, got, 5, "y" * 3_000)
    await given.put(on, "in a queue that goes", queue="gone")
    await given.drop(on, "gone")
    return on


def partition_of(on: Services) -> Partition:
    """Return the partition of the remaining queue's messages."""
    found = {ref.partition for ref in given.stored(on) if ref.partition.keyspace[:1] == b"m"}
    living = [one for one in found if sum(r.partition == one for r in given.stored(on)) > 5]
    assert len(living) == 1
    return living[0]


def names_of(on: Services, kind: bytes) -> list[bytes]:
    """Return the keys of one kind in that partition, in order."""
    here = partition_of(on)
    return sorted(
        ref.key.name
        for ref in given.stored(on)
        if ref.partition == here and ref.key.name[:1] == kind
    )


async def write(on: Services, key: bytes, value: bytes | None) -> None:
    await _commit(on, Step(partition_of(on), (Write(Key(True, key), value),)))


async def _commit(on: Services, step: Step) -> None:
    await on.store.update(step.partition, (), lambda found, stamp: Commit(None, (step,)))


def test_a_queue_that_was_used_is_whole() -> None:
    async def scenario() -> None:
        on = await used()
        assert given.problems(on) == []
        await given.sweep(on)
        assert given.problems(on) == []

    run(scenario)


async def lose_a_message(on: Services) -> None:
    await write(on, names_of(on, keys.MESSAGE)[0], None)


async def lose_an_expiry(on: Services) -> None:
    await write(on, names_of(on, keys.EXPIRY)[0], None)


async def point_elsewhere(on: Services) -> None:
    value = message_records.EXPIRY.encode(message_records.Expiry(b"p" * 17))
    await write(on, names_of(on, keys.EXPIRY)[1], value)


async def lose_a_chunk(on: Services) -> None:
    await write(on, names_of(on, keys.TEXT)[-1], None)


async def leave_a_chunk(on: Services) -> None:
    await write(on, keys.text(7, 0).name, message_records.TEXT.encode(b"whose?"))


async def lose_the_ledger(on: Services) -> None:
    await write(on, keys.LEDGER_KEY.name, None)


async def miscount(on: Services) -> None:
    record = given.stored(on)[_ledger(on)]
    ledger = message_records.LEDGER.decode(record.value)
    wrong = Ledger(ledger.count + 1, ledger.due)
    await write(on, keys.LEDGER_KEY.name, message_records.LEDGER.encode(wrong))


async def miscount_elsewhere(on: Services) -> None:
    await write(on, gateway_keys.ledger(3).name, message_records.LEDGER.encode(Ledger(-1)))


async def leave_a_ledger(on: Services) -> None:
    await write(on, gateway_keys.ledger(3).name, message_records.LEDGER.encode(Ledger()))


async def forget_the_expiry_job_elsewhere(on: Services) -> None:
    await write(on, gateway_keys.ledger(3).name, message_records.LEDGER.encode(Ledger(0, 7)))


async def forget_the_expiry_job(on: Services) -> None:
    record = given.stored(on)[_ledger(on)]
    ledger = message_records.LEDGER.decode(record.value)
    wrong = message_records.LEDGER.encode(Ledger(ledger.count, 0))
    await write(on, keys.LEDGER_KEY.name, wrong)


async def forget_the_sweep(on: Services) -> None:
    for ref in given.stored(on):
        if ref.partition.keyspace == keys.JOBS:
            await _commit(on, Step(ref.partition, (Write(ref.key, None),)))


async def misplace_a_message(on: Services) -> None:
    name = names_of(on, keys.MESSAGE)[0]
    here = partition_of(on)
    record = given.stored(on)[Ref(here, Key(True, name))]
    await write(on, keys.message(1, 2, 3).name, record.value)


async def garble_a_message(on: Services) -> None:
    await write(on, names_of(on, keys.MESSAGE)[0], b"\x01nonsense")


async def leave_a_stranger(on: Services) -> None:
    await write(on, b"zzz", b"")


def _ledger(on: Services) -> Ref:
    return Ref(partition_of(on), keys.LEDGER_KEY)


DAMAGES: dict[Callable[[Services], Awaitable[None]], str] = {
    lose_a_message: "its ledger counts 4 messages, and there are 3",
    lose_an_expiry: "what expires is not what its messages say",
    point_elsewhere: "what expires is not what its messages say",
    lose_a_chunk: "the long texts are not those of its messages",
    leave_a_chunk: "the long texts are not those of its messages",
    lose_the_ledger: "its ledger is missing",
    miscount: "its ledger counts 5 messages, and there are 4",
    miscount_elsewhere: "its ledger counts 3 messages, and there are 4",
    leave_a_ledger: "its ledger does not name the ledgers of the gateways",
    forget_the_expiry_job_elsewhere: "messages expire, and no job removes them",
    forget_the_expiry_job: "messages expire, and no job removes them",
    forget_the_sweep: "their queue is gone or was cleared, and no job cleans up",
    misplace_a_message: "no record belongs here",
    garble_a_message: "not a",
    leave_a_stranger: "no record belongs here",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_each_damage_shows(damage: Callable[[Services], Awaitable[None]]) -> None:
    async def scenario() -> None:
        on = await used()
        await damage(on)
        found = given.problems(on)
        assert any(re.search(re.escape(DAMAGES[damage]), one) for one in found), found

    run(scenario)
