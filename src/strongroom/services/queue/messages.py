"""Put, update and delete one message.

Lives here: the decisions on a message that the request names. Source: "Operations on messages" of
the REST reference.

Every decision reads the queue's own record beside the message. The queue may have been deleted,
cleared or given another access control list. The request is judged by the state at the serial
point.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec

from strongroom import limits
from strongroom.clock import guid
from strongroom.engines.base import Commit, Ref
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.queue import messages, pop_receipts
from strongroom.semantics.queue.messages import Message
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.queue import ledgers
from strongroom.services.queue.message_changes import MessagesChange
from strongroom.services.queue.queues import queue_of
from strongroom.store.core import keys, records
from strongroom.store.core.records import QueueRecord
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import Ledger, MessageRecord

T = TypeVar("T")

# Each try fails because the queue was cleared in between.
_TRIES: Final = 16


class PutMessage(msgspec.Struct, frozen=True):
    """`ttl_s` -1 = the message does not expire."""

    text: str
    visibility_s: int = 0
    ttl_s: int = limits.DEFAULT_MESSAGE_TTL_S


class UpdateMessage(msgspec.Struct, frozen=True):
    """`text` None = the text does not change."""

    receipt: str
    visibility_s: int
    text: str | None = None


class DeleteMessage(msgspec.Struct, frozen=True):
    receipt: str


class MessageView(msgspec.Struct, frozen=True):
    """A message as an answer shows it; `receipt` is None where the caller gets none."""

    message: Message
    receipt: str | None = None
    text: str | None = None


async def put_message(services: Services, call: Call[PutMessage]) -> MessageView:
    """Its pop receipt is valid from the start."""
    request = call.input
    messages.require_lifetime(request.visibility_s, request.ttl_s, call.caller.version)
    messages.require_text(request.text)
    message_id = guid(services.clock)
    for tries in range(_TRIES):
        queue, _ = await queue_of(services, call, again=tries > 0)
        put = await _put(services, call, queue, message_id)
        if put is not None:
            return put
    raise StorageError(errors.SERVER_BUSY)


async def _put(
    services: Services, call: Call[PutMessage], queue: QueueRecord, message_id: str
) -> MessageView | None:
    """Put the message into the queue's epoch. Return None when the epoch has ended."""
    partition, reads = keys.message_partition(queue.generation, queue.epoch), Reads()
    return await ledgers.commit(
        services,
        _Put(
            partition,
            reads.refs,
            call.rule.purpose,
            call.with_pure_authorization(),
            queue,
            place=reads.add(place_ref(call), records.QUEUE),
            ledger=ledgers.add_own(services, reads, partition),
            message_id=message_id,
        ),
    )


class _Put(Decision[MessageView | None], frozen=True):
    call: Call[PutMessage]
    queue: QueueRecord
    place: ReadOne[QueueRecord]
    ledger: ReadOne[Ledger]
    message_id: str

    def decide(self, found: Found, stamp: int) -> Commit[MessageView | None]:
        """The result is None when the epoch of `queue` has ended."""
        queue, request, read = self.queue, self.call.input, self.ledger
        if place_in(self.call, found, self.place).epoch != queue.epoch:
            return Commit(None)
        message = messages.put(self.message_id, request.visibility_s, request.ttl_s, stamp)
        ledger = ledgers.own(found, read)
        change = MessagesChange(queue.generation, queue.epoch, stamp, ledger, read.ref.key)
        place = change.put(message, request.text)
        view = MessageView(message, pop_receipts.seal(queue.secret, place))
        return Commit(view, change.steps())


async def update_message(services: Services, call: Call[UpdateMessage]) -> MessageView:
    if call.input.text is not None:
        messages.require_text(call.input.text)
    decision = await _decision(services, call, call.input.receipt, _Update)
    return await ledgers.commit(services, decision)


async def delete_message(services: Services, call: Call[DeleteMessage]) -> None:
    decision = await _decision(services, call, call.input.receipt, _Delete)
    await ledgers.commit(services, decision)


class _OnMessage(Decision[T], Generic[T], frozen=True):
    """A decision on the message that the request names and its receipt refers to. `queue` is the
    queue as it was when the receipt was opened."""

    call: Call[Any]
    queue: QueueRecord
    place: ReadOne[QueueRecord]
    message: ReadOne[MessageRecord]
    ledger: ReadOne[Ledger]

    def named(self, found: Found, stamp: int) -> tuple[MessageRecord, MessagesChange]:
        """Return the message, and the writes that change it."""
        queue, record, read = self.queue, found[self.message], self.ledger
        epoch = place_in(self.call, found, self.place).epoch
        if epoch != queue.epoch or record is None:
            # The queue was cleared meanwhile, or the message was taken, changed or removed.
            raise messages.stale_receipt_error()
        # Ids are returned in lower case; a GUID may be sent in any case.
        messages.message_of_receipt(record.message, self.call.target.blob.lower(), stamp)
        ledger = ledgers.own(found, read)
        change = MessagesChange(queue.generation, queue.epoch, stamp, ledger, read.ref.key)
        return record, change


D = TypeVar("D", bound=_OnMessage[Any])


async def _decision(services: Services, call: Call[Any], receipt: str, kind: type[D]) -> D:
    queue, _ = await queue_of(services, call)
    at = pop_receipts.open_receipt(queue.secret, receipt)
    if at is None:
        raise messages.stale_receipt_error()
    partition, reads = keys.message_partition(queue.generation, queue.epoch), Reads()
    return kind(
        partition,
        reads.refs,
        call.rule.purpose,
        call.with_pure_authorization(),
        queue,
        place=reads.add(place_ref(call), records.QUEUE),
        message=reads.add(Ref(partition, keys.message_at(at)), message_records.MESSAGE),
        ledger=ledgers.add_own(services, reads, partition),
    )


class _Update(_OnMessage[MessageView], frozen=True):
    def decide(self, found: Found, stamp: int) -> Commit[MessageView]:
        record, change = self.named(found, stamp)
        request: UpdateMessage = self.call.input
        after = messages.update(record.message, request.visibility_s, stamp)
        place = change.move(self.message.ref.key, record, after, request.text)
        if after.visible < record.message.visible:
            # A waiter would otherwise sleep until the time at which the message was to become
            # visible before.
            change.wake_watchers()
        view = MessageView(after, pop_receipts.seal(self.queue.secret, place))
        return Commit(view, change.steps())


class _Delete(_OnMessage[None], frozen=True):
    def decide(self, found: Found, stamp: int) -> Commit[None]:
        record, change = self.named(found, stamp)
        change.remove(self.message.ref.key, record)
        return Commit(None, change.steps())
