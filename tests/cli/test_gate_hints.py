"""`strongroom gate NAME wait | open --hints URL`: a failing bus does not make the command fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.coordination import connect
from strongroom.testing.ports import HOST, free_port
from tests.cli.command import in_process, strongroom


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file://{tmp_path}/locks?sync=0"


def test_a_bus_that_is_away_is_reported_and_waiters_poll(store: str) -> None:
    bus = f"nats://app:s3cret@{HOST}:{free_port()}"
    command = [sys.executable, "-m", "strongroom", "gate", "g", "wait", "--timeout", "60"]
    with subprocess.Popen(
        [*command, "--hints", bus, "--store", store],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiter:
        assert waiter.stdout is not None and waiter.stderr is not None
        said = waiter.stderr.readline()
        with connect(store) as client:
            client.gate("g").open(7)
        assert waiter.stdout.read() == "7\n"
        rest = waiter.stderr.read()
    assert waiter.returncode == Exit.DONE
    assert "does not answer" in said and "poll meanwhile" in said
    assert "s3cret" not in said and rest == ""


def test_opening_tells_of_the_bus_and_opens(store: str) -> None:
    bus = f"amqp://app:s3cret@{HOST}:{free_port()}"
    ran = strongroom("gate", "g", "open", STRONGROOM_STORE=store, STRONGROOM_HINTS=bus)
    assert ran.code == Exit.DONE and "open, generation 1" in ran.out
    assert "when they look next" in ran.err and "s3cret" not in ran.err
    late = strongroom("gate", "g", "wait", "--hints", bus, "--store", store)
    assert (late.code, late.err) == (Exit.DONE, "")


@pytest.mark.parametrize("act", ["wait", "open"])
def test_a_bus_that_nobody_knows(store: str, act: str) -> None:
    ran = in_process("gate", "g", act, "--hints", "pigeon://loft", "--store", store)
    assert ran.code == Exit.SETTINGS
    assert "no message bus is known for 'pigeon'" in ran.err
