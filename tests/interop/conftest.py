"""The server for foreign clients: `strongroom serve`, with its data on disk.

It writes a log line for every request. At the end of a test, none of them may report a failure of
the server. With STRONGROOM_TEST_STORE=balanced, two gateways behind a balancer are that server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strongroom.testing.server import Server
from tests.balanced import BalancedServer
from tests.over_postgres import is_balanced

_FAILED = re.compile(r"^.*\bstatus=5\d\d\b(?<!status=501).*$", re.MULTILINE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Provide a server process on a new data directory, with the machine's clock."""
    with serving(tmp_path / "data") as running:
        yield running


@contextmanager
def serving(data: Path) -> Iterator[Server]:
    """Provide such a server for fixtures that keep it longer, and check its log at the end."""
    flags = ("--log-level", "debug")
    kind = BalancedServer if is_balanced() else Server
    with kind.start(data=data, test_clock=False, flags=flags) as running:
        yield running
        running.stop()
        assert not isinstance(running, BalancedServer) or running.shares_its_requests()
        output = running.output()
        assert running.exit_code == 0, output[-4000:]
        assert "status=2" in output, "the log tells of no request"
        assert not _FAILED.findall(output)
        assert "Traceback" not in output, output[-4000:]
