"""Plays one seed of any scenario; people call it to reproduce a failure.

Lives here: the table of scenarios, and `play`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from strongroom.coordination.simulation.barrier_scenario import run_barrier
from strongroom.coordination.simulation.gate_scenario import run_gate
from strongroom.coordination.simulation.ids_scenario import run_ids
from strongroom.coordination.simulation.local_queue_scenario import VARIANTS as QUEUE_VARIANTS
from strongroom.coordination.simulation.local_queue_scenario import run_local_queue
from strongroom.coordination.simulation.lock_scenario import VARIANTS, LockVariant, run_locks
from strongroom.coordination.simulation.members_scenario import run_members
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.slots_scenario import VARIANTS as SLOT_VARIANTS
from strongroom.coordination.simulation.slots_scenario import run_slots
from strongroom.coordination.simulation.world import TRACE


def _locks(variant: LockVariant, seed: int) -> Report:
    found = run_locks(seed, variant)
    counts = (
        ("holds", found.holds_count),
        ("lost", found.losses_count),
        ("late writes refused", found.stale_writes_count),
    )
    name = f"lock-{variant.name}"
    return Report(name, seed, found.violations, counts, found.events_count)


SCENARIOS: Final[dict[str, Callable[[int], Report]]] = {
    **{f"lock-{variant.name}": partial(_locks, variant) for variant in VARIANTS},
    **{variant.name: partial(run_local_queue, variant=variant) for variant in QUEUE_VARIANTS},
    "ids": run_ids,
    "gate": run_gate,
    "gate-polled": lambda seed: run_gate(seed, watch=False),
    "barrier": run_barrier,
    "barrier-polled": lambda seed: run_barrier(seed, watch=False),
    "members": run_members,
    **{variant.name: partial(run_slots, variant=variant) for variant in SLOT_VARIANTS},
}
"""The scenarios by name; each is called with a seed."""


def play(
    seed: int, scenario: str | None = None, trace: Callable[[str], None] | None = None
) -> list[Report]:
    """Play a seed in one scenario or in all of them, and return the reports.

    Arguments:
        scenario: the name of the scenario; None: all of them.
        trace: called with a line for every event.

    Raises:
        KeyError: there is no such scenario.
    """
    names = list(SCENARIOS) if scenario is None else [scenario]
    token = TRACE.set(trace)
    try:
        return [replace(SCENARIOS[name](seed), scenario=name) for name in names]
    finally:
        TRACE.reset(token)
