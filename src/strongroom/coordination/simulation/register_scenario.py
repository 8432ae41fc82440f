"""Registers under faults: every node reads, swaps and puts; the history is recorded.

Lives here: the scenario, and `run_register`, which plays one seed. It passes every call and answer
to a recorder, in the order of true time. The recorder's owner checks whether that history is
linearizable. Must not live here: faults (world.py), the checker.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple, Protocol

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Sleep, Steps
from strongroom.coordination.errors import CoordinationError, StoreUnavailable
from strongroom.coordination.recipes.register_core import RegisterWrite, get_steps
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.world import Cancelled, Faults, Node, World

KEY: Final = "register/simulated"
FAULTS_S: Final = 30.0
FAULT_FREE_S: Final = 5.0


UNAVAILABLE: Final = "unavailable"
"""The answer to a call that certainly changed nothing."""


class Read(NamedTuple):
    """A read; its answer is the value, or None if the key is absent."""


class Swapped(NamedTuple):
    """A compare-and-swap; its answer is whether the value was swapped."""

    new: int
    expected: int | None


class RegisterPut(NamedTuple):
    """A put; its answer is True."""

    new: int


class Recorded(Protocol):
    """One recorded call that has not ended yet."""

    def returned(self, result: Hashable) -> None:
        """Record the answer of the call."""
        ...

    def unknown(self) -> None:
        """Record that the call may have taken effect, may still do so, or never will."""
        ...


Record = Callable[[str, Hashable], Recorded]
"""Called with the caller's name and the call, when a call begins."""


class _Register:
    def __init__(self, world: World, record: Record) -> None:
        self.world, self.record = world, record
        self.numbers = itertools.count(1)
        self.callers = itertools.count(1)
        self.done_count = 0
        world.on_start = self.start

    def start(self, node: Node) -> None:
        for _ in range(2):
            node.spawn(self.worker(node))

    def worker(self, node: Node) -> Steps[None]:
        known: int | None = None
        while self.world.now_s < FAULTS_S:
            try:
                yield Sleep(self.world.rng.uniform(0.0, 1.0))
            except Cancelled:
                continue
            known = yield from self.call(node, known)

    def call(self, node: Node, known: int | None) -> Steps[int | None]:
        what, run = self.choose(node, known)
        # A call of unknown outcome never ends in the history, so each call gets a caller's name of
        # its own.
        call = self.record(f"{node.name}/{next(self.callers)}", what)
        try:
            answer = yield from run
        except StoreUnavailable:
            call.returned(UNAVAILABLE)
            return known
        except (Cancelled, CoordinationError):
            if isinstance(what, Read):
                call.returned(UNAVAILABLE)
            else:
                call.unknown()
            return known
        self.done_count += 1
        call.returned(answer)
        if isinstance(what, Read):
            return answer
        return what.new if answer else known

    def choose(
        self, node: Node, known: int | None
    ) -> tuple[Read | Swapped | RegisterPut, Steps[int | bool | None]]:
        number = self.world.rng.random()
        if number < 0.4:
            return Read(), _get(node)
        new = next(self.numbers)
        if number < 0.9:
            return Swapped(new, known), _swap(node, new, known)
        return RegisterPut(new), _put(node, new)


def _get(node: Node) -> Steps[int | None]:
    found = yield from get_steps(node.context, KEY)
    return None if found is None else int(found.value)


def _swap(node: Node, new: int, expected: int | None) -> Steps[bool]:
    swapping = RegisterWrite(node.context, KEY, new, None)
    swap = yield from swapping.swap(expected, expected is None, None)
    return swap.swapped


def _put(node: Node, new: int) -> Steps[bool]:
    swap = yield from RegisterWrite(node.context, KEY, new, None).put()
    return swap.swapped


def run_register(seed: int, record: Record) -> Report:
    """Play one seed and return the report.

    Arguments:
        record: called at the start of every call.
    """
    faults = Faults(pause_every_s=10.0, partition_every_s=15.0, outage_every_s=15.0, loss=0.08)
    world = World(seed, faults, ClockRules(0.3), faults_end_s=FAULTS_S)
    register = _Register(world, record)
    for node in world.nodes:
        register.start(node)
    world.run(FAULTS_S + FAULT_FREE_S)
    counts = (("calls", register.done_count),)
    return Report("register", seed, (), counts, world.events_count)
