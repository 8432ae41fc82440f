"""Locks under faults: four nodes repeatedly acquire, write with the fence, and release.

Lives here: the scenario, and `run_locks`, which plays one seed. Must not live here: the invariants
(oracle.py), faults (world.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Sleep, Steps
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_request import HoldRequest
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.simulation.oracle import Oracle
from strongroom.coordination.simulation.world import NO_FAULTS, Cancelled, Faults, Node, World

KEY: Final = "lock/simulated"
TTL_S: Final = 2.0
FAULTS_S: Final = 60.0
FAULT_FREE_S: Final = 60.0
LEAVE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class LockVariant:
    """The kind of store and lock that a run exercises."""

    name: str
    fair: bool = False
    server_lease: bool = False
    watch: bool = True
    faults: Faults = Faults()  # noqa: RUF009 - frozen


VARIANTS: Final = (
    LockVariant("watched"),
    LockVariant("polled", watch=False),
    LockVariant("fair", fair=True),
    LockVariant("server-lease", server_lease=True),
    LockVariant("set-back", server_lease=True, faults=Faults(set_back_every_s=12.0)),
    LockVariant("no-crashes", fair=True, faults=Faults(crash_every_s=0)),
    LockVariant("calm", fair=True, faults=NO_FAULTS),
)


@dataclass(frozen=True, slots=True)
class LockReport:
    """The result of one seed."""

    seed: int
    variant: str
    violations: tuple[str, ...]
    holds_count: int
    losses_count: int
    stale_writes_count: int
    events_count: int


class _Locks:
    def __init__(self, world: World, oracle: Oracle, variant: LockVariant) -> None:
        self.world, self.oracle, self.variant = world, oracle, variant
        self.leaving = False
        world.on_start = self.start

    def start(self, node: Node) -> None:
        node.spawn(self.worker(node))

    def worker(self, node: Node) -> Steps[None]:
        while not self.leaving:
            try:
                yield from self.attempt(node)
            except Cancelled:
                continue

    def attempt(self, node: Node) -> Steps[None]:
        rng = self.world.rng
        yield Sleep(rng.uniform(0.0, 0.3))
        wait_s = rng.choice((0.0, 1.0, 10.0, None))
        request = HoldRequest(KEY, "simulated", TTL_S, wait_s, self.variant.fair)
        try:
            outcome = yield from Acquisition(node.context, request).steps()
        except CoordinationError:
            yield Sleep(0.2)
            return
        if isinstance(outcome, Hold):
            yield from self.hold(node, outcome)

    def hold(self, node: Node, hold: Hold) -> Steps[None]:
        self.oracle.note_hold(node, hold)
        node.adopt(hold)
        try:
            yield from self.work(hold)
        except GeneratorExit:
            raise  # a crashed holder releases nothing
        except BaseException:
            yield from self.release(hold)
            raise
        yield from self.release(hold)

    def work(self, hold: Hold) -> Steps[None]:
        rng = self.world.rng
        for _ in range(rng.randint(1, 3)):
            if hold.remaining_s() <= 0:
                break
            self.send_write(hold.fence)
            long = rng.random() < 0.1
            yield Sleep(rng.uniform(1.0, 4.0) if long else rng.uniform(0.0, 0.3))

    def release(self, hold: Hold) -> Steps[None]:
        if hold.end():
            yield from hold.keeper.release(hold)

    def send_write(self, fence: int) -> None:
        """Send a write after a check of the hold; the write may arrive late."""
        slow = self.world.rng.random() < 0.05 and not self.world.is_fault_free
        delay_s = self.world.rng.uniform(0.0, 8.0) if slow else 0.01
        self.world.after(delay_s, partial(self.oracle.write_arrives, fence))


def run_locks(seed: int, variant: LockVariant, rules: ClockRules | None = None) -> LockReport:
    """Play one seed and return the report.

    Arguments:
        variant: the kind of store and lock.
        rules: the clock rules; by default correct ones, with a bound of 30 %.
    """
    faults = variant.faults
    world = World(
        seed,
        faults,
        rules or ClockRules(0.3),
        faults_end_s=FAULTS_S,
        server_lease=variant.server_lease,
        watch=variant.watch,
    )
    oracle = Oracle(world)
    locks = _Locks(world, oracle, variant)
    for node in world.nodes:
        locks.start(node)
    world.run(FAULTS_S + FAULT_FREE_S)
    if not oracle.violations:
        _leave(locks)
    return LockReport(
        seed,
        variant.name,
        tuple(oracle.violations),
        oracle.holds_count,
        oracle.losses_count,
        oracle.stale_writes_count,
        world.events_count,
    )


def _leave(locks: _Locks) -> None:
    """Check progress, let all nodes leave, and check that nothing is left behind."""
    world, oracle, faults = locks.world, locks.oracle, locks.variant.faults
    if oracle.holds_count == 0:
        oracle.note_violation("nobody ever held it")
    for node in world.nodes:
        if oracle.last_entry_s.get(node.name, 0.0) < FAULTS_S:
            oracle.note_violation(f"{node.name} was stranded after the faults had stopped")
    locks.leaving = True
    world.run(FAULTS_S + FAULT_FREE_S + LEAVE_S)
    oracle.check_clean(KEY, queue_too=faults.crash_every_s == 0)
    if faults == NO_FAULTS and oracle.losses_count:
        oracle.note_violation(f"{oracle.losses_count} holds were lost although nothing went wrong")
