"""The contract in memory: the executable specification, and the engine of `--in-memory`.

Lives here: the plainest code that keeps every rule of base.py, with optimistic decisions
that really run again on a conflict. Must not live here: durability, or anything clever.
"""

from __future__ import annotations

import asyncio
import bisect
import hashlib
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from typing import Final, TypeVar

from strongroom.clock import Clock, StoreTime
from strongroom.engines.base import (
    SCAN_BYTES_MAX,
    VERIFIED_BYTES_MAX,
    CommitUnknown,
    ContentMissing,
    DataDamaged,
    Decide,
    Face,
    Full,
    Item,
    Key,
    Page,
    Partition,
    Position,
    Record,
    Ref,
    Step,
    Unavailable,
    Written,
)
from strongroom.engines.bounds import (
    check_partition,
    check_reads,
    check_steps,
    growth_bytes,
    purpose_of,
    values_after,
)
from strongroom.engines.checksum import crc64
from strongroom.engines.gateways import OnlyGateway
from strongroom.engines.watchers import Watchers
from strongroom.values import FileSlice, Health, Purpose

T = TypeVar("T")
K = TypeVar("K")
N = TypeVar("N", bytes, Position)

_OPTIMISTIC_ATTEMPTS: Final = 8
_PIECE_BYTES: Final = 256 * 1024
_RESERVE_BYTES: Final = 1024 * 1024


