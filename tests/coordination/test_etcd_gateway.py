"""Answers of etcd's gateway, valid and invalid, without an etcd: bytes from a socket."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import CasOutcome, Conflict, LeaseAction, LeaseTerms, Unknown
from strongroom.coordination.stores.connections.http_connection import BadResponse
from strongroom.coordination.stores.etcd import stream as etcd_stream
from strongroom.coordination.stores.etcd.stream import LineStream
from strongroom.testing.ports import HOST, free_port

TIMEOUT_S = 5.0
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
clock = SystemClocks()


class Member:
    """Answers every connection by what `serve` does with it; counts them."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve, self.count = serve, 0
        self._listener = socket.create_server((HOST, free_port()))
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            try:
                self._serve(connection)
            except OSError:
                pass  # the client has gone

    def close(self) -> None:
        # A thread that waits in accept() is woken by the shutdown only.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@contextmanager
def member(serve: Callable[[socket.socket], None]) -> Iterator[Member]:
    running = Member(serve)
    yield running
    running.close()


def request_of(connection: socket.socket) -> tuple[str, bytes]:
    """The target and the body of one request."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < size:
        body += _more(connection)
    return head.split(b" ")[1].decode(), body


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError("the client has gone")
    return data


def answering(status: str, body: bytes) -> Callable[[socket.socket], None]:
    """Answer every request so."""

    def serve(connection: socket.socket) -> None:
        while True:
            request_of(connection)
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

    return serve


def failing(code: int, words: str) -> Callable[[socket.socket], None]:
    body = json.dumps({"error": words, "message": words, "code": code}).encode()
    return answering("500 Internal Server Error", body)


def hanging_up(connection: socket.socket) -> None:
    """Read a request, and close."""
    request_of(connection)


def write(at: str, lease: LeaseTerms | None = None) -> CasOutcome:
    store = coord.open_store(f"etcd://{at}")
    try:
        return store.cas("lock/x", None, b"x", TIMEOUT_S, lease)
    finally:
        store.close()


def read(at: str) -> Any:
    store = coord.open_store(f"etcd://{at}")
    try:
        return store.get("lock/x", TIMEOUT_S)
    finally:
        store.close()


@pytest.mark.parametrize(
    "serve",
    [
        failing(14, "etcdserver: request timed out"),
        failing(8, "etcdserver: mvcc: database space exceeded"),
        failing(2, "etcdserver: leader changed"),
        failing(13, "etcdserver: corrupt cluster"),
        answering("200 OK", b"junk"),
        answering("200 OK", b"[]"),
        answering("200 OK", b'{"succeeded": true}'),
        answering("200 OK", b'{"succeeded": true, "header": {"revision": "x"}}'),
        answering("502 Bad Gateway", b"<html>"),
        hanging_up,
    ],
)
def test_a_write_that_may_have_been_done_is_unknown(
    serve: Callable[[socket.socket], None],
) -> None:
    with member(serve) as running:
        assert isinstance(write(running.address), Unknown)


@pytest.mark.parametrize(
    ("serve", "error", "words"),
    [
        (failing(14, "etcdserver: no leader"), coord.StoreUnavailable, "no leader"),
        (failing(5, "etcdserver: requested lease not found"), coord.StoreUnavailable, "lease"),
        (failing(3, "etcdserver: request is too large"), coord.StoreRefused, "too large"),
        (failing(7, "etcdserver: permission denied"), coord.StoreRefused, "denied"),
        (failing(12, "unknown service"), coord.StoreRefused, "unknown service"),
        (failing(3, "etcdserver: user name is empty"), coord.StoreRefused, "wants a user"),
        (answering("404 Not Found", b"404 page not found"), coord.StoreRefused, "no JSON gateway"),
        (
            answering("404 Not Found", b'{"error": "Not Found", "code": 5}'),
            coord.StoreRefused,
            "Not",
        ),
    ],
)
def test_a_write_that_was_not_done_says_why(
    serve: Callable[[socket.socket], None], error: type[coord.CoordinationError], words: str
) -> None:
    taking = LeaseTerms(LeaseAction.ACQUIRE, 15.0, "me-1")
    with member(serve) as running:
        for terms in (None, taking):
            with pytest.raises(error, match=words):
                write(running.address, terms)


def test_a_lost_answer_about_a_lease_leaves_the_register_alone() -> None:
    def serve(connection: socket.socket) -> None:
        assert request_of(connection)[0] == "/v3/lease/grant"

    with member(serve) as running, pytest.raises(coord.StoreUnavailable):
        write(running.address, LeaseTerms(LeaseAction.ACQUIRE, 15.0, "me-1"))


def test_a_refused_comparison_is_a_conflict() -> None:
    with member(answering("200 OK", b'{"header": {"revision": "7"}}')) as running:
        assert isinstance(write(running.address), Conflict)


def test_only_what_was_not_seen_is_sent_to_another() -> None:
    """Reads are retried on another member after a failure. Writes are retried only if no member
    listened."""
    nobody = f"{HOST}:{free_port()}"
    good = answering("200 OK", b'{"header": {"revision": "7"}, "succeeded": true}')
    with member(failing(14, "timed out")) as bad, member(good) as other:
        assert read(f"{bad.address},{other.address}") is None
        assert (bad.count, other.count) == (1, 1)
        assert isinstance(write(f"{bad.address},{other.address}"), Unknown)
        assert (bad.count, other.count) == (2, 1)
        assert write(f"{nobody},{other.address}") == ("7",)


def test_a_member_that_failed_is_not_asked_first_again() -> None:
    good = answering("200 OK", b'{"header": {"revision": "7"}, "succeeded": true}')
    with member(failing(14, "timed out")) as bad, member(good) as other:
        store = coord.open_store(f"etcd://{bad.address},{other.address}")
        assert isinstance(store.cas("lock/x", None, b"", TIMEOUT_S), Unknown)
        for _ in range(3):
            assert store.cas("lock/x", None, b"", TIMEOUT_S) == ("7",)
        assert bad.count == 1
        store.close()


# Streams


def stream_of(running: Member) -> LineStream:
    host, _, port = running.address.partition(":")
    until_s = clock.monotonic_s() + TIMEOUT_S
    stream = LineStream(host, int(port), None, clock, until_s)
    stream.begin(running.address, "/v3/watch", {}, b"{}", until_s)
    return stream


def line(stream: LineStream, seconds: float = TIMEOUT_S) -> bytes | None:
    return stream.line(clock.monotonic_s() + seconds)


def test_lines_come_in_any_pieces_and_a_pause_loses_nothing() -> None:
    go_on = threading.Event()
    text = b"5\r\nfirst\r\n1\r\n\n\r\nA;x=y\r\nsecond\nthi\r\n3\r\nrd\n\r\n0\r\n\r\n"

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(CHUNKED[:20])
        connection.sendall(CHUNKED[20:] + text[:3])
        go_on.wait(TIMEOUT_S)
        for at in range(3, len(text)):
            connection.sendall(text[at : at + 1])

    with member(serve) as running:
        stream = stream_of(running)
        assert line(stream, 0.1) is None
        assert line(stream, -1.0) is None
        go_on.set()
        assert [line(stream) for _ in range(4)] == [b"first", b"second", b"third", b""]
        stream.close()


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"{}"),
        (b"SSH-2.0-x\r\n\r\n", b""),
        (CHUNKED, b"x\r\n"),
        (CHUNKED, b"-1\r\n"),
        (CHUNKED, b"FFFFFFFFFF\r\n"),
        (CHUNKED, b"0" * 50),
        (CHUNKED, b"5\r\nab"),
        (b"", b""),
    ],
)
def test_what_is_no_stream_is_refused(head: bytes, body: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(head + body)

    with member(serve) as running, pytest.raises(BadResponse):
        line(stream_of(running))


def test_a_line_without_an_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_stream, "BODY_BYTES_MAX", 1000)

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(CHUNKED)
        while True:
            connection.sendall(b"64\r\n" + b"x" * 100 + b"\r\n")

    with member(serve) as running:
        stream = stream_of(running)
        with pytest.raises(BadResponse, match="more than 1000"):
            line(stream)
        stream.close()


@pytest.mark.parametrize(
    "message",
    [
        b"junk",
        b"[1]",
        b'{"error": {"message": "etcdserver: no leader", "grpc_code": 14}}',
        b'{"result": {"canceled": true, "cancel_reason": "going away"}}',
        b'{"result": {"events": [{}]}}',
    ],
)
def test_a_watch_that_goes_wrong_is_no_change(message: bytes) -> None:
    """The waiter then reads for itself; a failed watch does not count as "unchanged"."""

    def serve(connection: socket.socket) -> None:
        target, _ = request_of(connection)
        if target != "/v3/watch":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            return
        connection.sendall(CHUNKED)
        for each in (b'{"result": {"created": true}}', message):
            connection.sendall(f"{len(each) + 1:x}\r\n".encode() + each + b"\n\r\n")
        connection.recv(1)

    with member(serve) as running:
        store = coord.open_store(f"etcd://{running.address}")
        with pytest.raises(coord.StoreUnavailable):
            store.watch("lock/x", None, TIMEOUT_S)
        store.close()


def test_closing_the_store_ends_its_watches() -> None:
    watching = threading.Event()

    def serve(connection: socket.socket) -> None:
        target, _ = request_of(connection)
        if target != "/v3/watch":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            watching.set()
            return
        each = b'{"result": {"created": true}}\n'
        connection.sendall(CHUNKED + f"{len(each):x}\r\n".encode() + each + b"\r\n")
        connection.recv(1)

    with member(serve) as running:
        store = coord.open_store(f"etcd://{running.address}")
        failures: list[BaseException] = []

        def wait() -> None:
            try:
                store.watch("lock/x", None, 600.0)
            except coord.StoreUnavailable as error:
                failures.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        assert watching.wait(TIMEOUT_S)
        while thread.is_alive():
            store.close()
            thread.join(0.05)
        assert len(failures) == 1
