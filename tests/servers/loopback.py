"""A server on loopback for one test, and a client that sends and receives raw bytes.

The client's parser is strict and independent of the server's code: a response that it accepts is
well formed. Must not live here: assertions about the meaning of a response.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from strongroom.errors.core import StorageError
from strongroom.servers.connections.accepting import TlsContexts
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.http.server import Exchange, HttpServer, HttpSettings
from strongroom.wire.core.http import Request, Response

T = TypeVar("T")
_PORTS: Final = range(21_000, 31_000)
# No test waits longer than this, so that a hang fails instead of blocking.
PATIENCE_S: Final = 60.0
# Timeouts that a test can wait for; all other settings keep their defaults.
QUICK: Final = HttpSettings(
    head_timeout_s=0.3,
    idle_timeout_s=0.3,
    body_stall_timeout_s=0.3,
    write_stall_timeout_s=0.3,
    discard_timeout_s=0.3,
    linger_timeout_s=1.0,
    linger_idle_timeout_s=0.3,
    tls_handshake_timeout_s=0.3,
    sweep_interval_s=0.05,
)
PATIENT: Final = HttpSettings(sweep_interval_s=0.05)

Handler = Callable[[Request], Awaitable[Response]]


def run(scenario: Coroutine[object, object, T]) -> T:
    """Run a scenario to its end, or fail after PATIENCE_S."""

    async def bounded() -> T:
        async with asyncio.timeout(PATIENCE_S):
            return await scenario

    return asyncio.run(bounded())


def render_error(error: StorageError, request: Request | None) -> Response:
    """Return an error as plain text: its code in a header, its message in the body."""
    return Response(error.row.status, [("x-ms-error-code", error.row.code)], error.message.encode())


@dataclass
class Answer:
    """A response as the client received it. `complete` is False if the connection broke inside
    it."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    complete: bool = True

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(found) <= 1, f"{name} was sent {len(found)} times"
        return found[0] if found else None

    @property
    def code(self) -> str | None:
        return self.header("x-ms-error-code")


class Client:
    """One connection, with access to every byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, data: bytes, *, method: str = "GET") -> Answer:
        await self.send(data)
        return await self.answer(method=method)

    async def answer(self, *, method: str = "GET", head: bytes = b"") -> Answer:
        """Read the next final response (its head may have been read already).

        Raises: AssertionError: the response is malformed.
        """
        head = head or await self.reader.readuntil(b"\r\n\r\n")
        answer = parse_head(head)
        assert answer.status >= 200, answer
        if method == "HEAD" or answer.status in (204, 304):
            return answer
        try:
            answer.body = await self._body(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            answer.complete = False
        return answer

    async def _body(self, answer: Answer) -> bytes:
        length = answer.header("Content-Length")
        if answer.header("Transfer-Encoding") == "chunked":
            assert length is None
            return await self._chunks()
        if length is not None:
            return await self.reader.readexactly(int(length))
        assert answer.header("Connection") == "close"
        return await self.reader.read()

    async def _chunks(self) -> bytes:
        body = b""
        while True:
            line = await self.reader.readuntil(b"\r\n")
            assert re.fullmatch(rb"[0-9a-fA-F]+\r\n", line)
            size = int(line, 16)
            body += await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
            if size == 0:
                return body

    async def interim(self) -> bytes:
        """Read the next head unparsed: that of an interim response (1xx), or of any other."""
        return await self.reader.readuntil(b"\r\n\r\n")

    async def ended(self) -> bytes:
        """Read all bytes until the server ends the connection; a reset counts as an end."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    def end_sending(self) -> None:
        self.writer.write_eof()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            pass  # the server may have ended it first


def parse_head(head: bytes) -> Answer:
    """Parse the head of a response, and check it against RFC 9112 sections 4 and 5."""
    lines = head.decode("latin-1").split("\r\n")
    status_line = re.fullmatch(r"HTTP/1\.1 ([0-9]{3}) ([^\r\n\0]*)", lines[0])
    assert status_line, lines[0]
    assert lines[-2:] == ["", ""]
    headers = []
    for line in lines[1:-2]:
        name, colon, value = line.partition(": ")
        assert colon, line
        assert re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name), line
        assert not re.search(r"[\r\n\0]", value), line
        headers.append((name, value))
    return Answer(int(status_line[1]), status_line[2], headers)


@dataclass
class Served:
    """A running server, and the exchanges that its observer received."""

    server: HttpServer
    host: str
    port: int
    exchanges: list[Exchange] = field(default_factory=list)
    tls: ssl.SSLContext | None = None

    async def connect(self, *, tls: ssl.SSLContext | None = None, limit: int = 2**20) -> Client:
        name = None if tls is None else "localhost"
        return Client(
            *await asyncio.open_connection(
                self.host, self.port, ssl=tls, server_hostname=name, limit=limit
            )
        )


@asynccontextmanager
async def serving(
    handler: Handler,
    *,
    settings: HttpSettings = PATIENT,
    tls: ssl.SSLContext | TlsContexts | None = None,
    host: str = "127.0.0.1",
    budget: ConnectionBudget | None = None,
) -> AsyncIterator[Served]:
    """Run a server on a free port, and close it at the end in any case."""
    served = Served(None, host, 0)  # type: ignore[arg-type]  # needs no process
    server = HttpServer(
        handler,
        render_error,
        settings=settings,
        observe=served.exchanges.append,
        tls=(lambda: tls) if isinstance(tls, ssl.SSLContext) else tls,
        budget=budget,
    )
    served.server = server
    served.port = await listen_somewhere(server, host)
    try:
        yield served
    finally:
        await server.close()


async def no_more_than(served: Served, connections: int) -> None:
    """Wait until the server has at most so many connections."""
    while served.server.connection_count > connections:  # noqa: ASYNC110 - the server has no event
        await asyncio.sleep(0.01)


async def listen_somewhere(server: HttpServer, host: str) -> int:
    """Listen on a free port; the search starts at a port that differs between processes."""
    first = os.getpid() % len(_PORTS)
    for step in range(len(_PORTS)):
        try:
            return await server.listen(host, _PORTS[(first + step * 7) % len(_PORTS)])
        except OSError:
            continue
    raise AssertionError("no free port")


async def echo(request: Request) -> Response:
    """Answer with the request: method, target and headers as they were read, then the body."""
    lines = [f"{request.method} {request.target}"]
    lines += [f"{name}={value}" for name, value in request.headers.fields]
    body = await request.body.read_all(2**20)
    return Response(200, [], "\n".join(lines).encode("latin-1") + b"\n\n" + body)


def get(target: str = "/", *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    """Return a request without a body; it has a `Host` header unless `headers` has one."""
    fields = [] if any(h.lower().startswith("host:") for h in headers) else ["Host: localhost"]
    lines = [f"{method} {target} HTTP/{version}", *fields, *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def put(body: bytes, *headers: str, target: str = "/", method: str = "PUT") -> bytes:
    """Return a request with a body and its Content-Length."""
    return get(target, f"Content-Length: {len(body)}", *headers, method=method) + body