class MemoryStore:
    """Records and contents in memory, gone with the process.

    Arguments:
        clock: where time comes from.
        capacity_bytes: the most bytes of keys, values and bodies; an update that would exceed it is
            refused with Full; None = there is no bound.
        reserve_bytes: by how much FREEING updates may exceed the capacity; UPKEEP updates may use
            half of it.
    """

    def __init__(
        self,
        clock: Clock,
        capacity_bytes: int | None = None,
        reserve_bytes: int = _RESERVE_BYTES,
    ) -> None:
        self.capacity_bytes = capacity_bytes
        self._reserve_bytes = reserve_bytes
        self.watchers = Watchers()
        self._clock = clock
        self._time = StoreTime(clock)
        self._records: dict[Partition, dict[Key, Record]] = {}
        # Per keyspace, where its face records are, in order; per partition, its hidden keys.
        self._order: dict[bytes, list[Position]] = {}
        self._hidden: dict[Partition, list[bytes]] = {}
        self._adopted: dict[int, MemoryContent] = {}
        self._written: dict[int, MemoryContent] = {}
        self.size_bytes = 0
        self._last_stamp = 0
        self._last_content = 0
        self._running: set[_Running] = set()
        # The newest stamp of each partition committed while some decision was running.
        self._newest: dict[Partition, int] = {}
        self._cut_after: int | None = None
        self._closed = False
        self._broken = False
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
                seen = [self._get(ref) for ref in reads]
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
            if ref.partition == partition and self._get(ref) != record:
                return False
        # Versions rise inside a partition even where nothing was read.
        return all(self._newest.get(step.partition, 0) < stamp for step in steps)

    def _apply(self, steps: Sequence[Step], stamp: int, purpose: Purpose) -> None:
        self._check_adoptions(steps)
        self._check_space(steps, purpose)
        cut, self._cut_after = self._cut_after if steps else None, None
        for step in steps[:cut]:
            self._newest[step.partition] = stamp
            for key, value in step.writes:
                self._put(step.partition, key, value, stamp)
            for content_id in step.adopt:
                self._adopted[content_id] = self._written.pop(content_id)
            for content_id in step.drop:
                self.size_bytes -= self._adopted.pop(content_id, _NOTHING).size_bytes
        if cut is not None:
            self._broken = True
            self.watchers.wake_all()
            raise CommitUnknown("the engine was cut off inside a commit")
        self.watchers.notify(
            Ref(step.partition, write.key) for step in steps for write in step.writes
        )

    def _check_adoptions(self, steps: Sequence[Step]) -> None:
        adopted = [content_id for step in steps for content_id in step.adopt]
        if len(set(adopted)) < len(adopted) or any(one not in self._written for one in adopted):
            raise ValueError("a commit adopts contents that were written and not adopted before")

    def _check_space(self, steps: Sequence[Step], declared: Purpose) -> None:
        if self.capacity_bytes is None or not steps:
            return
        writes = values_after(steps)
        adopts = any(step.adopt for step in steps)
        purpose = purpose_of(declared, adopts, writes, self._get)
        growth = growth_bytes(writes, self._get)
        limit_bytes = self.capacity_bytes + self._reserve_bytes * purpose // Purpose.FREEING
        if growth > 0 and self.size_bytes + growth > limit_bytes:
            raise Full(purpose)

    def _put(self, partition: Partition, key: Key, value: bytes | None, stamp: int) -> None:
        records = self._records.setdefault(partition, {})
        before = records.pop(key, None)
        if before is not None:
            self.size_bytes -= len(key.name) + len(before.value)
        if value is not None:
            records[key] = Record(value, stamp)
            self.size_bytes += len(key.name) + len(value)
        elif not records:
            del self._records[partition]
        if (before is None) == (value is None):
            return
        if key.hidden:
            _reorder(self._hidden, partition, key.name, value is not None)
        else:
            position = Position(partition.name, key.name)
            _reorder(self._order, partition.keyspace, position, value is not None)

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        """See Engine.read."""
        self._check_serving()
        check_reads(reads)
        return [self._get(ref) for ref in reads]

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
        records = self._records.get(partition, {})
        if hidden:
            order = self._hidden.get(partition, [])
        else:
            order = sorted(key.name for key in records if not key.hidden)
        start = bisect.bisect_left(order, first)
        found = []
        for name in order[start : start + max(0, max_records)]:
            if until is not None and name >= until:
                break
            record = records[Key(hidden, name)]
            found.append(Item(name, record.value, record.version))
        return found

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
        order = self._order.get(keyspace, [])
        faces: list[Face] = []
        size_bytes = 0
        for index in range(bisect.bisect_left(order, first), len(order)):
            position = order[index]
            if until is not None and position >= until:
                break
            if len(faces) >= max_records or size_bytes >= max_bytes:
                return Page.of(faces, position)
            partition = Partition(keyspace, position.partition)
            record = self._records[partition][Key(False, position.key)]
            faces.append(Face(position.partition, position.key, record.value, record.version))
            size_bytes += len(position.partition) + len(position.key) + len(record.value)
        return Page.of(faces, None)

    @property
    def wakes(self) -> int:
        """See Engine.wakes."""
        return self.watchers.wakes

    async def wait(self, ref: Ref, version: int | None, timeout_s: float) -> None:
        """See Engine.wait."""
        self._check_serving()
        check_reads((ref,))
        future = self.watchers.register(ref)
        record = self._get(ref)
        if (record.version if record else None) != version:
            self.watchers.forget(ref, future)
            return
        await self.watchers.sleep(ref, future, timeout_s)

    async def now(self) -> int:
        """See Engine.now."""
        self._check_serving()
        return self._time.now()

    def advance(self, seconds: float) -> None:
        """See Engine.advance."""
        self._time.advance(seconds)
        self.watchers.wake_all()

    async def health(self, timeout_s: float) -> Health:
        """See Engine.health."""
        if self._closed or self._broken:
            return Health.STOPPED
        if self.capacity_bytes is not None and self.size_bytes >= self.capacity_bytes:
            return Health.FULL
        return Health.SERVING

    async def close(self) -> None:
        """See Engine.close."""
        self._closed = True
        self.watchers.wake_all()
        while self._running:
            await next(iter(self._running)).done.wait()

    async def _quiet(self, stamp: int) -> None:
        if stamp > max(self._last_stamp + 1, self._time.now()):
            raise ValueError(f"{stamp} lies in the future: the store has given no such stamp yet")
        while (one := next((one for one in self._running if one.stamp < stamp), None)) is not None:
            await one.done.wait()

    async def write(
        self, chunks: AsyncIterable[bytes], size_bytes: int | None, md5: bool = False
    ) -> Written:
        """See Contents.write."""
        self._check_serving()
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            if size_bytes is not None and len(body) > size_bytes:
                raise ValueError("a content is longer than was said")
            if self.capacity_bytes is not None and (
                self.size_bytes + len(body) > self.capacity_bytes
            ):
                raise Full
        if size_bytes is not None and len(body) < size_bytes:
            raise ValueError("a content is shorter than was said")
        self._check_serving()
        content_id = max(self._time.now(), self._last_content + 1)
        self._last_content = content_id
        content = self._written[content_id] = MemoryContent(bytes(body), crc64(body))
        self.size_bytes += content.size_bytes
        digest = hashlib.md5(body, usedforsecurity=False).digest() if md5 else None
        return Written(content_id, content.size_bytes, content.crc64, digest)

    async def open(self, content_id: int) -> MemoryContent:
        """See Contents.open."""
        self._check_serving()
        content = self._adopted.get(content_id)
        if content is None:
            raise ContentMissing(f"no partition owns content {content_id}")
        return content

    def discard(self, content_id: int) -> None:
        """See Contents.discard."""
        self.size_bytes -= self._written.pop(content_id, _NOTHING).size_bytes

    def content_ids(self) -> Iterator[int]:
        """The ids of all adopted contents, ascending."""
        return iter(sorted(self._adopted))

    def records(self) -> Iterator[tuple[Ref, Record]]:
        """All records, in no particular order."""
        for partition, records in self._records.items():
            for key, record in records.items():
                yield Ref(partition, key), record

    def cut_after_steps(self, count: int) -> None:
        """Let the next commit keep its first `count` steps, end as CommitUnknown, and stop here.

        This is what a crash may leave on an engine spread over machines; `restarted` goes on from
        there. For tests of whoever commits several steps.
        """
        self._cut_after = count

    def damage(self, content_id: int) -> None:
        """Flip a bit of an adopted content, as a disk may. For tests of whoever reads contents."""
        content = self._adopted[content_id]
        data = bytearray(content.data)
        data[content.size_bytes // 2] ^= 1
        self._adopted[content_id] = MemoryContent(bytes(data), content.crc64)

    def restarted(self) -> MemoryStore:
        """A new store that holds what this one held, as after a restart; this one is stopped."""
        self._broken = True
        self.watchers.wake_all()
        after = MemoryStore(self._clock, self.capacity_bytes, self._reserve_bytes)
        after._time = StoreTime(self._clock, max(self._time.now(), self._last_stamp))
        after._records, after._order, after._adopted = self._records, self._order, self._adopted
        after._hidden = self._hidden
        given_up_bytes = sum(one.size_bytes for one in self._written.values())
        after.size_bytes = self.size_bytes - given_up_bytes
        after._last_stamp, after._last_content = self._last_stamp, self._last_content
        return after

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

    def _get(self, ref: Ref) -> Record | None:
        records = self._records.get(ref.partition)
        return None if records is None else records.get(ref.key)

    def _stamp(self) -> int:
        self._last_stamp = max(self._time.now(), self._last_stamp + 1)
        return self._last_stamp


class _Running:
    """An update under way, and the stamp of its last decision (0: it has made none)."""

    def __init__(self) -> None:
        self.stamp = 0
        self.done = asyncio.Event()


def _reorder(orders: dict[K, list[N]], place: K, name: N, present: bool) -> None:
    """Let a name be, or no longer be, in the order of its place."""
    order = orders.setdefault(place, [])
    index = bisect.bisect_left(order, name)
    if present:
        order.insert(index, name)
        return
    del order[index]
    if not order:
        del orders[place]


class MemoryContent:
    """A content. It needs no pin: its bytes stay in memory for its readers after it is dropped."""

    def __init__(self, data: bytes, checksum: int) -> None:
        self.data = data
        self.crc64 = checksum
        self.size_bytes = len(data)

    async def read(self, offset: int, length: int) -> bytes:
        """See Opened.read."""
        self._check(offset, length)
        self._compare()
        return self.data[offset : offset + length]

    async def slices(self, offset: int, length: int) -> AsyncIterator[FileSlice | bytes]:
        """See Opened.slices."""
        self._check(offset, length)
        if self.size_bytes <= VERIFIED_BYTES_MAX:
            self._compare()
        for start in range(offset, offset + length, _PIECE_BYTES):
            yield self.data[start : min(start + _PIECE_BYTES, offset + length)]

    async def chunks(self) -> AsyncIterator[bytes]:
        """See Opened.chunks."""
        for start in range(0, self.size_bytes, _PIECE_BYTES):
            yield self.data[start : start + _PIECE_BYTES]
        self._compare()

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise ValueError("the range lies outside the content")

    def _compare(self) -> None:
        if crc64(self.data) != self.crc64:
            raise DataDamaged(f"a content of {self.size_bytes} bytes: its checksum differs")

    def close(self) -> None:
        """See Opened.close."""


_NOTHING: Final = MemoryContent(b"", 0)
