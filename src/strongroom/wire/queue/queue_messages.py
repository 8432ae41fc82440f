"""Messages as XML: the body of Put Message and Update Message, the answers of Put, Get and Peek.

The final limit of a text's length: semantics/queue/messages.py. Sources: "Put Message", "Get
Messages", "Peek Messages".

The text of a message is kept as XML represents it, white space included. Line ends follow XML: a
lone CR, or CR LF, becomes LF unless it was written `&#13;`. Markup inside the text is refused:
dropping it would lose a part of the message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.values import rfc1123
from strongroom.wire.core import xml

_NEVER: Final = "Fri, 31 Dec 9999 23:59:59 GMT"


class MessageItem(msgspec.Struct, frozen=True):
    """One message of an answer. Times are ticks, `expires` 0 = never; None fields are left out."""

    id: str
    inserted: int
    expires: int
    receipt: str | None = None
    visible: int | None = None
    dequeued: int | None = None
    text: str | None = None


def read_message(body: bytes) -> str:
    reader = _Reader()
    handlers = xml.Handlers(reader.start, reader.end, reader.text)
    xml.parse(body, limits.MESSAGE_BODY_BYTES_MAX, handlers)
    if not reader.found:
        raise xml.missing_node("MessageText")
    return "".join(reader.pieces)


def read_optional_message(body: bytes) -> str | None:
    """None for an empty body, which does not change the text."""
    return read_message(body) if body else None


class _Reader:
    """The handlers of one parse: `_depth` counts open elements."""

    __slots__ = ("_depth", "_left_bytes", "found", "pieces")

    def __init__(self) -> None:
        self.found = False
        self.pieces: list[str] = []
        self._depth = 0
        self._left_bytes = limits.MESSAGE_TEXT_BYTES_MAX

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and name != "QueueMessage":
            raise xml.UnexpectedXml("The outermost element must be QueueMessage.")
        if self._depth == 2 and name == "MessageText":
            if self.found:
                raise xml.UnexpectedXml("The element MessageText is present twice.")
            self.found = True
        elif self._depth > 1:
            extras = (("XmlNodeName", name[:64]),)
            raise StorageError(errors.UNSUPPORTED_XML_NODE, None, extras)

    def end(self, _name: str) -> None:
        self._depth -= 1

    def text(self, data: str) -> None:
        if self._depth != 2:
            return
        self._left_bytes -= len(data.encode())
        if self._left_bytes < 0:
            raise errors.body_too_large(limits.MESSAGE_TEXT_BYTES_MAX)
        self.pieces.append(data)


def write_messages(messages: Iterable[MessageItem]) -> bytes:
    """The answer of Put Message, Get Messages or Peek Messages."""
    rows = "".join(map(_row, messages))
    if not rows:
        return f"{xml.DECLARATION}<QueueMessagesList />".encode()
    return f"{xml.DECLARATION}<QueueMessagesList>{rows}</QueueMessagesList>".encode()


def _row(item: MessageItem) -> str:
    expires = rfc1123(item.expires) if item.expires else _NEVER
    receipt = "" if item.receipt is None else f"<PopReceipt>{item.receipt}</PopReceipt>"
    visible, count = "", ""
    if item.visible is not None:
        visible = f"<TimeNextVisible>{rfc1123(item.visible)}</TimeNextVisible>"
    if item.dequeued is not None:
        count = f"<DequeueCount>{item.dequeued}</DequeueCount>"
    return (
        f"<QueueMessage><MessageId>{item.id}</MessageId>"
        f"<InsertionTime>{rfc1123(item.inserted)}</InsertionTime>"
        f"<ExpirationTime>{expires}</ExpirationTime>{receipt}{visible}{count}"
        f"{xml.optional_element('MessageText', item.text)}</QueueMessage>"
    )
