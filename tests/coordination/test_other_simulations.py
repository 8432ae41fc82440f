"""Ids, gates and registers hold in simulated time under faults, and wrong rules are caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

import pytest

from strongroom.coordination.simulation.gate_scenario import run_gate
from strongroom.coordination.simulation.ids_scenario import run_ids
from strongroom.coordination.simulation.play import play
from strongroom.coordination.simulation.register_scenario import (
    UNAVAILABLE,
    Read,
    RegisterPut,
    Swapped,
    run_register,
)
from strongroom.coordination.simulation.report import Report
from strongroom.testing.histories.linearizability import UNKNOWN, CompletedCall
from strongroom.testing.history import History, check
from tests.coordination.other_mutants import GATES, IDS, REGISTERS, in_force

SEEDS = 4
MUTANT_SEEDS = 150


class RegisterModel:
    """A register as its callers see it: the state is the value, None for absent."""

    def initial(self, object_key: str) -> int | None:
        return None

    def step(self, state: int | None, call: Hashable, result: Hashable) -> Iterable[int | None]:
        if result == UNAVAILABLE:
            return [state]
        if isinstance(call, Read):
            return [state] if result in (state, UNKNOWN) else []
        if isinstance(call, RegisterPut):
            return [call.new]
        assert isinstance(call, Swapped)
        fits = state == call.expected
        if result is UNKNOWN:
            return [call.new] if fits else [state]
        if result is not fits:
            return []
        return [call.new] if fits else [state]

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        return isinstance(call, Read) or result in (False, UNAVAILABLE)

    def version(self, state: int | None) -> Hashable | None:
        return state  # no value is written twice

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        if isinstance(call, Swapped) and result is True:
            return call.expected
        return result if isinstance(call, Read) and result != UNAVAILABLE else None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        return operations


def judge_register(seed: int) -> Report:
    history = History()
    report = run_register(seed, lambda who, what: history.invoke(who, "register", what))
    verdict = check(history, RegisterModel())
    if verdict.linearizable:
        return report
    return Report(report.scenario, seed, (verdict.explain(),), report.counts, 0)


PLAYED: dict[str, Callable[[int], Report]] = {
    "ids": run_ids,
    "gate": run_gate,
    "gate-polled": lambda seed: run_gate(seed, watch=False),
    "register": judge_register,
}


@pytest.mark.parametrize("name", PLAYED)
def test_it_holds_under_faults(name: str) -> None:
    reports = [PLAYED[name](seed) for seed in range(SEEDS)]
    assert [report for report in reports if report.violations] == []
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update(dict(report.counts))
    assert min(totals.values()) > SEEDS, totals


CASES = [
    *(("ids", name, change) for name, change in IDS.items()),
    *(("gate", name, change) for name, change in GATES.items()),
    *(("register", name, change) for name, change in REGISTERS.items()),
]


@pytest.mark.parametrize(
    ("scenario", "change"),
    [(scenario, change) for scenario, _, change in CASES],
    ids=[f"{scenario}: {name}" for scenario, name, _ in CASES],
)
def test_a_wrong_rule_is_caught(
    scenario: str, change: tuple[object, str, Callable[..., object]]
) -> None:
    with in_force(change):
        for seed in range(MUTANT_SEEDS):
            if PLAYED[scenario](seed).violations:
                return
    pytest.fail(f"survived {MUTANT_SEEDS} seeds")


@pytest.mark.parametrize("name", ["barrier", "barrier-polled", "ids", "gate", "gate-polled"])
def test_a_scenario_can_be_played_again(name: str) -> None:
    """The scenarios of locks, slots and members have tests of their own."""
    first, again = play(3, name), play(3, name)
    assert first == again
    assert [report.violations for report in first] == [()]
