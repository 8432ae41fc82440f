"""When a command counts as ended by a lost lock or membership, and the message about it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

import pytest

from strongroom.coordination.clock import Clocks, ManualClocks, SystemClocks
from strongroom.coordination.processes.child import LOST_EXIT, Child, Margins
from strongroom.coordination.session.handles import HeldBase, Hold
from tests.cli.beats import await_file, boot_s
from tests.coordination.test_renewal import NoKeeper

# The times are hours, so that nothing is late by accident.
HOUR_S: Final = 3600.0
TTL_S: Final = 24 * HOUR_S
MARGINS: Final = Margins(term_before_s=2 * HOUR_S, kill_before_s=HOUR_S, grace_s=0.1)
IN_TIME: Final = "the command was ended before others could have it"
EXPIRED: Final = f"it could not be renewed within its {TTL_S:g} s"


def _hold(clock: Clocks | None = None, left_s: float = TTL_S) -> Hold:
    """Return a hold that is neither renewed nor watched for its deadline."""
    clock = clock or SystemClocks()
    return Hold(clock, "lock/a", "a", "n-1", 1, TTL_S, boot_s() + left_s, NoKeeper())


def _child(hold: Hold, *command: str) -> Child:
    return Child(command, HeldBase(hold), MARGINS, os.environ)


def _endless(hold: Hold, folder: Path) -> Child:
    """A command that has begun, and does not end by itself."""
    begun = folder / "begun"
    child = _child(hold, "sh", "-c", 'touch "$0"; while :; do sleep 0.05; done', str(begun))
    await_file(begun)
    return child


def _apart(hold: Hold) -> ManualClocks:
    """Give the hold a clock of its own: the machine is suspended for it, and the guard sleeps."""
    clock = ManualClocks(boot_s())
    hold.clock = clock
    return clock


@pytest.mark.parametrize("code", [0, 7, LOST_EXIT])
def test_a_command_that_ends_by_itself_has_lost_nothing(code: int) -> None:
    child = _child(_hold(), "sh", "-c", f"exit {code}")
    assert (child.wait(), child.reason) == (code, "")


def test_after_the_deadline_it_is_not_said_that_others_could_not_have_it() -> None:
    hold = _hold()
    clock, child = _apart(hold), _child(hold, "true")
    clock.advance(2 * TTL_S)
    assert (child.wait(), child.reason) == (LOST_EXIT, EXPIRED)
    assert hold.lost.is_set() and hold.reason == EXPIRED


def test_why_it_was_not_renewed_is_said() -> None:
    hold = _hold()
    clock, child = _apart(hold), _child(hold, "true")
    hold.last_error = "no answer came"
    clock.advance(2 * TTL_S)
    assert child.wait() == LOST_EXIT
    assert child.reason == f"{EXPIRED}: no answer came"


def test_a_command_that_its_guard_ended_in_time(tmp_path: Path) -> None:
    hold = _hold()
    child = _endless(hold, tmp_path)
    hold.deadline_s = boot_s() + 1.5 * HOUR_S
    assert (child.wait(), child.reason) == (LOST_EXIT, IN_TIME)
    assert hold.active and hold.remaining_s() > 0


def test_a_command_that_was_asked_to_end_before_a_renewal_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = _hold()
    begun, asked, renewed = (tmp_path / name for name in ("begun", "asked", "renewed"))
    wait = f"while ! [ -e {renewed} ]; do sleep 0.05; done"
    child = _child(hold, "sh", "-c", f"trap 'touch {asked}' TERM; touch {begun}; {wait}")
    await_file(begun)
    tell = child._send_line

    def told(line: str) -> None:
        tell(line)
        if hold.remaining_s() < TTL_S / 2:
            await_file(asked)
            hold.deadline_s = boot_s() + TTL_S
        else:
            renewed.touch()

    monkeypatch.setattr(child, "_send_line", told)
    hold.deadline_s = boot_s() + 1.5 * HOUR_S
    assert (child.wait(), child.reason) == (LOST_EXIT, IN_TIME)


def test_a_guard_that_stands_still_is_ended_in_time(tmp_path: Path) -> None:
    hold = _hold()
    child = _endless(hold, tmp_path)
    os.kill(child.guard_pid, signal.SIGSTOP)
    hold.deadline_s = boot_s() + HOUR_S / 4
    assert (child.wait(), child.reason) == (LOST_EXIT, IN_TIME)


def test_a_guard_that_was_ended_too_late_is_no_assurance(tmp_path: Path) -> None:
    hold = _hold()
    clock, child = _apart(hold), _endless(hold, tmp_path)
    os.kill(child.guard_pid, signal.SIGSTOP)
    hold.deadline_s = boot_s() + HOUR_S / 4
    clock.advance(HOUR_S)
    assert (child.wait(), child.reason) == (LOST_EXIT, EXPIRED)


def test_a_command_whose_guard_was_killed_has_lost_nothing(tmp_path: Path) -> None:
    child = _endless(_hold(), tmp_path)
    os.kill(child.guard_pid, signal.SIGKILL)
    assert (child.wait(), child.reason) == (128 + signal.SIGKILL, "")


def test_a_hold_that_is_lost_ends_the_command_and_says_why(tmp_path: Path) -> None:
    hold = _hold()
    child = _endless(hold, tmp_path)
    hold.lose("it was broken")
    assert (child.wait(), child.reason) == (LOST_EXIT, "it was broken")


def test_a_command_line_in_quotes_is_answered_by_what_to_write(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert _child(_hold(), "echo hi").wait() == 127
    said = capfd.readouterr().err
    assert "echo hi: command not found; a command line is run by: -- sh -c 'echo hi'" in said
    assert _child(_hold(), "no-such-program", "hi").wait() == 127
    assert "sh -c" not in capfd.readouterr().err
