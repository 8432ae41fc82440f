"""Members under faults: nodes join, update their data, leave or die; observers list them.

Lives here: the scenario, its invariants, and `run_members`, which plays one seed. Must not live
here: faults (world.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Sleep, Steps
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.recipes.members_core import (
    GroupObserver,
    MemberKeeper,
    decode_member,
    group_prefix,
    join_steps,
)
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.world import Cancelled, Faults, Node, World

GROUP: Final = "simulated"
TTL_S: Final = 2.0
FAULTS_S: Final = 60.0
FAULT_FREE_S: Final = 30.0
_POLL_S: Final = 0.3
_OBSERVERS: Final = 3
# Messages that are late but within the timeout, and members that fall silent during a read.
FAULTS: Final = Faults(delayed=0.05, delay_max_s=1.4, pause_every_s=15.0, partition_every_s=15.0)


@dataclass(slots=True)
class _Scenario:
    """The current memberships, and what each observer has read last."""

    world: World
    holds: list[tuple[Node, int, Hold]] = field(default_factory=list)
    seen: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def note_violation(self, text: str) -> None:
        self.violations.append(f"at {self.world.now_s:.3f} s: {text}")
        self.world.stopped = True

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def start(self, node: Node) -> None:
        node.spawn(self.member(node))
        for _ in range(_OBSERVERS):
            node.spawn(self.observer(node))

    def member(self, node: Node) -> Steps[None]:
        rng = self.world.rng
        while True:
            try:
                yield Sleep(rng.uniform(0.0, 1.0))
                hold = yield from join_steps(node.context, GROUP, node.name, TTL_S)
                yield from self.stay(node, hold)
            except (Cancelled, CoordinationError):
                continue

    def stay(self, node: Node, hold: Hold) -> Steps[None]:
        """Stay a member for a while; once the faults have stopped, for good."""
        rng = self.world.rng
        self.count("joined")
        self.holds.append((node, node.incarnation, hold))
        hold.on_lost(lambda reason: self.note_loss(node, hold, reason))
        node.adopt(hold)
        keeper = hold.keeper
        assert isinstance(keeper, MemberKeeper)
        try:
            until_s = self.world.now_s + rng.uniform(0.5, 12.0)
            while hold.active and (self.world.is_fault_free or self.world.now_s < until_s):
                yield Sleep(rng.uniform(0.2, 2.0))
                if rng.random() < 0.2 and (yield from keeper.update(hold, rng.random())):
                    self.count("updated")
        except GeneratorExit:
            raise  # a crashed member releases nothing
        except BaseException:
            yield from self.leave(hold)
            raise
        yield from self.leave(hold)

    def leave(self, hold: Hold) -> Steps[None]:
        if hold.end():
            self.count("left")
            yield from hold.keeper.release(hold)

    def note_loss(self, node: Node, hold: Hold, reason: str) -> None:
        """Count a lost membership. Complain if the record exists, unless a renewal was late."""
        self.count("lost")
        if (
            "renewed within" not in reason
            and self.world.store.registers.get(hold.key, 0.0) is not None
        ):
            self.note_violation(f"{node.name} was told a loss that is none: {reason}")

    def observer(self, node: Node) -> Steps[None]:
        group = GroupObserver(node.context, GROUP)
        while True:
            try:
                yield Sleep(self.world.rng.uniform(0.0, _POLL_S))
                # A reading like that of `list`, or like that of `watch`, which reads less often.
                yield from group.refresh(self.world.rng.choice((0.0, _POLL_S)))
            except (Cancelled, CoordinationError):
                continue
            nonces = frozenset(member.nonce for member in group.members.values())
            self.seen[node.name] = (self.world.now_s, nonces)

    def refresh(self) -> None:
        """Check after every event that the record of each valid membership exists."""
        alive = []
        for node_hold in self.holds:
            node, incarnation, hold = node_hold
            if incarnation != node.incarnation or not node.up or not hold.active:
                continue
            alive.append(node_hold)
            if hold.remaining_s() > 0 and self.world.store.registers.get(hold.key, 0.0) is None:
                self.note_violation(f"{node.name} believes to be a member, and its record is gone")
        self.holds = alive

    def check_settled(self) -> None:
        """Check long after the faults that all nodes are members, and see exactly these."""
        living = {hold.nonce for _, _, hold in self.holds if hold.remaining_s() > 0}
        if len(living) != len(self.world.nodes):
            self.note_violation(f"{len(living)} of {len(self.world.nodes)} are in")
        for node in self.world.nodes:
            at_s, nonces = self.seen.get(node.name, (0.0, frozenset()))
            if at_s < FAULTS_S + FAULT_FREE_S - 5:
                self.note_violation(f"{node.name} looks no more")
            elif nonces != living:
                self.note_violation(f"{node.name} sees {len(nonces - living)} too many")
        for key in self.world.store.registers.list_keys(group_prefix(GROUP)):
            entry = self.world.store.registers.get(key, 0.0)
            if entry is not None and decode_member(key, entry.value).nonce not in living:
                self.note_violation(f"{key} was left behind")


def run_members(seed: int, rules: ClockRules | None = None, faults: Faults = FAULTS) -> Report:
    """Play one seed and return the report.

    Arguments:
        rules: the clock rules; by default correct ones, with the bound of the faults.
        faults: the faults of the run. If all clocks run alike, the rules leave no slack. A rule
            that counts from the wrong end of a message then fails.
    """
    world = World(
        seed, faults, rules or ClockRules(faults.rate), faults_end_s=FAULTS_S, watch=False
    )
    scenario = _Scenario(world)
    world.on_start = scenario.start
    world.observers.append(scenario.refresh)
    for node in world.nodes:
        scenario.start(node)
    world.run(FAULTS_S + FAULT_FREE_S)
    if not scenario.violations:
        scenario.check_settled()
    counts = tuple(sorted(scenario.counts.items()))
    return Report("members", seed, tuple(scenario.violations), counts, world.events_count)
