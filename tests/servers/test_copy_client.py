"""The reader of copy sources on other servers: its connections, requests, and checks of answers."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from strongroom.app import App
from strongroom.clock import SystemClock
from strongroom.config import ConfigError, Settings
from strongroom.errors import copies as copy_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core.conditions import ANY, Conditions
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.servers.certificates.tls import load_context
from strongroom.servers.copies.addresses import SourceHosts
from strongroom.servers.copies.client import CopyClient, resolve_by_system
from strongroom.services.core.copies.sources import WHOLE, OpenSource, SourceBroken, SourceRequest
from strongroom.testing.ports import free_port
from strongroom.wire.core import headers as wire

HOST = "127.0.0.1"
METADATA = "169.254.169.254"
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n"
SHORT = OK + b"Content-Length: 2\r\n\r\nok"
NOT_FOUND = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
DAY = "Fri, 26 Jun 2015 23:39:12 GMT"

Use = Callable[[CopyClient, str], Awaitable[Any]]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def asked(serve: Serve, use: Use, tls: ssl.SSLContext | None = None, **more: Any) -> Any:
    """Return the result of `use`, which gets a client and the URL of a server that runs `serve`."""

    async def run() -> Any:
        port = free_port()
        scheme = "https" if tls else "http"
        hosts = SourceHosts.parse(more.pop("hosts", [HOST]))
        times = {"connect_timeout_s": 5, "head_timeout_s": 0.3, "stall_timeout_s": 0.3}
        async with await asyncio.start_server(serve, HOST, port, ssl=tls):
            client = CopyClient(hosts, **{**times, **more})
            return await asyncio.wait_for(
                use(client, f"{scheme}://{HOST}:{port}/a%20b?sig=s%2B"), timeout=30
            )

    return asyncio.run(run())


def exchange(answer: bytes, use: Use, hold: bool = False, **more: Any) -> tuple[Any, bytes]:
    """Return the result of `use` with a server that sends `answer`, and the request that the server
    got."""
    seen = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            seen.extend(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            await writer.drain()
            if hold:
                await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has closed the connection
        writer.close()

    return asked(serve, use, **more), bytes(seen)


async def whole(client: CopyClient, url: str) -> tuple[OpenSource, bytes]:
    source = await client.open(url, WHOLE)
    try:
        return source, b"".join([chunk async for chunk in source])
    finally:
        await source.close()


async def refused(client: CopyClient, url: str) -> StorageError:
    with pytest.raises(StorageError) as caught:
        await client.open(url, WHOLE)
    return caught.value


async def broken(client: CopyClient, url: str) -> str:
    with pytest.raises(SourceBroken) as caught:
        await whole(client, url)
    return str(caught.value)


def elsewhere(name: str, use: Use) -> Use:
    """Return `use` with another host name in the URL."""
    return lambda client, url: use(client, url.replace(HOST, name))


def test_a_source_with_its_properties() -> None:
    answer = (
        OK + b"Content-Length: 5\r\nContent-Type: text/plain\r\n"
        b'ETag: "e"\r\nContent-MD5: nonsense\r\nCache-Control: x\xe9\r\n'
        b"x-ms-blob-type: BlockBlob\r\nx-ms-meta-Colour: red\r\nContent-Language: fr\r\n\r\nhello"
    )
    (source, data), request = exchange(answer, whole)
    assert (source.size_bytes, data, source.etag) == (5, b"hello", '"e"')
    assert source.properties.content_type == "text/plain"
    assert source.properties.language == "fr"
    assert source.properties.md5 is None
    assert source.properties.cache_control is None
    assert source.metadata == (("Colour", "red"),)
    lines = request.decode().split("\r\n")
    assert lines[0] == "GET /a%20b?sig=s%2B HTTP/1.1"
    assert lines[1].startswith("Host: 127.0.0.1:")
    wanted = {"Accept-Encoding: identity", "Connection: close", "x-ms-version: 2019-12-12"}
    assert wanted <= set(lines)


@pytest.mark.parametrize(
    "fields", [b"x-ms-meta-a: 1\r\n", b"x-ms-blob-type: BlockBlob\r\nx-ms-meta-1: bad name\r\n"]
)
def test_metadata_that_is_none(fields: bytes) -> None:
    (source, _), _ = exchange(OK + fields + b"Content-Length: 0\r\n\r\n", whole)
    assert source.metadata == ()


def test_a_chunked_source_of_unknown_length() -> None:
    body = b"3\r\nabc\r\n2;extension=1\r\nde\r\n0\r\nx-ms-blob-type: late\r\n\r\n"
    answer = b"HTTP/1.1 100 Continue\r\nETag: no\r\n\r\n" + CHUNKED + b"\r\n" + body
    (source, data), _ = exchange(answer, whole)
    assert (source.size_bytes, data, source.etag) == (None, b"abcde", None)


def test_what_follows_an_answer_is_not_looked_at() -> None:
    second = OK + b"Content-Type: evil/x\r\nContent-Length: 3\r\n\r\nxyz"
    (source, data), _ = exchange(CHUNKED + b"\r\n1\r\na\r\n0\r\n\r\n" + second, whole)
    assert (data, source.properties.content_type) == (b"a", "application/octet-stream")
    (source, data), _ = exchange(SHORT + second, whole)
    assert (source.size_bytes, data) == (2, b"ok")
    assert exchange(NOT_FOUND + second, refused)[0].row is copy_errors.CANNOT_VERIFY_COPY_SOURCE


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 5\r\n\r\nhell",
        CHUNKED + b"\r\n3\r\nabc\r\n",
        CHUNKED + b"\r\n1\r\na\r\n0\r\n" + b"x: y\r\n" * 200_000 + b"\r\n",
        CHUNKED + b"\r\n1\r\na\r\n0\r\nx: " + b"y" * 1_000_000 + b"\r\n\r\n",
    ],
)
def test_a_body_that_does_not_end_as_it_should(answer: bytes) -> None:
    assert exchange(answer, broken)[0]


def test_a_source_that_stops_sending() -> None:
    answer = OK + b"Content-Length: 5\r\n\r\nhell"
    assert "slowly" in exchange(answer, broken, hold=True)[0]
    for head in (b"", OK):
        error = exchange(head, refused, hold=True)[0]
        assert error.row is copy_errors.CANNOT_VERIFY_COPY_SOURCE
        assert "in time" in error.message


def test_a_head_that_comes_byte_by_byte() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"x: ")
        while not writer.is_closing() and not reader.at_eof():
            writer.write(b"y")
            await asyncio.sleep(0.02)
        writer.close()

    assert "in time" in asked(serve, refused).message


def test_a_slow_source_is_read_to_its_end() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: 8\r\n\r\n")
        for _ in range(8):
            await asyncio.sleep(0.1)
            writer.write(b"x")
        writer.close()

    # The whole answer takes longer than the stall timeout.
    assert asked(serve, whole, head_timeout_s=5, stall_timeout_s=0.6)[1] == b"x" * 8


def test_a_source_is_not_read_faster_than_it_is_taken() -> None:
    sent = 0
    size = 64 * 2**20

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + f"Content-Length: {size}\r\n\r\n".encode())
        try:
            while sent < size:
                writer.write(bytes(2**16))
                await writer.drain()
                sent += 2**16
        except OSError:
            pass  # the client has aborted, as expected
        writer.close()

    async def use(client: CopyClient, url: str) -> int:
        source = await client.open(url, WHOLE)
        await anext(aiter(source))
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.2)
        await source.close()
        return before

    # The kernel buffers some MiB at most on both sides.
    assert asked(serve, use, head_timeout_s=5) < size // 2


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"", 404),
        (b"SSH-2.0-server\r\n", 404),
        (OK + b"\r\nuntil the end", 404),
        (CHUNKED + b"\r\nzz\r\nabc\r\n", 404),
        (OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 404),
        (CHUNKED + b"Content-Length: 3\r\n\r\n1\r\na\r\n0\r\n\r\n", 404),
        (OK + b"Content-Length: -1\r\n\r\n", 404),
        (NOT_FOUND, 404),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", 404),
        (b"HTTP/1.1 206 Partial Content\r\nContent-Length: 0\r\n\r\n", 404),
        (b"HTTP/1.1 101 Other\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 404),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 401),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 403),
        (OK + b"Content-Length: 5242880001\r\n\r\n", 413),
        (OK + b"x: y\r\n" * 20_000 + b"Content-Length: 0\r\n\r\n", 404),
        (OK + b"x: " + b"y" * 200_000 + b"\r\nContent-Length: 0\r\n\r\n", 404),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, 404),
    ],
)
def test_answers_that_are_no_source(answer: bytes, status: int) -> None:
    """B-CPY-13."""
    error, _ = exchange(answer, refused, head_timeout_s=10)
    assert error.row.status == status
    assert error.row.code == ("RequestBodyTooLarge" if status == 413 else "CannotVerifyCopySource")


def test_what_the_source_answered_is_told() -> None:
    """B-CPY-09: the refusal quotes the source's answer, as for sources on this server."""
    answer = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nx-ms-error-code: BlobNotFound\r\n\r\n"
    error, _ = exchange(answer, refused)
    assert error.headers == (
        ("x-ms-copy-source-status-code", "404"),
        ("x-ms-copy-source-error-code", "BlobNotFound"),
    )
    assert error.message == "No"


