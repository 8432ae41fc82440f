"""The Redis client against a server with scripted answers, well-formed or not."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

import pytest

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import Unknown
from strongroom.coordination.stores.redis.wire import RedisConnection, RedisError
from strongroom.testing.ports import HOST, free_port

MASTER = b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
_clock = SystemClocks()


class Answering:
    """Takes one connection after the other; answers each request with the next piece of bytes.

    An empty piece closes the connection. A request is whatever comes in one packet.
    """

    def __init__(self, *answers: bytes) -> None:
        self.answers, self.requests = list(answers), list[bytes]()
        self._listener = socket.create_server((HOST, free_port()))
        self._listener.settimeout(0.1)
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                near, _ = self._listener.accept()
            except TimeoutError:
                continue
            with near:
                near.settimeout(10)
                self._answer(near)

    def _answer(self, near: socket.socket) -> None:
        while request := near.recv(65536):
            self.requests.append(request)
            answer = self.answers.pop(0) if self.answers else b""
            if not answer:
                return
            near.sendall(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(15)
        self._listener.close()


@pytest.fixture(params=["get", "cas"])
def writes(request: pytest.FixtureRequest) -> bool:
    return str(request.param) == "cas"


def ask(server: Answering, writes: bool, timeout_s: float = 5.0) -> object:
    store = coord.open_store(f"redis://{server.address}")
    try:
        if writes:
            return store.cas("lock/x", None, b"x", timeout_s)
        return store.get("lock/x", timeout_s)
    finally:
        store.close()


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (b"-LOADING Redis is loading the dataset", coord.StoreUnavailable, "loads its data"),
        (b"-BUSY Redis is busy", coord.StoreUnavailable, "busy"),
        (b"-READONLY You can't write", coord.StoreUnavailable, "name the primary"),
        (b"-NOREPLICAS Not enough", coord.StoreUnavailable, "replicas"),
        (b"-MISCONF Errors writing", coord.StoreUnavailable, "disk"),
        (b"-ERR Error running script (call to f_1): -OOM command", coord.StoreUnavailable, "OOM"),
        (b"-ERR max number of clients reached", coord.StoreUnavailable, "max number"),
        (b"-MOVED 3999 10.0.0.1:6379", coord.StoreRefused, "Redis Cluster"),
        (b"-ASK 3999 10.0.0.1:6379", coord.StoreRefused, "Redis Cluster"),
        (b"-NOPERM this user", coord.StoreRefused, "may not do that"),
        (b"-ERR something new", coord.StoreRefused, "something new"),
    ],
)
def test_error_answers_are_certainly_not_applied(
    answer: bytes, kind: type[Exception], words: str, writes: bool
) -> None:
    with Answering(MASTER, answer + b"\r\n") as server, pytest.raises(kind, match=words) as told:
        ask(server, writes)
    assert server.address in str(told.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n",
        b":12x\r\n",
        b":\r\n",
        b"$5\r\nabc",
        b"$99999999999\r\n",
        b"$16777217\r\n",
        b"*100001\r\n",
        b"*1\r\n" * 20,
        b":" + b"1" * 100 + b"\r\n",
        b"+" + b"x" * 70_000,
    ],
)
def test_what_is_no_reply_ends_in_bounds(answer: bytes, writes: bool) -> None:
    """The fate of a write is then unknown."""
    with Answering(MASTER, answer) as server:
        if writes:
            assert isinstance(ask(server, writes, 0.5), Unknown)
        else:
            with pytest.raises(coord.StoreUnavailable):
                ask(server, writes, 0.5)


@pytest.mark.parametrize("answer", [b"$2\r\nhi\r\n", b"*1\r\n:1\r\n", b"$-1\r\n", b":1\r\n"])
def test_another_reply_than_the_scripts_is_no_absence(answer: bytes) -> None:
    with Answering(MASTER, answer) as server, pytest.raises(coord.StoreUnavailable):
        ask(server, writes=False)


def test_an_unknown_script_is_sent_once_in_full(writes: bool) -> None:
    forgot = b"-NOSCRIPT No matching script\r\n"
    with (
        Answering(MASTER, forgot, forgot) as server,
        pytest.raises(coord.StoreRefused, match="NOSCRIPT"),
    ):
        ask(server, writes)
    assert b"EVALSHA" in server.requests[1] and b"redis.call" in server.requests[2]


def test_a_password_is_not_repeated_although_the_server_does() -> None:
    with Answering(b"-ERR unknown command 'AUTH', with args: 's3cret'\r\n") as server:
        store = coord.open_store(f"redis://app:s3cret@{server.address}")
        with pytest.raises(coord.StoreRefused, match="ERR") as told:
            store.get("lock/x", 5.0)
        store.close()
    assert "s3cret" not in f"{told.value!r}{told.value.__cause__!r}"
    assert server.requests == [b"*3\r\n$4\r\nAUTH\r\n$3\r\napp\r\n$6\r\ns3cret\r\n"]


def test_a_server_that_does_not_tell_its_role_is_taken() -> None:
    with Answering(b"-NOPERM no ROLE\r\n", b"*4\r\n$-1\r\n$-1\r\n$-1\r\n$1\r\n0\r\n") as server:
        assert ask(server, writes=False) is None


def test_replies_come_in_any_pieces() -> None:
    listener = socket.create_server((HOST, free_port()))
    host, port = listener.getsockname()
    with listener:
        connection = RedisConnection(host, port, None, _clock, _clock.monotonic_s() + 5)
        peer, _ = listener.accept()
        reply = b"*4\r\n$3\r\na\r\n\r\n:-7\r\n$-1\r\n*2\r\n+OK\r\n$0\r\n\r\n"

        def trickle() -> None:
            for at in range(len(reply)):
                peer.sendall(reply[at : at + 1])

        thread = threading.Thread(target=trickle)
        thread.start()
        found = connection.receive(_clock.monotonic_s() + 5)
        thread.join()
        assert found == [b"a\r\n", -7, None, [b"OK", b""]]
        peer.sendall(b"-WRONG kind\r\n")
        with pytest.raises(RedisError) as told:
            connection.receive(_clock.monotonic_s() + 5)
        assert told.value.code == "WRONG"
        assert not connection.has_more()
        with pytest.raises(TimeoutError):
            connection.receive(_clock.monotonic_s() + 0.05)
        peer.close()
        assert connection.has_more()
        with pytest.raises(ConnectionError):
            connection.receive(_clock.monotonic_s() + 5)
        connection.close()
