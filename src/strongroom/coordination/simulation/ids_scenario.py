"""Ids under faults: every node reserves ranges repeatedly; no id may be issued twice.

Lives here: the scenario, and `run_ids`, which plays one seed. Must not live here: faults
(world.py).
"""

from __future__ import annotations

from typing import Final

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Sleep, Steps
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.recipes.ids.id_ranges import RangeReservations, reserve_steps
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.world import Cancelled, Faults, Node, World

KEY: Final = "ids/simulated"
RANGE: Final = 10
FAULTS_S: Final = 40.0
FAULT_FREE_S: Final = 20.0
MAX_RETRIES: Final = 2  # few, so that the retries are sometimes exhausted
RESERVE = reserve_steps
"""The function under test; tests replace it by mutants."""


class _Ids:
    def __init__(self, world: World) -> None:
        self.world = world
        self.taken: dict[int, str] = {}
        self.ranges_count = 0
        self.failures_count = 0
        self.violations: list[str] = []
        self.last_s: dict[str, float] = {}
        self.highest = 0
        world.on_start = self.start
        world.observers.append(self.check)

    def start(self, node: Node) -> None:
        for number in range(2):
            node.spawn(self.worker(node, number))

    def worker(self, node: Node, number: int) -> Steps[None]:
        state = RangeReservations(KEY, "simulated", 1, MAX_RETRIES)
        while True:
            try:
                yield Sleep(self.world.rng.uniform(0.0, 0.5))
                found = yield from RESERVE(node.context, state, RANGE)
            except Cancelled:
                continue  # the caller gave up; its id generator is used again
            except CoordinationError:
                self.failures_count += 1
                continue
            self.hand_out(f"{node.name}.{number}", node, found)

    def hand_out(self, who: str, node: Node, found: range) -> None:
        self.ranges_count += 1
        self.last_s[node.name] = self.world.now_s
        for one in found:
            if one in self.taken:
                self.note_violation(
                    f"{who} hands out {one}, which {self.taken[one]} has handed out"
                )
                return
            self.taken[one] = who

    def check(self) -> None:
        entry = self.world.store.registers.get(KEY, 0.0)
        stored = 0 if entry is None else int(entry.value)
        if stored < self.highest:
            self.note_violation(f"the next free id went back from {self.highest} to {stored}")
        self.highest = max(stored, self.highest)

    def note_violation(self, text: str) -> None:
        self.violations.append(f"at {self.world.now_s:.3f} s: {text}")
        self.world.stopped = True


def run_ids(seed: int, faults: Faults | None = None) -> Report:
    """Play one seed and return the report."""
    world = World(seed, faults or Faults(), ClockRules(0.3), faults_end_s=FAULTS_S)
    ids = _Ids(world)
    for node in world.nodes:
        ids.start(node)
    world.run(FAULTS_S + FAULT_FREE_S)
    for node in world.nodes:
        if not ids.violations and ids.last_s.get(node.name, 0.0) < FAULTS_S:
            ids.note_violation(f"{node.name} got no ids after the faults had stopped")
    counts = (("ranges", ids.ranges_count), ("failures", ids.failures_count))
    return Report("ids", seed, tuple(ids.violations), counts, world.events_count)
