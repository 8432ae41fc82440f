"""`strongroom lock NAME -- command` under faults, a few trials of each kind; 100 of each are in
tests/proof/test_lock_command.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.coordination.processes import child_guard
from tests.cli.command import strongroom
from tests.cli.lock_faults import (
    WAYS,
    Store,
    Way,
    began_when_killed_early,
    frozen,
    latencies_broken,
    latencies_killed,
    margins_out_of_reach,
    opened,
    without_its_guard,
)
from tests.cli.lock_trials import (
    END_S,
    STAMPER,
    STAMPS_BYTES,
    Trial,
    await_all,
    boot_s,
    quiet_since_s,
    stamps_s,
)

TTL_S = 3.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with opened("strongroom-etag", tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
def test_out_of_reach_the_command_is_dead_before_the_lease_can_expire(
    store: Store, tmp_path: Path, way: Way
) -> None:
    assert min(margins_out_of_reach(store, tmp_path, 2, TTL_S, way)) > 0


@pytest.mark.parametrize("stubborn", [False, True])
def test_broken_by_an_administrator_the_command_is_dead_soon(
    store: Store, tmp_path: Path, stubborn: bool
) -> None:
    # Without word from the store it would have lived for the rest of its 60 seconds.
    assert max(latencies_broken(store, tmp_path, 2, 60.0, stubborn=stubborn)) < 20


def test_stopped_as_a_whole_and_continued_no_write_is_accepted(
    store: Store, tmp_path: Path
) -> None:
    for outcome in frozen(store, tmp_path, 2, TTL_S):
        assert outcome.late > 0, "nothing was tried"
        assert (outcome.accepted, outcome.code, outcome.kept) == (0, 76, True)


def test_killed_itself_the_command_dies_with_all_that_it_started(
    store: Store, tmp_path: Path
) -> None:
    assert len(latencies_killed(store, tmp_path, 2, TTL_S)) == 2


def test_killed_at_any_moment_of_its_start_it_leaves_nothing_behind(
    store: Store, tmp_path: Path
) -> None:
    assert began_when_killed_early(store, tmp_path, 6, 2.0) <= 6


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 137), (signal.SIGSTOP, 76)])
def test_without_its_guard_the_command_dies_with_all_that_it_started(
    store: Store, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    ended, stamps_s = without_its_guard(store, tmp_path, number, 60.0)
    assert ended in (code, 76) and all(stamps_s)


def test_a_guard_whose_holder_died_at_once_leaves_nothing_behind(tmp_path: Path) -> None:
    """The holder died before the guard could report the process group that it started."""
    file = tmp_path / "stamps"
    file.write_bytes(bytes(STAMPS_BYTES))
    control_read, control = os.pipe()
    status, status_write = os.pipe()
    os.close(status)
    numbers = map(str, (control_read, status_write, 0.2, 0.1, 0.1, boot_s() + 3600))
    inner = [sys.executable, "-I", "-S", "-c", STAMPER, str(file), "stubborn"]
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", child_guard.__file__, *numbers, *inner],
        pass_fds=(control_read, status_write),
    )
    os.close(control_read)
    os.close(status_write)
    await_all([lambda: all(stamps_s(file))])
    os.close(control)
    assert guard.wait(END_S) == 76
    quiet_since_s(file)


def test_what_a_command_leaves_behind_ends_with_it(store: Store, tmp_path: Path) -> None:
    """A shell that puts a command into a session of its own, and goes."""
    left = tmp_path / "left"
    script = f"setsid sh -c 'echo $$ > {left}; exec sleep 600' & while ! [ -s {left} ]; do :; done"
    ran = strongroom("lock", "left", "--store", store.real.url, "--", "sh", "-c", script)
    assert ran.code == 0, ran.err
    with pytest.raises(ProcessLookupError):
        os.kill(int(left.read_text()), 0)


def test_the_judge_sees_what_lives_on(store: Store, tmp_path: Path) -> None:
    """One that stamps and has no guard. On a busy machine it may pause between two looks."""
    trial = Trial(tmp_path / "stamps", store.real.url, "judged", 60.0)
    await_all([trial.began])
    trial.end()
    alone = STAMPER.replace("os.fork()", "1")
    stray = subprocess.Popen([sys.executable, "-c", alone, str(trial.file), "stubborn"])
    try:
        await_all([lambda: judged_alive(trial)])
    finally:
        stray.kill()
        stray.wait()


def judged_alive(trial: Trial) -> bool:
    """Whether the judge found a part of the command alive."""
    try:
        trial.last_stamp_s()
    except AssertionError:
        return True
    return False
