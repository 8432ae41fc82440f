"""The cost of a fair queue for its store, and its fairness, in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from unittest.mock import patch

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Cas, Effect, Get, Sleep, Steps, Watch
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_request import HoldRequest
from strongroom.coordination.recipes.waiting import NotAcquired
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.simulation.world import NO_FAULTS, Node, World

KEY = "lock/queue"
TTL_S = 15.0
NODES = 16
RUN_S = 40.0


class Queue:
    """Nodes that take a lock, hold it for a moment, and come back at once."""

    def __init__(self, seed: int, held_s: float = 0.0, fair: bool = True) -> None:
        self.world = World(seed, NO_FAULTS, ClockRules(0.3), NODES, faults_end_s=0.0)
        self.held_s, self.fair = held_s, fair
        self.turns: Counter[str] = Counter()
        self.requests: Counter[type] = Counter()
        arrive = self.world._arrive

        def counted(node: Node, effect: Effect, answer: Callable[..., None]) -> None:
            self.requests[type(effect)] += 1
            arrive(node, effect, answer)

        self.world._arrive = counted  # type: ignore[method-assign]  # a double
        for node in self.world.nodes:
            node.spawn(self.cycles(node))
        self.world.run(RUN_S)

    def cycles(self, node: Node) -> Steps[None]:
        while True:
            wanted = HoldRequest(KEY, "queue", TTL_S, None, self.fair)
            hold = yield from Acquisition(node.context, wanted).steps()
            assert isinstance(hold, Hold)
            yield Sleep(self.held_s)
            assert hold.end()
            yield from hold.keeper.release(hold)
            self.turns[node.name] += 1

    @property
    def reads_a_turn(self) -> float:
        return (self.requests[Get] + self.requests[Watch]) / self.turns.total()

    @property
    def writes_a_turn(self) -> float:
        return self.requests[Cas] / self.turns.total()


def test_everybody_gets_the_same_share() -> None:
    queue = Queue(1)
    assert len(queue.turns) == NODES
    assert min(queue.turns.values()) > 20
    assert max(queue.turns.values()) <= 1.2 * min(queue.turns.values())


def test_those_far_back_do_not_read_every_change() -> None:
    queue = Queue(2)
    with patch.object(Acquisition, "_queue_delay_s", lambda self, ahead: 0.0):
        eager = Queue(2)
    assert queue.reads_a_turn < eager.reads_a_turn / 2
    # If requests cost their sender time but no work, rarer polling gains nothing.
    assert queue.turns.total() > 0.75 * eager.turns.total()
    # Take, release, enter the queue; and what is lost to others and tried again.
    assert queue.writes_a_turn < 8


def test_a_queue_that_moves_slowly_is_not_slowed_down() -> None:
    held_s = 1.0
    queue = Queue(3, held_s)
    assert queue.turns.total() > 0.8 * RUN_S / (held_s * 1.3 + 0.1)


def test_a_look_is_never_put_off_for_longer_than_a_request_may_take() -> None:
    world = World(4, NO_FAULTS, ClockRules(0.3), 1)
    context = world.nodes[0].context
    acquisition = Acquisition(context, HoldRequest(KEY, "queue", TTL_S, None, True))
    context.round_trip_s = 100.0  # of one write that took very long
    assert acquisition._queue_delay_s(0) == 0.0
    assert acquisition._queue_delay_s(7) == context.rules.attempt_timeout_s(TTL_S)


def test_who_comes_next_is_served_soon_though_all_ahead_give_up() -> None:
    world = World(5, NO_FAULTS, ClockRules(0.3), 10, faults_end_s=0.0)
    first, *impatient, last = world.nodes
    served_s: list[float] = []

    def take(node: Node, wait_s: float | None, held_s: float) -> Steps[None]:
        outcome = yield from Acquisition(
            node.context, HoldRequest(KEY, "queue", TTL_S, wait_s, True)
        ).steps()
        if isinstance(outcome, NotAcquired):
            return
        served_s.append(world.now_s)
        yield Sleep(held_s)
        assert outcome.end()
        yield from outcome.keeper.release(outcome)

    first.spawn(take(first, None, node_s(first, 10.0)))
    world.run(1.0)
    for node in impatient:
        node.spawn(take(node, node_s(node, 8.999 - world.now_s), 0.0))
        world.run(world.now_s + 0.2)
    last.spawn(take(last, None, 0.0))
    world.run(30.0)
    assert len(served_s) == 2
    assert served_s[1] - 10.0 < 2.5


def node_s(node: Node, seconds: float) -> float:
    """Return what this node's clock counts while so much true time passes."""
    return seconds * node.clock.rate
