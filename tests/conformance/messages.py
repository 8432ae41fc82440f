"""Messages for tests: puts, gets, peeks, updates and deletes them, and parses the answers."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote
from xml.sax.saxutils import escape

from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client, Fields


@dataclass(frozen=True, slots=True)
class Message:
    """One QueueMessage of an answer; a field is None if the element is missing."""

    id: str
    inserted: str
    expires: str
    receipt: str | None = None
    visible: str | None = None
    count: int | None = None
    text: str | None = None


def document(text: str) -> bytes:
    """The body of Put Message and Update Message."""
    return f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>".encode()


def target(queue: str, **parameters: object) -> str:
    """The URL of a queue's messages."""
    pairs = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"/{queue}/messages" + (f"?{pairs}" if pairs else "")


def messages(answer: Answer) -> list[Message]:
    """The messages of an answer."""
    root = answer.xml
    assert root.tag == "QueueMessagesList", root.tag
    found = []
    for row in root:
        texts = {child.tag: child.text or "" for child in row}
        count = texts.get("DequeueCount")
        found.append(
            Message(
                texts["MessageId"],
                texts["InsertionTime"],
                texts["ExpirationTime"],
                texts.get("PopReceipt"),
                texts.get("TimeNextVisible"),
                None if count is None else int(count),
                texts.get("MessageText"),
            )
        )
    return found


def put(client: Client, queue: str, text: str = "text", **parameters: object) -> Message:
    """Put Message."""
    answer = client.send("POST", target(queue, **parameters), (), document(text))
    (message,) = messages(expect(answer, 201))
    return message


def get(client: Client, queue: str, headers: Fields = (), **parameters: object) -> list[Message]:
    """Get Messages."""
    return messages(expect(client.get(target(queue, **parameters), headers), 200))


def peek(client: Client, queue: str, count: int = 32) -> list[Message]:
    """Peek Messages."""
    return messages(expect(client.get(target(queue, peekonly="true", numofmessages=count)), 200))


def delete(client: Client, queue: str, message: Message, receipt: str | None = None) -> Answer:
    """Delete Message."""
    return client.delete(one(queue, message.id, receipt or message.receipt))


def update(
    client: Client,
    queue: str,
    message: Message,
    text: str | None = None,
    *,
    seconds: object = 0,
    receipt: str | None = None,
) -> Answer:
    """Update Message."""
    where = one(queue, message.id, receipt or message.receipt)
    body = b"" if text is None else document(text)
    return client.put(f"{where}&visibilitytimeout={seconds}", (), body)


def one(queue: str, message_id: str, receipt: str | None) -> str:
    """The URL of a message."""
    return f"/{queue}/messages/{message_id}?popreceipt={quote(receipt or '', safe='')}"


def count(client: Client, queue: str) -> int:
    """x-ms-approximate-messages-count."""
    answer = expect(client.get(f"/{queue}?comp=metadata"), 200)
    return int(answer["x-ms-approximate-messages-count"])
