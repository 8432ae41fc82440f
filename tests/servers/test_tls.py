"""TLS: the self-made certificate, and plain and encrypted connections on one port."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import stat
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from strongroom.clock import ManualClock, SystemClock
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.servers.certificates.tls import TlsUnusable, load_context
from strongroom.servers.http.protocol import Connection
from strongroom.servers.rationed_log import KEYS_MAX
from strongroom.values import FileSlice
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import QUICK, Served, get, no_more_than, put, run, serving

MIB = 2**20
DAY_S = 24 * 3600.0


async def tells_tls(request: Request) -> Response:
    body = await request.body.read_all(64 * MIB)
    return Response(200, [], f"{request.tls} {len(body)}".encode())


def contexts(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the server's context, and a client's that trusts only the server's certificate."""
    certificate, key = self_signed_certificate(directory, SystemClock())
    return load_context(certificate, key), ssl.create_default_context(cafile=certificate)


def test_plain_and_encrypted_on_one_port(tmp_path: Path) -> None:
    async def scenario() -> None:
        server_side, client_side = contexts(tmp_path)
        async with serving(tells_tls, tls=server_side) as served:
            plain, encrypted = await served.connect(), await served.connect(tls=client_side)
            for _ in range(2):
                assert (await plain.ask(get())).body == b"False 0"
                assert (await encrypted.ask(get())).body == b"True 0"
            size = 5 * MIB
            assert (await encrypted.ask(put(b"x" * size))).body == f"True {size}".encode()
            await encrypted.close()
            await plain.close()

    run(scenario())


async def no_connection_is_kept(served: Served) -> None:
    """Wait until each connection is freed: transports and tasks let go of it in later turns.

    The exchanges are forgotten, since the body of a request refers to its connection.
    """
    async with asyncio.timeout(60):
        served.exchanges.clear()
        while any(isinstance(one, Connection) for one in gc.get_objects()):
            await asyncio.sleep(0.01)
            served.exchanges.clear()


def test_connections_that_have_ended_are_freed_without_the_garbage_collector(
    tmp_path: Path,
) -> None:
    """Else each would keep the 256 KiB that TLS receives into until a rare pass."""

    async def scenario() -> None:
        server_side, client_side = contexts(tmp_path)
        async with serving(tells_tls, tls=server_side) as served:
            for tls in (None, client_side):
                asked, refused, silent = [await served.connect(tls=tls) for _ in range(3)]
                assert (await asked.ask(get())).status == 200
                assert (await refused.ask(b"no request\r\n\r\n")).status == 400
                await asked.send(put(b"x" * MIB)[:1000])  # a body that ends early
                for client in (asked, refused, silent):
                    await client.close()
            await no_more_than(served, 0)
            await no_connection_is_kept(served)

    gc.collect()
    gc.disable()
    try:
        run(scenario())
    finally:
        gc.enable()


def test_files_are_sent_encrypted(tmp_path: Path) -> None:
    content = bytes(range(256)) * 16_384

    async def scenario() -> None:
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.flush()

            async def pieces() -> AsyncIterator[FileSlice]:
                yield FileSlice(file, 1, len(content) - 1)
                yield FileSlice(file, 0, 1)

            async def handler(request: Request) -> Response:
                return Response(200, [], pieces(), len(content))

            server_side, client_side = contexts(tmp_path)
            async with serving(handler, tls=server_side) as served:
                client = await served.connect(tls=client_side)
                assert (await client.ask(get())).body == content[1:] + content[:1]
                await client.close()

    run(scenario())


def test_a_refusal_is_seen_over_tls(tmp_path: Path) -> None:
    async def scenario() -> None:
        server_side, client_side = contexts(tmp_path)
        async with serving(tells_tls, tls=server_side, settings=QUICK) as served:
            client = await served.connect(tls=client_side)
            answer = await client.ask(b"GET / HTTP/1.1\r\n\r\n")
            assert (answer.status, answer.header("Connection")) == (400, "close")
            await client.close()

    run(scenario())


