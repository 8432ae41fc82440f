"""Gates with hints over a real NATS server, which is started here with its own password."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strongroom.clock import SystemClock
from strongroom.coordination.hints import Hints, multicast
from strongroom.coordination.hints.address import address_of
from strongroom.coordination.hints.bus import BusHints, BusRefused, BusUnavailable
from strongroom.coordination.hints.nats import NatsBus
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.testing.ports import HOST, free_port
from tests.coordination import hint_trials
from tests.coordination.servers import RealServer, program

USER, PASSWORD = "app", "s3cret/%@:word"
ESCAPED = "s3cret%2F%25%40%3Aword"


def start(folder: Path, authorization: str) -> tuple[RealServer, int]:
    port = free_port()
    settings = folder / "nats.conf"
    settings.write_text(f"authorization {{ {authorization} }}\n", encoding="utf-8")
    command = [program("nats-server", "nats-server"), "-a", HOST, "-p", str(port)]
    server = RealServer([*command, "-c", str(settings)], port, folder / "nats.log")
    server.wait(server.listens)
    return server, port


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[tuple[RealServer, int]]:
    server, port = start(tmp_path, f'user: {USER}, password: "{PASSWORD}"')
    yield server, port
    server.stop()


@pytest.fixture
def make(nats: tuple[RealServer, int]) -> Callable[[], Hints]:
    return lambda: multicast(f"nats://{USER}:{ESCAPED}@{HOST}:{nats[1]}")


def test_fifty_nodes_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.all_are_released_by_the_message(make)


def test_tasks_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.tasks_are_released_by_the_message(make)


def test_lost_messages_strand_nobody(make: Callable[[], Hints]) -> None:
    hint_trials.nobody_is_stranded_by_lost_messages(make)


def test_a_wrong_password_is_refused(
    nats: tuple[RealServer, int], caplog: pytest.LogCaptureFixture
) -> None:
    hints = multicast(f"nats://{USER}:wr0ng%2Fword@{HOST}:{nats[1]}")
    hint_trials.a_wrong_secret_is_refused(hints, "wr0ng", caplog)


def test_a_server_that_restarts_strands_nobody(
    nats: tuple[RealServer, int], make: Callable[[], Hints], caplog: pytest.LogCaptureFixture
) -> None:
    server, _ = nats

    def restart() -> None:
        server.start()
        server.wait(server.listens)

    hint_trials.a_restart_strands_nobody(make, lambda: server.stop(signal.SIGKILL), restart, caplog)


def test_no_server_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    hints = multicast(f"nats://{USER}:{ESCAPED}@{HOST}:{free_port()}")
    hint_trials.a_bus_that_is_away_is_reported_once(hints, caplog)
    assert "s3cret" not in caplog.text


def test_a_token_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server, port = start(tmp_path, 'token: "t0ken"')
    try:
        hint_trials.all_are_released_by_the_message(
            lambda: multicast(f"nats://t0ken@{HOST}:{port}"), 4
        )
        wrong = multicast(f"nats://0ther@{HOST}:{port}")
        hint_trials.a_wrong_secret_is_refused(wrong, "0ther", caplog)
    finally:
        server.stop()
    assert "t0ken" not in caplog.text


def test_a_subject_that_is_not_permitted_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    allowed = "permissions: { publish: other.>, subscribe: [other.>, _INBOX.>] }"
    server, port = start(tmp_path, f"users: [{{ user: {USER}, password: pw0, {allowed} }}]")
    try:
        url = f"nats://{USER}:pw0@{HOST}:{port}"
        hint_trials.a_wrong_secret_is_refused(multicast(url), "pw0", caplog)
    finally:
        server.stop()


def test_prefixes_keep_clusters_apart_on_one_server(
    nats: tuple[RealServer, int], make: Callable[[], Hints]
) -> None:
    url = f"nats://{USER}:{ESCAPED}@{HOST}:{nats[1]}"
    heard, other = threading.Semaphore(0), threading.Semaphore(0)
    hints = BusHints(NatsBus(address_of(url, 4222, {}), "acme"))
    stops = [
        hints.subscribe("gate/g", lambda: heard.release()),
        make().subscribe("gate/g", lambda: other.release()),
    ]
    # Each is called once when it begins to listen.
    assert heard.acquire(timeout=30) and other.acquire(timeout=30)
    multicast(f"{url}?prefix=acme").publish("gate/g")
    assert heard.acquire(timeout=30)
    assert not other.acquire(timeout=0.2)
    for stop in stops:
        stop()


def test_over_tls_to_a_server_that_proves_its_name(tmp_path: Path) -> None:
    certificate, key = self_signed_certificate(tmp_path, SystemClock())
    server, port = start(
        tmp_path,
        f'user: {USER}, password: pw0 }}\ntls {{ cert_file: "{certificate}"\nkey_file: "{key}"',
    )
    try:
        url = f"nats+tls://{USER}:pw0@{HOST}:{port}"
        hint_trials.all_are_released_by_the_message(lambda: multicast(f"{url}?ca={certificate}"), 4)
        for other in (url, f"nats://{USER}:pw0@{HOST}:{port}"):
            hints = multicast(other)
            assert isinstance(hints, BusHints)
            with pytest.raises(BusUnavailable):
                hints.check()
    finally:
        server.stop()


def test_a_server_that_hangs_holds_nobody_up(
    nats: tuple[RealServer, int], make: Callable[[], Hints], caplog: pytest.LogCaptureFixture
) -> None:
    nats[0].send(signal.SIGSTOP)
    hint_trials.a_bus_that_hangs_holds_nobody_up(make(), caplog)


def test_who_asks_for_tls_sends_no_password_to_a_server_that_speaks_none() -> None:
    heard: list[bytes] = []
    greeting = b'INFO {"server_id":"x","version":"2.9.10","max_payload":1048576}\r\n'
    with socket.create_server((HOST, free_port())) as server:

        def listen() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(greeting)
                    connection.settimeout(10)
                    heard.append(connection.recv(65536))

        listener = threading.Thread(target=listen)
        listener.start()
        port = server.getsockname()[1]
        hints = multicast(f"nats+tls://{USER}:{ESCAPED}@{HOST}:{port}")
        assert isinstance(hints, BusHints)
        with pytest.raises(BusRefused, match="no password was sent"):
            hints.check()
        plain = multicast(f"nats://{USER}:{ESCAPED}@{HOST}:{port}")
        assert isinstance(plain, BusHints)
        with pytest.raises(BusUnavailable):
            plain.check()
        listener.join(60)
    assert heard[0] == b""
    assert b"s3cret" in heard[1]  # the listener would have heard it
