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
CHAOS_S: Final = 60.0
QUIET_S: Final = 30.0
_LOOK_S: Final = 0.3
_OBSERVERS: Final = 3
# Messages that are late but within the timeout, and members that fall silent during a read.
FAULTS: Final = Faults(late=0.05, late_max_s=1.4, pause_every_s=15.0, cut_every_s=15.0)


@dataclass(slots=True)
class _Play:
    """The current memberships, and what each observer has read last."""

    world: World
    beliefs: list[tuple[Node, int, Hold]] = field(default_factory=list)
    seen: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def complain(self, text: str) -> None:
        self.violations.append(f"at {self.world.now_s:.3f} s: {text}")
        self.world.stopped = True

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def start(self, node: Node) -> None:
        node.spawn(self.member(node))
        for _ in range(_OBSERVERS):
            node.spawn(self.observer(node))

    def member(self, node: Node) -> Steps[None]:
        chance = self.world.chance
        while True:
            try:
                yield Sleep(chance.uniform(0.0, 1.0))
                hold = yield from join_steps(node.context, GROUP, node.name, TTL_S)
                yield from self.stay(node, hold)
            except (Cancelled, CoordinationError):
                continue

    def stay(self, node: Node, hold: Hold) -> Steps[None]:
        """Stay a member for a while; once the faults have stopped, for good."""
        chance = self.world.chance
        self.count("joined")
        self.beliefs.append((node, node.life, hold))
        hold.on_lost(lambda why: self.told(node, hold, why))
        node.adopt(hold)
        keeper = hold.keeper
        assert isinstance(keeper, MemberKeeper)
        try:
            until_s = self.world.now_s + chance.uniform(0.5, 12.0)
            while hold.active and (self.world.calm or self.world.now_s < until_s):
                yield Sleep(chance.uniform(0.2, 2.0))
                if chance.random() < 0.2 and (yield from keeper.update(hold, chance.random())):
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

    def told(self, node: Node, hold: Hold, why: str) -> None:
        """Count a lost membership. Complain if the record exists, unless a renewal was late."""
        self.count("lost")
        if (
            "renewed within" not in why
            and self.world.store.registers.get(hold.key, 0.0) is not None
        ):
            self.complain(f"{node.name} was told a loss that is none: {why}")

    def observer(self, node: Node) -> Steps[None]:
        roll = GroupObserver(node.context, GROUP)
        while True:
            try:
                yield Sleep(self.world.chance.uniform(0.0, _LOOK_S))
                # A reading like that of `list`, or like that of `watch`, which reads less often.
                yield from roll.refresh(self.world.chance.choice((0.0, _LOOK_S)))
            except (Cancelled, CoordinationError):
                continue
            nonces = frozenset(member.nonce for member in roll.members.values())
            self.seen[node.name] = (self.world.now_s, nonces)

    def refresh(self) -> None:
        """Check after every event that the record of each valid membership exists."""
        alive = []
        for belief in self.beliefs:
            node, life, hold = belief
            if life != node.life or not node.up or not hold.active:
                continue
            alive.append(belief)
            if hold.remaining_s() > 0 and self.world.store.registers.get(hold.key, 0.0) is None:
                self.complain(f"{node.name} believes to be a member, and its record is gone")
        self.beliefs = alive

    def check_settled(self) -> None:
        """Check long after the faults that all nodes are members, and see exactly these."""
        living = {hold.nonce for _, _, hold in self.beliefs if hold.remaining_s() > 0}
        if len(living) != len(self.world.nodes):
            self.complain(f"{len(living)} of {len(self.world.nodes)} are in")
        for node in self.world.nodes:
            at_s, nonces = self.seen.get(node.name, (0.0, frozenset()))
            if at_s < CHAOS_S + QUIET_S - 5:
                self.complain(f"{node.name} looks no more")
            elif nonces != living:
                self.complain(f"{node.name} sees {len(nonces - living)} too many")
        for key in self.world.store.registers.list_keys(group_prefix(GROUP)):
            entry = self.world.store.registers.get(key, 0.0)
            if entry is not None and decode_member(key, entry.value).nonce not in living:
                self.complain(f"{key} was left behind")


def run_members(seed: int, rules: ClockRules | None = None, faults: Faults = FAULTS) -> Report:
    """Play one seed and return the report.

    Arguments:
        seed: determines the whole run.
        rules: the clock rules; by default correct ones, with the bound of the faults.
        faults: the faults of the run. If all clocks run alike, the rules leave no slack. A rule
            that counts from the wrong end of a message then fails.
    """
    world = World(seed, faults, rules or ClockRules(faults.rate), calm_after_s=CHAOS_S, watch=False)
    play = _Play(world)
    world.on_start = play.start
    world.observers.append(play.refresh)
    for node in world.nodes:
        play.start(node)
    world.run(CHAOS_S + QUIET_S)
    if not play.violations:
        play.check_settled()
    counts = tuple(sorted(play.counts.items()))
    return Report("members", seed, tuple(play.violations), counts, world.events_count)
