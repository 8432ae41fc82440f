"""Blob Batch as tests send it, and its answer, parsed by the standard library alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from email.utils import formatdate

from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client
from tests.conformance.signing import authorization

TYPE = "multipart/mixed; boundary=batch_a"
WHOLE = "/?comp=batch"


@dataclass(frozen=True)
class Part:
    """One request of a batch.

    Arguments:
        target: its path and query.
        prefix: the text before the path; None = the client's prefix, as for a single request.
        signed: whether it has an Authorization header of its own.
        content_id: None = its place in the batch, "" = none.
    """

    method: str
    target: str
    headers: Mapping[str, str] | None = None
    prefix: str | None = None
    signed: bool = True
    content_id: str | None = None

    def text(self, client: Client, number: int) -> str:
        """The part with the fields around it."""
        content_id = str(number) if self.content_id is None else self.content_id
        outer = ["Content-Type: application/http", "Content-Transfer-Encoding: binary"]
        outer += [f"Content-ID: {content_id}"] if content_id else []
        full = (client.prefix if self.prefix is None else self.prefix) + self.target
        fields = list((self.headers or {}).items())
        if self.signed:
            fields.append(("x-ms-date", formatdate(usegmt=True)))
            path = "/" + full.partition("://")[2].partition("/")[2] if "://" in full else full
            own, key = client.account, client.credential.key
            signed = authorization("SharedKey", own, key, self.method, path, fields)
            fields.append(("Authorization", signed))
        lines = [f"{self.method} {full} HTTP/1.1", *(f"{name}: {text}" for name, text in fields)]
        return "\r\n".join([*outer, "", *lines, "", ""])


@dataclass(frozen=True)
class PartAnswer:
    """The answer to one part."""

    content_id: str | None
    status: int
    reason: str
    headers: Message
    body: bytes

    @property
    def seen(self) -> tuple[int, str | None]:
        """Status and error code."""
        return self.status, self.headers["x-ms-error-code"]


def delete(target: str, headers: Mapping[str, str] | None = None, **more: bool | str) -> Part:
    """Delete Blob."""
    return Part("DELETE", target, headers, **more)  # type: ignore[arg-type]  # keywords of a table


def tier(target: str, name: str = "Cool") -> Part:
    """Set Blob Tier."""
    joined = "&" if "?" in target else "?"
    return Part("PUT", f"{target}{joined}comp=tier", {"x-ms-access-tier": name})


def of(container: str) -> str:
    """The target of a container's own batch."""
    return f"/{container}?restype=container&comp=batch"


def body(client: Client, parts: Sequence[Part]) -> bytes:
    """The body of a batch."""
    texts = [f"--batch_a\r\n{part.text(client, n)}\r\n" for n, part in enumerate(parts)]
    return f"{''.join(texts)}--batch_a--\r\n".encode()


def post(client: Client, data: bytes, target: str = WHOLE, kind: str = TYPE) -> Answer:
    """Send a batch."""
    return client.send("POST", target, {"Content-Type": kind}, data)


def send(client: Client, *parts: Part, target: str = WHOLE) -> list[PartAnswer]:
    """Send a batch that must succeed, and return the answers to its parts."""
    return answers(post(client, body(client, parts), target))


def answers(answer: Answer) -> list[PartAnswer]:
    """The parts of an answer."""
    expect(answer, 202)
    head = f"Content-Type: {answer['Content-Type']}\r\n\r\n".encode()
    whole = BytesParser().parsebytes(head + answer.body)
    assert whole.get_content_type() == "multipart/mixed"
    assert str(whole.get_boundary()).startswith("batchresponse_")
    children = whole.get_payload()
    assert isinstance(children, list)
    return [_answer(child) for child in children if isinstance(child, Message)]


def _answer(message: Message) -> PartAnswer:
    assert message.get_content_type() == "application/http"
    content = message.get_payload(decode=True)
    assert isinstance(content, bytes)
    line, _, rest = content.partition(b"\r\n")
    head, _, data = rest.partition(b"\r\n\r\n")
    protocol, status, reason = line.decode().split(" ", 2)
    assert protocol == "HTTP/1.1"
    headers = BytesParser().parsebytes(head)
    if data:
        assert int(headers["Content-Length"]) == len(data)
    return PartAnswer(message["Content-ID"], int(status), reason, headers, data)
