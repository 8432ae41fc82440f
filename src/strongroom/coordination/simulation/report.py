"""The result of one simulated run.

Lives here: the report. Must not live here: anything that makes one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one seed.

    Attributes:
        scenario: which one.
        seed: plays it again.
        violations: what should have held and did not; empty if all is well.
        counts: what happened how often, so that nobody mistakes idleness for safety.
        events_count: how much virtual work it was.
    """

    scenario: str
    seed: int
    violations: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]
    events_count: int
