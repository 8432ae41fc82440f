"""The data that the gateways of a memory store share: records, adopted contents, and their size.

Lives here: the data, and how it is read and changed at one point in time. Must not live here: which
commit may happen (store.py), or bodies that no partition owns yet (contents.py).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import TypeVar

from strongroom.engines.base import (
    SCAN_EXAMINED_MAX,
    ContentMissing,
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
)
from strongroom.engines.bounds import growth_bytes, purpose_of, values_after
from strongroom.engines.conditions import Condition, holds
from strongroom.engines.content_in_memory import ContentInMemory
from strongroom.engines.memory.gateways import MemoryMembers
from strongroom.values import Purpose

K = TypeVar("K")
N = TypeVar("N", bytes, Position)


class MemoryData:
    """Records and the contents that partitions own.

    Arguments:
        members: the gateways that share the data.
        capacity_bytes: see MemoryEngine.
        reserve_bytes: see MemoryEngine.

    Attributes:
        contents: the adopted contents by id.
        newest: the stamp of the last commit in each partition. With a single gateway, it is cleared
            whenever no decision is in progress.
        size_bytes: of keys, values and bodies, including bodies that no partition owns yet.
    """

    def __init__(
        self, members: MemoryMembers, capacity_bytes: int | None, reserve_bytes: int
    ) -> None:
        self.members = members
        self.capacity_bytes = capacity_bytes
        self._reserve_bytes = reserve_bytes
        self._records: dict[Partition, dict[Key, Record]] = {}
        # By keyspace, the positions of its face records in order; by partition, its hidden keys.
        self._order: dict[bytes, list[Position]] = {}
        self._hidden: dict[Partition, list[bytes]] = {}
        self.contents: dict[int, ContentInMemory] = {}
        self.newest: dict[Partition, int] = {}
        self.size_bytes = 0
        self._last_content = 0

    def get(self, ref: Ref) -> Record | None:
        records = self._records.get(ref.partition)
        return None if records is None else records.get(ref.key)

    def all_records(self) -> Iterator[tuple[Ref, Record]]:
        for partition, records in self._records.items():
            for key, record in records.items():
                yield Ref(partition, key), record

    def range(
        self, partition: Partition, hidden: bool, first: bytes, until: bytes | None, limit: int
    ) -> list[Item]:
        records = self._records.get(partition, {})
        if hidden:
            order = self._hidden.get(partition, [])
        else:
            order = sorted(key.name for key in records if not key.hidden)
        start = bisect.bisect_left(order, first)
        items = []
        for name in order[start : start + limit]:
            if until is not None and name >= until:
                break
            record = records[Key(hidden, name)]
            items.append(Item(name, record.value, record.version))
        return items

    def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int,
        where: Condition | None = None,
    ) -> Page:
        order = self._order.get(keyspace, [])
        faces: list[Face] = []
        size_bytes = 0
        start = bisect.bisect_left(order, first)
        for index in range(start, len(order)):
            position = order[index]
            if until is not None and position >= until:
                break
            is_full = len(faces) >= max_records or size_bytes >= max_bytes
            if is_full or (where is not None and self.is_scan_limit_reached(index - start)):
                return Page.of(faces, position)
            partition = Partition(keyspace, position.partition)
            record = self._records[partition][Key(False, position.key)]
            if where is not None and not self.satisfies(where, record.value):
                continue
            faces.append(Face(position.partition, position.key, record.value, record.version))
            size_bytes += len(position.partition) + len(position.key) + len(record.value)
        return Page.of(faces, None)

    def is_scan_limit_reached(self, count: int) -> bool:
        return count >= SCAN_EXAMINED_MAX

    def satisfies(self, where: Condition, value: bytes) -> bool:
        return holds(where, value)

    def write(self, step: Step, stamp: int) -> None:
        """Without the adoptions, which the engine handles."""
        for key, value in step.writes:
            self._put(step.partition, key, value, stamp)
        for content_id in step.drop:
            content = self.contents.pop(content_id, None)
            self.size_bytes -= 0 if content is None else content.size_bytes

    def content(self, content_id: int) -> ContentInMemory:
        content = self.contents.get(content_id)
        if content is None:
            raise ContentMissing(f"no partition owns content {content_id}")
        return content

    def new_content_id(self, now: int) -> int:
        self._last_content = max(now, self._last_content + 1)
        return self._last_content

    @property
    def is_full(self) -> bool:
        return self.capacity_bytes is not None and self.size_bytes >= self.capacity_bytes

    def check_body(self, size_bytes: int) -> None:
        """Raise Full unless a body of this size fits."""
        capacity_bytes = self.capacity_bytes
        if capacity_bytes is not None and self.size_bytes + size_bytes > capacity_bytes:
            raise Full

    def check_space(self, steps: Sequence[Step], declared: Purpose) -> None:
        """Raise Full unless a commit fits (rule 6 of base.py)."""
        if self.capacity_bytes is None or not steps:
            return
        writes = values_after(steps)
        adopts = any(step.adopt for step in steps)
        purpose = purpose_of(declared, adopts, writes, self.get)
        growth = growth_bytes(writes, self.get)
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


def _reorder(orders: dict[K, list[N]], place: K, name: N, present: bool) -> None:
    """Keep the sorted list of a place: with the name, or without it."""
    order = orders.setdefault(place, [])
    index = bisect.bisect_left(order, name)
    if present:
        order.insert(index, name)
        return
    del order[index]
    if not order:
        del orders[place]