def test_only_a_storage_service_is_quoted() -> None:
    """B-CPY-09."""
    for first in (b"HTTP/1.1 100 Go on\r\n\r\n", b""):
        answer = b"HTTP/1.1 404 Oh no\r\nContent-Length: 0\r\n\r\n"
        error, _ = exchange(first + answer, refused)
        assert error.message == "The copy source answered with status 404."
        for reason, text in (
            (b"Oh no", "Oh no"),
            (b"", None),
            (b"\xff", None),
            (b"a" * 1025, None),
        ):
            answer = b"HTTP/1.1 404 %b\r\nContent-Length: 0\r\nx-ms-error-code: A\r\n\r\n" % reason
            error, _ = exchange(first + answer, refused)
            assert error.message == (text or "The copy source answered with status 404.")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """B-CPY-14."""
    connections = 0
    looked_up: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        line = f"HTTP/1.1 {status} Moved\r\nLocation: http://{METADATA}/\r\n"
        writer.write(line.encode() + b"Content-Length: 0\r\n\r\n")
        writer.close()

    async def resolve(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return await resolve_by_system(host, port)

    error = asked(serve, refused, resolve=resolve)
    assert error.row is copy_errors.COPY_SOURCE_FORBIDDEN
    assert error.headers == (("x-ms-copy-source-status-code", str(status)),)
    assert (connections, looked_up) == (1, [HOST])


async def conditional(client: CopyClient, url: str, conditions: Conditions) -> bool:
    """Whether the conditions permit reading the source."""
    try:
        await (await client.open(url, SourceRequest(conditions))).close()
    except StorageError as error:
        if error.row is not copy_errors.SOURCE_CONDITION_NOT_MET:
            raise
        return False
    return True


@pytest.mark.parametrize("status", [b"304 Not Modified", b"412 Precondition Failed"])
def test_conditions_are_put_to_the_source(status: bytes) -> None:
    day = wire.date("x", DAY)
    conditions = Conditions(('"a"',), ('"b"', '"\u00e9\u4e2d"'), day, day)
    answer = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
    met, request = exchange(answer, lambda client, url: conditional(client, url, conditions))
    assert not met
    assert b'If-Match: "a"\r\n' in request
    assert b'If-None-Match: "b", "' in request
    assert f"If-Modified-Since: {DAY}\r\n".encode() in request
    assert f"If-Unmodified-Since: {DAY}\r\n".encode() in request


BEFORE, AT, AFTER = (
    wire.date("x", DAY.replace("23:39:12", text)) for text in ("23:39:11", "23:39:12", "23:39:13")
)


@pytest.mark.parametrize(
    ("conditions", "met", "met_by_nameless"),
    [
        (Conditions(if_match=('"e"',)), True, False),
        (Conditions(if_match=('"f"',)), False, False),
        (Conditions(if_match=ANY), True, True),
        (Conditions(if_match=('"e"',), if_unmodified_since=BEFORE), True, False),
        (Conditions(if_none_match=('"e"',)), False, True),
        (Conditions(if_none_match=('"f"',)), True, True),
        (Conditions(if_none_match=ANY), False, False),
        (Conditions(if_none_match=('"f"',), if_modified_since=AFTER), True, True),
        (Conditions(if_modified_since=BEFORE), True, True),
        (Conditions(if_modified_since=AT), False, True),
        (Conditions(if_unmodified_since=AT), True, True),
        (Conditions(if_unmodified_since=BEFORE), False, True),
        (Conditions(if_tags="\"a\" = '1'"), False, False),
    ],
)
def test_conditions_that_the_source_does_not_look_at(
    conditions: Conditions, met: bool, met_by_nameless: bool
) -> None:
    fields = f'ETag: "e"\r\nLast-Modified: {DAY}\r\n'.encode()
    for named, wanted in ((fields, met), (b"", met_by_nameless)):
        answer = OK + named + b"Content-Length: 0\r\n\r\n"
        found, _ = exchange(answer, lambda client, url: conditional(client, url, conditions))
        assert found is wanted


def test_a_name_is_resolved_once_and_the_address_that_was_judged_is_asked() -> None:
    """B-CPY-14: a name that changes its address after the check leads to no other address."""
    looked_up: list[str] = []

    async def rebound(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return [HOST if len(looked_up) == 1 else METADATA]

    use = elsewhere("rebound.example", whole)
    (_, data), request = exchange(SHORT, use, hosts=["rebound.example"], resolve=rebound)
    assert (data, looked_up) == (b"ok", ["rebound.example"])
    assert b"Host: rebound.example:" in request


@pytest.mark.parametrize(
    ("addresses", "hosts"),
    [
        ([HOST, METADATA], ["x.example"]),
        ([METADATA, HOST], ["x.example"]),
        ([HOST, "fe80::1"], ["*.example"]),
        ([HOST], []),
        ([HOST], ["y.example", HOST]),
        ([], ["x.example"]),
    ],
)
def test_a_name_with_an_address_that_may_not_be_asked(
    addresses: list[str], hosts: list[str]
) -> None:
    """B-CPY-14: the client connects to none of the addresses."""

    async def resolve(host: str, port: int) -> list[str]:
        return addresses

    use = elsewhere("x.example", refused)
    error, request = exchange(SHORT, use, hosts=hosts, resolve=resolve)
    assert (error.row, request) == (copy_errors.COPY_SOURCE_FORBIDDEN, b"")


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("metadata.google.internal", []),
        ("Metadata.Google.Internal.", ["metadata.google.internal"]),
        ("y.example", ["x.example"]),
    ],
)
def test_a_name_that_is_not_even_looked_up(name: str, hosts: list[str]) -> None:
    """B-CPY-14."""
    looked_up: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["93.184.216.34"]

    error, _ = exchange(SHORT, elsewhere(name, refused), hosts=hosts, resolve=resolve)
    assert (error.row, looked_up) == (copy_errors.COPY_SOURCE_FORBIDDEN, [])


