"""A small HTTP client that sends exactly the request of a test, signed with SharedKey by default.

How a test uses it (fixtures in conftest.py: `client`, `container`, `server`):

    def test_x(client: Client, container: str) -> None:
        made = expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
        expect(client.get(f"/{container}/b", {"If-None-Match": made.etag}), 304, "ConditionNotMet")

- Targets are given without the account, which path style puts in front. They are sent unchanged, so
  the caller percent-encodes.
- Headers are a dict or pairs (pairs may repeat a name). A value None omits a header that the client
  would add itself: `x-ms-version`, `x-ms-date`, `Content-Length`, `Host`.
- `auth="SharedKey"`, `"SharedKeyLite"` or None (anonymous, or a SAS in the target). -
`client.anonymous` is the same client without credentials. - One client, one connection: for
requests at the same time use `client.another()` per thread, or `server.client()`.
`client.start(...)` sends a request in a thread: `.result()` returns its answer. -
`server.advance(seconds)` moves store time (leases, Last-Modified), not the wall time of SAS and
SharedKey. `server.account()` creates an account for one test: for service properties. -
`client.begin(...)` sends a body in pieces: `.send(piece)`, `.finish(piece)` returns the answer. -
`raw(server.port, bytes)` sends bytes and returns all bytes until the server closes. - `running.py`:
the server; `answer.py`: `expect`, `expect_names`, `metadata`, `texts`; `leasing.py`: brings a lease
into a state of the tables; `rows.py`: a plain request for each row of the operation table;
`sas.py`: tokens of any `sv`. The official SDK is used in test_sdk_*.py.
"""

from __future__ import annotations

import http.client
import itertools
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from email.utils import formatdate
from threading import Thread

from tests.conformance.answer import Answer
from tests.conformance.signing import authorization

VERSION = "2025-11-05"
HOST = "127.0.0.1"
TIMEOUT_S = 30.0
PUT_BLOB = {"x-ms-blob-type": "BlockBlob"}

OTHER_GATEWAYS: dict[int, int] = {}
"""The port of another gateway of the same store, for each port that has one. Every second request
to such a port is sent there (over_postgres.py)."""
_turns = itertools.count()

Fields = Mapping[str, str | None] | Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Credential:
    """An account's name and one of its keys, base64."""

    account: str
    key: str


