"""Certificates that change on the disk while a server runs, and those of PFX files."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    KeySerializationEncryption,
    NoEncryption,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from strongroom.app import App
from strongroom.clock import SystemClock
from strongroom.config import ConfigError, PfxFile, SelfSigned, Settings, TlsFiles
from strongroom.servers.certificates import served as served_module
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.servers.certificates.served import ServedCertificate, pem_files, pfx_file
from strongroom.servers.certificates.tls import TlsUnusable
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import get, run, serving

HOST = "127.0.0.1"
PASSWORD = b"of the file"


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)
    caplog.set_level("INFO", "strongroom")


def pair(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate and its key in a folder of their own."""
    made = folder / name
    made.mkdir()
    return self_signed_certificate(made, SystemClock())


def der(certificate: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.read_text())


def pfx_of(
    certificate: Path, key: Path, file: Path, encryption: KeySerializationEncryption
) -> None:
    """Write a PFX file in the place of another, at once."""
    found = load_pem_private_key(key.read_bytes(), None)
    assert isinstance(found, EllipticCurvePrivateKey)
    parsed = x509.load_pem_x509_certificate(certificate.read_bytes())
    content = serialize_key_and_certificates(b"a name", found, parsed, None, encryption)
    new = file.with_suffix(".new")
    new.write_bytes(content)
    new.replace(file)


