"""The tests of smbtorture that Strongroom has to pass, and the comparison with a run.

Lives here: pure functions that derive the gate from the tests that smbd passes. Must not live here:
the names themselves (the list files), running (running.py).

| list file | what it holds |
| --- | --- |
| `smbd.txt` | every test that counts, with its outcomes in the runs of smbd |
| `wanted.txt` | what smbd does not pass, since Windows differs from it: smbtorture's word counts |
| `excluded.txt` | what is not asked for, each with the reason |
| `gate.txt` | what follows from these three: the tests to pass |
| `signed.txt` | tests of the gate that are run with signed sessions only, each with the reason |
| `misses.txt` | tests of the gate that are known to fail, each with the reason |
| `subset.txt` | tests of the gate that are quick and steady: run with each change |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from tests.smbtorture.outcomes import Outcome, Result

RUNS: Final = 3


def outcomes_of(runs: Sequence[Iterable[Result]]) -> dict[str, str]:
    """Return each test's outcomes in these runs, as `passed passed failed`: the notes of
    `smbd.txt`."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for result in run:
            found.setdefault(result.name, []).append(result.outcome.value)
    return {name: " ".join(outcomes) for name, outcomes in found.items()}


def passes_each_time(note: str) -> bool:
    """Whether a note of `smbd.txt` says that all of its runs passed."""
    outcomes = note.split()
    return len(outcomes) >= RUNS and set(outcomes) == {Outcome.PASSED.value}


def made(smbd: Mapping[str, str], wanted: Collection[str], excluded: Collection[str]) -> list[str]:
    """Return the gate in the order of `smbd`: the tests that smbd always passes, and the wanted
    ones.

    Raises ValueError for a test that is neither in the gate nor excluded with a reason, and for a
    name that smbd was not measured with.
    """
    unknown = {*wanted, *excluded} - set(smbd)
    if unknown:
        raise ValueError(f"not among the tests that count: {sorted(unknown)}")
    gate = [
        name
        for name, note in smbd.items()
        if name in wanted or (passes_each_time(note) and name not in excluded)
    ]
    unexplained = [name for name in smbd if name not in gate and name not in excluded]
    if unexplained:
        raise ValueError(f"neither in the gate nor in excluded.txt: {unexplained}")
    return gate


def to_run(gate: Iterable[str], signed_only: Collection[str], *, encrypted: bool) -> list[str]:
    """Return the tests of the gate that count with sessions of this kind."""
    return [name for name in gate if not (encrypted and name in signed_only)]


def complaints(results: Iterable[Result], misses: Collection[str]) -> list[str]:
    """Return the unexpected results: a failure that is not known, a known failure that passes."""
    found = []
    for result in results:
        passed = result.outcome is Outcome.PASSED
        if passed and result.name in misses:
            found.append(f"{result.name} passes now: take it out of misses.txt")
        elif not passed and result.name not in misses:
            found.append(f"{result.name}: {result.outcome}: {result.text}")
    return found
