"""The contract in memory: the executable specification, and the engine of `--in-memory`.

Lives here: the plainest code that keeps every rule of base.py, with optimistic decisions
that really run again on a conflict. Must not live here: durability, or anything clever.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, Self, TypeVar

from strongroom.clock import Clock, SkewedClock, StoreTime
from strongroom.engines.base import (
    SCAN_BYTES_MAX,
    CommitUnknown,
    Decide,
    Item,
    Page,
    Partition,
    Position,
    Record,
    Ref,
    Step,
    Unavailable,
)
from strongroom.engines.bounds import check_partition, check_reads, check_steps
from strongroom.engines.conditions import Condition
from strongroom.engines.memory.contents import MemoryContents
from strongroom.engines.memory.data import MemoryData
from strongroom.engines.memory.gateways import MemoryGateway, MemoryMembers
from strongroom.engines.watchers import WaitingEngine
from strongroom.values import TICKS_PER_S, Health, Purpose

T = TypeVar("T")

_OPTIMISTIC_ATTEMPTS: Final = 8
_RESERVE_BYTES: Final = 1024 * 1024


class MemoryEngine(WaitingEngine):
    """Records and contents in memory, gone with the process. One gateway of possibly several.

    Arguments:
        clock: where time comes from.
        capacity_bytes: the most bytes of keys, values and bodies; an update that would exceed it is
            refused with Full; None = there is no bound.
        reserve_bytes: by how much FREEING updates may exceed the capacity; UPKEEP updates may use
            half of it.
        data: the data of an earlier or another gateway; None = there is nothing yet.
        floor_ticks: store time begins here at the earliest, and stamps begin above it.

    Attributes:
        before_commit: awaited between a decision and its commit, so that a test can hold commits
            back. An update whose task is then cancelled may still be committed, as it may where a
            commit was sent to a server.
    """

    _gateway_type: type[MemoryGateway] = MemoryGateway
    _contents_type: type[MemoryContents] = MemoryContents

    def __init__(
        self,
        clock: Clock,
        capacity_bytes: int | None = None,
        reserve_bytes: int = _RESERVE_BYTES,
        data: MemoryData | None = None,
        floor_ticks: int = 0,
    ) -> None:
        super().__init__()
        self.data = data or MemoryData(MemoryMembers(clock), capacity_bytes, reserve_bytes)
        self.before_commit: Callable[[], Awaitable[None]] | None = None
        self._clock = clock
        self._members = self.data.members
        moved_s = self._members.moved_s
        self._time = StoreTime(clock, floor_ticks - round(moved_s * TICKS_PER_S))
        self._time.advance(moved_s)
        self._running: set[_Running] = set()
        self._sent: set[asyncio.Future[Any]] = set()
        self._cut_after: int | None = None
        self._closed = False
        self._broken = False
        self.contents = self._contents_type(self.data, self._time.now, self._check_serving)
        self.gateways = self._gateway_type(
            self._members, self._time, self.watchers, self._in_flight, self._why_stopped
        )
        self.gateways.book.observe(floor_ticks)

    def second(self, skew_s: float = 0.0) -> Self:
        """Another gateway that serves the same data, with a clock that is ahead by `skew_s`."""
        clock = SkewedClock(self._clock, skew_s) if skew_s else self._clock
        return type(self)(clock, data=self.data)

    async def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[T],
        purpose: Purpose = Purpose.GROWTH,
    ) -> T:
        """See Engine.update. Decides on what it sees now, and again when that is out of date."""
        check_partition(partition)
        check_reads(reads)
        self._check_serving()
        trying = self._try(partition, reads, decide, purpose)
        if self.before_commit is None:
            return await trying
        sent = asyncio.ensure_future(trying)
        self._sent.add(sent)
        sent.add_done_callback(self._answered)
        return await asyncio.shield(sent)

    def _answered(self, sent: asyncio.Future[Any]) -> None:
        self._sent.discard(sent)
        if not sent.cancelled():
            sent.exception()  # its caller may have gone

    async def _try(
        self, partition: Partition, reads: Sequence[Ref], decide: Decide[T], purpose: Purpose
    ) -> T:
        running = _Running()
        self._running.add(running)
        try:
            for attempt in itertools.count():
                seen = [self._see(ref) for ref in reads]
                was_alone = self.gateways.is_alone
                stamp = running.stamp = self._stamp()
                commit = decide(seen, stamp)
                check_steps(commit.steps)
                adopted = [content_id for step in commit.steps for content_id in step.adopt]
                self.contents.want(adopted)
                try:
                    if attempt < _OPTIMISTIC_ATTEMPTS:
                        await self._pause()
                    is_as_seen = self.gateways.is_alone == was_alone
                    if is_as_seen and self._is_current(partition, reads, seen, commit.steps, stamp):
                        self._apply(commit.steps, stamp, purpose)
                        return commit.result
                finally:
                    self.contents.settle(adopted)
            raise AssertionError("a decision that nobody interrupts is current")
        finally:
            self._running.discard(running)
            running.done.set()
            self._members.changed()
            if not (self._running or self._members.are_several):
                self.data.newest.clear()

    async def _pause(self) -> None:
        """Suspend before a commit, so that other commits may come first, as on a distributed
        engine. Raises: Unavailable if this gateway was declared dead."""
        await (asyncio.sleep(0) if self.before_commit is None else self.before_commit())
        if self._broken:
            raise self._why_stopped() or AssertionError
        if self._members.are_several and not self.gateways.may_commit():
            raise Unavailable("this gateway was declared dead: nothing was changed")

    def _is_current(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        seen: Sequence[Record | None],
        steps: Sequence[Step],
        stamp: int,
    ) -> bool:
        pairs = list(zip(reads, seen, strict=True))
        return (
            self._are_unchanged([pair for pair in pairs if pair[0].partition == partition])
            and self._are_inputs_unchanged([one for one in pairs if one[0].partition != partition])
            and self._do_stamps_rise(steps, stamp)
        )

    def _are_unchanged(self, pairs: Sequence[tuple[Ref, Record | None]]) -> bool:
        return all(self._see(ref) == record for ref, record in pairs)

    def _are_inputs_unchanged(self, pairs: Sequence[tuple[Ref, Record | None]]) -> bool:
        return all(self._see(ref) == record for ref, record in pairs)

    def _do_stamps_rise(self, steps: Sequence[Step], stamp: int) -> bool:
        """Versions rise inside a partition even where nothing was read."""
        newest = max((self.data.newest.get(step.partition, 0) for step in steps), default=0)
        self.gateways.book.observe(newest)
        return newest < stamp

    def _apply(self, steps: Sequence[Step], stamp: int, purpose: Purpose) -> None:
        self.contents.check_adoptions(steps)
        self.data.check_space(steps, purpose)
        cut, self._cut_after = self._cut_after if steps else None, None
        if steps:
            self._members.highest = max(self._members.highest, stamp)
        for step in steps[:cut]:
            self.data.newest[step.partition] = stamp
            self.data.write(step, stamp)
            self.contents.adopt(step)
        if cut is not None:
            self._broken = True
            self.gateways.is_beating = False
            self.watchers.wake_all()
            raise CommitUnknown("the engine was cut off inside a commit")
        self._members.notify(
            [Ref(step.partition, write.key) for step in steps for write in step.writes]
        )

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        """See Engine.read."""
        self._check_serving()
        check_reads(reads)
        return [self._see(ref) for ref in reads]

    async def read_range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        """See Engine.read_range."""
        self._check_serving()
        check_partition(partition)
        found = self.data.range(partition, hidden, first, until, max(0, max_records))
        self.gateways.book.observe(max((item.version for item in found), default=0))
        return found

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = SCAN_BYTES_MAX,
        where: Condition | None = None,
    ) -> Page:
        """See Engine.scan."""
        self._check_serving()
        if max_records < 1 or max_bytes < 1:
            raise ValueError("a page holds at least one record")
        page = self.data.scan(keyspace, first, until, max_records, max_bytes, where)
        self.gateways.book.observe(max(page.versions, default=0))
        return page

    async def now(self) -> int:
        """See Engine.now."""
        self._check_serving()
        return max(self._time.now(), self.gateways.book.last_stamp)

    def advance(self, seconds: float) -> None:
        """See Engine.advance."""
        self._members.advance(seconds)

    async def health(self, timeout_s: float) -> Health:
        """See Engine.health."""
        if self._closed or self._broken or not self.gateways.may_commit():
            return Health.STOPPED
        if self.gateways.why_cut_off() is not None:
            return Health.STALLED
        return Health.FULL if self.data.is_full else Health.SERVING

    async def close(self) -> None:
        """See Engine.close."""
        self._closed = True
        self.watchers.stop()
        while self._running:
            await next(iter(self._running)).done.wait()
        self.gateways.end()

    def content_ids(self) -> Iterator[int]:
        """The ids of all adopted contents, ascending."""
        return iter(sorted(self.data.contents))

    def records(self) -> Iterator[tuple[Ref, Record]]:
        """All records, in no particular order."""
        return self.data.everything()

    def cut_after_steps(self, count: int) -> None:
        """Let the next commit keep its first `count` steps, end as CommitUnknown, and stop here.

        This is what a crash may leave on an engine spread over machines; `restarted` goes on from
        there. For tests of whoever commits several steps.
        """
        self._cut_after = count

    def damage(self, content_id: int) -> None:
        """Flip a bit of an adopted content, as a disk may. For tests of whoever reads contents."""
        self.data.contents[content_id] = self.data.contents[content_id].damaged()

    def restarted(self) -> Self:
        """A new store that holds what this one held, as after a restart; this one is stopped."""
        self._broken = True
        self.watchers.wake_all()
        self.contents.give_up()
        self.gateways.end()
        floor_ticks = max(self._time.now(), self.gateways.book.last_stamp)
        return type(self)(self._clock, data=self.data, floor_ticks=floor_ticks)

    def _why_stopped(self) -> Unavailable | None:
        if self._closed:
            return Unavailable("the store is closed")
        return Unavailable("the store has stopped") if self._broken else None

    def _check_serving(self) -> None:
        if self._closed or self._broken:
            raise self._why_stopped() or AssertionError
        if self._members.are_several and (error := self.gateways.why_cut_off()) is not None:
            raise error

    def _see(self, ref: Ref) -> Record | None:
        record = self.data.get(ref)
        if record is not None:
            self.gateways.book.observe(record.version)
        return record

    def _in_flight(self) -> list[int]:
        return [one.stamp for one in self._running if one.stamp]

    def _stamp(self) -> int:
        book, now = self.gateways.book, self._time.now()
        if self._members.are_several:
            return book.stamp(now)
        book.observe(max(now, book.last_stamp + 1))
        return book.last_stamp


class _Running:
    """An update under way, and the stamp of its last decision (0: it has made none)."""

    def __init__(self) -> None:
        self.stamp = 0
        self.done = asyncio.Event()
