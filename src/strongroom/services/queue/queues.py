"""Create, read, change and delete a queue: its metadata, access control list, count of messages.

Lives here: the operations on a queue's own record. Clearing is one of them: it starts a new epoch
of messages. Source: "Operations on queues" of the REST reference.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.engines.base import Commit, Ref, Step, Write
from strongroom.errors import queue as queue_errors
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.queue.message_changes import new_epoch, sweep_step
from strongroom.store.core import keys, records
from strongroom.store.core.records import QueueRecord
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import Ledger
from strongroom.values import AccessPolicy, Metadata

_SECRET_BYTES: Final = 32


class CreateQueue(msgspec.Struct, frozen=True):
    metadata: Metadata = ()


class SetQueueMetadata(msgspec.Struct, frozen=True):
    """Pairs that are not given are removed."""

    metadata: Metadata = ()


class SetQueueAcl(msgspec.Struct, frozen=True):
    policies: tuple[AccessPolicy, ...] = ()


class QueueView(msgspec.Struct, frozen=True):
    """`count` is approximate."""

    record: QueueRecord
    count: int = 0


async def create_queue(services: Services, call: Call[CreateQueue]) -> bool:
    """The commit's stamp becomes the queue's generation. Return whether the queue is new.

    False: there is one with the same metadata. A deleted queue of the same name has another
    generation. So its messages are not visible, and writes in flight to it do not reach the new
    one.
    """
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
                raise StorageError(queue_errors.QUEUE_ALREADY_EXISTS)
            return Commit(False)
        created = QueueRecord(stamp, stamp, self.secret, given)
        begun = new_epoch(_name(self.call), stamp, 0, stamp)
        return Commit(True, (*begun, _written(self.place.ref, created)))


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
    (found,) = await services.store.read([Ref(partition, keys.LEDGER_KEY)])
    ledger = message_records.LEDGER.of(found) or Ledger()
    return QueueView(record, ledger.count)


async def set_metadata(services: Services, call: Call[SetQueueMetadata]) -> None:
    await _commit(services, call, _SetMetadata)


async def set_acl(services: Services, call: Call[SetQueueAcl]) -> None:
    """It takes effect with its answer.

    Every later decision sees another version of the queue's record, so its request is authorized
    again.
    """
    await _commit(services, call, _SetAcl)


async def clear_messages(services: Services, call: Call[Any]) -> None:
    """Hidden messages are gone too with the answer; a job sweeps them all."""
    await _commit(services, call, _Clear)
    services.work.set()


async def delete_queue(services: Services, call: Call[Any]) -> None:
    """Remove its record, which hides all messages; a job sweeps them."""
    await _commit(services, call, _Delete)
    services.work.set()


class _OfQueue(Decision[None], frozen=True):
    """A change of the queue's own record, and of what belongs to it."""

    call: Call[Any]
    place: ReadOne[QueueRecord]


async def _commit(services: Services, call: Call[Any], kind: type[_OfQueue]) -> None:
    reads = Reads()
    place = reads.add(place_ref(call), records.QUEUE)
    call = call.with_pure_authorization()
    await services.commit(kind(place.ref.partition, reads.refs, call.rule.purpose, call, place))


class _SetMetadata(_OfQueue, frozen=True):
    def decide(self, found: Found, stamp: int) -> Commit[None]:
        queue, metadata = place_in(self.call, found, self.place), self.call.input.metadata
        changed = msgspec.structs.replace(queue, metadata=metadata)
        return Commit(None, (_written(self.place.ref, changed),))


class _SetAcl(_OfQueue, frozen=True):
    def decide(self, found: Found, stamp: int) -> Commit[None]:
        queue, policies = place_in(self.call, found, self.place), self.call.input.policies
        changed = msgspec.structs.replace(queue, policies=policies)
        return Commit(None, (_written(self.place.ref, changed),))


class _Clear(_OfQueue, frozen=True):
    def decide(self, found: Found, stamp: int) -> Commit[None]:
        queue = place_in(self.call, found, self.place)
        begun = new_epoch(_name(self.call), queue.generation, queue.epoch, stamp)
        cleared = msgspec.structs.replace(queue, epoch=stamp)
        return Commit(None, (*begun, _written(self.place.ref, cleared)))


class _Delete(_OfQueue, frozen=True):
    def decide(self, found: Found, stamp: int) -> Commit[None]:
        queue, ref = place_in(self.call, found, self.place), self.place.ref
        # The job is written first: after a crash in between, it finds the queue alive and does
        # nothing.
        sweep = sweep_step(_name(self.call), queue.generation, queue.epoch, stamp)
        return Commit(None, (sweep, Step(ref.partition, (Write(ref.key, None),))))


def _written(ref: Ref, queue: QueueRecord) -> Step:
    return Step(ref.partition, (Write(ref.key, records.QUEUE.encode(queue)),))


def _name(call: Call[Any]) -> str:
    return f"{call.target.account}/{call.target.container}"
