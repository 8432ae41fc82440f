"""The server that foreign clients talk to: `strongroom serve`, with its data on disk.

It keeps a log line for every request: when a test is over, none of them may tell of a failure of
the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strongroom.testing.server import Server

_FAILED = re.compile(r"^.*\bstatus=5\d\d\b(?<!status=501).*$", re.MULTILINE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of its own process on a new data directory, with the clock of the machine."""
    with serving(tmp_path / "data") as running:
        yield running


@contextmanager
def serving(data: Path) -> Iterator[Server]:
    """The same, for fixtures that keep it for longer; judges its log in the end."""
    flags = ("--log-level", "debug")
    with Server.start(data=data, test_clock=False, flags=flags) as running:
        yield running
        running.stop()
        output = running.output()
        assert running.exit_code == 0, output[-4000:]
        assert "status=2" in output, "the log tells of no request"
        assert not _FAILED.findall(output)
        assert "Traceback" not in output, output[-4000:]
