"""A small owner of sparse content, like a service, and a naive model of it.

Lives here: `Volume`, which composes maps with a head record of its own, and `Model`, which stores
every byte. Must not live here: tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from strongroom.engines.base import Commit, Key, Partition, Record, Ref, Step, StorageEngine, Write
from strongroom.store.core import extents
from strongroom.store.core.extents import Draft, MapPlace, MapReaders, MapReading, MapsCheck, Sweep

PARTITION: Final = Partition(b"volumes", b"one")
HEAD: Final = Ref(PARTITION, Key(False, b"head"))
MAP_NUMBER: Final = 7


class Head(msgspec.Struct, frozen=True):
    """The owner's record: the content's length, and the stamps and lengths of its snapshots."""

    size_bytes: int
    snapshots: tuple[tuple[int, int], ...] = ()

    @property
    def newest(self) -> int:
        return max((stamp for stamp, _ in self.snapshots), default=0)


def head_of(record: Record | None) -> Head:
    assert record is not None
    return msgspec.json.decode(record.value, type=Head)


async def once(data: bytes, piece_bytes: int = 50_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), piece_bytes):
        yield data[start : start + piece_bytes]


class Volume:
    """One sparse content with snapshots."""

    def __init__(self, store: StorageEngine, readers: MapReaders | None = None) -> None:
        self.store = store
        self.readers = readers or MapReaders()
        self.place = MapPlace(PARTITION, MAP_NUMBER)
        self.has_garbage = False

    async def create(self, size_bytes: int) -> None:
        await self.put_head(lambda head, stamp: Head(size_bytes))

    async def put_head(self, edit: Callable[[Head, int], Head]) -> int:
        def decide(found: Sequence[Record | None], stamp: int) -> Commit[int]:
            before = Head(0) if found[0] is None else head_of(found[0])
            value = msgspec.json.encode(edit(before, stamp))
            return Commit(stamp, (Step(PARTITION, (Write(HEAD.key, value),)),))

        return await self.store.update(PARTITION, [HEAD], decide)

    async def head(self) -> tuple[Head, int]:
        (found,) = await self.store.read([HEAD])
        assert found is not None
        return head_of(found), found.version

    async def apply(self, draft: Draft, size_bytes: int | None = None) -> int:
        """Commit a draft together with the head, as services do. Return the commit's stamp."""
        async with draft:
            while True:
                head, _ = await self.head()
                mutation = await draft.prepare(head.newest)

                def decide(
                    found: Sequence[Record | None],
                    stamp: int,
                    mutation: extents.Mutation = mutation,
                ) -> Commit[tuple[int, bool]]:
                    head = head_of(found[0])
                    pins = self.readers.pins(PARTITION, head.newest)
                    change = mutation.decide(found[1:], stamp, pins)
                    size = head.size_bytes if size_bytes is None else size_bytes
                    value = msgspec.json.encode(Head(size, head.snapshots))
                    writes = (Write(HEAD.key, value), *change.writes)
                    step = Step(PARTITION, writes, change.adopt, change.drop)
                    return Commit((stamp, change.has_garbage), (step,))

                try:
                    with self.readers.mutating(PARTITION):
                        stamp, has_garbage = await self.store.update(
                            PARTITION,
                            [HEAD, *mutation.reads],
                            decide,
                        )
                except extents.Outdated:
                    continue
                except extents.Backlog:
                    await self.sweep()
                    continue
                self.has_garbage = self.has_garbage or has_garbage
                return stamp

    async def write(self, offset: int, data: bytes) -> int:
        draft = await extents.receive(self.store, self.place, offset, once(data), len(data))
        return await self.apply(draft)

    async def clear(self, offset: int, length: int) -> int:
        return await self.apply(extents.clear(self.store, self.place, offset, length))

    async def resize(self, size_bytes: int) -> int:
        head, _ = await self.head()
        draft = extents.resize(self.store, self.place, head.size_bytes, size_bytes)
        return await self.apply(draft, size_bytes)

    async def snapshot(self) -> int:
        def edit(head: Head, stamp: int) -> Head:
            return Head(head.size_bytes, (*head.snapshots, (stamp, head.size_bytes)))

        return await self.put_head(edit)

    async def delete_snapshot(self, stamp: int) -> None:
        def edit(head: Head, _: int) -> Head:
            return Head(head.size_bytes, tuple(one for one in head.snapshots if one[0] != stamp))

        await self.put_head(edit)
        self.has_garbage = True

    async def sweep(self) -> bool:
        head, _ = await self.head()
        living = [stamp for stamp, _ in head.snapshots]
        done = await Sweep(self.store, self.readers, self.place, living).run()
        self.has_garbage = self.has_garbage and not done
        return done

    async def begin(self, snapshot: int | None = None) -> MapReading:
        """Return a registered reader that has its position."""
        reading = self.readers.begin(PARTITION)
        await reading.wait_for_mutations()
        _, version = await self.head()
        reading.set_position(version if snapshot is None else snapshot)
        return reading

    async def read(self, offset: int, length: int, snapshot: int | None = None) -> bytes:
        reading = await self.begin(snapshot)
        try:
            pieces = extents.read(self.store, self.place, reading.at, offset, length)
            return b"".join([piece async for piece in pieces])
        finally:
            reading.end()

    async def read_short(self, offset: int, length: int) -> bytes | None:
        _, version = await self.head()
        found = await extents.read_short(self.store, self.place, HEAD, version, offset, length)
        return None if found is None else b"".join(found)

    async def hidden(self) -> list[tuple[bytes, bytes]]:
        """Return all records of the map."""
        found: list[tuple[bytes, bytes]] = []
        first = b""
        while True:
            items = await self.store.read_range(PARTITION, True, first, None, 1000)
            found += [(item.name, item.value) for item in items]
            if len(items) < 1000:
                return found
            first = items[-1].name + b"\0"

    async def check(self) -> MapsCheck:
        """Run the doctor's check: it may never find a problem."""
        head, _ = await self.head()
        check = MapsCheck(PARTITION)
        for name, value in await self.hidden():
            assert check.take(name, value), name
        living = [stamp for stamp, _ in head.snapshots]
        assert check.judge(MAP_NUMBER, head.size_bytes, living) == []
        assert check.numbers() <= {MAP_NUMBER}
        return check


