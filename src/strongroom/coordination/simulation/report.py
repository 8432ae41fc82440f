"""The result of one simulated run.

Lives here: the report.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one seed.

    Attributes:
        seed: the seed, which repeats the run.
        violations: the invariants that were violated; empty if the run is correct.
        counts: how often each thing happened, which shows that the run was not idle.
    """

    scenario: str
    seed: int
    violations: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]
    events_count: int
