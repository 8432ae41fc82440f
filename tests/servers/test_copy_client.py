"""The reader of copy sources elsewhere: which addresses it asks, what it says, what it believes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom import errors
from strongroom.errors import StorageError
from strongroom.semantics.conditions import NONE, Conditions
from strongroom.servers.copy_addresses import may_ask
from strongroom.servers.copy_client import CopyClient
from strongroom.services.copy_sources import OpenSource, SourceBroken
from strongroom.testing.ports import free_port

HOST = "127.0.0.1"

# address, asked by default, asked when the operator named its host
ADDRESSES = [
    ("93.184.216.34", True, True),
    ("2606:2800:220:1::1", True, True),
    ("10.1.2.3", False, True),
    ("192.168.0.1", False, True),
    ("100.64.1.1", False, True),
    ("127.0.0.1", False, True),
    ("::1", False, True),
    ("fc00::1", False, True),
    ("169.254.169.254", False, False),
    ("169.254.1.1", False, False),
    ("fe80::1", False, False),
    ("fe80::1%lo", False, False),
    ("168.63.129.16", False, False),
    ("100.100.100.200", False, False),
    ("fd00:ec2::254", False, False),
    ("0.0.0.0", False, False),
    ("::", False, False),
    ("224.0.0.1", False, False),
    ("ff02::1", False, False),
    ("::ffff:169.254.169.254", False, False),
    ("::ffff:10.0.0.1", False, True),
    ("::ffff:93.184.216.34", True, True),
    ("64:ff9b::a9fe:a9fe", False, False),
    ("64:ff9b::5db8:d822", True, True),
    ("2002:a9fe:a9fe::1", False, False),
    ("no address", False, False),
]


@pytest.mark.parametrize(("address", "by_default", "when_listed"), ADDRESSES)
def test_addresses(address: str, by_default: bool, when_listed: bool) -> None:
    """B-CPY-14."""
    assert may_ask(address, False) is by_default
    assert may_ask(address, True) is when_listed


def exchange(
    answer: bytes,
    use: Callable[[CopyClient, str], Awaitable[Any]],
    hold: bool = False,
) -> tuple[Any, bytes]:
    """What `use` returns with a server that gives `answer`, and the request that it saw."""
    seen = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        if hold:
            await reader.read()
        writer.close()

    async def run() -> Any:
        port = free_port()
        server = await asyncio.start_server(serve, HOST, port)
        async with server:
            client = CopyClient([f"{HOST}:{port}"], connect_timeout_s=5, idle_timeout_s=0.3)
            return await use(client, f"http://{HOST}:{port}/a%20b?sig=s%2B")

    return asyncio.run(run()), bytes(seen)


async def whole(client: CopyClient, url: str) -> tuple[OpenSource, bytes]:
    source = await client.open(url, NONE)
    try:
        return source, b"".join([chunk async for chunk in source])
    finally:
        await source.close()


async def refused(client: CopyClient, url: str) -> StorageError:
    with pytest.raises(StorageError) as caught:
        await client.open(url, NONE)
    return caught.value


async def broken(client: CopyClient, url: str) -> str:
    with pytest.raises(SourceBroken) as caught:
        await whole(client, url)
    return str(caught.value)


def test_a_source_with_its_properties() -> None:
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n"
        b'ETag: "e"\r\nContent-MD5: nonsense\r\nCache-Control: x\xe9\r\n'
        b"x-ms-meta-Colour: red\r\nContent-Language: fr\r\n\r\nhello"
    )
    (source, data), request = exchange(answer, whole)
    assert (source.size_bytes, data, source.etag) == (5, b"hello", '"e"')
    assert source.properties.content_type == "text/plain"
    assert source.properties.language == "fr"
    assert source.properties.md5 is None
    assert source.properties.cache_control is None
    assert source.metadata == (("Colour", "red"),)
    assert request.startswith(b"GET /a%20b?sig=s%2B HTTP/1.1\r\nHost: 127.0.0.1:")


def test_a_chunked_source_of_unknown_length() -> None:
    answer = (
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nx-ms-meta-1: bad name\r\n\r\n"
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    (source, data), _ = exchange(answer, whole)
    assert (source.size_bytes, data, source.metadata) == (None, b"abcde", ())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ],
)
def test_a_body_that_does_not_end_as_it_should(answer: bytes) -> None:
    assert exchange(answer, broken)[0]


def test_a_source_that_stops_sending() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"
    assert "slowly" in exchange(answer, broken, hold=True)[0]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"", 404),
        (b"SSH-2.0-server\r\n", 404),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 404),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", 404),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", 404),
        (b"HTTP/1.1 206 Partial Content\r\nContent-Length: 0\r\n\r\n", 404),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 403),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 403),
        (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n", 403),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5242880001\r\n\r\n", 413),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"Content-Length: 0\r\n\r\n", 404),
    ],
)
def test_answers_that_are_no_source(answer: bytes, status: int) -> None:
    """B-CPY-13, B-CPY-14."""
    error, _ = exchange(answer, refused)
    assert error.row.status == status
    assert error.row.code == ("RequestBodyTooLarge" if status == 413 else "CannotVerifyCopySource")


def test_what_the_source_answered_is_told() -> None:
    answer = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nx-ms-error-code: BlobNotFound\r\n\r\n"
    error, _ = exchange(answer, refused)
    assert error.headers == (
        ("x-ms-copy-source-status-code", "404"),
        ("x-ms-copy-source-error-code", "BlobNotFound"),
    )


@pytest.mark.parametrize("status", [b"304 Not Modified", b"412 Precondition Failed"])
def test_conditions_are_put_to_the_source(status: bytes) -> None:
    conditions = Conditions(if_match=('"a"',), if_none_match=('"b"', '"\u00e9\u4e2d"'))

    async def use(client: CopyClient, url: str) -> StorageError:
        with pytest.raises(StorageError) as caught:
            await client.open(url, conditions)
        return caught.value

    answer = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
    error, request = exchange(answer, use)
    assert error.row is errors.SOURCE_CONDITION_NOT_MET
    assert b'If-Match: "a"\r\n' in request
    assert b'If-None-Match: "b", "' in request


def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B-CPY-14: a name that changes its address after the check leads nowhere else."""
    asked: list[str] = []

    async def use(client: CopyClient, url: str) -> tuple[OpenSource, bytes]:
        port = int(url.split(":")[2].split("/")[0])
        loop = asyncio.get_running_loop()
        real = loop.getaddrinfo

        async def rebound(host: Any, port: Any, **more: Any) -> Any:
            if host != "rebound.example":
                return await real(host, port, **more)
            asked.append(host)
            address = HOST if len(asked) == 1 else "169.254.169.254"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

        monkeypatch.setattr(loop, "getaddrinfo", rebound)
        listed = CopyClient([f"rebound.example:{port}"])
        return await whole(listed, f"http://rebound.example:{port}/x")

    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    (_, data), request = exchange(answer, use)
    assert data == b"ok"
    assert asked == ["rebound.example"]
    assert b"Host: rebound.example:" in request


def test_a_server_that_is_not_there() -> None:
    async def run() -> StorageError:
        port = free_port()
        return await refused(CopyClient([HOST]), f"http://{HOST}:{port}/x")

    assert asyncio.run(run()).row is errors.CANNOT_VERIFY_COPY_SOURCE
