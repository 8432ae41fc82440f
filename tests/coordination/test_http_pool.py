"""The connections of the HTTP stores: requests that were certainly not sent, and those that may
have been."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from strongroom.coordination import StoreRefused, StoreUnavailable, Unsupported
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.stores.connections.http_pool import HttpPool, NoResponse
from strongroom.testing.ports import HOST, free_port

Script = Callable[[socket.socket, int], None]
_clock = SystemClocks()


class Scripted:
    """A server that does, on its nth connection, what its script says; it keeps what it read."""

    def __init__(self, script: Script, context: ssl.SSLContext | None = None) -> None:
        self._script, self._context = script, context
        self._listener = socket.create_server((HOST, free_port()))
        self.url = f"http{'s' if context else ''}://{HOST}:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                connection.settimeout(10)
                if self._context is not None:
                    connection = self._context.wrap_socket(connection, server_side=True)
                self._script(connection, self.connections)
            except OSError:
                pass
            finally:
                connection.close()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


@contextmanager
def scripted(script: Script, context: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    server = Scripted(script, context)
    try:
        yield server
    finally:
        server.stop()


def heard(connection: socket.socket) -> bytes:
    """Return one request without a body."""
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        piece = connection.recv(65536)
        if not piece:
            raise OSError("gone")
        text += piece
    return text


def saying(*answers: bytes) -> Script:
    def script(connection: socket.socket, _: int) -> None:
        for answer in answers:
            heard(connection)
            connection.sendall(answer)

    return script


GOOD = b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: "1"\r\n\r\nok'
BODIES = {
    "length": (GOOD, b"ok"),
    "empty": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2;x=1\r\nok\r\n1\r\n!\r\n0\r\nA: b\r\n\r\n",
        b"ok!",
    ),
    "to the end": (b"HTTP/1.0 200 OK\r\n\r\nok", b"ok"),
    "after an interim answer": (b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD, b"ok"),
    "none": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b""),
}


@pytest.mark.parametrize("kind", BODIES)
def test_bodies(kind: str) -> None:
    answer, body = BODIES[kind]
    with scripted(saying(answer)) as server:
        assert HttpPool(server.url, _clock).send("GET", "/", {}, b"", 5).body == body


def test_a_connection_is_used_again_and_headers_are_found_in_any_case() -> None:
    with scripted(saying(GOOD, GOOD, GOOD)) as server:
        pool = HttpPool(server.url, _clock)
        for method in ("GET", "PUT", "DELETE"):
            answer = pool.send(method, "/", {"X-A": "b"}, b"", 5)
            assert (answer.etag, answer.header("Etag"), answer.header("none")) == ('"1"', '"1"', "")
        assert server.connections == 1


SPOILT = {
    "cut in the body": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
    "cut in the head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "cut in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
    "cut between chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
    "no length": b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "no header": b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
    "a long chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n",
    "an endless head": b"HTTP/1.1 200 OK\r\nA: " + b"x" * 400_000,
    "nothing": b"",
}


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("kind", SPOILT)
def test_what_cannot_be_read_is_no_answer(kind: str, method: str) -> None:
    with scripted(saying(SPOILT[kind])) as server:
        with pytest.raises(NoResponse):
            HttpPool(server.url, _clock).send(method, "/", {}, b"", 5)
        assert server.connections == 1, "nothing was sent twice"


def test_an_answer_without_end_is_refused() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"
    with scripted(saying(head)) as server, pytest.raises(StoreRefused, match="bytes"):
        HttpPool(server.url, _clock).send("GET", "/", {}, b"", 5)


def test_a_connection_that_was_closed_while_idle_is_not_used() -> None:
    with scripted(saying(GOOD)) as server:
        pool = HttpPool(server.url, _clock)
        for number in (1, 2, 3):
            assert pool.send("PUT", "/", {}, b"", 5).status == 200
            assert server.connections == number
            threading.Event().wait(0.05)  # the server closes


def test_only_a_read_is_sent_again_when_its_connection_proves_dead() -> None:
    def script(connection: socket.socket, number: int) -> None:
        heard(connection)
        connection.sendall(GOOD)
        heard(connection)  # and says nothing: the connection ends

    for method in ("GET", "PUT"):
        with scripted(script) as server:
            pool = HttpPool(server.url, _clock)
            pool.send("GET", "/", {}, b"", 5)
            if method == "GET":
                assert pool.send("GET", "/", {}, b"", 5).body == b"ok"
                assert server.connections == 2
                pool.close()
            else:
                with pytest.raises(NoResponse):
                    pool.send("PUT", "/", {}, b"", 5)
                assert server.connections == 1


def test_the_time_limit_holds_for_all_of_it() -> None:
    """A server that sends a byte now and then does not keep a request alive."""

    def script(connection: socket.socket, _: int) -> None:
        heard(connection)
        for byte in GOOD:
            connection.sendall(bytes((byte,)))
            threading.Event().wait(0.05)

    with scripted(script) as server:
        started_s = _clock.monotonic_s()
        with pytest.raises(NoResponse, match="in time"):
            HttpPool(server.url, _clock).send("GET", "/", {}, b"", 0.5)
        assert _clock.monotonic_s() - started_s < 2


def test_nobody_there_is_certain() -> None:
    pool = HttpPool(f"http://{HOST}:{free_port()}", _clock)
    with pytest.raises(StoreUnavailable, match="reached"):
        pool.send("PUT", "/", {}, b"x", 5)
    with pytest.raises(StoreUnavailable, match="time is up"):
        pool.send("PUT", "/", {}, b"x", 0)


@pytest.mark.parametrize("value", ["a\r\nX-B: c", "a\nb", "a\rb", "ä"])
def test_a_header_cannot_begin_another(value: str) -> None:
    with scripted(saying(GOOD)) as server:
        with pytest.raises(StoreRefused, match="header"):
            HttpPool(server.url, _clock).send("GET", "/", {"X-A": value}, b"", 5)
        assert server.connections == 0


@pytest.mark.parametrize("url", ["", "host", "ftp://host", "http://", "http://host:port"])
def test_endpoints_that_are_none(url: str) -> None:
    with pytest.raises(Unsupported, match="endpoint"):
        HttpPool(url, _clock)


def certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(HOST))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "server.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return path


def test_tls_needs_a_certificate_that_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with scripted(saying(GOOD, GOOD), context) as server:
        with pytest.raises(StoreRefused, match="certificate"):
            HttpPool(server.url, _clock).send("PUT", "/", {}, b"", 5)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        pool = HttpPool(server.url, _clock)
        connections = server.connections
        assert [pool.send("PUT", "/", {}, b"", 5).body for _ in range(2)] == [b"ok", b"ok"]
        assert server.connections == connections + 1
