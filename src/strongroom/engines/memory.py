"""The contract in memory: the executable specification, and the engine of `--in-memory`.

Lives here: the plainest code that keeps every rule of base.py, with optimistic decisions
that really run again on a conflict. Must not live here: durability, or anything clever.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from strongroom.clock import Clock, StoreTime
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
from strongroom.engines.gateways import OnlyGateway
from strongroom.engines.memory_contents import MemoryContents
from strongroom.engines.memory_data import MemoryData
from strongroom.engines.watchers import Watchers
from strongroom.values import Health, Purpose

T = TypeVar("T")

_OPTIMISTIC_ATTEMPTS: Final = 8
_RESERVE_BYTES: Final = 1024 * 1024


class MemoryStore:
    """Records and contents in memory, gone with the process.

    Arguments:
        clock: where time comes from.
        capacity_bytes: the most bytes of keys, values and bodies; an update that would exceed it is
            refused with Full; None = there is no bound.
        reserve_bytes: by how much FREEING updates may exceed the capacity; UPKEEP updates may use
            half of it.
        data: what an earlier gateway has left; None = there is nothing yet.
        floor_ticks: store time begins here at the earliest, and stamps begin above it.
    """

    def __init__(
        self,
        clock: Clock,
        capacity_bytes: int | None = None,
        reserve_bytes: int = _RESERVE_BYTES,
        data: MemoryData | None = None,
        floor_ticks: int = 0,
    ) -> None:
        self.data = MemoryData(capacity_bytes, reserve_bytes) if data is None else data
        self.watchers = Watchers()
        self._clock = clock
        self._time = StoreTime(clock, floor_ticks)
        self._last_stamp = floor_ticks
        self._running: set[_Running] = set()
        # The newest stamp of each partition committed while some decision was running.
        self._newest: dict[Partition, int] = {}
        self._cut_after: int | None = None
        self._closed = False
        self._broken = False
        self.contents = MemoryContents(self.data, self._time.now, self._check_serving)
        self.gateways = OnlyGateway(self._time.now(), self._why_stopped, self._quiet)

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
        running = _Running()
        self._running.add(running)
        try:
            for attempt in itertools.count():
                seen = [self.data.get(ref) for ref in reads]
                stamp = running.stamp = self._stamp()
                commit = decide(seen, stamp)
                check_steps(commit.steps)
                if attempt < _OPTIMISTIC_ATTEMPTS:
                    # Others may commit here, as they may on an engine spread over machines.
                    await asyncio.sleep(0)
                    self._check_not_broken()
                if self._is_current(partition, reads, seen, commit.steps, stamp):
                    self._apply(commit.steps, stamp, purpose)
                    return commit.result
            raise AssertionError("a decision that nobody interrupts is current")
        finally:
            self._running.discard(running)
            running.done.set()
            if not self._running:
                self._newest.clear()

    def _is_current(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        seen: Sequence[Record | None],
        steps: Sequence[Step],
        stamp: int,
    ) -> bool:
        for ref, record in zip(reads, seen, strict=True):
            if ref.partition == partition and self.data.get(ref) != record:
                return False
        # Versions rise inside a partition even where nothing was read.
        return all(self._newest.get(step.partition, 0) < stamp for step in steps)

    def _apply(self, steps: Sequence[Step], stamp: int, purpose: Purpose) -> None:
        self.contents.check_adoptions(steps)
        self.data.check_space(steps, purpose)
        cut, self._cut_after = self._cut_after if steps else None, None
        for step in steps[:cut]:
            self._newest[step.partition] = stamp
            self.data.write(step, stamp)
            self.contents.adopt(step)
        if cut is not None:
            self._broken = True
            self.watchers.wake_all()
            raise CommitUnknown("the engine was cut off inside a commit")
        self.watchers.notify(
            Ref(step.partition, write.key) for step in steps for write in step.writes
        )

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        """See Engine.read."""
        self._check_serving()
        check_reads(reads)
        return [self.data.get(ref) for ref in reads]

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
        return self.data.range(partition, hidden, first, until, max(0, max_records))

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = SCAN_BYTES_MAX,
    ) -> Page:
        """See Engine.scan."""
        self._check_serving()
        if max_records < 1 or max_bytes < 1:
            raise ValueError("a page holds at least one record")
        return self.data.scan(keyspace, first, until, max_records, max_bytes)

    @property
    def wakes(self) -> int:
        """See Engine.wakes."""
        return self.watchers.wakes

    async def wait(self, ref: Ref, version: int | None, timeout_s: float) -> None:
        """See Engine.wait."""
        self._check_serving()
        check_reads((ref,))
        future = self.watchers.register(ref)
        record = self.data.get(ref)
        if (record.version if record else None) != version:
            self.watchers.forget(ref, future)
            return
        await self.watchers.sleep(ref, future, timeout_s)

    def watching(self) -> int:
        """See Engine.watching."""
        return len(self.watchers)

    def stop_waiting(self) -> None:
        """See Engine.stop_waiting."""
        self.watchers.stop()

    async def now(self) -> int:
        """See Engine.now."""
        self._check_serving()
        return max(self._time.now(), self._last_stamp)

    def advance(self, seconds: float) -> None:
        """See Engine.advance."""
        self._time.advance(seconds)
        self.watchers.wake_all()

    async def health(self, timeout_s: float) -> Health:
        """See Engine.health."""
        if self._closed or self._broken:
            return Health.STOPPED
        return Health.FULL if self.data.is_full else Health.SERVING

    async def close(self) -> None:
        """See Engine.close."""
        self._closed = True
        self.watchers.stop()
        while self._running:
            await next(iter(self._running)).done.wait()

    async def _quiet(self, stamp: int) -> None:
        if stamp > max(self._last_stamp + 1, self._time.now()):
            raise ValueError(f"{stamp} lies in the future: the store has given no such stamp yet")
        while (one := next((one for one in self._running if one.stamp < stamp), None)) is not None:
            await one.done.wait()

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

    def restarted(self) -> MemoryStore:
        """A new store that holds what this one held, as after a restart; this one is stopped."""
        self._broken = True
        self.watchers.wake_all()
        self.contents.give_up()
        floor_ticks = max(self._time.now(), self._last_stamp)
        return MemoryStore(self._clock, data=self.data, floor_ticks=floor_ticks)

    def _why_stopped(self) -> Unavailable | None:
        if self._closed:
            return Unavailable("the store is closed")
        return Unavailable("the store has stopped") if self._broken else None

    def _check_serving(self) -> None:
        if self._closed or self._broken:
            raise self._why_stopped() or AssertionError

    def _check_not_broken(self) -> None:
        if self._broken:
            raise Unavailable("the store has stopped")

    def _stamp(self) -> int:
        self._last_stamp = max(self._time.now(), self._last_stamp + 1)
        return self._last_stamp


class _Running:
    """An update under way, and the stamp of its last decision (0: it has made none)."""

    def __init__(self) -> None:
        self.stamp = 0
        self.done = asyncio.Event()
