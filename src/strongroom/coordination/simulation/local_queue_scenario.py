"""Callers of the same client under faults: two clients, each with several that wait in line.

Lives here: the scenario, its invariants beside those of oracle.py, and `run_local_queue`, which
plays one seed. Both clients always have callers in line, so each could keep the lock for ever. Must
not live here: faults (world.py).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import AwaitSignal, Cas, Effect, Sleep, Steps
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_request import HoldRequest
from strongroom.coordination.recipes.waiting import NotAcquired
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.simulation.lock_scenario import (
    FAULT_FREE_S,
    FAULTS_S,
    LEAVE_S,
    TTL_S,
    LockVariant,
)
from strongroom.coordination.simulation.oracle import Oracle
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.world import NO_FAULTS, Cancelled, Node, World

KEY: Final = "lock/in-line"
CLIENTS: Final = 2
CALLERS: Final = 4
# After the faults, a client waits for the other's streak and for its own turn, never this long.
_ENTRY_MAX_S: Final = 30.0


VARIANTS: Final = (
    LockVariant("local-queue"),
    LockVariant("local-queue-polled", watch=False),
    LockVariant("local-queue-fair", fair=True),
    LockVariant("local-queue-server-lease", server_lease=True),
    LockVariant("local-queue-calm", faults=NO_FAULTS),
)


class _Caller:
    """One attempt: the steps of an acquisition, with a record of what they did."""

    def __init__(self, node: Node, acquisition: Acquisition) -> None:
        self.node, self.acquisition = node, acquisition
        self.incarnation = node.incarnation
        self.waited_in_line = False
        self.wrote = False

    def steps(self) -> Steps[Hold | NotAcquired]:
        """Run the acquisition, and note whether it waited in line, and whether it wrote."""
        steps: Generator[Effect, object, Hold | NotAcquired] = self.acquisition.steps()
        try:
            effect = steps.send(None)
            while True:
                self.waited_in_line = self.waited_in_line or isinstance(effect, AwaitSignal)
                self.wrote = self.wrote or isinstance(effect, Cas)
                try:
                    outcome = yield effect
                except GeneratorExit:
                    steps.close()
                    raise
                except BaseException as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(outcome)
        except StopIteration as end:
            result: Hold | NotAcquired = end.value
            return result


class _LocalQueue:
    def __init__(self, world: World, oracle: Oracle, variant: LockVariant) -> None:
        self.world, self.oracle, self.variant = world, oracle, variant
        self.leaving = False
        self.counts = {"holds": 0, "in line": 0, "lost": 0}
        world.on_start = self.start

    def start(self, node: Node) -> None:
        for _ in range(CALLERS):
            node.spawn(self.worker(node))

    def worker(self, node: Node) -> Steps[None]:
        while not self.leaving:
            try:
                yield from self.attempt(node)
            except Cancelled:
                continue

    def attempt(self, node: Node) -> Steps[None]:
        rng = self.world.rng
        yield Sleep(rng.uniform(0.0, 0.02))
        wait_s = rng.choice((0.0, 1.0, 10.0, None))
        request = HoldRequest(KEY, "in-line", TTL_S, wait_s, self.variant.fair)
        caller = _Caller(node, Acquisition(node.context, request))
        try:
            outcome = yield from caller.steps()
        except CoordinationError:
            yield Sleep(0.2)
            return
        if isinstance(outcome, Hold):
            yield from self.hold(caller, outcome)

    def hold(self, caller: _Caller, hold: Hold) -> Steps[None]:
        node = caller.node
        self.counts["holds"] += 1
        self.counts["in line"] += caller.waited_in_line
        if not caller.wrote:
            self.oracle.note_violation(f"{node.name} holds {KEY} without a write of its own")
        self.oracle.note_hold(node, hold)
        node.adopt(hold)
        rng = self.world.rng
        try:
            long = rng.random() < 0.05
            yield Sleep(rng.uniform(1.0, 4.0) if long else rng.uniform(0.0, 0.1))
        except GeneratorExit:
            raise  # a crashed holder releases nothing
        except BaseException:
            yield from self.release(hold)
            raise
        yield from self.release(hold)

    def release(self, hold: Hold) -> Steps[None]:
        if hold.end():
            yield from hold.keeper.release(hold)

    def watch_entries(self) -> None:
        """Check, after the faults, that no client keeps the lock from the other."""
        since_s = FAULTS_S + _ENTRY_MAX_S
        if self.world.now_s > since_s and not self.leaving:
            for node in self.world.nodes:
                entered_s = self.oracle.last_entry_s.get(node.name, 0.0)
                if self.world.now_s - max(entered_s, FAULTS_S) > _ENTRY_MAX_S:
                    self.oracle.note_violation(f"{node.name} is kept out by the other client")


def run_local_queue(seed: int, variant: LockVariant, rules: ClockRules | None = None) -> Report:
    """Play one seed and return the report.

    Arguments:
        variant: the kind of store and lock.
        rules: the clock rules; by default correct ones, with a bound of 30 %.
    """
    world = World(
        seed,
        variant.faults,
        rules or ClockRules(0.3),
        nodes=CLIENTS,
        faults_end_s=FAULTS_S,
        server_lease=variant.server_lease,
        watch=variant.watch,
    )
    oracle = Oracle(world)
    scenario = _LocalQueue(world, oracle, variant)
    world.observers.append(scenario.watch_entries)
    for node in world.nodes:
        scenario.start(node)
    world.run(FAULTS_S + FAULT_FREE_S)
    if not oracle.violations:
        _leave(scenario)
    counts = {**scenario.counts, "lost": oracle.losses_count}
    return Report(
        variant.name, seed, tuple(oracle.violations), tuple(counts.items()), world.events_count
    )


def _leave(scenario: _LocalQueue) -> None:
    """Let all callers leave, and check that nothing is left behind, in the store or in a line."""
    world, oracle = scenario.world, scenario.oracle
    scenario.leaving = True
    world.run(FAULTS_S + FAULT_FREE_S + LEAVE_S)
    oracle.check_clean(KEY, queue_too=False)
    for node in world.nodes:
        if len(node.context.lines):
            oracle.note_violation(f"{node.name} was left with a caller in line")
