"""`strongroom sim`: a seed repeats the same run, and a violation is reported."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from strongroom.cli import app
from strongroom.cli.exits import Exit
from strongroom.coordination.simulation import play
from strongroom.coordination.simulation.report import Report
from tests.cli.command import in_process, strongroom


def test_a_seed_plays_the_same_run_again() -> None:
    arguments = ("sim", "--seed", 7, "--scenario", "lock-fair")
    first, again = in_process(*arguments), strongroom(*arguments)
    assert first.code == 0 and first.out == again.out
    assert first.out.startswith("ok  lock-fair seed 7: ")
    assert first.out != in_process("sim", "--seed", 8, "--scenario", "lock-fair").out


def test_every_scenario_is_played() -> None:
    found = json.loads(in_process("sim", "--seed", 1, "--json").out)
    assert [one["scenario"] for one in found] == list(play.SCENARIOS)
    assert all(one["counts"] and one["events_count"] > 100 for one in found)
    assert not any(one["violations"] for one in found)
    alone = json.loads(in_process("sim", "--seed", 1, "--scenario", "ids", "--json").out)
    assert alone == [one for one in found if one["scenario"] == "ids"]


def test_several_seeds_follow_each_other() -> None:
    out = in_process("sim", "--seed", 5, "--count", 3, "--scenario", "ids").out
    assert [line.split(":")[0] for line in out.splitlines()[:3]] == [
        "ok  ids seed 5",
        "ok  ids seed 6",
        "ok  ids seed 7",
    ]
    assert out.splitlines()[3].startswith("3 runs, 0 of them")


def test_a_violation_is_told_and_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Report("ids", 4, ("at 3.000 s: id 7 twice",), (("ranges", 2),), 9)
    monkeypatch.setitem(play.SCENARIOS, "ids", lambda _: broken)
    ran = CliRunner().invoke(app, ["sim", "--seed", "4", "--scenario", "ids"])
    assert ran.exit_code == Exit.REFUSED
    assert "BAD ids seed 4" in ran.stdout and "    at 3.000 s: id 7 twice" in ran.stdout
    ran = CliRunner().invoke(app, ["sim", "--seed", "4", "--scenario", "ids", "--json"])
    assert ran.exit_code == Exit.REFUSED
    assert json.loads(ran.stdout)[0]["violations"] == ["at 3.000 s: id 7 twice"]


def test_a_trace_tells_what_happens_and_changes_nothing() -> None:
    plain = in_process("sim", "--seed", 5, "--scenario", "lock-watched").out
    traced = in_process("sim", "--seed", 5, "--scenario", "lock-watched", "--trace").out
    assert traced.endswith(plain)
    for told in (
        "stands still until",
        "reaches nothing until",
        "crashes",
        "is back",
        "the store is away until",
        "holds lock/simulated, fence 1",
        "has lost lock/simulated: ",
        "write lock/simulated over nothing",
        "is lost on its way",
        "the answer to",
        ": Conflict",
    ):
        assert told in traced, told
    times = [float(line.split()[0]) for line in traced.splitlines()[:-2]]
    assert times == sorted(times) and len(times) > 100


def test_what_cannot_be_played() -> None:
    assert in_process("sim", "--seed", 1, "--trace", "--json").code == Exit.USAGE
    ran = in_process("sim", "--seed", 1, "--scenario", "nonsense")
    assert ran.code == Exit.USAGE and "lock-fair" in ran.err
    assert in_process("sim").code == Exit.USAGE
    assert in_process("sim", "--seed", 1, "--count", 0).code == Exit.USAGE
