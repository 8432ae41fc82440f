"""Barriers under faults: three of four nodes meet repeatedly, and crash or give up in between.

Lives here: the scenario, its invariants, and `run_barrier`, which plays one seed. Must not live
here: faults (world.py).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Sleep, Steps
from strongroom.coordination.errors import CoordTimeout
from strongroom.coordination.recipes.slots.barrier_core import (
    KIND,
    Arrival,
    BarrierBroken,
    decode_barrier,
)
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.world import Cancelled, Faults, Node, World

KEY: Final = key_of(KIND, "simulated")
PARTIES: Final = 3
TTL_S: Final = 2.0
FAULTS_S: Final = 60.0
FAULT_FREE_S: Final = 60.0


class _Scenario:
    def __init__(self, world: World) -> None:
        self.world = world
        self.trips: dict[int, tuple[str, ...]] = {}
        self.passed: set[str] = set()
        self.last_s: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self.version: str | None = None
        world.on_start = self.start
        world.observers.append(self.check)

    def note_violation(self, text: str) -> None:
        self.violations.append(f"at {self.world.now_s:.3f} s: {text}")
        self.world.stopped = True

    def check(self) -> None:
        """Check the stored record after every event.

        Each tripped generation is full and trips once. No party that has passed is still waiting.
        """
        version = self.world.store.registers.version(KEY)
        entry = self.world.store.registers.get(KEY, 0.0) if version != self.version else None
        if entry is None:
            return
        self.version = version
        record = decode_barrier(KEY, entry.value)
        for generation, owners in record.tripped:
            if self.trips.setdefault(generation, owners) != owners:
                self.note_violation(f"generation {generation} tripped twice")
        if record.tripped and len(set(record.tripped[-1][1])) != PARTIES:
            self.note_violation(
                f"generation {record.tripped[-1][0]} tripped with {record.tripped[-1]}"
            )
        passed_and_waiting = {slot.owner for slot in record.slots} & self.passed
        if passed_and_waiting:
            self.note_violation(f"{passed_and_waiting} has passed and waits")

    def start(self, node: Node) -> None:
        node.spawn(self.worker(node))

    def worker(self, node: Node) -> Steps[None]:
        while True:
            try:
                yield from self.attempt(node)
            except (Cancelled, CoordTimeout):
                self.counts["gave up"] += 1

    def attempt(self, node: Node) -> Steps[None]:
        rng = self.world.rng
        yield Sleep(rng.uniform(0.0, 0.5))
        arrival = Arrival(node.context, KEY, "simulated", PARTIES, TTL_S)
        timeout_s = None if self.world.is_fault_free else rng.choice((1.0, 10.0, None))
        try:
            index = yield from arrival.steps(timeout_s)
        except BarrierBroken as broken:
            self.counts["broken"] += 1
            self.check_broken(node, arrival, broken)
        else:
            self.pass_through(node, arrival.nonce, index)

    def check_broken(self, node: Node, arrival: Arrival, broken: BarrierBroken) -> None:
        if broken.known and any(arrival.nonce in owners for owners in self.trips.values()):
            self.note_violation(f"{node.name} was in and is told that it was not")

    def pass_through(self, node: Node, nonce: str, index: int) -> None:
        self.counts["passed"] += 1
        self.last_s[node.name] = self.world.now_s
        trips = [owners for owners in self.trips.values() if nonce in owners]
        if len(trips) != 1 or trips[0][index] != nonce or nonce in self.passed:
            self.note_violation(f"{node.name} went on as number {index} of {trips}")
        self.passed.add(nonce)


def run_barrier(seed: int, watch: bool = True) -> Report:
    """Play one seed and return the report.

    Arguments:
        watch: whether the store supports watches.
    """
    world = World(seed, Faults(), ClockRules(0.3), faults_end_s=FAULTS_S, watch=watch)
    scenario = _Scenario(world)
    for node in world.nodes:
        scenario.start(node)
    world.run(FAULTS_S + FAULT_FREE_S)
    if not scenario.violations:
        for node in world.nodes:
            if scenario.last_s.get(node.name, 0.0) < FAULTS_S + FAULT_FREE_S / 2:
                scenario.note_violation(f"{node.name} was stranded after the faults had stopped")
    name = "barrier" if watch else "barrier-polled"
    counts = tuple(sorted(scenario.counts.items()))
    return Report(name, seed, tuple(scenario.violations), counts, world.events_count)
