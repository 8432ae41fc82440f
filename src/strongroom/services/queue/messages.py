"""Put, update and delete one message.

Lives here: the decisions on a message that the request names. Must not live here: retrievals, which
search for theirs (retrievals.py), the rules of messages (semantics/queue/messages.py), pop receipts
as text (semantics/queue/pop_receipts.py). Source: "Operations on messages" of the REST reference.

Every decision reads the queue's own record beside the message. The queue may have been deleted,
cleared or given another access control list. The request is judged by the state at the serial
point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from strongroom import errors, limits
from strongroom.clock import guid
from strongroom.engines.base import Commit, Key, Record, Ref
from strongroom.errors import StorageError
from strongroom.semantics.queue import messages, pop_receipts
from strongroom.semantics.queue.messages import Message
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision
from strongroom.services.core.places import place_ref
from strongroom.services.core.runner import Services
from strongroom.services.queue.message_changes import MessagesChange
from strongroom.services.queue.queues import queue_in, queue_of
from strongroom.store.core import keys
from strongroom.store.core.records import QueueRecord
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import MessageRecord

T = TypeVar("T")

# Each try fails because the queue was cleared in between.
_TRIES: Final = 16


class PutMessage(msgspec.Struct, frozen=True):
    """Input of Put Message; `ttl_s` -1 = the message does not expire."""

    text: str
    visibility_s: int = 0
    ttl_s: int = limits.DEFAULT_MESSAGE_TTL_S


class UpdateMessage(msgspec.Struct, frozen=True):
    """Input of Update Message; `text` None = the text does not change."""

    receipt: str
    visibility_s: int
    text: str | None = None


class DeleteMessage(msgspec.Struct, frozen=True):
    """Input of Delete Message."""

    receipt: str


class MessageView(msgspec.Struct, frozen=True):
    """A message as an answer shows it; `receipt` is None where the caller gets none."""

    message: Message
    receipt: str | None = None
    text: str | None = None


async def put_message(services: Services, call: Call[PutMessage]) -> MessageView:
    """Put Message. Its pop receipt is valid from the start.

    Raises: StorageError QueueNotFound, RequestBodyTooLarge, OutOfRangeQueryParameterValue,
        InvalidQueryParameterValue.
    """
    given = call.input
    messages.require_lifetime(given.visibility_s, given.ttl_s, call.caller.version)
    messages.require_text(given.text)
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
    partition = keys.message_partition(queue.generation, queue.epoch)
    reads = [place_ref(call), Ref(partition, keys.LEDGER_KEY)]
    decision = _Put(
        partition, reads, call.rule.purpose, call.with_pure_authorization(), queue, message_id
    )
    return await services.commit(decision)


class _Put(Decision[MessageView | None], frozen=True):
    """Put Message into the epoch of `queue`."""

    call: Call[PutMessage]
    queue: QueueRecord
    message_id: str

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[MessageView | None]:
        """See Decision.decide. The result is None when the epoch has ended."""
        queue, given = self.queue, self.call.input
        ledger = message_records.LEDGER.of(found[1])
        if queue_in(self.call, found[0]).epoch != queue.epoch or ledger is None:
            return Commit(None)
        message = messages.put(self.message_id, given.visibility_s, given.ttl_s, stamp)
        change = MessagesChange(queue.generation, queue.epoch, stamp, ledger)
        place = change.put(message, given.text)
        view = MessageView(message, pop_receipts.seal(queue.secret, place))
        return Commit(view, change.steps())


async def update_message(services: Services, call: Call[UpdateMessage]) -> MessageView:
    """Update Message: set the visibility, and the text if one is given.

    Raises: StorageError QueueNotFound, MessageNotFound, RequestBodyTooLarge,
        InvalidQueryParameterValue (no receipt), OutOfRangeQueryParameterValue (beyond the expiry).
    """
    given = call.input
    if given.text is not None:
        messages.require_text(given.text)

    def decide(held: _MessageAtCommit) -> MessageView:
        before = held.record.message
        after = messages.update(before, given.visibility_s, held.stamp)
        place = held.change.move(held.key, held.record, after, given.text)
        if after.visible < before.visible:
            # A waiter would otherwise sleep until the time at which the message was to become
            # visible before.
            held.change.wake_watchers()
        return MessageView(after, pop_receipts.seal(held.secret, place))

    return await _change(services, call, given.receipt, decide)


async def delete_message(services: Services, call: Call[DeleteMessage]) -> None:
    """Delete Message.

    Raises: StorageError QueueNotFound, MessageNotFound, InvalidQueryParameterValue (no receipt).
    """

    def decide(held: _MessageAtCommit) -> None:
        held.change.remove(held.key, held.record)

    await _change(services, call, call.input.receipt, decide)


class _MessageAtCommit(msgspec.Struct, frozen=True):
    """A message at the serial point, and the writes that change it."""

    key: Key
    record: MessageRecord
    change: MessagesChange
    stamp: int
    secret: bytes


async def _change(
    services: Services, call: Call[Any], receipt: str, change: Callable[[_MessageAtCommit], T]
) -> T:
    """Decide on the message that the request names and its receipt refers to.

    Raises: StorageError QueueNotFound, MessageNotFound, InvalidQueryParameterValue; what `change`
        raises.
    """
    queue, _ = await queue_of(services, call)
    place = pop_receipts.open_receipt(queue.secret, receipt)
    if place is None:
        raise messages.stale_receipt_error()
    key = keys.message_at(place)
    partition = keys.message_partition(queue.generation, queue.epoch)
    reads = [place_ref(call), Ref(partition, key), Ref(partition, keys.LEDGER_KEY)]
    return await services.commit(
        _Change(partition, reads, call.rule.purpose, call.with_pure_authorization(), queue, change)
    )


class _Change(Decision[T], Generic[T], frozen=True):
    """Change the message at the key of the second read, by `change`."""

    call: Call[Any]
    queue: QueueRecord
    change: Callable[[_MessageAtCommit], T]

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[T]:
        """See Decision.decide. Raises: as `_change`."""
        queue, named = self.queue, self.call.target.blob
        record = message_records.MESSAGE.of(found[1])
        ledger = message_records.LEDGER.of(found[2])
        if queue_in(self.call, found[0]).epoch != queue.epoch or ledger is None:
            # The queue was cleared meanwhile: the message of the receipt is gone.
            raise messages.stale_receipt_error()
        # Ids are returned in lower case; a GUID may be sent in any case.
        messages.message_of_receipt(
            None if record is None else record.message, named.lower(), stamp
        )
        assert record is not None
        change = MessagesChange(queue.generation, queue.epoch, stamp, ledger)
        result = self.change(
            _MessageAtCommit(self.reads[1].key, record, change, stamp, queue.secret)
        )
        return Commit(result, change.steps())
