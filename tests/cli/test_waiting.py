"""The output while a command waits: the holder, since when, and the position; nothing in a log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strongroom.coordination import connect
from strongroom.testing import InProcessServer
from tests.cli.beats import started
from tests.cli.command import TIMEOUT_S
from tests.cli.terminal import AtTerminal

SINCE = r"since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file://{tmp_path}/locks?sync=0"


def test_at_a_terminal_the_place_in_a_fair_queue_is_seen(store: str) -> None:
    with connect(store, label="ann") as client, client.lock("a", fair=True):
        flags = ("--fair", "--wait", "60", "--store", store, "--", "true")
        first = AtTerminal("lock", "a", *flags)
        first.await_text("place 1 of 1 in the queue")
        second = AtTerminal("lock", "a", *flags)
        second.await_text("place 2 of 2 in the queue")
        line = rf"strongroom: waiting for 'a': held by ann {SINCE}, fence 1; place 1 of 1 in the"
        assert re.search(line, first.seen)
    assert [first.end(), second.end()] == [0, 0]


def test_at_a_terminal_the_leader_is_seen(store: str) -> None:
    with connect(store, label="ann") as client, client.election("a", fair=True).lead():
        other = AtTerminal("elect", "a", "--fair", "--wait", "60", "--store", store, "--", "true")
        other.await_text("place 1 of 1 in the queue")
        assert re.search(rf"held by ann {SINCE}, fence 1", other.seen)
    assert other.end() == 0


def test_at_a_terminal_the_holders_of_permits_are_seen(store: str) -> None:
    with connect(store, label="ann") as client:
        held = [client.semaphore("a", 5).acquire() for _ in range(5)]
        other = AtTerminal("sem", "a", "--permits", "5", "--store", store, "--", "true")
        other.await_text("fence 5")
        assert re.search(rf"held by (ann {SINCE}, ){{3}}2 more, fence 5", other.seen)
        held[0].release()
        assert other.end() == 0


@pytest.mark.parametrize("flag", ["--quiet", None])
def test_a_log_file_stays_clean(flag: str | None, store: str) -> None:
    with connect(store, label="ann") as client, client.lock("a"):
        waiting = started(
            store, "lock", "a", "--wait", "2", *([flag] if flag else []), "--", "true"
        )
        _, said = waiting.communicate(timeout=TIMEOUT_S)
    assert said.decode().count("\n") == 1 and "not obtained" in said.decode()


def test_quiet_is_quiet_at_a_terminal(store: str) -> None:
    with connect(store, label="ann") as client, client.lock("a"):
        waiting = AtTerminal("lock", "a", "-q", "--wait", "2", "--store", store, "--", "true")
        waiting.await_text("not obtained")
        assert "waiting for" not in waiting.seen
    assert waiting.end() == 75


def test_a_store_that_goes_away_is_told() -> None:
    with InProcessServer.start() as server:
        away = f"{server.url}/devstoreaccount1/locks"
        with connect(away, label="ann") as client:
            client.lock("a", ttl=60).acquire()
            waiting = AtTerminal("lock", "a", "--wait", "8", "--store", away, "--", "true")
            waiting.await_text("waiting for 'a': held by ann")
    waiting.await_text("strongroom: the store does not answer; retrying: ")
    assert waiting.end() in (69, 75)
    assert waiting.seen.count("does not answer; retrying") == 1


def test_at_a_terminal_the_gate_is_seen(store: str) -> None:
    with connect(store, label="ann") as client:
        client.gate("g").open()
        client.gate("g").rearm()
        waiting = AtTerminal("gate", "g", "wait", "--timeout", "60", "--store", store)
        waiting.await_text("waiting for gate 'g': closed, generation 2, by ann since")
        client.gate("g").open()
    assert waiting.end() == 0
