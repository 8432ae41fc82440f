"""Servers over a PostgreSQL that are killed or paused: another one takes over, and nothing that was
answered is lost."""

from __future__ import annotations

import itertools
import json
import signal
import threading
import time
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError
from azure.storage.blob import BlobServiceClient, ContainerClient

from strongroom.cli.exits import Exit
from strongroom.testing import Server
from tests.cli.command import TIMEOUT_S
from tests.cli.test_serve_store import server_over, waiting_for
from tests.over_postgres import new_store

_WRITES_S = 2.0


class Writer:
    """Writes numbered blobs, one after the other, until a write fails. `answered` are the names of
    those that were answered."""

    def __init__(self, container: ContainerClient) -> None:
        self.answered: list[str] = []
        self._container = container
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in itertools.count():
            name = f"page{number}"
            try:
                self._container.upload_blob(name, name.encode())
            except AzureError:
                return
            self.answered.append(name)

    def end(self) -> None:
        """Wait for the write that fails."""
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()


def wiki_at(connection_string: str) -> ContainerClient:
    client = BlobServiceClient.from_connection_string(
        connection_string, retry_total=0, connection_timeout=5, read_timeout=5
    )
    return client.get_container_client("wiki")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "paused"])
def test_another_server_takes_over_with_all_that_was_answered(
    tmp_path: Path, how: signal.Signals
) -> None:
    store = new_store()
    ready = tmp_path / "ready.json"
    with server_over(store, tmp_path / "first") as serving:
        wiki_at(serving.connection_string).create_container()
        flags = ("--ready-file", str(ready))
        with waiting_for(store, tmp_path / "second", *flags) as waiting:
            writer = Writer(wiki_at(serving.connection_string))
            time.sleep(_WRITES_S)
            process = serving._process
            process.send_signal(how)
            began_s = time.monotonic()
            assert waiting.stdout is not None
            while "is ready" not in waiting.stdout.readline():
                assert waiting.poll() is None
            print(f"{how.name}: taken over after {time.monotonic() - began_s:.1f} s")
            wiki = wiki_at(connection_string_of(serving, ready))
            writer.end()
            if how is signal.SIGSTOP:
                wakes_up_too_late(serving)
            assert len(writer.answered) > 10
            for name in writer.answered:
                assert wiki.download_blob(name).readall() == name.encode()
            wiki.upload_blob("later", b"later")


def wakes_up_too_late(serving: Server) -> None:
    """Let a paused server go on: it ends, and says why."""
    serving._process.send_signal(signal.SIGCONT)
    assert serving._process.wait(TIMEOUT_S) == Exit.STORAGE
    assert "Another gateway may serve the store now" in serving.output()


def connection_string_of(serving: Server, ready: Path) -> str:
    """Return the connection string of the server that has taken over."""
    endpoints = json.loads(ready.read_text())["endpoints"]
    return serving.connection_string.replace(serving.url, endpoints["blob"])
