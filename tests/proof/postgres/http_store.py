"""A container, a table, a queue and a share over HTTP, as the load of a proof uses them.

Lives here: requests that make, write and list, without any repetition. Must not live here: what is
written when, and what must be there.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from tests.conformance.answer import Answer
from tests.conformance.client import HOST, PUT_BLOB, TIMEOUT_S, Client, Credential
from tests.conformance.table_client import TableClient

CREDENTIAL: Final = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
_BODY_BYTES: Final = 5_000
_TAKEN_OVER_S: Final = 30.0


class Clients(NamedTuple):
    """A client of each service, by its path on one port."""

    blobs: Client
    tables: TableClient
    queues: Client
    files: Client


class Reachable(Protocol):
    """Where all services are."""

    def clients(self) -> Clients:
        """Return clients with connections of their own."""
        ...


def clients_of(
    port: int, of: type[Client] = Client, of_tables: type[TableClient] = TableClient
) -> Clients:
    """Return clients of the development account."""
    account = DEVELOPMENT_ACCOUNT_NAME
    return Clients(
        of(port, CREDENTIAL, prefix=f"/blob/{account}"),
        of_tables(port, CREDENTIAL, prefix=f"/table/{account}"),
        of(port, CREDENTIAL, prefix=f"/queue/{account}"),
        of(port, CREDENTIAL, prefix=f"/file/{account}"),
    )


class Address(msgspec.Struct, frozen=True):
    """Where all services are: a server with `--one-port`, or a balancer.

    Attributes:
        certificate: what clients have to trust; None = without TLS.
    """

    port: int
    certificate: Path | None = None

    def clients(self) -> Clients:
        """Return clients with connections of their own."""
        found = clients_of(self.port)
        for client in found:
            client.connect = self.connect  # type: ignore[method-assign]
        return found

    def connect(self, port: int | None = None) -> http.client.HTTPConnection:
        """Return a new connection, which opens with its first request."""
        if self.certificate is None:
            return http.client.HTTPConnection(HOST, self.port, timeout=TIMEOUT_S)
        context = ssl.create_default_context(cafile=self.certificate)
        context.check_hostname = False  # a certificate for a proxy's hop names no address
        return http.client.HTTPSConnection(HOST, self.port, timeout=TIMEOUT_S, context=context)


class HttpStore:
    """One container, table, queue and share of one name, on connections of its own.

    Arguments:
        name: of all of them.
    """

    def __init__(self, address: Reachable, name: str) -> None:
        self._blobs, self._tables, self._queues, self._files = address.clients()
        self._name = name

    def close(self) -> None:
        """Close its connections, so that the next request opens one. On a new connection, the
        client repeats nothing by itself."""
        for client in (self._blobs, self._tables, self._queues, self._files):
            client.close()

    def make(self, *, has_files: bool = False) -> None:
        """Make the container, the table and the queue, and a share if it has files."""
        if has_files:
            made(self._files.put(f"/{self._name}?restype=share"))
        made(self._blobs.put(f"/{self._name}?restype=container"))
        made(self._tables.post("/Tables", {"TableName": self._name}))
        made(self._queues.put(f"/{self._name}"))

    def put_blob(self, name: str) -> Answer:
        return self._blobs.put(f"/{self._name}/{name}", PUT_BLOB, _body(name))

    def put_entity(self, name: str) -> Answer:
        return self._tables.post(f"/{self._name}", {"PartitionKey": name[:8], "RowKey": name})

    def put_message(self, name: str) -> Answer:
        self._queues.close()  # see `close`: a message that was sent again would be there twice
        body = f"<QueueMessage><MessageText>{name}</MessageText></QueueMessage>".encode()
        return self._queues.send("POST", f"/{self._name}/messages", (), body)

    def put_file(self, name: str) -> Answer:
        """Make a file, and write it. The last request is answered last."""
        target, body = f"/{self._name}/{name}", _body(name)
        fields = {"x-ms-type": "file", "x-ms-content-length": str(len(body))}
        answer = self._files.put(target, fields)
        if answer.status >= 300:
            return answer
        written = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(body) - 1}"}
        return self._files.put(f"{target}?comp=range", written, body)

    def has_file(self, name: str) -> bool:
        """Whether a file that `put_file` wrote is there, whole. Its share may have no gateway for
        the 10 s after which one counts as dead."""
        end = time.monotonic() + _TAKEN_OVER_S
        answer = self._files.get(f"/{self._name}/{name}")
        while answer.status == 503 and time.monotonic() < end:
            time.sleep(0.1)
            answer = self._files.get(f"/{self._name}/{name}")
        return _is_whole(answer, name)

    def get_document(self, name: str) -> Answer:
        return self._blobs.get(f"/{self._name}/{name}")

    def put_document(self, name: str, document: object, etag: str | None = None) -> Answer:
        """Write a blob of JSON. `etag` = only in place of this one."""
        headers = {**PUT_BLOB, **({} if etag is None else {"If-Match": etag})}
        return self._blobs.put(f"/{self._name}/{name}", headers, json.dumps(document).encode())

    def document(self, name: str) -> Any:
        return json.loads(made(self.get_document(name)).body)

    def has_blob(self, name: str) -> bool:
        """Whether a blob that `put_blob` wrote is there, whole."""
        return _is_whole(self._blobs.get(f"/{self._name}/{name}"), name)

    def entities(self) -> Iterator[str]:
        """Yield the names of all entities."""
        after = ""
        while True:
            answer = made(self._tables.get(f"/{self._name}(){after}"))
            yield from re.findall(r'"RowKey":"(.*?)"', answer.body.decode())
            partition, row = (
                answer.get(f"x-ms-continuation-Next{part}Key") for part in ("Partition", "Row")
            )
            if partition is None:
                return
            after = f"?NextPartitionKey={partition}&NextRowKey={row}"

    def messages(self) -> Iterator[str]:
        """Yield the names of all messages, once: they are hidden for an hour."""
        target = f"/{self._name}/messages?numofmessages=32&visibilitytimeout=3600"
        while True:
            found = re.findall(r"<MessageText>(.*?)<", made(self._queues.get(target)).body.decode())
            if not found:
                return
            yield from found


def made(answer: Answer) -> Answer:
    """Return an answer that is a success."""
    assert answer.status < 300, (answer.status, answer.body)
    return answer


def _is_whole(answer: Answer, name: str) -> bool:
    assert answer.status in (200, 404), (name, answer.status, answer.body)
    is_whole = answer.status == 200 and answer.body == _body(name)
    if not is_whole:
        print(f"{name} is not whole: {answer.status} {answer.headers} {answer.body[:200]!r}")
    return is_whole


def _body(name: str) -> bytes:
    unit = hashlib.blake2b(name.encode()).hexdigest().encode()
    return unit * (_BODY_BYTES // len(unit))
