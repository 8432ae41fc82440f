"""Batches as tests send them, and their answers, parsed by the standard library alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from typing import Any

from tests.conformance.answer import Answer
from tests.conformance.client import Client

BATCH_TYPE = {"Content-Type": "multipart/mixed; boundary=batch_a", "DataServiceVersion": "3.0"}
_PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
_SENT = {"Content-Type": "application/json", "Accept": "application/json;odata=minimalmetadata"}


@dataclass(frozen=True)
class Change:
    """One request of a batch; `target` without the account, `document` None = no body."""

    method: str
    target: str
    document: Mapping[str, object] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    content_id: str | None = None

    def text(self, client: Client) -> str:
        own = f"Content-ID: {self.content_id}\r\n" if self.content_id is not None else ""
        fields = {**(_SENT if self.document is not None else {}), **dict(self.headers)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        url = self.target if "://" in self.target else f"{client.prefix}{self.target}"
        body = "" if self.document is None else json.dumps(self.document)
        return f"{_PART}{own}\r\n{self.method} {url} HTTP/1.1\r\n{lines}\r\n{body}\r\n"


@dataclass(frozen=True)
class Part:
    """One answer of a batch."""

    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["odata.error"]["code"])

    @property
    def message(self) -> str:
        """The first line of an error's text."""
        return str(self.json["odata.error"]["message"]["value"].split("\n")[0])


def insert(table: str, partition_key: str, row_key: str, **properties: object) -> Change:
    """Return Insert Entity with the preference not to get the entity back."""
    document = {"PartitionKey": partition_key, "RowKey": row_key, **properties}
    return Change("POST", f"/{table}", document, (("Prefer", "return-no-content"),))


def changeset(client: Client, changes: Sequence[Change]) -> bytes:
    """The body of a batch of changes."""
    inner = "".join(f"--changeset_b\r\n{change.text(client)}" for change in changes)
    head = "--batch_a\r\nContent-Type: multipart/mixed; boundary=changeset_b\r\n\r\n"
    return f"{head}{inner}--changeset_b--\r\n\r\n--batch_a--\r\n".encode()


def single(client: Client, change: Change) -> bytes:
    """The body of a batch of one request outside of a change set."""
    return f"--batch_a\r\n{change.text(client)}--batch_a--\r\n".encode()


def send(client: Client, *changes: Change, sas: str = "") -> list[Part]:
    """Send a change set, and return the answers to its parts."""
    return parts(post(client, changeset(client, changes), sas))


def post(client: Client, body: bytes, sas: str = "") -> Answer:
    """Send a batch; `sas` is a token that replaces the signature."""
    if sas:
        return client.send("POST", f"/$batch?{sas}", BATCH_TYPE, body, None)
    return client.send("POST", "/$batch", BATCH_TYPE, body)


def parts(answer: Answer) -> list[Part]:
    """The answers in the answer to a batch, 202."""
    assert answer.status == 202, answer
    head = f"Content-Type: {answer['Content-Type']}\r\n\r\n".encode()
    whole = BytesParser().parsebytes(head + answer.body)
    assert whole.get_content_type() == "multipart/mixed"
    (outer,) = _children(whole)
    inner = _children(outer) if outer.get_content_type() == "multipart/mixed" else [outer]
    return [_part(one) for one in inner]


def _children(message: Message) -> list[Message]:
    found = message.get_payload()
    assert isinstance(found, list)
    return [one for one in found if isinstance(one, Message)]


def _part(message: Message) -> Part:
    assert message.get_content_type() == "application/http"
    assert message["Content-Transfer-Encoding"] == "binary"
    content = message.get_payload(decode=True)
    assert isinstance(content, bytes)
    line, _, rest = content.partition(b"\r\n")
    head, _, body = rest.partition(b"\r\n\r\n")
    protocol, status, _ = line.split(b" ", 2)
    assert protocol == b"HTTP/1.1"
    return Part(int(status), BytesParser().parsebytes(head), body)
