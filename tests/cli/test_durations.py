"""Flags that take a duration: seconds or a unit, never negative, and alike in every command."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from strongroom.cli.durations import seconds
from strongroom.cli.exits import Exit
from tests.cli.command import Ran, in_process


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        ("5", 5), ("5s", 5), (".5", 0.5), ("1.5m", 90), ("2h", 7200), ("30d", 2592000),
        ("250ms", 0.25), ("0", 0), (" 7s ", 7), (15.0, 15.0),
    ],
)  # fmt: skip
def test_a_duration_is_seconds_or_has_a_unit(text: str | float, expected_s: float) -> None:
    assert seconds(text) == expected_s


@pytest.mark.parametrize("text", ["-1", "-1s", "", "s", "nan", "inf", "5 s", "1e3", "5w", "٣"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no duration"):
        seconds(text)


def run(folder: Path, *arguments: object) -> Ran:
    return in_process(*arguments, STRONGROOM_STORE=f"file://{folder}/locks?sync=0")


COMMANDS = {
    "lock": ("lock", "a", "--ttl", "5s"),
    "elect": ("elect", "a", "--ttl", "5s"),
    "sem": ("sem", "a", "--permits", 1, "--ttl", "5s"),
    "rwlock": ("rwlock", "a", "write", "--ttl", "5s"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["--wait", "--timeout"])
def test_a_negative_wait_is_refused_by_either_name(tmp_path: Path, command: str, flag: str) -> None:
    ran = run(tmp_path, *COMMANDS[command], flag, -1, "--", "true")
    assert ran.code == Exit.USAGE and "is no duration" in ran.err


@pytest.mark.parametrize("flag", ["--wait", "--timeout"])
def test_a_gate_and_a_barrier_wait_by_either_name(tmp_path: Path, flag: str) -> None:
    ran = run(tmp_path, "gate", "g", "wait", flag, "50ms")
    assert ran.code == Exit.NOT_ACQUIRED
    assert "the gate 'g' was not opened within " in ran.err
    ran = run(tmp_path, "barrier", "b", "--parties", 2, flag, "50ms")
    assert ran.code == Exit.NOT_ACQUIRED
    assert "the barrier 'b' did not fill within " in ran.err
    ran = run(tmp_path, "members", "m", "watch", flag, "10ms")
    assert ran.code == 0
