"""`strongroom members`: the list of members, its changes, and joining."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.coordination import connect
from tests.cli.beats import await_beats, await_file, beating, boot_s, last_beat_s, started, stop
from tests.cli.command import TIMEOUT_S, Ran, in_process, strongroom


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file://{tmp_path}/groups?sync=0"


def run(store: str, *arguments: object) -> Ran:
    return in_process("members", "workers", *arguments, STRONGROOM_STORE=store)


def joined(store: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "strongroom", "members", "workers", "join"]
    return subprocess.Popen(
        [*command, "--store", store, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def test_nobody_is_there(store: str) -> None:
    assert run(store, "list").out == "nobody is in 'workers'\n"
    assert json.loads(run(store, "list", "--sure", "--json").out) == []


def test_a_member_is_seen_while_its_command_runs(store: str, tmp_path: Path) -> None:
    end, ready = tmp_path / "end", tmp_path / "ready"
    script = f"touch {ready}; while [ ! -e {end} ]; do sleep 0.05; done; exit 7"
    member = joined(store, "--ttl", "5", "--data", '{"zone": "b"}', "--", "sh", "-c", script)
    await_file(ready)
    for flags in ([], ["--sure"]):
        (found,) = json.loads(run(store, "list", "--json", *flags).out)
        assert (found["data"], found["ttl_s"]) == ({"zone": "b"}, 5.0)
    assert '{"zone": "b"}' in run(store, "list").out
    end.touch()
    member.communicate(timeout=TIMEOUT_S)
    assert member.returncode == 7
    assert "nobody" in run(store, "list").out


def test_the_command_finds_group_and_membership_and_no_fence(store: str) -> None:
    script = "echo $STRONGROOM_GROUP $STRONGROOM_MEMBER ${STRONGROOM_FENCE:-none}"
    join = ("members", "workers", "join", "--", "sh", "-c", script)
    ran = strongroom(*join, STRONGROOM_STORE=store)
    group, nonce, fence = ran.out.split()
    assert (ran.code, group, fence) == (0, "workers", "none") and "-" in nonce


def test_comings_and_goings_are_seen(store: str) -> None:
    with connect(store, label="ann") as client:
        here = client.members("workers").join({"n": 1})
        command = [sys.executable, "-m", "strongroom", "members", "workers", "watch", "--json"]
        watch = subprocess.Popen(
            [*command, "--store", store, "--every", "0.05"], stdout=subprocess.PIPE
        )
        assert watch.stdout is not None
        seen = [json.loads(watch.stdout.readline())]
        other = client.members("workers").join({"n": 2})
        seen.append(json.loads(watch.stdout.readline()))
        here.leave()
        seen.append(json.loads(watch.stdout.readline()))
        watch.send_signal(signal.SIGINT)
        watch.communicate(timeout=TIMEOUT_S)
        other.leave()
    told = [(one["what"], one["member"]["data"]["n"]) for one in seen]
    assert told == [("joined", 1), ("joined", 2), ("left", 1)]
    assert watch.returncode == 130


def test_watching_ends_when_nothing_happens(store: str) -> None:
    with connect(store, label="ann") as client, client.members("workers").join():
        ran = run(store, "watch", "--timeout", 0.3, "--every", 0.05)
    assert ran.code == 0 and ran.out.startswith("joined  ann since ")


def test_the_dead_are_no_members_to_whoever_wants_to_be_sure(store: str) -> None:
    member = joined(store, "--ttl", "1", "--", "sleep", "60")
    while "since" not in run(store, "list").out:
        time.sleep(0.02)
    member.kill()
    member.communicate(timeout=TIMEOUT_S)
    assert "since" in run(store, "list").out
    assert "nobody" in run(store, "list", "--sure").out


def test_when_the_others_must_take_it_for_dead_the_command_is_dead(
    store: str, tmp_path: Path
) -> None:
    command, file = beating(tmp_path)
    member = joined(store, "--ttl", "5", "--", *command)
    await_beats(file)
    stop(member, store)
    with connect(store) as client:
        while client.members("workers").list():
            time.sleep(0.05)
        gone_s = boot_s()
    assert last_beat_s(file) < gone_s
    member.send_signal(signal.SIGCONT)
    _, said = member.communicate(timeout=TIMEOUT_S)
    assert member.returncode == Exit.LOST and b"'workers' is lost" in said


def test_what_cannot_be(store: str) -> None:
    assert run(store, "join", "--data", "{", "--", "true").code == Exit.USAGE
    assert run(store, "join").code == Exit.USAGE
    assert run(store, "join", "--ttl", "0.001", "--", "true").code == Exit.SETTINGS
    assert started(store, "members", "").wait(TIMEOUT_S) == Exit.USAGE
