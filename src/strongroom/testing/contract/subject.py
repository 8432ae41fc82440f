"""The contract suite's interface to an engine under test, and helpers for its records.

Lives here: the `Subject` protocol, and builders of refs, steps and bodies.
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
        """Create an empty `store` with a test clock."""
        ...

    async def restart(self) -> None:
        """Stop `store` if it is running, and open it again on the same data."""
        ...

    async def stop(self) -> None:
        """Stop `store` and delete its data."""
        ...

    def fill(self) -> None:
        """Leave no space for further data."""
        ...

    def free(self) -> None:
        """Make space available again after `fill`."""
        ...

    def break_next_commit(self) -> None:
        """Make the outcome of the next commit unknown."""
        ...

    def damage(self, content_id: int) -> None:
        """Flip a bit in the middle of an adopted content, in its storage."""
        ...


class HeldCommits(Protocol):
    """Commits of one gateway that wait between their decision and the commit itself."""

    async def reached(self) -> None:
        """Return once a commit waits."""
        ...

    def release(self) -> None:
        """Let all waiting commits continue, and later ones too."""
        ...


class SharedSubject(Subject, Protocol):
    """An engine that several gateways can serve; `store` is one of them."""

    async def second(self, skew_s: float = 0.0) -> StorageEngine:
        """Return another gateway whose clock is ahead by `skew_s`. `stop` stops it too."""
        ...

    def hold_commits(self, store: StorageEngine) -> HeldCommits:
        """Hold back the commits of a gateway from now on."""
        ...

    def stop_heartbeats(self, store: StorageEngine) -> None:
        """Stop the heartbeats of a gateway."""
        ...

    def resume_heartbeats(self, store: StorageEngine) -> None:
        """Send the heartbeats of a gateway again."""
        ...


_RECORDS_MAX: Final = 400


def is_lost(hold: ExclusiveRight) -> bool:
    """Return `hold.is_lost`. The call makes a type checker forget the value that it saw before."""
    return hold.is_lost


def stands(hold: ExclusiveRight) -> bool:
    """Return `hold.is_held`. The call makes a type checker forget the value that it saw before."""
    return hold.is_held


class Refused(Exception):
    """Raised by a decision that refuses its update."""


def place(name: bytes = b"p", keyspace: bytes = b"k") -> Partition:
    """Return a partition."""
    return Partition(keyspace, name)


def face(name: bytes = b"", partition: bytes = b"p", keyspace: bytes = b"k") -> Ref:
    """Return the address of a face record."""
    return Ref(Partition(keyspace, partition), Key(False, name))


def hidden(name: bytes = b"", partition: bytes = b"p", keyspace: bytes = b"k") -> Ref:
    """Return the address of a hidden record."""
    return Ref(Partition(keyspace, partition), Key(True, name))


def writes(*pairs: tuple[Ref, bytes | None]) -> tuple[Step, ...]:
    """Return steps that write these records, one step for each."""
    return tuple(Step(ref.partition, (Write(ref.key, value),)) for ref, value in pairs)


async def put(
    store: StorageEngine, *pairs: tuple[Ref, bytes | None], purpose: Purpose = Purpose.GROWTH
) -> int:
    """Write records of one partition in one commit (None deletes). Returns the commit's stamp."""
    partition = pairs[0][0].partition
    step = Step(partition, tuple(Write(ref.key, value) for ref, value in pairs))
    return await store.update(partition, [], lambda _, stamp: Commit(stamp, (step,)), purpose)


async def put_until_full(store: StorageEngine) -> None:
    """Put new records until one is refused.

    An engine may still accept a few on a full disk, into space that it has reserved.
    """
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
    """Return a record's value; None if there is no record."""
    (record,) = await store.read([ref])
    return None if record is None else record.value


async def increment(store: StorageEngine, ref: Ref) -> int:
    """Add one to a record that holds a number, and return the new number."""

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[int]:
        number = int(records[0].value) + 1 if records[0] else 1
        return Commit(number, writes((ref, b"%d" % number)))

    return await store.update(ref.partition, [ref], decide)


async def refuse(store: StorageEngine, ref: Ref) -> None:
    """Run an update whose decision refuses; it reads `ref`. Raises Refused."""

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
        raise Refused(str(records))

    await store.update(ref.partition, [ref], decide)


async def scan_all(
    store: StorageEngine, keyspace: bytes, max_records: int, where: Condition | None = None
) -> list[Face]:
    """Return all face records of a keyspace, read in pages.

    With a condition, the list holds what the engine returns, which may be more than matches.
    """
    faces: list[Face] = []
    first: Position | None = Position(b"", b"")
    while first is not None:
        page = await store.scan(keyspace, first, None, max_records, where=where)
        assert page.resume is None or page.resume > first or page.faces(), "the scan stands still"
        faces += page.faces()
        first = page.resume
    return faces


async def pieces(body: bytes, piece_bytes: int = 10_000) -> AsyncIterator[bytes]:
    """Yield a body in pieces."""
    for start in range(0, len(body), piece_bytes):
        yield body[start : start + piece_bytes]
        await asyncio.sleep(0)


async def body_of(opened: Opened, offset: int = 0, length: int | None = None) -> bytes:
    """Return the bytes of a pinned content, or of a range of it."""
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
    """Return the bytes of an adopted content; None if there is none."""
    try:
        opened = await store.contents.open(content_id)
    except ContentMissing:
        return None
    try:
        return await body_of(opened)
    finally:
        opened.close()
