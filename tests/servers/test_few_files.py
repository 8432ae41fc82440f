"""Few open files: too few are refused at the start, and a lack of them fills no log."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.servers.connections.accepting import Acceptor
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.connections.open_files import FILES_MIN
from strongroom.servers.connections.settings import AcceptSettings
from strongroom.servers.rationed_log import KEYS_MAX, Ration, more
from strongroom.testing.ports import port_flags


@pytest.mark.parametrize(("files", "starts"), [(FILES_MIN - 1, False), (FILES_MIN, True)])
def test_a_server_needs_some_open_files(files: int, starts: bool, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "strongroom", "serve", *port_flags(), "--data"]
    process = subprocess.Popen(
        [*command, str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
    )
    assert process.stdout is not None
    try:
        is_ready = "is ready" in process.stdout.readline()
    finally:
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert is_ready == starts, err
    assert process.returncode == (0 if starts else Exit.SETTINGS), err
    assert starts or f"may open {files} files, and a server needs {FILES_MIN}" in err


def test_a_lack_of_files_is_logged_once_in_its_interval(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)

    class Loop(asyncio.SelectorEventLoop):
        now = 100.0

        def time(self) -> float:
            return self.now

    loop = Loop()
    asyncio.set_event_loop(loop)
    acceptor = Acceptor(
        AcceptSettings(), None, lambda loop: asyncio.Protocol(), ConnectionBudget(16), list
    )
    what = "a connection could not be accepted"
    for _ in range(50):
        acceptor._report(loop, what, OSError(errno.EMFILE, "Too many open files"))
        loop.now += 0.5
    acceptor._report(loop, what, ConnectionError("gone"))
    loop.now += 10
    acceptor._report(loop, what, OSError(errno.EMFILE, "Too many open files"))
    asyncio.set_event_loop(None)
    loop.close()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert "Too many open files" in lines[0]
    assert lines[1].endswith("gone")
    assert lines[2].endswith("(49 more since the last such line)")


def test_lines_under_ever_new_keys_take_little_memory() -> None:
    ration = Ration(30.0)
    assert all(ration.left_out(number, 0.0) == 0 for number in range(KEYS_MAX + 1))
    assert ration.left_out(0, 1.0) == 0, "the oldest key was forgotten"
    assert ration.left_out(KEYS_MAX, 1.0) is None
    assert ration.left_out(KEYS_MAX, 31.0) == 1
    assert more(0) == ""
