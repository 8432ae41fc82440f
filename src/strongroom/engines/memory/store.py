"""The engine contract in memory: its executable specification, and the engine of `--in-memory`.

Lives here: the contract's methods, and those by which tests damage or cut a store. They use the
simplest parts that obey every rule of base.py. Must not live here: the parts; see
updates.py, data.py, contents.py and gateways.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, Self, TypeVar

from strongroom.clock import Clock, SkewedClock, StoreTime
from strongroom.engines.base import (
    SCAN_BYTES_MAX,
    Decide,
    Item,
    Page,
    Partition,
    Position,
    Record,
    Ref,
)
from strongroom.engines.bounds import check_partition, check_reads
from strongroom.engines.chains import follow_chain
from strongroom.engines.conditions import Condition
from strongroom.engines.links import Links
from strongroom.engines.memory.contents import MemoryContents
from strongroom.engines.memory.data import MemoryData
from strongroom.engines.memory.gateways import MemoryGateway, MemoryMembers
from strongroom.engines.memory.updates import MemoryLife, MemoryUpdates, UnderWay
from strongroom.engines.watchers import WaitingEngine, Watchers
from strongroom.slices import SliceTurns
from strongroom.values import TICKS_PER_S, Health, Purpose

T = TypeVar("T")

_RESERVE_BYTES: Final = 1024 * 1024


class MemoryEngine(WaitingEngine):
    """Records and contents in the memory of this process. One gateway of possibly several.

    Arguments:
        clock: the source of time.
        capacity_bytes: the most bytes of keys, values and bodies; an update that would exceed it is
            refused with Full; None = there is no bound.
        reserve_bytes: by how much FREEING updates may exceed the capacity; UPKEEP updates may use
            half of it.
        data: the data of an earlier or another gateway; None = there is nothing yet.
        floor_ticks: store time begins here at the earliest, and stamps begin above it.
        allows_reset: see Engine.allows_reset.

    Attributes:
        before_commit: awaited between a decision and its commit, so that a test can hold commits
            back. An update whose task is then cancelled may still be committed, as it may where a
            commit was sent to a server.
    """

    _gateway_type: type[MemoryGateway] = MemoryGateway
    _contents_type: type[MemoryContents] = MemoryContents
    _updates_type: type[MemoryUpdates] = MemoryUpdates

    def __init__(
        self,
        clock: Clock,
        capacity_bytes: int | None = None,
        reserve_bytes: int = _RESERVE_BYTES,
        data: MemoryData | None = None,
        floor_ticks: int = 0,
        *,
        allows_reset: bool = False,
    ) -> None:
        super().__init__(Watchers(), SliceTurns())
        self.allows_reset = allows_reset
        self.data = data or MemoryData(MemoryMembers(clock), capacity_bytes, reserve_bytes)
        self._clock = clock
        advanced_s = self.data.members.advanced_s
        self._time = StoreTime(clock, floor_ticks - round(advanced_s * TICKS_PER_S))
        self._time.advance(advanced_s)
        self._life = MemoryLife()
        self._under_way = UnderWay()
        self.contents = self._contents_type(self.data, self._time.now, self._check_serving)
        self.gateways = self._gateway_type(
            self.data.members,
            self._time,
            self.watchers,
            self._under_way.stamps,
            self._life.why_stopped,
        )
        self._updates = self._updates_type(
            self.data, self._time, self.contents, self.gateways, self._under_way, self._life
        )
        self.gateways.state.observe(floor_ticks)

    @property
    def before_commit(self) -> Callable[[], Awaitable[None]] | None:
        return self._updates.before_commit

    @before_commit.setter
    def before_commit(self, awaited: Callable[[], Awaitable[None]] | None) -> None:
        self._updates.before_commit = awaited

    def second(self, skew_s: float = 0.0) -> Self:
        """Return another gateway to the same data, whose clock is ahead by `skew_s`."""
        clock = SkewedClock(self._clock, skew_s) if skew_s else self._clock
        return type(self)(clock, data=self.data)

    async def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[T],
        purpose: Purpose = Purpose.GROWTH,
    ) -> T:
        """The decision runs again when its inputs are stale at the commit."""
        check_partition(partition)
        check_reads(reads)
        self._check_serving()
        return await self._updates.update(partition, reads, decide, purpose)

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        self._check_serving()
        check_reads(reads)
        return [self._updates.see(ref) for ref in reads]

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> list[tuple[Ref, Record | None]]:
        """Nothing is awaited, so that all records are of one moment."""
        self._check_serving()
        return follow_chain(partition, links, first, names, self._updates.see)

    async def read_range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        self._check_serving()
        check_partition(partition)
        items = self.data.range(partition, hidden, first, until, max(0, max_records))
        self.gateways.state.observe(max((item.version for item in items), default=0))
        return items

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = SCAN_BYTES_MAX,
        where: Condition | None = None,
    ) -> Page:
        self._check_serving()
        if max_records < 1 or max_bytes < 1:
            raise ValueError("a page holds at least one record")
        page = self.data.scan(keyspace, first, until, max_records, max_bytes, where)
        self.gateways.state.observe(max(page.versions, default=0))
        return page

    async def now(self) -> int:
        self._check_serving()
        return max(self._time.now(), self.gateways.state.last_stamp)

    def advance(self, seconds: float) -> None:
        self.data.members.advance(seconds)

    async def health(self, timeout_s: float) -> Health:
        if self._life.why_stopped() is not None or not self.gateways.may_commit():
            return Health.STOPPED
        if self.gateways.unavailability() is not None:
            return Health.STALLED
        return Health.FULL if self.data.is_full else Health.SERVING

    async def close(self) -> None:
        self._life.closed = True
        self.watchers.stop()
        await self._under_way.drain()
        self.gateways.end()

    def content_ids(self) -> Iterator[int]:
        """Of all adopted contents, ascending."""
        return iter(sorted(self.data.contents))

    def records(self) -> Iterator[tuple[Ref, Record]]:
        return self.data.all_records()

    def cut_after_steps(self, count: int) -> None:
        """Let the next commit keep only its first `count` steps and raise CommitUnknown, and stop.

        A crash of a distributed engine may leave such a state. `restarted` returns a store that
        continues from it. For tests of callers that commit several steps.
        """
        self._updates.cut_after = count

    def damage(self, content_id: int) -> None:
        """Flip a bit, as a disk may. For tests of readers."""
        self.data.contents[content_id] = self.data.contents[content_id].damaged()

    def restarted(self) -> Self:
        """Stop this store, and return a new one with the same data, as after a restart."""
        self._life.broken = True
        self.watchers.wake_all()
        self.contents.discard_unadopted()
        self.gateways.end()
        floor_ticks = max(self._time.now(), self.gateways.state.last_stamp)
        return type(self)(self._clock, data=self.data, floor_ticks=floor_ticks)

    def _check_serving(self) -> None:
        if (stopped := self._life.why_stopped()) is not None:
            raise stopped
        if (
            self.data.members.has_had_several
            and (error := self.gateways.unavailability()) is not None
        ):
            raise error
