"""Gates under faults: nodes wait, administrators open and re-arm; no waiter is left behind.

Lives here: the scenario, and `run_gate`, which plays one seed. The invariants: the stored gate
never goes back (an open generation stays open, generations increase). A node passes only if its
generation is open or past. Once the faults have stopped and the gate is open, every node passes.
Must not live here: faults (world.py).
"""

from __future__ import annotations

from typing import Final

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Sleep, Steps
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.recipes.gate_core import (
    GateView,
    open_steps,
    rearm_steps,
    view_of,
    wait_steps,
)
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.world import Cancelled, Faults, Node, World

KEY: Final = "gate/simulated"
FAULTS_S: Final = 40.0
FAULT_FREE_S: Final = 40.0
WAIT, OPEN, REARM = wait_steps, open_steps, rearm_steps
"""The functions under test; tests replace them by mutants."""


class _Gate:
    def __init__(self, world: World) -> None:
        self.world = world
        self.waiting: dict[str, int] = {}
        self.passes_count = 0
        self.last_s: dict[str, float] = {}
        self.violations: list[str] = []
        self.truth = GateView()
        world.on_start = self.start
        world.observers.append(self.check)

    def start(self, node: Node) -> None:
        node.spawn(self.administrator(node) if node.name == "node0" else self.waiter(node))
        if node.name == "node1":
            node.spawn(self.administrator(node))  # two, who may contradict each other

    def administrator(self, node: Node) -> Steps[None]:
        rng = self.world.rng
        while True:
            act = OPEN if self.world.is_fault_free or rng.random() < 0.6 else REARM
            try:
                yield Sleep(rng.uniform(0.0, 4.0))
                if act is OPEN:
                    yield from OPEN(node.context, KEY, node.name)
                else:
                    yield from REARM(node.context, KEY)
            except (Cancelled, CoordinationError):
                continue

    def waiter(self, node: Node) -> Steps[None]:
        rng = self.world.rng
        while True:
            try:
                yield Sleep(rng.uniform(0.0, 1.0))
                generation = self.truth.generation if rng.random() < 0.5 else None
                limit_s = rng.choice((None, 2.0, 20.0))
                view = yield from WAIT(node.context, "simulated", KEY, limit_s, generation)
            except (Cancelled, CoordinationError):
                continue
            self.passed(node, view, generation)

    def passed(self, node: Node, view: GateView, generation: int | None) -> None:
        self.passes_count += 1
        self.last_s[node.name] = self.world.now_s
        truth = (self.truth.generation, self.truth.is_open)
        if (view.generation, view.is_open) > truth:
            self.note_violation(f"{node.name} passed by what never was: {view}")
        if generation is not None and not self.truth.lets_through(generation):
            self.note_violation(
                f"{node.name} waited for generation {generation} and passed: {view}"
            )

    def check(self) -> None:
        view = view_of(KEY, self.world.store.registers.get(KEY, 0.0))
        if (view.generation, view.is_open) < (self.truth.generation, self.truth.is_open):
            self.note_violation(f"the gate went back from {self.truth} to {view}")
        self.truth = view

    def note_violation(self, text: str) -> None:
        self.violations.append(f"at {self.world.now_s:.3f} s: {text}")
        self.world.stopped = True


def run_gate(seed: int, watch: bool = True) -> Report:
    """Play one seed and return the report.

    Arguments:
        watch: whether the store supports watches; if not, waiters poll.
    """
    world = World(seed, Faults(), ClockRules(0.3), faults_end_s=FAULTS_S, watch=watch)
    gate = _Gate(world)
    for node in world.nodes:
        gate.start(node)
    world.run(FAULTS_S + FAULT_FREE_S)
    for node in world.nodes[1:]:
        if not gate.violations and gate.last_s.get(node.name, 0.0) < FAULTS_S:
            gate.note_violation(f"{node.name} was left waiting at an open gate")
    counts = (("passes", gate.passes_count), ("generations", gate.truth.generation))
    return Report("gate", seed, tuple(gate.violations), counts, world.events_count)
