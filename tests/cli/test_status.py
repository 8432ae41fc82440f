"""`strongroom status`: what it says of a server, what counts as a finding, and its refusals."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.cli.exits import Exit
from strongroom.cli.watching.report import HealthAnswer, findings, measured_of
from strongroom.config import SelfSigned, Settings
from strongroom.engines.base import DataDamaged
from strongroom.testing import InProcessServer
from strongroom.testing.ports import HOST, free_port
from tests.cli.command import in_process

_HEALTH = b'{"status": "ready", "durable": true, "version": "9.9"}'
_READY = HealthAnswer("ready", durable=True, version="9.9")


@pytest.fixture(autouse=True)
def no_damage_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have read damaged data, which is counted for a process."""
    monkeypatch.setattr(DataDamaged, "found", 0)


@contextmanager
def _other(answers: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    """Serve fixed answers; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, free_port()), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answered(metrics: str, health: bytes = _HEALTH) -> dict[str, tuple[int, bytes]]:
    return {
        "/.strongroom/health": (200, health),
        "/.strongroom/metrics": (200, metrics.encode()),
    }


def test_a_server_that_is_well_ends_with_0_and_shows_its_disk(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box").upload_blob("one", b"x" * 100_000)
        assert in_process("backup", data, tmp_path / "backup", "--quiet").code == 0
        ran = in_process("status", server.url, "--backup-within", "1h")
        shown = json.loads(in_process("status", server.url, "--json").out)
    assert ran.code == 0, ran.err
    for words in ("ready", "durable        yes", "uptime", "disk free", "32.0 MiB of 32.0 MiB"):
        assert words in ran.out
    assert shown["health"]["status"] == "ready"
    assert shown["measured"]["segments_bytes"] >= 100_000
    assert shown["measured"]["requests"] >= 2
    assert shown["measured"]["last_backup_s"] > 0
    assert shown["measured"]["jobs_failing"] == 0
    assert shown["findings"] == []


def test_a_server_in_memory_is_well_and_says_that_it_keeps_nothing() -> None:
    with InProcessServer.start() as server:
        ran = in_process("status", server.url)
    assert ran.code == 0, ran.err
    assert "no: it keeps nothing" in ran.out
    assert "disk free" not in ran.out


def test_a_backup_that_is_missing_or_old_is_a_finding(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        none = in_process("status", server.url, "--backup-within", "26h")
        assert in_process("backup", data, tmp_path / "backup", "--quiet").code == 0
        os.utime(data / "BACKUP", (1_000_000_000, 1_000_000_000))
        old = in_process("status", server.url, "--backup-within", "26h")
        unasked = in_process("status", server.url)
    assert (none.code, old.code, unasked.code) == (Exit.REFUSED, Exit.REFUSED, 0)
    assert "there is no complete backup" in none.out
    assert "hours old" in old.out


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ("strongroom_damaged_reads_total 2.0", "damaged data"),
        ("strongroom_ballast_bytes 1\nstrongroom_ballast_whole_bytes 2", "ballast is in use"),
    ],
)
def test_what_needs_an_operator_is_a_finding(metrics: str, words: str) -> None:
    with _other(_answered(metrics + "\n")) as url:
        ran = in_process("status", url)
    assert ran.code == Exit.REFUSED
    assert words in ran.out


def test_numbers_that_are_in_order_are_no_finding() -> None:
    text = (
        "strongroom_damaged_reads_total 0\nstrongroom_ballast_bytes 2\n"
        "strongroom_ballast_whole_bytes 2\n"
    )
    assert list(findings(_READY, measured_of(text, 10.0), None, 10.0)) == []


def test_a_server_that_drains_or_is_full_or_damaged_is_a_finding() -> None:
    for health in (
        b'{"status": "draining", "durable": true, "version": "1"}',
        b'{"status": "ready", "durable": true, "version": "1", "disk": "full"}',
        b'{"status": "ready", "durable": true, "version": "1", "damage": "found"}',
    ):
        with _other(_answered("", health)) as url:
            assert in_process("status", url).code == Exit.REFUSED


def test_metrics_that_are_not_shown_are_said_and_no_finding() -> None:
    with _other({"/.strongroom/health": (200, _HEALTH)}) as url:
        ran = in_process("status", url)
        judged = in_process("status", url, "--backup-within", "1h")
    assert ran.code == 0
    assert "--metrics-anywhere" in ran.out
    assert judged.code == Exit.REFUSED  # what was asked for cannot be told


def test_no_answer_and_another_program_end_with_69() -> None:
    ran = in_process("status", f"http://{HOST}:{free_port()}")
    assert (ran.code, ran.out) == (Exit.UNAVAILABLE, "")
    with _other({"/.strongroom/health": (200, b"<html>")}) as url:
        ran = in_process("status", url)
    assert ran.code == Exit.UNAVAILABLE
    assert "not that of a Strongroom server" in ran.err


def test_an_answer_that_trickles_does_not_hold_the_command() -> None:
    """A socket's own timeout would start anew with each byte."""
    stop = threading.Event()
    listener = socket.create_server((HOST, free_port()))

    def trickle() -> None:
        connection, _ = listener.accept()
        with connection:
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nX: y"[:1])
                except OSError:
                    return

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        ran = in_process("status", url, "--timeout", "300ms")
    finally:
        stop.set()
        thread.join()
        listener.close()
    assert ran.code == Exit.UNAVAILABLE
    assert "no answer within 0.3 s" in ran.err


def test_over_tls_the_certificate_has_to_be_trusted(tmp_path: Path) -> None:
    blob, queue, table, file = (free_port() for _ in range(4))
    settings = Settings(
        data=tmp_path / "data",
        blob_port=blob,
        queue_port=queue,
        table_port=table,
        file_port=file,
        tls=SelfSigned(),
    )
    with InProcessServer(settings):
        url = f"https://localhost:{blob}"
        trusted = in_process("status", url, "--ca-file", tmp_path / "data" / "tls-certificate.pem")
        untrusted = in_process("status", url)
    assert trusted.code == 0, trusted.err
    assert untrusted.code == Exit.UNAVAILABLE
    assert "--ca-file" in untrusted.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["ftp://h"],
        ["http://h/path"],
        ["http://user:secret@h"],
        ["http://h:99999"],
        ["nonsense"],
        ["https://h", "--ca-file", "missing.pem"],
        ["http://h", "--ca-file", "missing.pem"],
        ["http://h", "--timeout", "0"],
    ],
)
def test_what_cannot_be_asked_is_a_wrong_argument(arguments: list[str]) -> None:
    assert in_process("status", *arguments).code == Exit.USAGE
