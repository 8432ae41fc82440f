"""What a service manager hears of `strongroom serve`, by the protocol of sd_notify."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.cli.serving import service_manager
from strongroom.cli.serving.service_manager import ServiceManager
from tests.cli.command import TIMEOUT_S


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """Yield the socket of a service manager, and its address as NOTIFY_SOCKET names it."""
    shown = str(tmp_path / "notify") if request.param == "path" else f"@strongroom-{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hearing:
        hearing.bind(shown.replace("@", "\0"))
        hearing.settimeout(TIMEOUT_S)
        yield hearing, shown


def heard_until(hearing: socket.socket, wanted: str) -> list[str]:
    """Return the messages up to the wanted one."""
    heard: list[str] = []
    while wanted not in heard:
        heard.append(hearing.recv(4096).decode())
    return heard


def test_a_manager_hears_of_the_start_of_life_and_of_the_end(
    manager: tuple[socket.socket, str],
) -> None:
    hearing, address = manager
    command = [sys.executable, "-m", "strongroom", "serve", "--in-memory", "--port-base", "0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"},
    )
    try:
        heard = heard_until(hearing, "READY=1")
        assert heard == ["EXTEND_TIMEOUT_USEC=60000000", "READY=1"]
        for _ in range(3):
            assert hearing.recv(4096) == b"WATCHDOG=1"
        process.send_signal(signal.SIGTERM)
        heard = heard_until(hearing, "STOPPING=1")
        assert set(heard) <= {"WATCHDOG=1", "STOPPING=1"}
        assert process.wait(TIMEOUT_S) == Exit.DONE
    finally:
        process.kill()
        process.wait(TIMEOUT_S)


def test_a_long_start_that_keeps_the_loop_still_asks_for_time(
    manager: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hearing, address = manager
    monkeypatch.setattr(service_manager, "START_BEAT_S", 0.01)
    told = ServiceManager(address, watchdog_s=None)
    told.begin()
    for _ in range(3):  # no event loop runs
        assert hearing.recv(4096) == b"EXTEND_TIMEOUT_USEC=60000000"
    told.end()


def test_a_loop_that_hangs_gives_no_sign_of_life(manager: tuple[socket.socket, str]) -> None:
    hearing, address = manager

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        told = ServiceManager(address, watchdog_s=0.02)
        told.ready(loop)
        assert heard_until(hearing, "WATCHDOG=1") == ["READY=1", "WATCHDOG=1"]
        time.sleep(0.2)  # noqa: ASYNC251 - the loop hangs
        hearing.setblocking(False)
        with pytest.raises(BlockingIOError):
            hearing.recv(4096)
        await asyncio.sleep(0.05)
        assert hearing.recv(4096) == b"WATCHDOG=1"
        told.end()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("variables", "address", "watchdog_s"),
    [
        ({}, None, None),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "3000000"}, "/run/n", 3.0),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "7"}, "@n", None),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "42"}, "@n", 2.0),
        ({"NOTIFY_SOCKET": "vsock:2:1", "WATCHDOG_USEC": "x"}, None, None),
        ({"NOTIFY_SOCKET": "", "WATCHDOG_USEC": "0"}, None, None),
    ],
)
def test_the_environment_says_who_listens(
    variables: dict[str, str], address: str | None, watchdog_s: float | None
) -> None:
    found = ServiceManager.of(variables, 42)
    assert (found.address, found.watchdog_s) == (address, watchdog_s)


def test_a_manager_that_is_gone_is_no_reason_to_fail(tmp_path: Path) -> None:
    ServiceManager(str(tmp_path / "none"), None).tell("READY=1")
    ServiceManager(None, None).tell("READY=1")
