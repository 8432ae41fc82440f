"""Engines that break one rule of the contract each, and the cases of the suite that detect it.

Lives here: mutants of the memory engine. Must not live here: cases.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from strongroom.clock import Clock
from strongroom.engines.base import Commit, Decide, Page, Partition, Record, Ref, Step, Unavailable
from strongroom.engines.conditions import Condition, NumberWithin
from strongroom.engines.gateways import STAMP_MAX, Horizon
from strongroom.engines.membership import GatewayReaderMark, HeldName
from strongroom.engines.memory import MemoryEngine
from strongroom.engines.memory.contents import MemoryContents
from strongroom.engines.memory.data import MemoryData
from strongroom.engines.memory.gateways import MemoryGateway, MemoryMembers
from strongroom.engines.memory.updates import MemoryUpdates
from strongroom.testing.contract import (
    failures,
    gateways,
    membership,
    records,
    shared,
    waiting,
)
from strongroom.values import Purpose
from tests.engines.chain_mutants import CHAIN_MUTANTS

T = TypeVar("T")
Pairs = Sequence[tuple[Ref, Record | None]]


class _NoGuard(MemoryUpdates):
    def _are_unchanged(self, pairs: Pairs) -> bool:
        return True


class NoGuard(MemoryEngine):
    """A commit happens although a record of its partition has changed."""

    _updates_type = _NoGuard


class _NoInputCheck(MemoryUpdates):
    def _are_inputs_unchanged(self, pairs: Pairs) -> bool:
        return True


class NoInputCheck(MemoryEngine):
    """A commit happens although a record of another partition has changed."""

    _updates_type = _NoInputCheck


class _NoStampCheck(MemoryUpdates):
    def _do_stamps_rise(self, steps: Sequence[Step], stamp: int) -> bool:
        return True


class NoStampCheck(MemoryEngine):
    """A commit happens although its partition has a newer one."""

    _updates_type = _NoStampCheck


class _NothingCompared(_NoGuard, _NoStampCheck):
    pass


class NothingCompared(MemoryEngine):
    """Neither records nor stamps are compared before a commit."""

    _updates_type = _NothingCompared


class _StampsWithoutNumber(MemoryUpdates):
    def _stamp(self) -> int:
        state = self._gateway.state
        state.observe(max(self._time.now(), state.last_stamp + 1))
        return state.last_stamp


class StampsWithoutNumber(MemoryEngine):
    """Stamps do not carry the gateway's number."""

    _updates_type = _StampsWithoutNumber


class TimeBehindStamps(MemoryEngine):
    """Store time is only the clock's, and may be behind the stamps."""

    async def now(self) -> int:
        return self._time.now()


class HalfSteps(MemoryEngine):
    """Steps in other partitions are visible before the commit."""

    async def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[T],
        purpose: Purpose = Purpose.GROWTH,
    ) -> T:
        def early(seen: Sequence[Record | None], stamp: int) -> Commit[T]:
            commit = decide(seen, stamp)
            for step in commit.steps:
                if step.partition != partition:
                    self.data.write(step, stamp)
            return commit

        return await super().update(partition, reads, early, purpose)


class _WaitsOnlyHere(MemoryUpdates):
    def apply(self, *given: Any) -> None:
        others = self._members.gateways
        self._members.gateways = [self._gateway]
        try:
            super().apply(*given)
        finally:
            self._members.gateways = others


class WaitsOnlyHere(MemoryEngine):
    """Waiters are woken only by commits of their own gateway."""

    _updates_type = _WaitsOnlyHere


class ClockMovedHere(MemoryEngine):
    """The clock is moved at one gateway only."""

    def advance(self, seconds: float) -> None:
        self._time.advance(seconds)
        self.watchers.wake_all()


class StopsWaitingOnce(MemoryEngine):
    """A waiter that begins after `stop_waiting` still sleeps."""

    def stop_waiting(self) -> None:
        self.watchers.wake_all()


class _OtherData(MemoryEngine):
    """Base class of mutants with another MemoryData."""

    data_type: type[MemoryData]

    def __init__(self, clock: Clock, data: MemoryData | None = None, **more: Any) -> None:
        made = data or self.data_type(MemoryMembers(clock), None, 0)
        super().__init__(clock, data=made, **more)


class _StrictData(MemoryData):
    def satisfies(self, where: Condition, value: bytes) -> bool:
        number = isinstance(where, NumberWithin)
        return super().satisfies(where, value) and not (number and value.endswith(b"n=-3"))


class ConditionLeavesOut(_OtherData):
    """A record that satisfies the condition is left out."""

    data_type = _StrictData


