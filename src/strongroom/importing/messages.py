"""Imports the messages of queues.

Lives here: one commit per message, in the order in which they are to be retrieved. Must not live
here: how the ledger, expiries and long texts are kept consistent (services/queue/message_changes).

A message keeps its id, its times, and how often it was dequeued. Its pop receipt is one of Azurite
and has no meaning here. So whoever holds a hidden message cannot delete it, and it becomes visible
at its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Record, Ref, Step
from strongroom.importing import conversions
from strongroom.importing.conversions import NotConvertible
from strongroom.importing.documents import MessageDocument
from strongroom.importing.folder import ExtentFiles
from strongroom.importing.session import ImportedPlace, ImportSession
from strongroom.semantics.queue.messages import NEVER, Message, require_text
from strongroom.services.queue.message_changes import MessagesChange
from strongroom.store.core import keys
from strongroom.store.queue import message_records
from strongroom.values import INT32, LATEST_TICKS, TICKS_PER_S
from strongroom.wire.core import xml

MESSAGE: Final = msgspec.json.Decoder(MessageDocument)
# Azurite's time of expiry of a message that does not expire is the last millisecond of 9999.
_NEVER_FROM: Final = LATEST_TICKS - TICKS_PER_S


async def import_message(
    session: ImportSession, files: ExtentFiles, place: ImportedPlace, document: MessageDocument
) -> None:
    """Import a message that has not expired. Nothing is awaited before its commit begins, so that
    messages get their places in the order of the calls. Raises NotConvertible, ExtentRefused,
    StorageError."""
    message, text = _message(document), _text(files, document)
    partition = keys.message_partition(place.generation, place.epoch)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        (record,) = found
        ledger = message_records.LEDGER.of(record)
        change = MessagesChange(place.generation, place.epoch, stamp, ledger)
        change.put(message, text)
        return change.steps()

    await session.commit(partition, [Ref(partition, keys.LEDGER_KEY)], steps)
    session.report.counts["messages"] += 1
    session.report.counts["bytes"] += document.persistency.count


def is_expired(document: MessageDocument, now: int) -> bool:
    return conversions.time(document.expiration_time, "time of expiry") <= now


def _message(document: MessageDocument) -> Message:
    expires = conversions.time(document.expiration_time, "time of expiry")
    if not 0 <= document.dequeue_count <= INT32[1]:
        raise NotConvertible(f"its dequeue count is {document.dequeue_count}")
    return Message(
        conversions.message_id(document.message_id),
        conversions.time(document.insertion_time, "time of insertion"),
        NEVER if expires >= _NEVER_FROM else expires,
        conversions.time_ms(document.time_next_visible, "next time of visibility"),
        document.dequeue_count,
    )


def _text(files: ExtentFiles, document: MessageDocument) -> str:
    if document.persistency.count > limits.MESSAGE_TEXT_BYTES_MAX:
        raise NotConvertible(f"its text has {document.persistency.count} bytes")
    try:
        text = b"".join(files.read(document.persistency)).decode()
    except UnicodeDecodeError:
        raise NotConvertible("its text is not UTF-8") from None
    require_text(text)
    if xml.has_illegal(text):
        raise NotConvertible("its text has characters that XML does not permit")
    return text
