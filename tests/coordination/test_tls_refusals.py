"""A refused certificate, on either side, is a final error without retries."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom import coordination as coord
from strongroom.coordination.stores.connections.tls_refusals import refusal_of
from strongroom.testing.ports import HOST, free_port
from tests.coordination import servers
from tests.coordination.conformance import TIMEOUT_S

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@contextlib.contextmanager
def demanding(folder: Path, version: str | None) -> Iterator[tuple[str, Path]]:
    """A server that wants its clients' certificates; without a version it hangs up in the middle of
    the handshake. Its address, and its own certificate."""
    certificate, key = servers.certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    if version is not None:
        context.minimum_version = context.maximum_version = VERSIONS[version]
    listening = socket.create_server((HOST, free_port()))
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listening.accept()
                with connection:
                    connection.settimeout(TIMEOUT_S)
                    if version is not None:
                        context.wrap_socket(connection, server_side=True).close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"{HOST}:{listening.getsockname()[1]}", certificate
    finally:
        over.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(60)


def urls(address: str, certificate: Path) -> dict[str, str]:
    return {
        "etcd": f"etcd://{address}?ca={certificate}",
        "redis": f"rediss://{address}?ssl_ca_certs={certificate}",
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["etcd", "redis"])
def test_a_client_without_the_certificate_that_is_wanted_is_refused(
    kind: str, version: str, tmp_path: Path
) -> None:
    with demanding(tmp_path, version) as (address, certificate):
        store = coord.open_store(urls(address, certificate)[kind])
        for _ in range(5):
            with pytest.raises(
                coord.StoreRefused, match="requires a client certificate, or refuses"
            ):
                store.get("lock/x", TIMEOUT_S)
            with pytest.raises(
                coord.StoreRefused, match="requires a client certificate, or refuses"
            ):
                store.cas("lock/x", None, b"", TIMEOUT_S)
        store.close()


@pytest.mark.parametrize("kind", ["etcd", "redis"])
def test_waiting_for_ever_ends_at_once(kind: str, tmp_path: Path) -> None:
    with demanding(tmp_path, "1.3") as (address, certificate):
        url = urls(address, certificate)[kind]
        with coord.connect(url) as client, pytest.raises(coord.StoreRefused):
            client.lock("x").acquire()


def test_a_watch_is_refused_as_well(tmp_path: Path) -> None:
    with demanding(tmp_path, "1.3") as (address, certificate):
        store = coord.open_store(urls(address, certificate)["etcd"])
        with pytest.raises(coord.StoreRefused, match="a client certificate"):
            store.watch("lock/x", "1", TIMEOUT_S)
        store.close()


@pytest.mark.parametrize("kind", ["etcd", "redis"])
def test_a_server_that_hangs_up_may_be_starting(kind: str, tmp_path: Path) -> None:
    with demanding(tmp_path, None) as (address, certificate):
        store = coord.open_store(urls(address, certificate)[kind])
        with pytest.raises(coord.StoreUnavailable):
            store.get("lock/x", TIMEOUT_S)
        store.close()


@pytest.mark.parametrize(
    ("reason", "is_final"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", True),
        ("SSLV3_ALERT_BAD_CERTIFICATE", True),
        ("TLSV1_ALERT_UNKNOWN_CA", True),
        ("TLSV1_ALERT_PROTOCOL_VERSION", True),
        ("WRONG_VERSION_NUMBER", True),
        ("TLSV1_ALERT_INTERNAL_ERROR", False),
        ("UNEXPECTED_EOF_WHILE_READING", False),
        (None, False),
    ],
)
def test_which_failures_are_final(reason: str | None, is_final: bool) -> None:
    error = ssl.SSLError(1, f"[SSL: {reason}] what OpenSSL says")
    error.reason = reason  # type: ignore[assignment]  # as OpenSSL sets it
    assert bool(refusal_of(error)) is is_final
    assert refusal_of(ConnectionResetError("reset")) == ""