class _Endless(MemoryData):
    def is_scan_limit_reached(self, count: int) -> bool:
        return False


class ConditionLooksAtEverything(_OtherData):
    """A page ends only when enough records were found, however many it reads."""

    data_type = _Endless


class _Forgetful(MemoryData):
    def scan(self, *given: Any) -> Page:
        page = super().scan(*given)
        where = given[-1]
        return page if where is None or page.values else Page((), (), (), (), None)


class EmptyPageEndsAScan(_OtherData):
    """A page without results ends the scan."""

    data_type = _Forgetful


class _DeadCommits(MemoryUpdates):
    async def _pause(self) -> None:
        await (asyncio.sleep(0) if self.before_commit is None else self.before_commit())


class DeadCommits(MemoryEngine):
    """A commit does not check whether its gateway was declared dead."""

    _updates_type = _DeadCommits


class LateReads(MemoryEngine):
    """A gateway continues although its heartbeat is late."""

    def _check_serving(self) -> None:
        if self._life.why_stopped() is not None:
            raise Unavailable("closed")


class _Eager(MemoryContents):
    def discard(self, content_id: int) -> None:
        self.adoptions.written.pop(content_id, None)
        self._data.contents.pop(content_id, None)


class DiscardDropsAdopted(MemoryEngine):
    """`discard` drops a content that a commit has adopted."""

    _contents_type = _Eager


class _Hasty(MemoryContents):
    def discard(self, content_id: int) -> None:
        super().discard(content_id)
        if content_id in self.adoptions.written:  # a commit may yet adopt it
            self._too_early.add(content_id)

    @functools.cached_property
    def _too_early(self) -> set[int]:
        return set()

    def adopt(self, step: Step) -> None:
        super().adopt(step)
        for content_id in self._too_early.intersection(step.adopt):
            self._data.contents.pop(content_id)


class DiscardDropsUndecided(MemoryEngine):
    """`discard` drops a content that an undecided commit adopts later."""

    _contents_type = _Hasty


class _NoHorizon(MemoryGateway):
    async def horizon(self) -> Horizon:
        return Horizon(STAMP_MAX)


class HorizonIgnored(MemoryEngine):
    """Readers of other gateways are ignored."""

    _gateway_type = _NoHorizon


class _NoNames(MemoryGateway):
    async def horizon(self) -> Horizon:
        return Horizon((await super().horizon()).stamp)


class NamesIgnored(MemoryEngine):
    """Contents that a slow reader has named are ignored."""

    _gateway_type = _NoNames


class _OwnReaders(MemoryGateway):
    async def horizon(self) -> Horizon:
        return self._members.refresh().horizon(-1)


class OwnReadersCount(MemoryEngine):
    """Readers of the gateway itself hold its horizon back."""

    _gateway_type = _OwnReaders


class _ClockReaders(MemoryGateway):
    def begin_reading(self) -> GatewayReaderMark:
        return GatewayReaderMark(self.state, max(self.time.now(), self.state.last_stamp))


class ReadersBeginAtTheirClock(MemoryEngine):
    """A reader begins at a stamp below which commits may still happen."""

    _gateway_type = _ClockReaders


class _HoldTwice(MemoryGateway):
    async def hold(self, name: bytes) -> HeldName | None:
        found = await super().hold(name)
        return found or HeldName(self, name)


class HoldGrantedTwice(MemoryEngine):
    """A hold is granted although it is taken."""

    _gateway_type = _HoldTwice


class _HoldUnseen(MemoryGateway):
    async def hold(self, name: bytes) -> HeldName | None:
        seen = self.state.last_stamp
        found = await super().hold(name)
        self.state.last_stamp = seen
        return found


class HoldWithoutOrder(MemoryEngine):
    """Stamps under a hold may be below those of its earlier holder."""

    _gateway_type = _HoldUnseen


class _OnceLost(HeldName):
    @property
    def is_held(self) -> bool:
        self._lost = self._lost or not super().is_held
        return not self._lost


class _HoldGone(MemoryGateway):
    async def hold(self, name: bytes) -> HeldName | None:
        found = await super().hold(name)
        return None if found is None else _OnceLost(self, name)


class HoldStandsNoMore(MemoryEngine):
    """A lost hold is not valid again with the next heartbeat."""

    _gateway_type = _HoldGone


class _HoldForEver(MemoryGateway):
    def has(self, name: bytes) -> bool:
        return True


class HoldNeverLost(MemoryEngine):
    """A hold counts as valid although the heartbeat is late."""

    _gateway_type = _HoldForEver


class _QuietAtOnce(MemoryGateway):
    async def wait_for_earlier_commits(self, stamp: int) -> None:
        return


