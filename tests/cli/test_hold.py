"""`strongroom lock` and `elect`: the command runs while the lock is held, and is ended in time."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.coordination import connect
from strongroom.testing import Server
from tests.cli.beats import await_beats, await_file, beating, boot_s, last_beat_s, started, stop
from tests.cli.command import TIMEOUT_S, in_process, strongroom


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file://{tmp_path}/locks?sync=0"


@pytest.fixture
def beats(tmp_path: Path) -> tuple[list[str], Path]:
    return beating(tmp_path)


@pytest.mark.parametrize("command", ["lock", "elect"])
def test_the_command_finds_its_fence_and_gives_its_exit_code(command: str, store: str) -> None:
    script = "echo $STRONGROOM_FENCE $STRONGROOM_LOCK; exit 7"
    for fence in (1, 2):
        ran = strongroom(command, "a b", "--store", store, "--", "sh", "-c", script)
        assert (ran.code, ran.out.strip()) == (7, f"{fence} a b")


def test_the_deadline_lies_ahead_by_the_monotonic_clock(store: str) -> None:
    name = "STRONGROOM_DEADLINE_MONOTONIC"
    code = f"import os, time; print(float(os.environ['{name}']) - time.monotonic())"
    ran = strongroom("lock", "a", "--store", store, "--ttl", 20, "--", sys.executable, "-c", code)
    assert 0 < float(ran.out) <= 20


@pytest.mark.parametrize(
    ("command", "code"), [(["kill -9 $$"], 137), (["kill -TERM $$"], 143), (["exit 0"], 0)]
)
def test_how_the_command_ends_is_told(command: list[str], code: int, store: str) -> None:
    assert strongroom("lock", "a", "--store", store, "--", "sh", "-c", *command).code == code


def test_a_command_that_is_not_there(store: str, tmp_path: Path) -> None:
    ran = strongroom("lock", "a", "--store", store, "--", "no-such-command-here")
    assert ran.code == 127 and "no-such-command-here" in ran.err
    (tmp_path / "plain").write_text("x")
    ran = strongroom("lock", "a", "--store", store, "--", str(tmp_path / "plain"))
    assert ran.code == 126


def test_one_that_is_held_is_not_to_be_had(store: str) -> None:
    with connect(store, label="somebody") as client, client.lock("a"):
        for flags in (["--try"], ["--wait", "0.3"]):
            ran = in_process("lock", "a", "--store", store, *flags, "--", "true")
            assert ran.code == Exit.NOT_ACQUIRED
            assert "somebody" in ran.err
        waiting = started(store, "lock", "a", "--wait", "20", "--verbose", "--", "true")
        assert waiting.stderr is not None
        assert b"held by somebody since 2" in waiting.stderr.readline()
    waiting.communicate(timeout=TIMEOUT_S)
    assert waiting.returncode == 0


def test_try_does_not_go_with_wait(store: str) -> None:
    ran = in_process("lock", "a", "--store", store, "--try", "--wait", "1", "--", "true")
    assert ran.code == Exit.USAGE


def test_when_the_lock_is_broken_the_command_is_dead(
    store: str, beats: tuple[list[str], Path]
) -> None:
    command, file = beats
    process = started(store, "lock", "a", "--ttl", "20", "--", *command)
    await_beats(file)
    assert in_process("locks", "break", "a", "--store", store).code == 0
    _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == Exit.LOST and b"lost" in said
    last_beat_s(file)


def test_when_the_holder_is_killed_the_command_is_dead(
    store: str, beats: tuple[list[str], Path]
) -> None:
    command, file = beats
    process = started(store, "lock", "a", "--ttl", "5", "--", *command)
    await_beats(file)
    process.kill()
    process.communicate(timeout=TIMEOUT_S)
    with connect(store) as client, client.lock("a", ttl=3, wait=TIMEOUT_S):
        taken_s = boot_s()
    assert last_beat_s(file) < taken_s


def test_when_the_guard_is_killed_the_command_is_dead(
    store: str, beats: tuple[list[str], Path]
) -> None:
    command, file = beats
    process = started(store, "lock", "a", "--", *command)
    await_beats(file)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    (guard,) = children.read_text().split()
    os.kill(int(guard), signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 137
    last_beat_s(file)


def test_when_the_holder_stands_still_the_command_is_dead_in_time(
    store: str, beats: tuple[list[str], Path]
) -> None:
    command, file = beats
    process = started(store, "lock", "a", "--ttl", "5", "--", *command)
    await_beats(file)
    stop(process, store)
    with connect(store) as client, client.lock("a", ttl=2, wait=TIMEOUT_S):
        taken_s = boot_s()
    assert last_beat_s(file) < taken_s
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == Exit.LOST


def test_when_the_store_is_gone_the_command_is_dead_in_time(
    beats: tuple[list[str], Path], tmp_path: Path
) -> None:
    command, file = beats
    with Server.start(data=tmp_path / "data", test_clock=False) as server:
        store = f"azure://devstoreaccount1/locks?endpoint={server.url}/devstoreaccount1"
        process = started(store, "lock", "a", "--ttl", "5", "--", *command)
        await_beats(file)
        gone_s = boot_s()
        server.kill()
        _, said = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == Exit.LOST and b"'a' is lost: " in said
        assert last_beat_s(file) < gone_s + 5


def test_signals_are_passed_on(store: str) -> None:
    script = "trap 'exit 9' TERM; touch $0; while :; do sleep 0.05; done"
    ready = Path(store.removeprefix("file://").split("?")[0]).with_name("ready")
    process = started(store, "lock", "a", "--", "sh", "-c", script, str(ready))
    await_file(ready)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 9
    assert strongroom("lock", "a", "--store", store, "--try", "--", "true").code == 0


@pytest.mark.parametrize("grace", ["nan", "-5", "20", "7.5"])
def test_a_grace_that_leaves_no_time(grace: str, store: str) -> None:
    ran = in_process("lock", "a", "--store", store, "--ttl", 15, "--grace", grace, "--", "true")
    assert ran.code == Exit.USAGE and "--grace" in ran.err


@pytest.mark.parametrize(
    "script",
    [
        "{lock} a -- true; read line; echo got $line",
        "{lock} a -- {lock} b -- sh -c 'read line; echo got $line'",
        "{lock} a -- sh -c 'read line; echo got $line'",
        "{lock} a -- sleep 0.1 & read line; echo got $line; wait",
    ],
    ids=["afterwards", "nested", "the command", "beside it"],
)
def test_whoever_is_in_front_reads_from_the_terminal(script: str, store: str) -> None:
    lock = f"{sys.executable} -m strongroom lock --store '{store}'"
    pid, terminal = os.forkpty()
    if pid == 0:
        os.execvp("sh", ["sh", "-c", script.format(lock=lock)])
    seen = b""
    os.write(terminal, b"hello\n")  # stays there until it is read
    with contextlib.suppress(OSError):  # the end of a terminal
        while select.select([terminal], [], [], TIMEOUT_S)[0] and (read := os.read(terminal, 4096)):
            seen += read
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"got hello" in seen
