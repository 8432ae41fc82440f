"""Messages of a queue: when they are visible, how often they were dequeued, when they expire.

The effect of each verb on a message, as pure functions of (message, request, now), with `now` in
ticks. The rule for stale pop receipts lives here too; receipts as text: pop_receipts.py. Sources:
"Put Message", "Get Messages", "Update Message", "Delete Message" of the Azure Storage REST
reference.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors import queue as queue_errors
from strongroom.errors.core import ErrorCode, StorageError, invalid_query, out_of_range_query
from strongroom.values import LATEST_TICKS, TICKS_PER_S

NEVER: Final = 0
"""`expires` of a message that does not expire."""
INFINITE: Final = -1
"""`messagettl` of such a message."""
ANY_TTL_SINCE: Final = "2017-07-29"

STALE_RECEIPT: Final[ErrorCode] = queue_errors.MESSAGE_NOT_FOUND
"""The answer to a well-formed pop receipt that does not hold.

A later retrieval, update, deletion or expiry has ended it, or it belongs to another message or
queue. Sources disagree between this error and PopReceiptMismatch (400). This name is the only place
to change.
"""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """A message without its text. Times are in ticks. `expires` 0 means never. Get Messages may
    return it from `visible` on, until it expires."""

    id: str
    inserted: int
    expires: int
    visible: int
    dequeued: int = 0


def require_lifetime(visibility_s: int, ttl_s: int, version: str) -> None:
    """Check `messagettl`, and that the message becomes visible before it expires.

    Arguments:
        ttl_s: seconds, or -1 = never.
        version: x-ms-version; older ones allow seven days at most.
    """
    any_ttl = version >= ANY_TTL_SINCE
    least, most = limits.MESSAGE_TTL_S if any_ttl else limits.MESSAGE_TTL_S_BEFORE_2017
    if ttl_s == INFINITE and any_ttl:
        return
    if not least <= ttl_s <= most:
        raise out_of_range_query("messagettl", str(ttl_s), least, most)
    if visibility_s >= ttl_s:
        reason = "messagettl must be greater than visibilitytimeout"
        raise invalid_query("visibilitytimeout", str(visibility_s), reason)


def require_text(text: str) -> None:
    """Check that a text has at most 65,536 bytes of UTF-8."""
    # UTF-8 has one to four bytes for each character, so most texts need not be encoded for the
    # check.
    most = limits.MESSAGE_TEXT_BYTES_MAX
    if len(text) > most or (len(text) * 4 > most and len(text.encode()) > most):
        raise errors.body_too_large(most)


def put(message_id: str, visibility_s: int, ttl_s: int, now: int) -> Message:
    """A new message, visible after `visibility_s` and expired after `ttl_s` (-1 = never).

    A message that would expire after the year 9999 never expires: responses cannot show that time.
    """
    expires = now + ttl_s * TICKS_PER_S
    if ttl_s == INFINITE or expires > LATEST_TICKS:
        expires = NEVER
    return Message(message_id, now, expires, now + visibility_s * TICKS_PER_S)


def is_expired(message: Message, now: int) -> bool:
    """A message that expires at `now` has expired."""
    return message.expires != NEVER and message.expires <= now


def get(message: Message, visibility_s: int, now: int) -> Message:
    """The message after a retrieval: its count is higher, and it is hidden for `visibility_s`, even
    beyond its expiry."""
    return msgspec.structs.replace(
        message, visible=now + visibility_s * TICKS_PER_S, dequeued=message.dequeued + 1
    )


def update(message: Message, visibility_s: int, now: int) -> Message:
    """The message hidden for `visibility_s` from now on, at most until its expiry; the count
    stays."""
    visible = now + visibility_s * TICKS_PER_S
    if message.expires != NEVER and visible > message.expires:
        most = (message.expires - now) // TICKS_PER_S
        raise out_of_range_query("visibilitytimeout", str(visibility_s), 0, most)
    return msgspec.structs.replace(message, visible=visible)


def message_of_receipt(message: Message | None, message_id: str, now: int) -> Message:
    """The message at the place of a genuine pop receipt, if it is still the same message.

    Arguments:
        message: the message at the receipt's place; None = no message is there any more.
        message_id: the id in the URL.
    """
    if message is None or message.id != message_id:
        raise stale_receipt_error()
    if is_expired(message, now):
        raise StorageError(queue_errors.MESSAGE_NOT_FOUND)
    return message


def stale_receipt_error() -> StorageError:
    return StorageError(STALE_RECEIPT)
