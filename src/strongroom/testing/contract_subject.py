"""The contract suite's interface to an engine under test, and short words for its records.

Lives here: the `Subject` protocol, and builders of refs, steps and bodies. Must not live here:
cases.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from strongroom.clock import ManualClock
from strongroom.engines.base import (
    Commit,
    ContentMissing,
    Face,
    Full,
    Key,
    Opened,
    Partition,
    Position,
    Record,
    Ref,
    Step,
    StorageEngine,
    Write,
)
from strongroom.engines.conditions import Condition
from strongroom.engines.gateways import ExclusiveRight
from strongroom.values import FileSlice, Purpose


class Subject(Protocol):
    """An engine that the suite can start, restart, fill up and break. Its clock can be moved."""

    clock: ManualClock
    store: StorageEngine

    async def start(self) -> None:
        """Make `store`, empty, with a test clock."""
        ...

    async def restart(self) -> None:
        """Stop `store` if it still runs, and make it again from what it left behind."""
        ...

    async def stop(self) -> None:
        """Stop and clean up."""
        ...

    def fill(self) -> None:
        """From now on there is no space left."""
        ...

    def free(self) -> None:
        """Make space available again after `fill`."""
        ...

    def break_next_commit(self) -> None:
        """Let the next commit end with an unknown outcome."""
        ...

    def damage(self, content_id: int) -> None:
        """Flip a bit in the middle of an adopted content where it is stored."""
        ...


class HeldCommits(Protocol):
    """Commits of one gateway that wait between their decision and the commit itself."""

    async def reached(self) -> None:
        """Return when one waits."""
        ...

    def release(self) -> None:
        """Let all go on, those that come later too."""
        ...


class SharedSubject(Subject, Protocol):
    """An engine that serves several gateways; `store` is one of them."""

    async def second(self, skew_s: float = 0.0) -> StorageEngine:
        """Another gateway, which `stop` stops too. Its clock is ahead by `skew_s`."""
        ...

    def hold_commits(self, store: StorageEngine) -> HeldCommits:
        """Hold back the commits of a gateway from now on."""
        ...

    def stop_heart(self, store: StorageEngine) -> None:
        """The gateway sends no heartbeats from now on."""
        ...

    def start_heart(self, store: StorageEngine) -> None:
        """It sends them again."""
        ...


_RECORDS_MAX: Final = 400


def is_lost(hold: ExclusiveRight) -> bool:
    """Return `hold.lost`. The call makes a type checker forget the value that it saw before."""
    return hold.lost


def stands(hold: ExclusiveRight) -> bool:
    """`hold.stands`, asked anew."""
    return hold.stands


class Refused(Exception):
    """A decision's own refusal."""


def place(name: bytes = b"p", keyspace: bytes = b"k") -> Partition:
    """A partition."""
    return Partition(keyspace, name)


def face(name: bytes = b"", partition: bytes = b"p", keyspace: bytes = b"k") -> Ref:
    """A face record's address."""
    return Ref(Partition(keyspace, partition), Key(False, name))


def hidden(name: bytes = b"", partition: bytes = b"p", keyspace: bytes = b"k") -> Ref:
    """A hidden record's address."""
    return Ref(Partition(keyspace, partition), Key(True, name))


def writes(*pairs: tuple[Ref, bytes | None]) -> tuple[Step, ...]:
    """Steps that write these records, one step for each."""
    return tuple(Step(ref.partition, (Write(ref.key, value),)) for ref, value in pairs)


async def put(
    store: StorageEngine, *pairs: tuple[Ref, bytes | None], purpose: Purpose = Purpose.GROWTH
) -> int:
    """Write (None: delete) records of one partition in one commit; its stamp."""
    partition = pairs[0][0].partition
    step = Step(partition, tuple(Write(ref.key, value) for ref, value in pairs))
    return await store.update(partition, [], lambda _, stamp: Commit(stamp, (step,)), purpose)


async def put_until_full(store: StorageEngine) -> None:
    """Put new records until one is refused: what an engine has room for already, it may still take
    on a full disk."""
    for number in range(_RECORDS_MAX):
        try:
            await put(store, (hidden(b"filling %d" % number), bytes(60_000)))
        except Full:
            return
    raise AssertionError("the disk does not fill")


async def commit(store: StorageEngine, *steps: Step) -> int:
    """Commit steps without reading a record. Returns the stamp of the commit."""
    return await store.update(steps[0].partition, [], lambda _, stamp: Commit(stamp, steps))


async def value(store: StorageEngine, ref: Ref) -> bytes | None:
    """A record's value."""
    (record,) = await store.read([ref])
    return None if record is None else record.value


async def increment(store: StorageEngine, ref: Ref) -> int:
    """Add one to a record that holds a number; the new number."""

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[int]:
        number = int(records[0].value) + 1 if records[0] else 1
        return Commit(number, writes((ref, b"%d" % number)))

    return await store.update(ref.partition, [ref], decide)


async def refuse(store: StorageEngine, ref: Ref) -> None:
    """Have a decision about `ref` refused: raises Refused."""

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
        raise Refused(str(records))

    await store.update(ref.partition, [ref], decide)


async def scan_all(
    store: StorageEngine, keyspace: bytes, max_records: int, where: Condition | None = None
) -> list[Face]:
    """All face records of a keyspace, in pages. With a condition: what the engine returns."""
    faces: list[Face] = []
    first: Position | None = Position(b"", b"")
    while first is not None:
        page = await store.scan(keyspace, first, None, max_records, where=where)
        assert page.resume is None or page.resume > first or page.faces(), "the scan stands still"
        faces += page.faces()
        first = page.resume
    return faces


async def pieces(body: bytes, piece_bytes: int = 10_000) -> AsyncIterator[bytes]:
    """A body as a stream."""
    for start in range(0, len(body), piece_bytes):
        yield body[start : start + piece_bytes]
        await asyncio.sleep(0)


async def body_of(opened: Opened, offset: int = 0, length: int | None = None) -> bytes:
    """The bytes of a pinned content."""
    whole = bytearray()
    wanted = opened.size_bytes - offset if length is None else length
    async for one in opened.slices(offset, wanted):
        if isinstance(one, FileSlice):
            one.file.seek(one.offset)
            whole += one.file.read(one.length)
        else:
            whole += one
    return bytes(whole)


async def content(store: StorageEngine, content_id: int) -> bytes | None:
    """The bytes of an adopted content, None when there is none."""
    try:
        opened = await store.contents.open(content_id)
    except ContentMissing:
        return None
    try:
        return await body_of(opened)
    finally:
        opened.close()
