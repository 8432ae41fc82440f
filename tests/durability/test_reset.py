"""A reset that is killed leaves each place whole or gone, and another one completes it."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from strongroom.testing import InProcessServer, Server
from strongroom.testing.server import ServerFailed
from tests.cli.command import in_process
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client
from tests.durability.rounds import CREDENTIAL
from tests.effort import scaled

CONTAINERS = 500
_BODY = b"x" * 5000
_LONGEST_S = 0.15


def fill(data: Path) -> None:
    """Make a data directory that may be reset, with many containers that have one blob each."""
    with InProcessServer.start(data=data, test_clock=False, allow_reset=True) as server:
        threads = [threading.Thread(target=_fill, args=(server.port, part)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _fill(port: int, part: int) -> None:
    client = Client(port, CREDENTIAL)
    for number in range(part, CONTAINERS, 4):
        expect(client.put(f"/box-{number}?restype=container"), 201)
        expect(client.put(f"/box-{number}/b", PUT_BLOB, _BODY), 201)
    client.close()


def left(client: Client) -> Iterator[int]:
    """Yield the containers that are there. Each must have its blob, and no other one has."""
    for number in range(CONTAINERS):
        there = client.head(f"/box-{number}?restype=container").status
        found = client.get(f"/box-{number}/b")
        assert (there, found.status) in ((200, 200), (404, 404)), number
        if there == 200:
            assert found.body == _BODY
            yield number


def killed_during_reset(server: Server, delay_s: float) -> bool:
    """Kill the server while it is reset. Return whether the reset was answered before."""
    answered = threading.Event()

    def reset() -> None:
        try:
            server.reset()
        except (OSError, ServerFailed):
            return
        answered.set()

    asking = threading.Thread(target=reset)
    asking.start()
    time.sleep(delay_s)
    was_answered = answered.is_set()
    server.kill()
    asking.join()
    return was_answered


def test_a_killed_reset_leaves_every_place_whole_or_gone(tmp_path: Path) -> None:
    rng, halves = random.Random(1), 0
    fill(tmp_path / "filled")
    for kill in range(scaled(30)):
        data = tmp_path / f"data-{kill}"
        shutil.copytree(tmp_path / "filled", data)
        with Server.start(data=data, test_clock=False, flags=("--allow-reset",)) as server:
            was_answered = killed_during_reset(server, rng.uniform(0.001, _LONGEST_S))
            server.restart()
            client = Client(server.port, CREDENTIAL)
            found = len(list(left(client)))
            assert not (was_answered and found)
            halves += 0 < found < CONTAINERS
            server.reset()
            assert list(left(client)) == []
            client.close()
        checked = in_process("doctor", data, "--json")
        assert checked.code == 0, checked.out
        assert json.loads(checked.out)["whole"]
    print(f"{halves} of {scaled(30)} kills came between two places")