class QuietAtOnce(MemoryEngine):
    """`wait_for_earlier_commits` returns at once."""

    _gateway_type = _QuietAtOnce


class _QuietHere(MemoryGateway):
    async def wait_for_earlier_commits(self, stamp: int) -> None:
        while any(one < stamp for one in self._in_flight()):
            await self._members.wait_for_decision()


class QuietHereOnly(MemoryEngine):
    """`wait_for_earlier_commits` waits only for the decisions of its own gateway."""

    _gateway_type = _QuietHere


class _OwnsAll(MemoryGateway):
    def owns(self, name: bytes) -> bool:
        return True


class TwoSweepers(MemoryEngine):
    """Each gateway takes all work as its own."""

    _gateway_type = _OwnsAll


class _Undying(MemoryGateway):
    def beat(self) -> bool:
        self._members.table = msgspec.structs.replace(
            self._members.table,
            rows={
                number: msgspec.structs.replace(row, received_at=self._members.time.now())
                for number, row in self._members.table.rows.items()
            },
        )
        return super().beat()


class NobodyDies(MemoryEngine):
    """A gateway that sends no heartbeats stays alive."""

    _gateway_type = _Undying


Case = Callable[[Any], Awaitable[None]]
MUTANTS: Final[tuple[tuple[type[MemoryEngine], Case], ...]] = (
    (NoGuard, records.counting_by_32_tasks_loses_nothing),
    (NoGuard, shared.counting_over_two_gateways_loses_nothing),
    (NoGuard, shared.a_commit_held_back_is_decided_again),
    (NothingCompared, shared.a_commit_held_back_is_decided_again),
    (
        NoInputCheck,
        records.records_of_other_partitions_are_current_when_the_commit_happens,
    ),
    (NoInputCheck, shared.a_put_decided_before_a_deletion_is_refused_after_it),
    (NoStampCheck, shared.a_commit_held_back_is_no_older_than_what_came_meanwhile),
    (StampsWithoutNumber, shared.stamps_of_two_gateways_are_unique),
    (TimeBehindStamps, records.stamps_are_unique_and_rise_with_time),
    (TimeBehindStamps, shared.a_clock_that_is_ahead_is_followed_where_it_was_seen),
    (HalfSteps, shared.a_job_is_never_seen_before_its_commit),
    (WaitsOnlyHere, shared.a_commit_wakes_waiters_at_the_other_gateway),
    (ClockMovedHere, shared.a_moved_clock_reaches_every_gateway),
    (StopsWaitingOnce, waiting.waiters_are_counted_and_can_all_be_ended),
    (DeadCommits, membership.a_dead_gateway_blocks_nothing_and_commits_nothing),
    (ConditionLeavesOut, records.a_condition_leaves_out_nothing_that_satisfies_it),
    (ConditionLooksAtEverything, records.a_condition_that_nothing_satisfies_ends_a_page),
    (EmptyPageEndsAScan, records.a_condition_that_nothing_satisfies_ends_a_page),
    (LateReads, membership.a_late_gateway_stops_and_its_hold_is_lost),
    (DiscardDropsAdopted, failures.a_body_lives_exactly_if_its_commit_does),
    (DiscardDropsAdopted, shared.a_content_is_adopted_where_it_was_written),
    (DiscardDropsUndecided, shared.a_commit_that_may_yet_adopt_keeps_its_body),
    (HorizonIgnored, membership.a_reader_holds_back_the_horizon_of_the_other),
    (NamesIgnored, membership.a_reader_holds_back_the_horizon_of_the_other),
    (OwnReadersCount, gateways.no_reader_of_its_own_holds_back_its_horizon),
    (ReadersBeginAtTheirClock, membership.a_reader_sees_what_it_does_not_hold_back),
    (HoldGrantedTwice, gateways.a_hold_is_given_once_until_it_is_given_back),
    (HoldGrantedTwice, membership.a_hold_excludes_the_other_gateway),
    (HoldWithoutOrder, membership.a_gateway_that_takes_over_a_hold_issues_later_stamps),
    (HoldStandsNoMore, membership.a_late_gateway_stops_and_its_hold_is_lost),
    (HoldNeverLost, membership.a_late_gateway_stops_and_its_hold_is_lost),
    (QuietAtOnce, gateways.after_quiet_no_older_commit_happens),
    (QuietAtOnce, membership.quiet_waits_for_what_the_other_has_decided),
    (QuietHereOnly, membership.quiet_waits_for_what_the_other_has_decided),
    (TwoSweepers, membership.gateways_have_numbers_of_their_own),
    (NobodyDies, membership.a_dead_gateway_blocks_nothing_and_commits_nothing),
    *CHAIN_MUTANTS,
)
