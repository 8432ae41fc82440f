"""The simulated world: virtual time, nodes with bad clocks, a lossy network, one store.

Lives here: how and when effects are performed. Each node's clocks have an offset of up to 5 s, and
a rate that is up to 30 % off. Requests and replies are lost, delayed or duplicated; nodes pause and
crash; the store becomes unreachable and returns. Must not live here: the store's answers
(store.py), the work of nodes (scenarios), the invariants (oracle.py).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from strongroom.coordination.clock import SeededRandom
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import (
    UNCHANGED,
    AwaitSignal,
    Cas,
    Delete,
    Effect,
    Get,
    Sleep,
    SleepUntil,
    Steps,
    Unknown,
    Watch,
)
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.renewal import Timetable, deadlines, renewals
from strongroom.coordination.simulation.store import SimulatedStore

_LATENCY_S: Final = 0.008
_SHOWN_MAX: Final = 160
_SET_BACK_MAX_S: Final = 200.0

TRACE: Final[ContextVar[Callable[[str], None] | None]] = ContextVar("trace", default=None)
"""Called with a line for every event, in a world that is created while it is set."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of a run, and how often each happens.

    Attributes:
        loss: the fraction of requests, and of replies, that are lost.
        delayed: the fraction of messages that take up to `delay_max_s`.
        duplicated: the fraction of requests that arrive twice.
        stall: the fraction of requests after which the node pauses for up to 8 s.
        offset_s, rate: the largest errors of the nodes' clocks.
        pause_every_s, crash_every_s, partition_every_s: the mean times between such faults, per
            node; 0: never. A partitioned node reaches nothing for a while.
        outage_every_s: the mean time between outages of the store, which affect all nodes at once.
        cancel_every_s: the mean time between cancellations of a waiting caller, per node.
        set_back_every_s: the mean time between corrections of the store's clock. Each sets the
            clock back by up to 200 s.
    """

    loss: float = 0.03
    delayed: float = 0.02
    delay_max_s: float = 6.0
    duplicated: float = 0.01
    stall: float = 0.004
    offset_s: float = 5.0
    rate: float = 0.3
    pause_every_s: float = 25.0
    crash_every_s: float = 60.0
    partition_every_s: float = 30.0
    outage_every_s: float = 50.0
    cancel_every_s: float = 20.0
    set_back_every_s: float = 0.0


NO_FAULTS: Final = Faults(0, 0, 0, 0, 0, 5.0, 0.3, 0, 0, 0, 0, 0)


class Cancelled(BaseException):
    """Raised inside a cancelled caller, like asyncio's CancelledError."""


class NodeClock:
    """The clocks of one node, which have an offset and a rate error.

    Arguments:
        world: provides the true time and random numbers.
        offset_s, rate: the offset, and the rate relative to true time.
    """

    def __init__(self, world: World, offset_s: float, rate: float) -> None:
        self._world, self.offset_s, self.rate = world, offset_s, rate

    def boot_s(self) -> float:
        return 1000.0 + self.offset_s + self._world.now_s * self.rate

    def monotonic_s(self) -> float:
        return self.boot_s() - 777.0

    def wall_text(self) -> str:
        return f"{self.boot_s():.6f}"

    def random(self) -> float:
        return self._world.rng.random()

    def nonce(self) -> str:
        return f"{self._world.rng.getrandbits(64):016x}"

    def true_s(self, local_s: float) -> float:
        """Return the true time that passes while this clock counts `local_s`."""
        return local_s / self.rate


