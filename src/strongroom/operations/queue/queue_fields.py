"""The fields of operations on queues and messages, and their parsers.

Source: URI parameters of "List Queues", "Put Message", "Get Messages", "Update Message".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import queue as queue_errors
from strongroom.errors.core import StorageError, invalid_query
from strongroom.operations.core.fields import parameter
from strongroom.operations.core.listing_fields import includes
from strongroom.operations.core.spec import Field
from strongroom.semantics.core import listing
from strongroom.services.queue import list_queues
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

_VISIBILITY: Final = "visibilitytimeout"
# Any number that can be parsed: the upper limit depends on x-ms-version.
_ANY_INTEGER: Final = limits.MESSAGE_TTL_S[1]


def _marker(name: str, value: str) -> listing.Position:
    try:
        return listing.decode_marker(value)
    except StorageError as error:
        raise StorageError(queue_errors.INVALID_MARKER, None, error.extras) from None


def _bounded(field: str, name: str, bounds: tuple[int, int], default: int) -> Field:
    """A field of a whole number within bounds; its value is `default` if it was not sent."""

    def read(request: Request, query: Query) -> int:
        value = query.integer(name, *bounds)
        return default if value is None else value

    return Field(field, read, query=(name,))


def _required_visibility(request: Request, query: Query) -> int:
    text = query.require(_VISIBILITY)
    value = query.integer(_VISIBILITY, *limits.PUT_VISIBILITY_S)
    if value is None:
        raise invalid_query(_VISIBILITY, text, "The value is not an integer.")
    return value


MARKER: Final = parameter("start", "marker", _marker, default=listing.START)
QUEUE_INCLUDES: Final = includes(list_queues.INCLUDES)
COUNT: Final = _bounded("count", "numofmessages", limits.MESSAGES_PER_GET, 1)
PUT_VISIBILITY: Final = _bounded("visibility_s", _VISIBILITY, limits.PUT_VISIBILITY_S, 0)
GET_VISIBILITY: Final = _bounded(
    "visibility_s", _VISIBILITY, limits.GET_VISIBILITY_S, limits.DEFAULT_VISIBILITY_S
)
UPDATE_VISIBILITY: Final = Field("visibility_s", _required_visibility, query=(_VISIBILITY,))
TTL: Final = _bounded(
    "ttl_s", "messagettl", (-_ANY_INTEGER, _ANY_INTEGER), limits.DEFAULT_MESSAGE_TTL_S
)


def _no_receipt(request: Request, query: Query) -> None:
    receipt = query.get("popreceipt")
    if receipt is not None:
        reason = "A message's id is missing in front of it; all messages have no receipt."
        raise invalid_query("popreceipt", receipt, reason)


NO_RECEIPT: Final = Field("", _no_receipt)
"""Refuses a pop receipt in Clear Messages. Its client meant to delete one message, and the URL
lacks the message's id."""
RECEIPT: Final = parameter("receipt", "popreceipt", required=True)