def test_a_server_does_not_start_with_what_is_no_host() -> None:
    async def run() -> None:
        settings = Settings(data=None, copy_source_hosts=("http://x",))
        with pytest.raises(ConfigError, match="no host for copies"):
            await App(settings, SystemClock()).start()

    asyncio.run(run())


def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.3", HOST]

    use = elsewhere("x.example", whole)
    (_, data), _ = exchange(SHORT, use, hosts=["x.example"], resolve=resolve)
    assert data == b"ok"


def test_a_name_that_is_not_found_in_time() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return [HOST]

    use = elsewhere("x.example", refused)
    error, _ = exchange(SHORT, use, hosts=[], resolve=resolve, connect_timeout_s=0.1)
    assert error.row is copy_errors.CANNOT_VERIFY_COPY_SOURCE


def test_a_server_that_is_not_there() -> None:
    async def run() -> StorageError:
        client = CopyClient(SourceHosts.parse([HOST]))
        return await refused(client, f"http://{HOST}:{free_port()}/x?sig=hidden")

    error = asyncio.run(run())
    assert error.row is copy_errors.CANNOT_VERIFY_COPY_SOURCE
    assert "hidden" not in f"{error.message} {error.headers}"


def test_what_authorizes_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    error, request = exchange(NOT_FOUND, refused)
    reason, _ = exchange(OK + b"Content-Length: 5\r\n\r\nhell", broken)
    assert b"sig=s%2B" in request
    for text in (error.message, str(error.headers), reason, caplog.text):
        assert "s%2B" not in text


def test_a_certificate_is_verified_for_the_name(tmp_path: Path) -> None:
    certificate, key = self_signed_certificate(tmp_path, SystemClock())
    ours, trusting = load_context(certificate, key), ssl.create_default_context(cafile=certificate)

    async def resolve(host: str, port: int) -> list[str]:
        return [HOST]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(SHORT)
        writer.close()

    def ask(use: Use, name: str, context: ssl.SSLContext | None) -> Any:
        async def run(client: CopyClient, url: str) -> Any:
            hosts = SourceHosts.parse(["localhost", "x.example"])
            verifying = CopyClient(hosts, tls=context, resolve=resolve)
            return await use(verifying, url.replace(HOST, name))

        return asked(serve, run, ours)

    assert ask(whole, "localhost", trusting)[1] == b"ok"
    assert ask(whole, "localhost.", trusting)[1] == b"ok"
    # A name that the certificate does not cover; an untrusted authority.
    for name, context in (("x.example", trusting), ("localhost", None)):
        error = ask(refused, name, context)
        assert error.row is copy_errors.CANNOT_VERIFY_COPY_SOURCE
        assert "certificate" in error.message.lower()
