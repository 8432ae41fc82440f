"""Semaphores and read-write locks under faults: four nodes whose callers acquire and release.

Lives here: the scenarios, their invariants, and `run_slots`, which plays one seed. Must not live
here: faults (world.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Sleep, Steps
from strongroom.coordination.errors import AlreadyHeld, CoordinationError
from strongroom.coordination.recipes.locks import rwlock
from strongroom.coordination.recipes.slots import semaphore
from strongroom.coordination.recipes.slots.slot_records import decode_slots
from strongroom.coordination.recipes.slots.slots_core import SlotAcquisition, SlotRequest
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.world import Cancelled, Faults, Node, World

NAME: Final = "simulated"
TTL_S: Final = 2.0
PERMITS: Final = 2
FAULTS_S: Final = 60.0
FAULT_FREE_S: Final = 60.0
LEAVE_S: Final = 30.0
# A caller that still waits this long after the faults have stopped counts as stranded.
STRANDED_S: Final = 30.0
_WRITERS_SHARE: Final = 0.3
_HELD: Final = "hold"


@dataclass(frozen=True, slots=True)
class Variant:
    """The subject of a run: the kind of recipe, and how waiters wait."""

    name: str
    kind: str
    watch: bool = True
    faults: Faults = Faults()  # noqa: RUF009 - frozen
    clients: int = 4
    callers: int = 1


VARIANTS: Final = (
    Variant("semaphore", semaphore.KIND, callers=2),
    Variant("semaphore-polled", semaphore.KIND, watch=False, callers=2),
    Variant("semaphore-local-queue", semaphore.KIND, clients=2, callers=5),
    Variant("rwlock", rwlock.KIND),
    Variant("rwlock-polled", rwlock.KIND, watch=False),
    Variant("rwlock-no-crashes", rwlock.KIND, faults=Faults(crash_every_s=0)),
    Variant("rwlock-local-queue", rwlock.KIND, clients=2, callers=4),
)


@dataclass(slots=True)
class _NodeHold:
    node: Node
    incarnation: int
    hold: Hold
    role: str

    @property
    def alive(self) -> bool:
        return self.incarnation == self.node.incarnation and self.node.up and self.hold.active


@dataclass(slots=True)
class _Invariants:
    """Checks the invariants: a limit of holders, unique fences, and no holder beside a writer."""

    world: World
    holds: list[_NodeHold] = field(default_factory=list)
    lost: list[_NodeHold] = field(default_factory=list)
    fences: set[int] = field(default_factory=set)
    written: int = 0
    violations: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    last_entry_s: dict[str, float] = field(default_factory=dict)
    waiting: dict[SlotAcquisition, tuple[Node, int, str, float]] = field(default_factory=dict)

    def note_violation(self, text: str) -> None:
        self.violations.append(f"at {self.world.now_s:.3f} s: {text}")
        self.world.stopped = True

    def note_hold(self, node: Node, hold: Hold, role: str) -> None:
        """Note that a node holds a slot from now on, and check its fence."""
        self.counts[role] = self.counts.get(role, 0) + 1
        self.last_entry_s[node.name] = self.world.now_s
        if role == _HELD and hold.fence in self.fences:
            self.note_violation(f"fence {hold.fence} was given twice")
        late = hold.fence <= self.written if role == rwlock.WRITE else hold.fence < self.written
        if role != _HELD and late:
            self.note_violation(
                f"{node.name} got fence {hold.fence} to {role} after {self.written}"
            )
        if role == rwlock.WRITE:
            self.written = max(self.written, hold.fence)
        self.fences.add(hold.fence)
        node_hold = _NodeHold(node, node.incarnation, hold, role)
        self.holds.append(node_hold)
        hold.on_lost(lambda reason: self._note_loss(node_hold, reason))

    def _note_loss(self, node_hold: _NodeHold, reason: str) -> None:
        self.counts["lost"] = self.counts.get("lost", 0) + 1
        self.lost.append(node_hold)
        hold, kind = node_hold.hold, node_hold.hold.key.partition("/")[0]
        entry = self.world.store.registers.get(hold.key, 0.0)
        if "renewed within" in reason or entry is None:
            return
        if decode_slots(kind, hold.key, entry.value).slot_of(hold.nonce) is not None:
            self.note_violation(f"{node_hold.node.name} was told a loss that is none: {reason}")

    def check(self) -> None:
        """Check all holds; called after every event."""
        if any(node_hold.hold.active for node_hold in self.lost):
            self.note_violation("a lost hold was revived")
        self.holds = [node_hold for node_hold in self.holds if node_hold.alive]
        inside = [node_hold for node_hold in self.holds if node_hold.hold.remaining_s() > 0]
        writers = [node_hold for node_hold in inside if node_hold.role == rwlock.WRITE]
        if writers and len(inside) > 1:
            names = ", ".join(f"{b.node.name} ({b.role} {b.hold.fence})" for b in inside)
            self.note_violation(f"a writer is not alone: {names}")
        held = [node_hold for node_hold in inside if node_hold.role == _HELD]
        if len(held) > PERMITS:
            self.note_violation(f"{len(held)} hold {PERMITS} permits")


class _Scenario:
    def __init__(self, world: World, invariants: _Invariants, variant: Variant) -> None:
        self.world, self.invariants, self.variant = world, invariants, variant
        self.key = key_of(variant.kind, NAME)
        self.leaving = False
        world.on_start = self.start

    def start(self, node: Node) -> None:
        for _ in range(self.variant.callers):
            node.spawn(self.worker(node))

    def worker(self, node: Node) -> Steps[None]:
        while not self.leaving:
            try:
                yield from self.attempt(node)
            except Cancelled:
                continue

    def attempt(self, node: Node) -> Steps[None]:
        yield Sleep(self.world.rng.uniform(0.0, 0.4))
        request = self.next_request()
        acquisition = SlotAcquisition(node.context, request)
        self.invariants.waiting[acquisition] = (
            node, node.incarnation, request.role, self.world.now_s,
        )  # fmt: skip
        try:
            outcome = yield from acquisition.steps()
        except AlreadyHeld:
            self.invariants.note_violation(f"{node.name} took a slot of nobody's for its own")
            return
        except CoordinationError:
            yield Sleep(0.2)
            return
        finally:
            del self.invariants.waiting[acquisition]
        if isinstance(outcome, Hold):
            yield from self.hold(node, outcome, request.role)

    def next_request(self) -> SlotRequest:
        rng, kind = self.world.rng, self.variant.kind
        wait_s = rng.choice((0.0, 1.0, 10.0, None))
        if kind == semaphore.KIND:
            rule = semaphore.SemaphoreRule(NAME, PERMITS)
            return SlotRequest(
                kind, self.key, NAME, _HELD, rule, TTL_S, wait_s, limit=PERMITS, reentrant=True
            )
        if rng.random() < _WRITERS_SHARE:
            return SlotRequest(
                kind, self.key, NAME, rwlock.WRITE, rwlock.WriteRule(), TTL_S, wait_s,
                rwlock.WANTS_WRITE,
            )  # fmt: skip
        return SlotRequest(kind, self.key, NAME, rwlock.READ, rwlock.ReadRule(), TTL_S, wait_s)

    def hold(self, node: Node, hold: Hold, role: str) -> Steps[None]:
        self.invariants.note_hold(node, hold, role)
        node.adopt(hold)
        rng = self.world.rng
        try:
            long = rng.random() < 0.1
            yield Sleep(rng.uniform(1.0, 4.0) if long else rng.uniform(0.0, 0.6))
        except GeneratorExit:
            raise  # a crashed caller releases nothing
        except BaseException:
            yield from self.release(hold)
            raise
        yield from self.release(hold)

    def release(self, hold: Hold) -> Steps[None]:
        if hold.end():
            yield from hold.keeper.release(hold)

    def leave(self) -> None:
        """Check progress, let all callers leave, and check that live nodes left no slot behind."""
        invariants, world = self.invariants, self.world
        for node in world.nodes:
            if invariants.last_entry_s.get(node.name, 0.0) < FAULTS_S:
                invariants.note_violation(f"{node.name} never came in after the faults stopped")
        for node, incarnation, role, since_s in invariants.waiting.values():
            # A caller of an earlier life of its node waits no more.
            if incarnation == node.incarnation and world.now_s - since_s > STRANDED_S:
                invariants.note_violation(
                    f"{node.name} was stranded ({role}) after the faults stopped"
                )
        self.leaving = True
        world.run(FAULTS_S + FAULT_FREE_S + LEAVE_S)
        entry = world.store.registers.get(self.key, 0.0)
        living = tuple(f"{node.context.identity}-" for node in world.nodes)
        for slot in decode_slots(self.variant.kind, self.key, entry.value).slots if entry else ():
            if slot.owner.startswith(living):
                invariants.note_violation(f"{slot.who} left a slot behind ({slot.role})")


def run_slots(seed: int, variant: Variant, rules: ClockRules | None = None) -> Report:
    """Play one seed and return the report.

    Arguments:
        variant: the recipe, and how waiters wait.
        rules: the clock rules; by default correct ones, with a bound of 30 %.
    """
    world = World(
        seed,
        variant.faults,
        rules or ClockRules(0.3),
        nodes=variant.clients,
        faults_end_s=FAULTS_S,
        watch=variant.watch,
    )
    invariants = _Invariants(world)
    world.observers.append(invariants.check)
    scenario = _Scenario(world, invariants, variant)
    for node in world.nodes:
        scenario.start(node)
    world.run(FAULTS_S + FAULT_FREE_S)
    if not invariants.violations:
        scenario.leave()
    counts = tuple(sorted(invariants.counts.items()))
    return Report(variant.name, seed, tuple(invariants.violations), counts, world.events_count)
