"""The request of the reader of copy sources for a From URL operation: its range and its token."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from strongroom.clock import SystemClock
from strongroom.errors import copies as copy_errors
from strongroom.errors.core import StorageError
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.servers.certificates.tls import load_context
from strongroom.servers.copies.addresses import SourceHosts
from strongroom.servers.copies.client import CopyClient
from strongroom.services.core.copies.sources import SourceRequest
from strongroom.values import ByteRange
from tests.servers.test_copy_client import HOST, SHORT, asked, exchange


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (ByteRange(0, 0), b"Range: bytes=0-0"),
        (ByteRange(5, 99), b"Range: bytes=5-99"),
        (ByteRange(7, None), b"Range: bytes=7-"),
    ],
)
def test_a_range_is_asked_for(wanted: ByteRange, line: bytes) -> None:
    """B-URL-08."""

    async def use(client: CopyClient, url: str) -> int | None:
        source = await client.open(url, SourceRequest(range=wanted, is_read=True))
        await source.close()
        return source.size_bytes

    last = 99 if wanted.last is None else wanted.last
    length = last - wanted.first + 1
    told = f"Content-Range: bytes {wanted.first}-{last}/100\r\nContent-Length: {length}\r\n\r\n"
    found, request = exchange(b"HTTP/1.1 206 Partial Content\r\n" + told.encode(), use)
    assert line in request.split(b"\r\n")
    assert found == length


def test_a_token_goes_to_the_source_and_nowhere_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B-URL-15: the token is sent over TLS to the named server only, not to a redirect's target."""
    caplog.set_level(logging.DEBUG)
    certificate, key = self_signed_certificate(tmp_path, SystemClock())
    ours, trusting = load_context(certificate, key), ssl.create_default_context(cafile=certificate)
    seen: list[bytes] = []
    wanted = SourceRequest(authorization="Bearer secret-token", is_read=True)

    async def resolve(host: str, port: int) -> list[str]:
        return [HOST]

    async def use(client: CopyClient, url: str) -> StorageError | None:
        hosts = SourceHosts.parse(["localhost"])
        verifying = CopyClient(hosts, tls=trusting, resolve=resolve)
        try:
            await (await verifying.open(url.replace(HOST, "localhost"), wanted)).close()
        except StorageError as error:
            return error
        return None

    def ask(answer: bytes) -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            writer.close()

        return asked(serve, use, ours)

    assert ask(SHORT) is None
    error = ask(b"HTTP/1.1 307 No\r\nLocation: https://localhost/\r\nContent-Length: 0\r\n\r\n")
    assert error.row is copy_errors.COPY_SOURCE_FORBIDDEN
    assert len(seen) == 2
    assert all(b"Authorization: Bearer secret-token\r\n" in request for request in seen)
    assert "secret" not in f"{error.message} {error.headers} {caplog.text}"