class Client:
    """Requests over one kept connection.

    Arguments:
        port: the server's port.
        credential: the signing key, and the account in front of every target.
        auth: the default scheme of requests; None = no Authorization header.
        prefix: the text in front of targets; None = `/ACCOUNT`.
    """

    def __init__(
        self,
        port: int,
        credential: Credential,
        auth: str | None = "SharedKey",
        prefix: str | None = None,
    ) -> None:
        self.port = port
        self.credential = credential
        self.account = credential.account
        self.auth = auth
        self.prefix = f"/{credential.account}" if prefix is None else prefix
        self._connections: dict[int, http.client.HTTPConnection] = {}

    @property
    def url(self) -> str:
        """The account URL, as SDKs call it."""
        return f"http://{HOST}:{self.port}{self.prefix}"

    @property
    def anonymous(self) -> Client:
        """A client without credentials, on a connection of its own."""
        return Client(self.port, self.credential, None, self.prefix)

    def another(self, prefix: str | None = None) -> Client:
        """Return the same client on a connection of its own; `prefix` replaces the text before
        targets."""
        return Client(
            self.port, self.credential, self.auth, self.prefix if prefix is None else prefix
        )

    def get(self, target: str, headers: Fields = (), auth: str | None = "") -> Answer:
        return self.send("GET", target, headers, auth=auth)

    def head(self, target: str, headers: Fields = (), auth: str | None = "") -> Answer:
        return self.send("HEAD", target, headers, auth=auth)

    def put(
        self, target: str, headers: Fields = (), body: bytes = b"", auth: str | None = ""
    ) -> Answer:
        return self.send("PUT", target, headers, body, auth)

    def delete(self, target: str, headers: Fields = (), auth: str | None = "") -> Answer:
        return self.send("DELETE", target, headers, auth=auth)

    def start(
        self, method: str, target: str, headers: Fields = (), body: bytes = b""
    ) -> Future[Answer]:
        """Send a request in a thread, on a connection of its own."""
        future: Future[Answer] = Future()
        other = self.another()

        def run() -> None:
            try:
                future.set_result(other.send(method, target, headers, body))
            except BaseException as error:
                future.set_exception(error)
            finally:
                other.close()

        Thread(target=run, daemon=True).start()
        return future

    def begin(self, method: str, target: str, headers: Fields, size_bytes: int) -> Sending:
        """Send the head of a request whose body of `size_bytes` follows in pieces."""
        full = self.prefix + target
        given = list(headers.items() if isinstance(headers, Mapping) else headers)
        given.append(("Content-Length", str(size_bytes)))
        fields = self.fields(method, full, given, b"", self.auth)
        connection = self.connect()
        _send_head(connection, method, full, fields, b"")
        return Sending(connection, method)

    def send(
        self,
        method: str,
        target: str,
        headers: Fields = (),
        body: bytes = b"",
        auth: str | None = "",
    ) -> Answer:
        """Send one request and read its whole answer.

        Arguments:
            auth: "" = the client's scheme.
        """
        scheme = self.auth if auth == "" else auth
        full = self.prefix + target
        fields = self.fields(method, full, headers, body, scheme)
        port = _next_gateway(self.port)
        for last in (False, True):
            connection = self._connections.get(port)
            fresh = connection is None
            if connection is None:
                connection = self._connections[port] = self.connect(port)
            try:
                return self._exchange(connection, method, full, fields, body)
            except (ConnectionError, http.client.BadStatusLine):
                # The server may close a kept connection; a new one must answer.
                self._close(port)
                if fresh or last:
                    raise
            except BaseException:
                self._close(port)
                raise
        raise AssertionError("unreachable")

    def fields(
        self, method: str, full: str, headers: Fields, body: bytes, scheme: str | None
    ) -> list[tuple[str, str]]:
        """All headers of a request, Authorization last."""
        given = list(headers.items() if isinstance(headers, Mapping) else headers)
        names = {name.lower() for name, _ in given}
        added: list[tuple[str, str]] = [("Host", f"{HOST}:{self.port}"), ("x-ms-version", VERSION)]
        if scheme is not None:
            added.append(("x-ms-date", formatdate(usegmt=True)))
        if body or method in ("PUT", "POST"):
            added.append(("Content-Length", str(len(body))))
        fields = [(name, value) for name, value in added if name.lower() not in names]
        fields += [(name, value) for name, value in given if value is not None]
        if scheme is not None and "authorization" not in names:
            signed = authorization(scheme, self.account, self.credential.key, method, full, fields)
            fields.append(("Authorization", signed))
        return fields

    def connect(self, port: int | None = None) -> http.client.HTTPConnection:
        """Return a new connection, which opens with its first request; None = to the next
        gateway."""
        return http.client.HTTPConnection(
            HOST, _next_gateway(self.port) if port is None else port, timeout=TIMEOUT_S
        )

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        full: str,
        fields: Sequence[tuple[str, str]],
        body: bytes,
    ) -> Answer:
        _send_head(connection, method, full, fields, body)
        answer, closing = _read(connection, method)
        if closing:
            self._close(connection.port)
        return answer

    def close(self) -> None:
        """Close the connection."""
        for port in tuple(self._connections):
            self._close(port)

    def _close(self, port: int) -> None:
        if (connection := self._connections.pop(port, None)) is not None:
            connection.close()


class Sending:
    """A request whose body is sent piece by piece."""

    def __init__(self, connection: http.client.HTTPConnection, method: str) -> None:
        self._connection = connection
        self._method = method

    def await_continue(self) -> None:
        """Wait until the server asks for the body: for a request with `Expect: 100-continue`."""
        first = self._connection.sock.recv(1024, socket.MSG_PEEK)
        assert first.startswith(b"HTTP/1.1 100 "), first

    def send(self, piece: bytes) -> None:
        """Send some of the body."""
        self._connection.send(piece)

    def finish(self, piece: bytes = b"") -> Answer:
        """Send the rest of the body and read the answer."""
        if piece:
            self._connection.send(piece)
        answer, _ = _read(self._connection, self._method)
        self._connection.close()
        return answer

    def abandon(self) -> None:
        """Close the connection without the rest of the body."""
        self._connection.close()


def _next_gateway(port: int) -> int:
    other = OTHER_GATEWAYS.get(port)
    return port if other is None or next(_turns) % 2 == 0 else other


def _send_head(
    connection: http.client.HTTPConnection,
    method: str,
    full: str,
    fields: Sequence[tuple[str, str]],
    body: bytes,
) -> None:
    connection.putrequest(method, full, skip_host=True, skip_accept_encoding=True)
    for name, value in fields:
        connection.putheader(name.encode("utf-8"), value.encode("utf-8"))
    connection.endheaders(body if body else None)


def _read(connection: http.client.HTTPConnection, method: str) -> tuple[Answer, bool]:
    response = connection.getresponse()
    data = response.read()
    found = tuple(response.getheaders())
    return Answer(method, response.status, response.reason, found, data), response.will_close


def raw(port: int, data: bytes, timeout_s: float = TIMEOUT_S, end: bool = False) -> bytes:
    """Send `data` and return all bytes until the server closes.

    Arguments:
        end: whether to close the sending side after `data`.
    """
    with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
        connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received
