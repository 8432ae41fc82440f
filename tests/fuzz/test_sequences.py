"""Random sequences of operations: no failure, and reads return the acknowledged state."""

from __future__ import annotations

from pathlib import Path

from hypothesis.stateful import run_state_machine_as_test

from strongroom.testing.server import InProcessServer
from tests.effort import examples
from tests.fuzz.channel import Channel
from tests.fuzz.sequences import Sequences


def _run(server: InProcessServer, channel: Channel, count: int) -> None:
    class Here(Sequences):
        pass

    Here.server, Here.channel = server, channel
    run_state_machine_as_test(Here, settings=examples(count))
    channel.is_well()


def test_in_memory(server: InProcessServer, channel: Channel) -> None:
    _run(server, channel, 150)


def test_on_disk(tmp_path: Path, channel: Channel) -> None:
    with InProcessServer.start(data=tmp_path / "data", strict=True) as server:
        _run(server, Channel(server.port, channel.credential), 50)
