"""`strongroom serve --ready-file FILE`: the file is there while the server serves."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from strongroom.cli.exits import Exit
from strongroom.cli.serving.ready_file import ReadyFile
from strongroom.testing.ports import HOST, free_port
from tests.cli.command import TIMEOUT_S, in_process, strongroom


@contextmanager
def served(path: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """Serve with a ready file until the end of the block."""
    command = [sys.executable, "-m", "strongroom", "serve", "--in-memory", "--port-base", "0"]
    process = subprocess.Popen(
        [*command, "--ready-file", str(path), *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(TIMEOUT_S * 100):
            if path.exists() and f'"pid": {process.pid},' in path.read_text():
                break
            assert process.poll() is None, "it ended"
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


def test_the_file_has_the_endpoints_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("of an earlier server")
    with served(path, "--smb", "--one-port", "0") as process:
        facts = json.loads(path.read_bytes())
        assert facts["pid"] == process.pid
        assert set(facts["endpoints"]) == {"blob", "queue", "table", "file", "all", "smb"}
        assert facts["endpoints"]["smb"] == f"smb://{HOST}:{facts['ports']['smb']}"
        for service in ("blob", "queue", "table", "file", "all"):
            assert facts["endpoints"][service] == f"http://{HOST}:{facts['ports'][service]}"
        parts = urlsplit(facts["health"])
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
        connection.request("GET", parts.path)
        assert connection.getresponse().status == 200
        connection.close()
        assert stat.S_IMODE(path.stat().st_mode) & ~0o644 == 0
        assert os.listdir(tmp_path) == [path.name]
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == Exit.DONE
        assert os.listdir(tmp_path) == []


def test_a_file_of_a_killed_server_is_removed_before_the_next_one_is_ready(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    with served(path) as process:
        process.kill()
        process.wait(TIMEOUT_S)
        assert path.exists()
    with socket.create_server((HOST, free_port())) as taken:
        port = str(taken.getsockname()[1])
        ran = strongroom("serve", "--in-memory", "--blob-port", port, "--ready-file", path)
    assert ran.code == Exit.LISTEN
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_written_is_seen_before_the_start(tmp_path: Path) -> None:
    path = tmp_path / "no" / "ready.json"
    data = tmp_path / "data"
    ran = in_process("serve", "--data", data, "--ready-file", path)
    assert ran.code == Exit.SETTINGS
    assert f"--ready-file {path} cannot be written: No such file" in ran.err
    assert not data.exists()


def test_a_file_of_another_server_stays(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    ours = ReadyFile(path)
    ours.publish(b"ours")
    assert path.read_bytes() == b"ours"
    theirs = ReadyFile(path)
    theirs.publish(b"theirs")
    ours.withdraw()
    assert path.read_bytes() == b"theirs"
    theirs.withdraw()
    theirs.withdraw()
    assert os.listdir(tmp_path) == []