Runs = list[tuple[int, int]]


class Model:
    """Every byte of a window of the content, whether it is allocated, and the ranges written, and
    those written and cleared, since each snapshot."""

    def __init__(self, base: int, size_bytes: int) -> None:
        self.base = base
        self.data = bytearray(size_bytes)
        self.allocated = bytearray(size_bytes)
        self.written: dict[int, bytearray] = {}
        self.cleared: dict[int, bytearray] = {}

    def copy(self) -> Model:
        other = Model(self.base, 0)
        other.data = bytearray(self.data)
        other.allocated = bytearray(self.allocated)
        other.written = {stamp: bytearray(flags) for stamp, flags in self.written.items()}
        other.cleared = {stamp: bytearray(flags) for stamp, flags in self.cleared.items()}
        return other

    def snapshot(self, stamp: int) -> Model:
        """Return the state that a snapshot keeps."""
        self.written[stamp] = bytearray(len(self.data))
        self.cleared[stamp] = bytearray(len(self.data))
        return self.copy()

    def write(self, offset: int, data: bytes) -> None:
        start = offset - self.base
        self.data[start : start + len(data)] = data
        self.allocated[start : start + len(data)] = b"\1" * len(data)
        for flags in self.written.values():
            flags[start : start + len(data)] = b"\1" * len(data)

    def clear(self, offset: int, length: int) -> None:
        start = max(0, offset - self.base)
        end = min(len(self.data), offset - self.base + length)
        if start < end:
            held = int.from_bytes(self.allocated[start:end], "little")
            for flags in self.cleared.values():
                gone = held | int.from_bytes(flags[start:end], "little")
                flags[start:end] = gone.to_bytes(end - start, "little")
            self.data[start:end] = bytes(end - start)
            self.allocated[start:end] = bytes(end - start)

    def ranges(self, granularity_bytes: int = 1) -> Runs:
        return widened(runs_of(self.allocated, self.base), granularity_bytes)

    def changes(self, since: int, before: Model, grain: int) -> tuple[Runs, Runs]:
        """Return (written, cleared) since the state `before`, which a snapshot of `since` keeps.

        Arguments:
            grain: the ranges are widened to its multiples.
        """
        held = int.from_bytes(self.allocated, "little")
        written = held & int.from_bytes(self.written[since], "little")
        lost = before.allocated, self.cleared[since]
        gone = int.from_bytes(lost[0], "little") | int.from_bytes(lost[1], "little")
        flags = (bytearray(one.to_bytes(len(self.data), "little")) for one in (written, gone))
        found, cleared = (widened(runs_of(one, self.base), grain) for one in flags)
        return found, outside(cleared, self.ranges(grain))


def outside(runs: Runs, others: Runs) -> Runs:
    """Return the parts of runs that lie in none of the others."""
    for first, last in others:
        parts = [((start, min(end, first)), (max(start, last), end)) for start, end in runs]
        runs = [run for pair in parts for run in pair if run[0] < run[1]]
    return runs


def runs_of(flags: bytearray, base: int) -> Runs:
    found = []
    start = flags.find(1)
    while start >= 0:
        end = flags.find(0, start)
        end = len(flags) if end < 0 else end
        found.append((base + start, base + end))
        start = flags.find(1, end)
    return found


def widened(runs: Runs, granularity_bytes: int) -> Runs:
    found: Runs = []
    for start, end in runs:
        first, last = (
            start // granularity_bytes * granularity_bytes,
            -(-end // granularity_bytes) * granularity_bytes,
        )
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found