class Node:
    """One machine: clocks, a client's context, its background tasks, its callers."""

    def __init__(self, world: World, name: str) -> None:
        faults, rng = world.faults, world.rng
        offset_s = rng.uniform(-faults.offset_s, faults.offset_s)
        rate = rng.uniform(1 - faults.rate, 1 + faults.rate)
        self.world, self.name = world, name
        self.clock = NodeClock(world, offset_s, rate)
        self.incarnation = 0  # counts the restarts; objects of an earlier life are dead
        self.up = True
        self.paused_until_s = 0.0
        self.partitioned_until_s = 0.0
        self.processes: list[Process] = []
        self.start()

    def start(self) -> None:
        """Start after a boot: a new identity, empty tables, the two background tasks."""
        world = self.world
        self.incarnation += 1
        self.up = True
        self.processes = []
        self.context = RecipeContext(self.clock, world.rules, world.store.promises, self.name)
        self._parked: dict[int, Process] = {}
        self.renewal_table = Timetable(self.clock, lambda: self._unpark(0))
        self.deadline_table = Timetable(self.clock, lambda: self._unpark(1))
        for number, steps in enumerate(
            (renewals(self.renewal_table, world.rules), deadlines(self.deadline_table))
        ):
            process = Process(self, steps, number)
            self.processes.append(process)
            world.resume(process, None)

    def spawn(self, steps: Steps[None]) -> Process:
        process = Process(self, steps, -1)
        self.processes.append(process)
        self.world.resume(process, None)
        return process

    def adopt(self, hold: Hold) -> None:
        """Renew this hold and watch its deadline, as the drivers do."""
        rules, clock = self.context.rules, self.clock
        wait_s = rules.renew_after_s(hold.ttl_s, clock.random())
        self.renewal_table.add(clock.boot_s() + wait_s, hold)
        self.deadline_table.add(hold.deadline_s - hold.margin_s, hold)
        name, world = self.name, self.world
        world.note("%s holds %s, fence %s", name, hold.key, hold.fence)
        if world.traced:
            hold.on_lost(lambda why: world.note("%s has lost %s: %s", name, hold.key, why))

    def crash(self) -> None:
        """Stop all processes, and lose everything in memory."""
        self.up = False
        for process in self.processes:
            process.alive = False
        self.processes = []

    def park(self, process: Process, until_s: float | None) -> None:
        """Put a background task to sleep until a local time, or until its timetable wakes it."""
        process.ticket += 1
        ticket = process.ticket
        self._parked[process.number] = process
        if until_s is not None:
            delay_s = max(0.0, self.clock.true_s(until_s - self.clock.boot_s())) + 1e-9
            self.world.after(delay_s, lambda: self._unpark(process.number, ticket))

    def _unpark(self, number: int, ticket: int | None = None) -> None:
        process = self._parked.get(number)
        if process is not None and (ticket is None or ticket == process.ticket):
            del self._parked[number]
            self.world.resume(process, None)


class Process:
    """Steps that run on a node, with the effect that they wait for."""

    def __init__(self, node: Node, steps: Steps[None], number: int) -> None:
        self.node, self.steps, self.number = node, steps, number
        self.alive = True
        self.started = False
        self.ticket = 0
        self.waiting = 0  # the number of the awaited effect; earlier answers are ignored