async def presented(port: int) -> bytes | None:
    """Return the certificate that a new connection is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection(HOST, port, ssl=context)
    found: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


async def until_another_is_presented(port: int, former: bytes | None) -> None:
    async with asyncio.timeout(60):
        while await presented(port) == former:  # noqa: ASYNC110 - the server has no event
            await asyncio.sleep(0.01)


async def empty(request: Request) -> Response:
    return Response(200, [], b"")


def test_old_connections_go_on_and_new_ones_get_the_new_certificate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = pair(tmp_path, "used")
    old = der(certificate)
    new_certificate, new_key = pair(tmp_path, "new")
    trusting = ssl.create_default_context(cafile=certificate)

    async def scenario() -> None:
        source = ServedCertificate(pem_files(certificate, key))
        async with serving(empty, tls=source.context) as served:
            client = await served.connect(tls=trusting)
            assert (await client.ask(get())).status == 200
            # The first half of the change: the pair does not match.
            shutil.copy(new_certificate, certificate)
            assert not source.check()
            assert await presented(served.port) == old
            assert "does not belong to the certificate" in caplog.text
            assert caplog.text.count("previous certificate") == 1
            assert not source.check(), "nothing has changed since"
            assert caplog.text.count("previous certificate") == 1
            shutil.copy(new_key, key)
            assert source.check()
            assert await presented(served.port) == der(new_certificate)
            assert (await client.ask(get())).status == 200
            await client.close()

    run(scenario())
    assert f"new connections get the new certificate of {certificate}" in caplog.text


@pytest.mark.parametrize("damage", ["removed", "empty", "half"])
def test_files_that_cannot_be_used_change_nothing(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = pair(tmp_path, "used")
    source = ServedCertificate(pem_files(certificate, key))
    before, content = source.context(), key.read_bytes()
    if damage == "removed":
        key.unlink()
    else:
        key.write_bytes(b"" if damage == "empty" else content[: len(content) // 2])
    assert not source.check()
    assert source.context() is before
    assert str(key) in caplog.text and "previous certificate" in caplog.text
    key.write_bytes(content)
    assert source.check()


def changing(files: TlsFiles | PfxFile, new: tuple[Path, Path]) -> None:
    """Put another certificate in the place of the served one."""
    if isinstance(files, PfxFile):
        pfx_of(*new, files.file, BestAvailableEncryption(PASSWORD))
    else:
        shutil.copy(new[0], files.certificate)
        shutil.copy(new[1], files.key)


@pytest.mark.parametrize("kind", ["pem", "pfx"])
def test_every_port_of_a_server_gets_the_new_certificate(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_module, "CHECK_EVERY_S", 0.01)
    old, new = pair(tmp_path, "old"), pair(tmp_path, "new")
    files: TlsFiles | PfxFile = TlsFiles(*old)
    if kind == "pfx":
        files = PfxFile(tmp_path / "pair.pfx", tmp_path / "password")
        (tmp_path / "password").write_bytes(PASSWORD + b"\n")
        changing(files, old)
    first, second = der(old[0]), der(new[0])

    async def scenario() -> None:
        settings = Settings(None, HOST, 0, 0, 0, 0, 0, tls=files)
        app = App(settings, SystemClock())
        await app.start()
        try:
            assert set(app.ports) == {"blob", "queue", "table", "file", "all"}
            for port in app.ports.values():
                assert await presented(port) == first
            changing(files, new)
            await until_another_is_presented(app.ports["blob"], first)
            for port in app.ports.values():
                assert await presented(port) == second
        finally:
            await app.stop()

    asyncio.run(scenario())


def test_the_certificate_that_the_server_makes_is_renewed_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_module, "CHECK_EVERY_S", 0.01)
    monkeypatch.setattr(served_module, "_REMAKE_EVERY_S", 0.0)

    async def scenario() -> None:
        app = App(Settings(tmp_path / "data", HOST, 0, 0, 0, 0, tls=SelfSigned()), SystemClock())
        await app.start()
        try:
            assert app.certificate is not None
            first = await presented(app.ports["blob"])
            (tmp_path / "data" / "tls-key.pem").write_text("damaged, so it is made anew")
            await until_another_is_presented(app.ports["blob"], first)
        finally:
            await app.stop()

    asyncio.run(scenario())


def test_a_key_that_cannot_be_read_any_more_is_said_once_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = pair(tmp_path, "used")
    source = ServedCertificate(pem_files(certificate, key))
    monkeypatch.setattr(served_module, "CHECK_EVERY_S", 0.001)
    opened = Path.open

    def refused(path: Path, mode: str) -> object:  # root may read everything
        if path == key:
            raise PermissionError(13, "Permission denied")
        return opened(path, mode)

    monkeypatch.setattr(Path, "open", refused)

    async def scenario() -> None:
        watching = asyncio.create_task(source.watch())
        await asyncio.sleep(0.05)
        watching.cancel()

    asyncio.run(scenario())
    assert caplog.text.count("a renewed certificate needs a restart") == 1
    assert str(key) in caplog.text and str(certificate) not in caplog.text


def test_a_pfx_file_without_a_password_is_served_and_no_key_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = pair(tmp_path, "used")
    file, temporary = tmp_path / "pair.pfx", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    pfx_of(certificate, key, file, NoEncryption())
    source = pfx_file(file, None, os.urandom)
    context = source.load()
    assert ssl.PEM_cert_to_DER_cert(source.read_certificates().decode()) == der(certificate)
    assert list(temporary.iterdir()) == []

    async def scenario() -> None:
        async with serving(empty, tls=context) as served:
            assert await presented(served.port) == der(certificate)

    run(scenario())


def test_what_is_wrong_with_a_pfx_file_is_said_without_its_password(tmp_path: Path) -> None:
    certificate, key = pair(tmp_path, "used")
    file, password = tmp_path / "pair.pfx", tmp_path / "password"
    pfx_of(certificate, key, file, BestAvailableEncryption(PASSWORD))
    password.write_bytes(b"wrong-secret")
    none = tmp_path / "none"
    for pfx, given, words in (
        (file, password, f"{password} has another password"),
        (file, None, "name the file of its password: --pfx-password-file"),
        (certificate, password, f"{certificate} is no PFX file"),
        (none, password, f"{none} cannot be read: No such file"),
        (file, none, f"{none} cannot be read: No such file"),
    ):
        with pytest.raises(TlsUnusable, match=words) as raised:
            pfx_file(pfx, given, os.urandom).load()
        assert "wrong-secret" not in str(raised.value)
    password.write_bytes(b"x" * 5000)
    with pytest.raises(TlsUnusable, match="is it the right file"):
        pfx_file(file, password, os.urandom).load()


def test_a_server_does_not_start_without_its_pfx_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        missing = PfxFile(tmp_path / "none.pfx")
        await App(Settings(None, HOST, 0, 0, 0, 0, tls=missing), SystemClock()).start()

    with pytest.raises(ConfigError, match=r"TLS cannot be used: .*none\.pfx cannot be read"):
        asyncio.run(scenario())
