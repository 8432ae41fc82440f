"""`strongroom sem`, `rwlock`, `barrier`: at most the permitted holders, each ended in time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.coordination import connect
from strongroom.testing import Server
from tests.cli.beats import await_beats, beating, boot_s, last_beat_s, started, stop
from tests.cli.command import TIMEOUT_S, in_process, strongroom

HELD = [
    pytest.param(["sem", "a", "--permits", "1"], id="sem"),
    pytest.param(["rwlock", "a", "write"], id="write"),
    pytest.param(["rwlock", "a", "read"], id="read"),
]
KINDS = {"sem": "semaphore", "rwlock": "rwlock"}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file://{tmp_path}/locks?sync=0"


@pytest.mark.parametrize("held", HELD)
def test_the_command_finds_its_environment_and_gives_its_exit_code(
    held: list[str], store: str
) -> None:
    script = "echo $STRONGROOM_LOCK; test -n $STRONGROOM_DEADLINE_MONOTONIC && exit 7"
    ran = strongroom(*held, "--store", store, "--", "sh", "-c", script)
    assert (ran.code, ran.out.strip()) == (7, "a")


def test_fences_rise_with_permits_and_writers(store: str) -> None:
    fence = ["--store", store, "--", "sh", "-c", "echo $STRONGROOM_FENCE"]
    assert [strongroom("sem", "a", "--permits", 2, *fence).out for _ in "12"] == ["1\n", "2\n"]
    sides = ["write", "read", "write", "read"]
    found = [strongroom("rwlock", "a", side, *fence).out.strip() for side in sides]
    assert found == ["1", "1", "2", "2"]


def test_a_store_in_memory_serves_one_command() -> None:
    script = "echo $STRONGROOM_FENCE"
    ran = strongroom("sem", "a", "--permits", 1, "--store", "memory://", "--", "sh", "-c", script)
    assert (ran.code, ran.out) == (0, "1\n")


def test_as_many_run_at_once_as_there_are_permits(store: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    # The first one stays until it has company, however slowly that starts.
    company = f"while [ $(grep -c in {log}) -lt 2 ]; do sleep 0.02; done"
    script = f"echo in >> {log}; {company}; sleep 0.2; echo out >> {log}"
    running = [
        started(store, "sem", "gpu", "--permits", "2", "--", "sh", "-c", script) for _ in range(5)
    ]
    for process in running:
        process.communicate(timeout=TIMEOUT_S)
    assert [process.returncode for process in running] == [0] * 5
    inside = most = 0
    for line in log.read_text().split():
        inside += 1 if line == "in" else -1
        most = max(most, inside)
    assert most == 2


def test_no_permit_is_to_be_had(store: str) -> None:
    with connect(store, label="somebody") as client, client.semaphore("a", 1):
        for flags in (["--try"], ["--wait", "0.3"]):
            ran = in_process("sem", "a", "--permits", 1, "--store", store, *flags, "--", "true")
            assert ran.code == Exit.NOT_ACQUIRED and "somebody" in ran.err
        ran = in_process("sem", "a", "--permits", 2, "--store", store, "--", "true")
        assert ran.code == Exit.SETTINGS and "'a'" in ran.err
    wrong = [["--permits", "0"], ["--permits", "1", "--try", "--wait", "1"], []]
    for flags in wrong:
        assert in_process("sem", "a", *flags, "--store", store, "--", "true").code == Exit.USAGE


def test_readers_share_and_writers_do_not(store: str) -> None:
    def tried(side: str) -> int:
        return strongroom("rwlock", "a", side, "--try", "--store", store, "--", "true").code

    with connect(store) as client:
        with client.rwlock("a").read():
            assert [tried("read"), tried("write")] == [0, Exit.NOT_ACQUIRED]
        with client.rwlock("a").write():
            assert tried("read") == Exit.NOT_ACQUIRED
    assert in_process("rwlock", "a", "wriet", "--store", store, "--", "true").code == Exit.USAGE


@pytest.mark.parametrize("held", HELD)
def test_when_its_hold_is_broken_the_command_is_dead(
    held: list[str], store: str, tmp_path: Path
) -> None:
    command, file = beating(tmp_path)
    process = started(store, *held, "--ttl", "20", "--", *command)
    await_beats(file)
    kind = KINDS[held[0]]
    assert in_process("locks", "break", "a", "--kind", kind, "--store", store).code == 0
    _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == Exit.LOST and b"'a' is lost" in said
    last_beat_s(file)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("held", HELD[:2])
def test_when_the_holder_is_gone_the_command_is_dead_in_time(
    held: list[str], how: signal.Signals, store: str, tmp_path: Path
) -> None:
    command, file = beating(tmp_path)
    process = started(store, *held, "--ttl", "5", "--", *command)
    await_beats(file)
    if how == signal.SIGKILL:
        process.kill()
    else:
        stop(process, store)
    with connect(store) as client:
        other = client.semaphore("a", 1, 2) if held[0] == "sem" else client.rwlock("a", 2).write()
        with other:
            taken_s = boot_s()
    assert last_beat_s(file) < taken_s
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == (-signal.SIGKILL if how == signal.SIGKILL else Exit.LOST)


def test_when_the_store_is_gone_the_command_is_dead_in_time(tmp_path: Path) -> None:
    command, file = beating(tmp_path)
    with Server.start(data=tmp_path / "data", test_clock=False) as server:
        store = f"azure://devstoreaccount1/locks?endpoint={server.url}/devstoreaccount1"
        process = started(store, "sem", "a", "--permits", "3", "--ttl", "5", "--", *command)
        await_beats(file)
        gone_s = boot_s()
        server.kill()
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == Exit.LOST
        assert last_beat_s(file) < gone_s + 5


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_who_is_ended_while_it_waits_leaves_nothing_behind(how: signal.Signals, store: str) -> None:
    with connect(store) as client, client.rwlock("a").read():
        waiting = started(store, "rwlock", "a", "write", "--verbose", "--", "true")
        assert waiting.stderr is not None
        assert b"place 1 of 1 in the queue" in waiting.stderr.readline()
        waiting.send_signal(how)
        waiting.communicate(timeout=TIMEOUT_S)
        assert waiting.returncode == 128 + how
        seen = client.rwlock("a").show()
        assert seen is not None and len(seen.holders) == 1 and not seen.waiting


def test_parties_meet_at_a_barrier(store: str) -> None:
    command = [sys.executable, "-m", "strongroom", "barrier", "b", "--parties", "3", "--json"]
    coming = [
        subprocess.Popen([*command, "--store", store], stdout=subprocess.PIPE) for _ in range(3)
    ]
    found = [json.loads(process.communicate(timeout=TIMEOUT_S)[0]) for process in coming]
    assert sorted(one["place"] for one in found) == [0, 1, 2]
    assert {one["parties"] for one in found} == {3}


def test_a_barrier_that_does_not_fill(store: str) -> None:
    ran = in_process("barrier", "b", "--parties", 2, "--wait", 0.3, "--store", store)
    assert ran.code == Exit.NOT_ACQUIRED
    assert in_process("barrier", "b", "--parties", 0, "--store", store).code == Exit.USAGE
    waiting = started(store, "barrier", "b", "--parties", "2", "--verbose")
    assert waiting.stderr is not None
    assert b"1 of 2 are there" in waiting.stderr.readline()
    ran = in_process("barrier", "b", "--parties", 3, "--store", store)
    assert ran.code == Exit.SETTINGS and "2 parties" in ran.err
    waiting.terminate()
    waiting.communicate(timeout=TIMEOUT_S)
    with connect(store) as client:
        seen = client.barrier("b", 2).show()
    assert seen is not None and not seen.arrived


def test_a_party_that_was_away_too_long_learns_that_the_others_went_on(store: str) -> None:
    away = started(store, "barrier", "b", "--parties", "2", "--ttl", "1", "--verbose")
    assert away.stderr is not None
    assert b"1 of 2 are there" in away.stderr.readline()
    stop(away, store)
    others = [started(store, "barrier", "b", "--parties", "2") for _ in range(2)]
    for other in others:
        other.communicate(timeout=TIMEOUT_S)
    assert [other.returncode for other in others] == [0, 0]
    away.send_signal(signal.SIGCONT)
    _, said = away.communicate(timeout=TIMEOUT_S)
    assert away.returncode == Exit.LOST and b"went on" in said