def test_broken_handshakes_and_silence_harm_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        server_side, client_side = contexts(tmp_path)
        async with serving(tells_tls, tls=server_side, settings=QUICK) as served:
            broken, silent, left = [await served.connect() for _ in range(3)]
            await broken.send(b"\x16\x03\x01 this is no handshake")
            await left.close()
            await broken.ended()
            assert await silent.ended() == b""
            good = await served.connect(tls=client_side)
            assert (await good.ask(get())).body == b"True 0"
            for client in (broken, silent, good):
                await client.close()
            await no_more_than(served, 0)

    run(scenario())


def test_the_certificate_is_made_once_and_renewed_in_time(tmp_path: Path) -> None:
    clock = ManualClock()
    certificate, key = self_signed_certificate(tmp_path, clock)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    first = certificate.read_bytes()
    clock.advance(300 * DAY_S)
    assert self_signed_certificate(tmp_path, clock) == (certificate, key)
    assert certificate.read_bytes() == first
    clock.advance(60 * DAY_S)
    self_signed_certificate(tmp_path, clock)
    assert certificate.read_bytes() != first
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    second = certificate.read_bytes()
    key.write_bytes(b"damaged")
    self_signed_certificate(tmp_path, clock)
    assert certificate.read_bytes() != second
    load_context(certificate, key)


@pytest.mark.parametrize(
    "name",
    ["localhost", "127.0.0.1", "::1", "devstoreaccount1.blob.localhost", "a.table.localhost"],
)
def test_clients_accept_its_names(tmp_path: Path, name: str) -> None:
    server_side, client_side = contexts(tmp_path)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    client = client_side.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(3):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.version() == "TLSv1.3"


def test_a_missing_or_foreign_key_is_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    certificate, _ = self_signed_certificate(one, ManualClock())
    _, foreign_key = self_signed_certificate(other, ManualClock())
    _is_refused(certificate, foreign_key, f"{foreign_key} does not belong to .* {certificate}")
    missing = tmp_path / "none.pem"
    _is_refused(certificate, missing, f"the private key {missing} cannot be read: No such file")
    _is_refused(missing, foreign_key, f"the certificate {missing} cannot be read: No such file")
    _is_refused(certificate, certificate, f"{certificate} has no private key in PEM form")
    _is_refused(foreign_key, foreign_key, f"{foreign_key} has no certificate in PEM form")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    _is_refused(broken, foreign_key, f"the certificate {broken} or the private key .* is damaged")


def _is_refused(certificate: Path, key: Path, words: str) -> None:
    with pytest.raises(TlsUnusable, match=words):
        load_context(certificate, key)


def test_a_key_with_a_password_is_refused(tmp_path: Path) -> None:
    certificate, key = self_signed_certificate(tmp_path, ManualClock())
    opened = load_pem_private_key(key.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        opened.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a password")
        )
    )
    _is_refused(certificate, locked, f"{locked} is protected by a password")


def test_a_client_that_tries_tls_on_a_plain_port_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)

    async def scenario() -> None:
        _, client_side = contexts(tmp_path)
        async with serving(tells_tls) as served:
            for _ in range(3):
                with pytest.raises(OSError):
                    await served.connect(tls=client_side)
            plain = await served.connect()
            assert (await plain.ask(get())).body == b"False 0"
            await plain.close()

    run(scenario())
    lines = [record.getMessage() for record in caplog.records if "TLS" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith("a client at 127.0.0.1 speaks TLS (https) on a port without it")


def test_a_flood_of_clients_that_try_tls_fills_no_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)

    async def scenario() -> None:
        async with serving(tells_tls) as served:
            for _ in range(2):
                for number in range(2 * KEYS_MAX):
                    served.server.warn_of_tls(f"2001:db8::{number:x}")

    run(scenario())
    assert sum("TLS" in record.getMessage() for record in caplog.records) == KEYS_MAX
