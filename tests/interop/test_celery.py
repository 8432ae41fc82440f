"""Celery over kombu's Azure queue transport: a worker process runs the tasks of the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from azure.storage.queue import QueueServiceClient
from kombu.connection import Connection

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import Server

TASKS = 25
_TIMEOUT_S = 90.0
_PAUSE_S = 0.1
_ROOT = Path(__file__).parents[2]


def broker_url(server: Server) -> str:
    return (
        f"azurestoragequeues://{DEVELOPMENT_ACCOUNT_KEY}"
        f"@{server.queue_url}/{DEVELOPMENT_ACCOUNT_NAME}"
    )


@contextmanager
def worker(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that does one task at a time; ended by its process id."""
    command = [sys.executable, "-m", "celery", "-A", "tests.interop.celery_tasks", "worker"]
    command += ["--pool=solo", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    process = subprocess.Popen(
        command,
        cwd=_ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_a_worker_does_every_task_once(server: Server, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    environment = {"BROKER": broker_url(server), "NOTES": str(notes)}
    with mock.patch.dict(os.environ, environment):
        from tests.interop.celery_tasks import note

        for number in range(TASKS):
            note.delay(f"task {number} grün")
    with worker(environment) as process:
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline and process.poll() is None:
            if notes.exists() and len(notes.read_text(encoding="utf-8").splitlines()) >= TASKS:
                break
            time.sleep(_PAUSE_S)
    found = notes.read_text(encoding="utf-8").splitlines()
    assert sorted(found) == sorted(f"task {number} grün" for number in range(TASKS))
    service = QueueServiceClient.from_connection_string(server.connection_string)
    queue = service.get_queue_client("celery")
    assert queue.get_queue_properties().approximate_message_count == 0


def test_kombu_puts_counts_gets_and_purges(server: Server) -> None:
    # Has no types.
    with Connection(broker_url(server)) as connection:  # type: ignore[no-untyped-call]
        queue = connection.SimpleQueue("simple_queue")
        for number in range(5):
            queue.put({"number": number})
        assert queue.qsize() == 5
        message = queue.get(timeout=10)
        message.ack()
        assert message.payload == {"number": 0}
        queue.clear()
        assert queue.qsize() == 0
        queue.close()