class World:
    """The world of one run.

    Arguments:
        faults: the faults that happen until `faults_end_s`.
        rules: the clock rules under test.
        nodes: the number of nodes.
        faults_end_s: the time of the last fault. The clocks stay wrong after it.
        server_lease: whether the store keeps a lease clock, which is wrong like the others.
        watch: whether the store supports watches.
    """

    def __init__(
        self,
        seed: int,
        faults: Faults,
        rules: ClockRules,
        nodes: int = 4,
        faults_end_s: float = 60.0,
        server_lease: bool = False,
        watch: bool = True,
    ) -> None:
        self.rng, self._trace = SeededRandom(seed), TRACE.get()
        self.faults, self.rules = faults, rules
        self.now_s = 0.0
        self.faults_end_s = faults_end_s
        self.observers: list[Callable[[], None]] = []
        self.events_count = 0
        self.stopped = False
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        store_rate = self.rng.uniform(1 - faults.rate, 1 + faults.rate)
        self.store = SimulatedStore(server_lease, store_rate, watch)
        self.nodes = [Node(self, f"node{number}") for number in range(nodes)]
        self.on_start: Callable[[Node], None] = lambda node: None
        self._plan_faults()

    @property
    def is_fault_free(self) -> bool:
        """Whether the time of faults is over."""
        return self.now_s >= self.faults_end_s

    @property
    def traced(self) -> bool:
        return self._trace is not None

    def note(self, what: str, *about: object) -> None:
        """Report an event to the trace; `what` is a format string for the values in `about`."""
        if self._trace is not None:
            self._trace(f"{self.now_s:9.3f} s  {what % about}")

    # Time

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Schedule a call so many seconds of true time from now."""
        heapq.heappush(self._events, (self.now_s + seconds, next(self._numbers), call))

    def run(self, until_s: float) -> None:
        """Process events until the true time `until_s`, and call the observers after each event."""
        while self._events and self._events[0][0] <= until_s and not self.stopped:
            self.now_s, _, call = heapq.heappop(self._events)
            call()
            self.events_count += 1
            for observe in self.observers:
                observe()
        self.now_s = until_s

    # Processes

    def resume(self, process: Process, outcome: Any, error: BaseException | None = None) -> None:
        """Send an outcome or an error to a process, once its node is not paused."""
        process.waiting += 1
        self._resume_when_awake(process, process.waiting, outcome, error)

    def _resume_when_awake(
        self, process: Process, waiting: int, outcome: Any, error: BaseException | None
    ) -> None:
        delay_s = max(0.0, process.node.paused_until_s - self.now_s)

        def resume_now() -> None:
            if not process.alive or process.waiting != waiting:
                return
            if process.node.paused_until_s > self.now_s:
                self._resume_when_awake(process, waiting, outcome, error)
            else:
                self._step(process, outcome, error)

        self.after(delay_s, resume_now)

    def _step(self, process: Process, outcome: Any, error: BaseException | None) -> None:
        process.started = True
        try:
            if error is not None:
                effect = process.steps.throw(error)
            else:
                effect = process.steps.send(outcome)
        except StopIteration:
            process.alive = False
            return
        process.waiting += 1
        self._perform(process, effect)

    def cancel(self, process: Process) -> None:
        """Raise `Cancelled` inside a process that has started."""
        if process.alive and process.started:
            self.resume(process, None, Cancelled())

    # Effects

    def _perform(self, process: Process, effect: Effect) -> None:
        clock = process.node.clock
        waiting = process.waiting

        def answer(outcome: Any, error: BaseException | None = None) -> None:
            if process.alive and process.waiting == waiting:
                self.resume(process, outcome, error)

        if isinstance(effect, Sleep):
            self.after(clock.true_s(effect.seconds), lambda: answer(None))
        elif isinstance(effect, AwaitSignal):
            effect.signal.call_when_set(lambda: answer(None))
            if effect.timeout_s is not None:
                self.after(clock.true_s(effect.timeout_s), lambda: answer(None))
        elif isinstance(effect, SleepUntil):
            process.node.park(process, effect.until_s)
        else:
            self._request(process.node, effect, answer)

    def _request(self, node: Node, effect: Any, answer: Callable[..., None]) -> None:
        def give_up() -> None:
            if isinstance(effect, Cas | Delete):
                answer(Unknown("no answer in time"))
            elif isinstance(effect, Watch):
                answer(UNCHANGED)
            else:
                answer(None, StoreUnavailable("no answer in time"))

        self.after(node.clock.true_s(effect.timeout_s), give_up)
        copies = 2 if self._happens(self.faults.duplicated) else 1
        for _ in range(copies):
            if self._happens(self.faults.loss):
                self.note("%s: %s is lost on its way", node.name, _describe(effect))
            else:
                self.after(self._latency_s(), lambda: self._arrive(node, effect, answer))
        if self._happens(self.faults.stall):
            self._pause(node)

    def _arrive(self, node: Node, effect: Effect, answer: Callable[..., None]) -> None:
        if self.now_s < node.partitioned_until_s:
            return

        def reply(outcome: Any, error: BaseException | None = None) -> None:
            partitioned = self.now_s < node.partitioned_until_s
            if partitioned or self._happens(self.faults.loss):
                self.note("%s: the answer to %s is lost", node.name, _describe(effect))
            else:
                self.after(self._latency_s(), lambda: answer(outcome, error))

        if self.store.is_down(self.now_s):
            if self.rng.random() < 0.5:
                reply(None, StoreUnavailable("the store is down"))
        elif isinstance(effect, Watch):
            self.store.watch(effect, lambda: self.now_s, reply)
        else:
            outcome = self.store.apply(effect, self.now_s)
            if isinstance(effect, Cas | Delete):
                self.note("%s: %s: %s", node.name, _describe(effect), type(outcome).__name__)
            reply(outcome)

    def _latency_s(self) -> float:
        if self._happens(self.faults.delayed):
            return self.rng.uniform(0, self.faults.delay_max_s)
        return _LATENCY_S * (0.5 + self.rng.random())

    def _happens(self, share: float) -> bool:
        return share > 0 and not self.is_fault_free and self.rng.random() < share

    # Faults

    def _plan_faults(self) -> None:
        faults = self.faults
        self._plan(faults.outage_every_s, self._outage)
        self._plan(faults.set_back_every_s, self._set_back)
        for node in self.nodes:
            self._plan(faults.pause_every_s, partial(self._pause, node))
            self._plan(faults.partition_every_s, partial(self._partition, node))
            self._plan(faults.crash_every_s, partial(self._crash, node))
            self._plan(faults.cancel_every_s, partial(self._cancel, node))

    def _plan(self, every_s: float, inject: Callable[[], None]) -> None:
        if every_s <= 0:
            return

        def due() -> None:
            if not self.is_fault_free:
                inject()
                self._plan(every_s, inject)

        self.after(self.rng.expovariate(1 / every_s), due)

    def _outage(self) -> None:
        until_s = self.now_s + self.rng.uniform(0.2, 6)
        self.store.go_down(until_s)
        self.note("the store is away until %.3f", until_s)

    def _set_back(self) -> None:
        self.store.set_back(self.rng.uniform(0.5, _SET_BACK_MAX_S))
        self.note("the store's clock is set to %.3f", self.store.clock_s(self.now_s))

    def _pause(self, node: Node) -> None:
        node.paused_until_s = self.now_s + self.rng.uniform(0.1, 8)
        self.note("%s stands still until %.3f", node.name, node.paused_until_s)

    def _partition(self, node: Node) -> None:
        node.partitioned_until_s = self.now_s + self.rng.uniform(0.5, 10)
        self.note("%s reaches nothing until %.3f", node.name, node.partitioned_until_s)

    def _crash(self, node: Node) -> None:
        if node.up:
            node.crash()
            self.note("%s crashes", node.name)
            self.after(self.rng.uniform(0.5, 10), lambda: self._restart(node))

    def _restart(self, node: Node) -> None:
        node.start()
        self.note("%s is back", node.name)
        self.on_start(node)

    def _cancel(self, node: Node) -> None:
        callers = [process for process in node.processes if process.number < 0]
        if callers:
            self.cancel(self.rng.choice(callers))


def _describe(effect: Effect) -> str:
    """Return a short description of a request."""
    if isinstance(effect, Cas):
        action = f", {effect.lease.action.value}" if effect.lease else ""
        text = effect.value[:_SHOWN_MAX].decode("utf-8", "replace")
        return f"write {effect.key} over {effect.expected or 'nothing'}{action} {text}"
    if isinstance(effect, Delete):
        return f"delete {effect.key} {effect.expected}"
    if isinstance(effect, Get | Watch):
        return f"{type(effect).__name__.lower()} {effect.key}"
    return type(effect).__name__
