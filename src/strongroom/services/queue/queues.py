"""Create, read, change and delete a queue: its metadata, access control list, count of messages.

Lives here: the operations on a queue's own record. Clearing is one of them: it starts a new epoch
of messages. Source: "Operations on queues" of the REST reference.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.engines.base import Commit, Ref
from strongroom.errors import queue as queue_errors
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.place_records import (
    PlaceRecordKind,
    PlaceRule,
    SetPlaceMetadata,
    change_fields,
    commit_place,
    name_of,
    removed,
    written,
)
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.queue import ledgers
from strongroom.services.queue.message_changes import new_epoch
from strongroom.store.core import keys, records
from strongroom.store.core.records import JobKind, QueueRecord
from strongroom.values import AccessPolicy, Metadata

_SECRET_BYTES: Final = 32
QUEUES: Final = PlaceRecordKind(
    place=records.QUEUE,
    exists=queue_errors.QUEUE_ALREADY_EXISTS,
    sweep_job=JobKind.SWEEP_MESSAGES,
    epoch_of=lambda queue: queue.epoch,
)


class CreateQueue(msgspec.Struct, frozen=True):
    metadata: Metadata = ()


class SetQueueAcl(msgspec.Struct, frozen=True):
    policies: tuple[AccessPolicy, ...] = ()


class QueueView(msgspec.Struct, frozen=True):
    """`count` is approximate."""

    record: QueueRecord
    count: int = 0


async def create_queue(services: Services, call: Call[CreateQueue]) -> bool:
    """Return whether the queue is new. False: there is one with the same metadata."""
    reads, secret = Reads(), services.clock.random_bytes(_SECRET_BYTES)
    place = reads.add(place_ref(call), records.QUEUE)
    return await services.commit(
        _Create(place.ref.partition, reads.refs, call.rule.purpose, call, place, secret)
    )


class _Create(Decision[bool], frozen=True):
    """`secret` protects the pop receipts of the queue's messages."""

    call: Call[CreateQueue]
    place: ReadOne[QueueRecord]
    secret: bytes

    def decide(self, found: Found, stamp: int) -> Commit[bool]:
        given = self.call.input.metadata
        there = found[self.place]
        if there is not None:
            if _comparable(there.metadata) != _comparable(given):
                raise StorageError(QUEUES.exists)
            return Commit(False)
        created = QueueRecord(stamp, stamp, self.secret, given)
        begun = new_epoch(name_of(self.call), stamp, 0, stamp)
        return Commit(True, (*begun, written(self.place.ref, records.QUEUE, created)))


def _comparable(metadata: Metadata) -> dict[str, str]:
    """The order and the case of names do not matter."""
    return {name.lower(): value for name, value in metadata}


async def queue_of(
    services: Services, call: Call[Any], again: bool = False
) -> tuple[QueueRecord, int | None]:
    """Return the committed queue, and its record's version.

    It is the record that was read with the request, unless `again` requires a new read.
    """
    place = call.place
    if not again and place is not None and isinstance(place.record, QueueRecord):
        return place.record, place.version
    reads = Reads()
    read = reads.add(place_ref(call), records.QUEUE)
    found = await services.read(reads)
    return place_in(call, found, read), found.version(read)


async def get_queue(services: Services, call: Call[Any]) -> QueueView:
    record, _ = await queue_of(services, call, again=True)
    return QueueView(record)


async def count_queue(services: Services, call: Call[Any]) -> QueueView:
    """Hidden messages count, and expired ones count until they are swept."""
    record, _ = await queue_of(services, call, again=True)
    partition = keys.message_partition(record.generation, record.epoch)
    counted = await ledgers.read_all(services, partition)
    return QueueView(record, sum(one.value.count for one in counted))


async def set_metadata(services: Services, call: Call[SetPlaceMetadata]) -> None:
    await change_fields(services, call, records.QUEUE, metadata=call.input.metadata)


async def set_acl(services: Services, call: Call[SetQueueAcl]) -> None:
    """It takes effect with its answer; see commit_place."""
    await change_fields(services, call, records.QUEUE, policies=call.input.policies)


async def clear_messages(services: Services, call: Call[Any]) -> None:
    """Hidden messages are gone too with the answer; a job sweeps them all."""
    await commit_place(services, call, records.QUEUE, _Clear())
    services.work.set()


class _Clear(PlaceRule[QueueRecord, None], frozen=True):
    def decide(self, call: Call[Any], ref: Ref, record: QueueRecord, stamp: int) -> Commit[None]:
        begun = new_epoch(name_of(call), record.generation, record.epoch, stamp)
        cleared = msgspec.structs.replace(record, epoch=stamp)
        return Commit(None, (*begun, written(ref, records.QUEUE, cleared)))


async def delete_queue(services: Services, call: Call[Any]) -> None:
    """Remove its record, which hides all messages; a job sweeps them."""
    await commit_place(services, call, records.QUEUE, _Delete())
    services.work.set()


class _Delete(PlaceRule[QueueRecord, None], frozen=True):
    def decide(self, call: Call[Any], ref: Ref, record: QueueRecord, stamp: int) -> Commit[None]:
        return Commit(None, removed(ref, QUEUES.sweep(name_of(call), record), stamp))
