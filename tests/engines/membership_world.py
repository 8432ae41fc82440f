"""A simulated store with several gateways: deaths, pauses, late heartbeats, and clocks that differ.

Lives here: the world, the actions of its gateways, and the promises that are checked at every step.
Must not live here: the rules themselves (engines/membership.py), or tests.

Gateways change their shared state only by calls with a delay. A call arrives even if its sender is
paused or dead by then, and the sender gets the answer when it runs again. Times are in seconds; a
seed decides everything.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

from strongroom.engines import membership
from strongroom.engines.gateways import READING_S_MAX, GatewayRun, Horizon
from strongroom.engines.membership import GatewayState, Heartbeat, MembershipTable
from strongroom.values import TICKS_PER_S

GATEWAYS: Final = 3
BLOBS: Final = 40
_BUSY_BLOBS: Final = 3
END_S: Final = 150.0
_SKEW_S: Final = 20.0
_DRIFT: Final = 0.001
_START_TICKS: Final = 1_000 * TICKS_PER_S

Act = Generator["float | Call", Any, None]


class Rules:
    """The rules under test. A mutant overrides one."""

    def beat(
        self, table: MembershipTable, number: int, row: Heartbeat, now: int
    ) -> MembershipTable | None:
        return membership.beat(table, number, row, now)

    def remove_dead(self, table: MembershipTable, now: int) -> MembershipTable:
        return membership.remove_dead(table, now)

    def join(
        self, table: MembershipTable, now: int, least: int
    ) -> tuple[MembershipTable, GatewayRun] | None:
        return membership.join(table, now, least)

    def grant_hold(
        self, table: MembershipTable, name: bytes, gateway: GatewayRun
    ) -> MembershipTable | None:
        return membership.grant_hold(table, name, gateway)

    def may_commit(self, table: MembershipTable, gateway: GatewayRun) -> bool:
        return table.is_live(gateway)

    def horizon(self, table: MembershipTable, number: int) -> Horizon:
        return table.horizon(number)

    def is_quiet(self, table: MembershipTable, stamp: int) -> bool:
        return table.floor >= stamp

    def is_late(self, state: GatewayState, now: int) -> bool:
        return state.is_late(now)

    def begin_reading(self, state: GatewayState, now: int) -> membership.GatewayReaderMark:
        return state.begin_reading()


@dataclass(frozen=True)
class Call:
    """A call that reaches the shared table or data after `out_s`; its answer takes `back_s`."""

    do: Callable[[], Any]
    out_s: float
    back_s: float


@dataclass
class Report:
    """The result of a run: the promises that were broken, and how often each action was done."""

    seed: int
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False)
class Gateway:
    """One run of one process."""

    offset_ticks: int
    rate: float
    state: GatewayState
    in_flight: set[int] = field(default_factory=set)
    paused_until_s: float = 0.0
    cut_until_s: float = 0.0  # until then its heartbeats are delayed
    crashed: bool = False
    held: set[bytes] = field(default_factory=set)
    readings: set[int] = field(default_factory=set)


class World:
    """A store and its gateways.

    Arguments:
        seed: decides everything.
        rules: the rules under test.
    """

    def __init__(self, seed: int, rules: Rules) -> None:
        self.report = Report(seed)
        self._random = random.Random(seed)
        self._rules = rules
        self._now_s = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ids = itertools.count(1)
        self._table = MembershipTable()
        self._gateways: list[Gateway] = []
        self._last = dict.fromkeys(range(BLOBS), 0)
        self._heads = {blob: next(self._ids) for blob in range(BLOBS)}
        self._retired: list[tuple[int, int]] = []
        self._dropped: set[int] = set()
        self._quiet = 0
        self._highest = 0
        self._stamps: set[int] = set()

    def play(self) -> Report:
        """Run until the time is over."""
        for _ in range(GATEWAYS):
            self._start()
        self._later(0.0, self._disturb)
        while self._events and self._now_s < END_S:
            self._now_s, _, event = heapq.heappop(self._events)
            event()
            self._check_holds()
        return self.report

    # Faults.

    def _disturb(self) -> None:
        chance = self._random.random
        gateway = self._random.choice(self._gateways)
        if chance() < 0.4:
            gateway.cut_until_s = self._now_s + self._random.uniform(3, 20)
            self.report.counts["late heartbeats"] += 1
        elif chance() < 0.5:
            gateway.paused_until_s = self._now_s + self._random.choice((1, 4, 7, 12, 15, 25))
            self.report.counts["pauses"] += 1
        elif chance() < 0.5:
            gateway.crashed = True
            self._gateways.remove(gateway)
            self.report.counts["deaths"] += 1
            self._later(self._random.uniform(0, 15), self._start)
            if not self._gateways:
                self._start()
        self._later(self._random.expovariate(1 / 8), self._disturb)

    def _blob(self) -> int:
        """Return a random blob. Half of the calls use a few blobs; a late commit succeeds only at
        the others."""
        return self._random.randrange(self._random.choice((_BUSY_BLOBS, BLOBS)))

    def _travel_s(self) -> float:
        if self._random.random() < 0.06:
            return self._random.uniform(0.5, 14)
        return self._random.uniform(0.001, 0.05)

    # Time and messages.

    def _later(self, delay_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now_s + delay_s, next(self._order), event))

    def _ticks(self) -> int:
        return _START_TICKS + round(self._now_s * TICKS_PER_S)

    def _clock(self, gateway: Gateway) -> int:
        return gateway.offset_ticks + round(self._ticks() * gateway.rate)

    def _call(self, do: Callable[..., Any], *given: object) -> Call:
        return Call(functools.partial(do, *given), self._travel_s(), self._travel_s())

    def _run(self, gateway: Gateway, act: Act, answer: Any = None) -> None:
        """Continue an act, unless its process is dead; if it is paused, continue after the
        pause."""
        if gateway.crashed:
            act.close()
        elif gateway.paused_until_s > self._now_s:
            rest_s = gateway.paused_until_s - self._now_s
            self._later(rest_s, lambda: self._run(gateway, act, answer))
        else:
            try:
                wanted = act.send(answer)
            except StopIteration:
                return
            if isinstance(wanted, Call):
                self._later(wanted.out_s, lambda: self._arrive(gateway, act, wanted))
            else:
                self._later(wanted, lambda: self._run(gateway, act))

    def _arrive(self, gateway: Gateway, act: Act, call: Call) -> None:
        answer = call.do()
        self._later(call.back_s, lambda: self._run(gateway, act, answer))

    # The actions of gateways.

    def _start(self) -> None:
        joined = self._rules.join(self._table, self._ticks(), self._highest + 1)
        if joined is None:
            return
        self._table, identity = joined
        offset = round(self._random.uniform(-_SKEW_S, _SKEW_S) * TICKS_PER_S)
        rate = 1 + self._random.uniform(-_DRIFT, _DRIFT)
        gateway = Gateway(offset, rate, GatewayState(identity, self._table, 0))
        gateway.state.heartbeat_accepted(self._table, self._clock(gateway))
        self._gateways.append(gateway)
        acts = (self._beat, self._write, self._write, self._read, self._read)
        for act in (*acts, self._sweep, self._sweep, self._settle):
            self._run(gateway, act(gateway))

    def _beat(self, gateway: Gateway) -> Act:
        state, number = gateway.state, gateway.state.gateway.number
        while True:
            sent = self._clock(gateway)
            row = state.heartbeat(sent, gateway.in_flight)
            do = functools.partial(self._accept, number, row)
            stuck_s = max(0.0, gateway.cut_until_s - self._now_s)
            table = yield Call(do, self._travel_s() + stuck_s, self._travel_s())
            if table is None:
                self._end(gateway)
                return
            state.heartbeat_accepted(table, sent)
            yield self._random.uniform(0.5, 1.5)

    def _accept(self, number: int, row: Heartbeat) -> MembershipTable | None:
        table = self._rules.beat(self._table, number, row, self._ticks())
        self._table = self._table if table is None else table
        return table

    def _end(self, gateway: Gateway) -> None:
        """Replace a gateway that learns that it was declared dead by a new process."""
        if not gateway.crashed:
            gateway.crashed = True
            self._gateways.remove(gateway)
            self.report.counts["declared dead"] += 1
            self._start()

    def _is_late(self, gateway: Gateway) -> bool:
        return self._rules.is_late(gateway.state, self._clock(gateway))

    def _write(self, gateway: Gateway) -> Act:
        while True:
            yield self._random.uniform(0, 3)
            if self._is_late(gateway):
                continue
            blob = self._blob()
            seen = self._heads[blob]
            stamp = gateway.state.stamp(self._clock(gateway))
            gateway.in_flight.add(stamp)
            yield self._travel_s()
            if not self._is_late(gateway):
                newest = yield self._call(self._commit, gateway, blob, seen, stamp)
                gateway.state.observe(newest)
            gateway.in_flight.discard(stamp)

    def _commit(self, gateway: Gateway, blob: int, seen: int, stamp: int) -> int:
        identity = gateway.state.gateway
        if not self._rules.may_commit(self._table, identity):
            self.report.counts["refused to a dead gateway"] += 1
        elif self._last[blob] < stamp and self._heads[blob] == seen:
            if stamp < self._quiet:
                self._violated(f"{stamp} was committed after quiet({self._quiet})")
            if stamp in self._stamps:
                self._violated(f"{stamp} was given twice")
            self._stamps.add(stamp)
            self._highest = max(self._highest, stamp)
            self._retired.append((seen, stamp))
            self._last[blob], self._heads[blob] = stamp, next(self._ids)
            self.report.counts["commits"] += 1
        return self._last[blob]

    def _read(self, gateway: Gateway) -> Act:
        while True:
            yield self._random.uniform(0, 4)
            if self._is_late(gateway):
                continue
            mark = self._rules.begin_reading(gateway.state, self._clock(gateway))
            reading = next(self._ids)
            gateway.readings.add(reading)
            blob = self._random.randrange(_BUSY_BLOBS)
            content = yield self._call(self._heads.get, blob)
            began_s = self._now_s
            for _ in range(self._random.randrange(1, 9)):
                yield self._random.choice((0.05, 1.0, 9.0))
                if self._is_late(gateway):
                    self.report.counts["readers stopped"] += 1
                    break
                if content in self._dropped:
                    self._violated(f"content {content} was dropped under a reader")
                if self._now_s - began_s > READING_S_MAX / 6:
                    mark.narrow((content,))
                    self.report.counts["readers that named a content"] += 1
            mark.end()
            gateway.readings.discard(reading)

    def _sweep(self, gateway: Gateway) -> Act:
        identity = gateway.state.gateway
        while True:
            yield self._random.uniform(0, 1)
            name = b"%d" % self._random.randrange(2)
            if self._is_late(gateway) or name in gateway.held:
                continue
            if not (yield self._call(self._take, name, identity)):
                continue
            gateway.held.add(name)
            self.report.counts["holds"] += 1
            retired = [one for one in self._retired if one[0] % 2 == int(name)]
            own = set(gateway.readings)
            horizon = yield self._call(self._look, identity.number)
            while own & gateway.readings and not self._is_late(gateway):
                yield 0.5
            for content, stamp in retired:
                if self._is_late(gateway):
                    break
                if horizon.frees(content, stamp):
                    yield self._call(self._drop, identity, (content, stamp))
            gateway.held.discard(name)
            yield self._call(self._release, name, identity)

    def _take(self, name: bytes, identity: GatewayRun) -> bool:
        self._table = self._rules.remove_dead(self._table, self._ticks())
        taken = self._rules.grant_hold(self._table, name, identity)
        self._table = self._table if taken is None else taken
        return taken is not None

    def _release(self, name: bytes, identity: GatewayRun) -> None:
        self._table = membership.release_hold(self._table, name, identity)

    def _look(self, number: int) -> Horizon:
        self._table = self._rules.remove_dead(self._table, self._ticks())
        return self._rules.horizon(self._table, number)

    def _drop(self, identity: GatewayRun, one: tuple[int, int]) -> None:
        if self._rules.may_commit(self._table, identity) and one in self._retired:
            self._retired.remove(one)
            self._dropped.add(one[0])
            self.report.counts["drops"] += 1

    def _settle(self, gateway: Gateway) -> Act:
        """Call `wait_for_earlier_commits` with a recent stamp."""
        while True:
            yield self._random.uniform(0, 5)
            stamp = max(self._last.values())
            gateway.state.observe(stamp)
            while not self._is_late(gateway):
                if (yield self._call(self._is_quiet, stamp)):
                    self.report.counts["quiet"] += 1
                    break
                yield 0.5

    def _is_quiet(self, stamp: int) -> bool:
        self._table = self._rules.remove_dead(self._table, self._ticks())
        if not self._rules.is_quiet(self._table, stamp):
            return False
        self._quiet = max(self._quiet, stamp)
        return True

    # The promises that are checked.

    def _check_holds(self) -> None:
        holders: Counter[bytes] = Counter()
        for gateway in self._gateways:
            can_commit = self._rules.may_commit(self._table, gateway.state.gateway)
            if gateway.held and can_commit and not self._is_late(gateway):
                holders.update(gateway.held)
        for name, count in holders.items():
            if count > 1:
                self._violated(f"{count} gateways believe that they hold {name!r}")

    def _violated(self, what: str) -> None:
        self.report.violations.append(f"at {self._now_s:.3f} s: {what}")


def play(seed: int, rules: Rules | None = None) -> Report:
    """Run the world once."""
    return World(seed, rules or Rules()).play()
