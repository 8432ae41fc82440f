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

import pytest

from strongroom.cli.exits import Exit
from strongroom.cli.serving.ready_file import ReadyFile
from strongroom.config import ConfigError
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
    path.write_text('{"pid": 1, "version": "0.0.1"}')
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
    ours.publish(b'{"pid": "ours"}')
    assert path.read_bytes() == b'{"pid": "ours"}'
    theirs = ReadyFile(path)
    theirs.publish(b'{"pid": "theirs"}')
    ours.withdraw()
    assert path.read_bytes() == b'{"pid": "theirs"}'
    theirs.withdraw()
    theirs.withdraw()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["ready.json", "ready.json.new"])
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_no_server_has_left_there_stays(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("[1, 2]")
    path = tmp_path / name
    if kind == "file":
        path.write_text("[1, 2]")
    elif kind == "link":
        path.symlink_to(tmp_path / "kept")
    else:
        path.mkdir()
    with pytest.raises(ConfigError, match="is left as it is"):
        ReadyFile(tmp_path / "ready.json")
    assert path.is_dir() or path.read_text() == "[1, 2]"
    assert path.is_symlink() is (kind == "link")


@pytest.mark.parametrize("content", [b"", b'{"p'])
def test_a_file_that_a_server_began_is_removed(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ready.json.new").write_bytes(content)
    ReadyFile(tmp_path / "ready.json").withdraw()
    assert os.listdir(tmp_path) == []
