"""The answers of operations on queues and messages: headers, statuses, documents.

Source: responses of "Operations on queues" and "Operations on messages".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from strongroom.operations.core.answers import document, long_document
from strongroom.operations.core.listing_fields import page_request
from strongroom.operations.core.spec import Content, Origin, Returned
from strongroom.semantics.core import listing
from strongroom.services.core.calls import Call
from strongroom.services.queue import list_queues
from strongroom.services.queue.list_queues import ListQueues, QueuePage
from strongroom.services.queue.messages import MessageView, PutMessage
from strongroom.services.queue.queues import QueueView
from strongroom.values import rfc1123
from strongroom.wire.core.signed_identifiers import write_signed_identifiers
from strongroom.wire.queue import list_queues as queues_xml
from strongroom.wire.queue.queue_messages import MessageItem, write_messages

# Before this version Put Message was answered without a body.
_PUT_ANSWERED_SINCE: Final = "2016-05-31"

COUNT: Final = Returned("x-ms-approximate-messages-count", lambda view: str(view.count))
RECEIPT: Final = Returned("x-ms-popreceipt", lambda view: view.receipt)
NEXT_VISIBLE: Final = Returned("x-ms-time-next-visible", lambda view: rfc1123(view.message.visible))


def created_status(created: bool) -> int:
    """201 for a new queue, 204 if an equal one existed."""
    return 201 if created else 204


def acl(view: QueueView, call: Call[Any], origin: Origin) -> Content:
    return document(write_signed_identifiers(view.record.policies))


def queues(page: QueuePage, call: Call[ListQueues], origin: Origin) -> Content:
    request = page_request(origin, call.input.max_results)
    metadata = list_queues.METADATA in call.input.include
    rows = ((row.name, row.metadata if metadata else None) for row in page.items)
    marker = listing.encode_marker(page.marker)
    return long_document(queues_xml.write_queues(request, rows, marker))


def put_message(view: MessageView, call: Call[PutMessage], origin: Origin) -> Content:
    """Every field of the message except its text."""
    if call.caller.version < _PUT_ANSWERED_SINCE:
        return Content(b"", 0)
    message = view.message
    item = MessageItem(message.id, message.inserted, message.expires, view.receipt, message.visible)
    return document(write_messages([item]))


def got_messages(views: Iterable[MessageView], call: Call[Any], origin: Origin) -> Content:
    return document(write_messages([_item(view, view.message.visible) for view in views]))


def peeked_messages(views: Iterable[MessageView], call: Call[Any], origin: Origin) -> Content:
    """Without receipts and times of the next visibility."""
    return document(write_messages([_item(view, None) for view in views]))


def _item(view: MessageView, visible: int | None) -> MessageItem:
    message = view.message
    return MessageItem(
        message.id,
        message.inserted,
        message.expires,
        view.receipt,
        visible,
        message.dequeued,
        view.text,
    )
