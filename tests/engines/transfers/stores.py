"""Stores to be copied, and where they are: a directory, or a schema of a PostgreSQL.

Lives here: what is in such a store, and what a test asks of its copy. Must not live here: cases.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import psycopg

from strongroom.clock import SystemClock
from strongroom.engines.base import (
    KEY_BYTES_MAX,
    RECORD_BYTES_MAX,
    Record,
    Ref,
    Step,
    StorageEngine,
)
from strongroom.engines.embedded.store import EmbeddedOptions
from strongroom.engines.embedded.store import open_store as open_directory
from strongroom.engines.embedded.upkeep.transfer_source import EmbeddedSource
from strongroom.engines.embedded.upkeep.transfer_target import EmbeddedTarget
from strongroom.engines.postgres.assembly import PostgresOptions
from strongroom.engines.postgres.assembly import open_store as open_schema
from strongroom.engines.postgres.transfer import PostgresSource
from strongroom.engines.postgres.transfer_target import PostgresTarget
from strongroom.engines.store_copy import CopyReport, Progress, copy_store
from strongroom.engines.transfer import TransferSource, TransferTarget
from strongroom.testing.contract.subject import (
    commit,
    content,
    face,
    hidden,
    pieces,
    place,
    put,
    writes,
)

SEGMENT_BYTES: Final = 1_000_000
SIZES: Final = (0, 1, 1000, 65_536, 65_537, 262_144, 300_001, 1_048_576, 2_500_000)
"""Lengths of contents at which engines change their form, and some beside them."""
_NAMES: Final = (b"", b"\0", b"\0\xff", b"a", b"a\0b", b"\xff\xff", b"x" * KEY_BYTES_MAX)
_schemas: Final = itertools.count(1)


def new_schema() -> str:
    """Return the name of a schema that no other test uses."""
    return f"copied{next(_schemas)}"


class Place(Protocol):
    """Where a store is, or may be made."""

    async def open(self) -> StorageEngine:
        """As a server does."""
        ...

    async def source(self) -> TransferSource: ...

    async def target(self) -> TransferTarget: ...


class Directory:
    """A store in a data directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def open(self) -> StorageEngine:
        options = EmbeddedOptions(segment_bytes=SEGMENT_BYTES, ballast_bytes=0)
        return await open_directory(self.path, SystemClock(), options=options)

    async def source(self) -> TransferSource:
        return EmbeddedSource(self.path)

    def mark(self, text: str) -> None:
        """Replace what its FORMAT says."""
        (self.path / "FORMAT").write_text(text)

    async def target(self) -> TransferTarget:
        return EmbeddedTarget(self.path, segment_bytes=SEGMENT_BYTES)


class Schema:
    """A store in a schema of a PostgreSQL.

    Arguments:
        bodies: an empty folder for long bodies.
    """

    def __init__(self, url: str, bodies: Path | None = None) -> None:
        self.url = url
        self.bodies = bodies
        self.name = new_schema()

    async def open(self) -> StorageEngine:
        options = PostgresOptions(connections=2, schema=self.name, bodies=self._place())
        return await open_schema(self.url, SystemClock(), options)

    def _place(self) -> str | None:
        return None if self.bodies is None else f"file://{self.bodies}"

    async def source(self) -> TransferSource:
        return await PostgresSource.open(self.url, self.name)

    async def target(self) -> TransferTarget:
        return await PostgresTarget.open(self.url, self.name, self._place())

    def run(self, statement: str) -> None:
        """Run SQL in the schema, as an administrator."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'SET search_path = "{self.name}"'.encode())
            connection.execute(statement.encode())


@asynccontextmanager
async def served(where: Place) -> AsyncIterator[StorageEngine]:
    """Open a store, and close it in the end."""
    store = await where.open()
    try:
        yield store
    finally:
        await store.close()


async def copy(start: Place, goal: Place, progress: Progress | None = None) -> CopyReport:
    """Copy a store."""
    source = await start.source()
    try:
        target = await goal.target()
        try:
            return await copy_store(source, target, progress)
        finally:
            await target.close()
    finally:
        await source.close()


class Filled(NamedTuple):
    """What a store holds.

    Attributes:
        bodies: by the ids of their contents.
        last: the stamp of the last commit.
    """

    records: dict[Ref, Record]
    bodies: dict[int, bytes]
    last: int


async def fill(store: StorageEngine, seed: int = 1, sizes: tuple[int, ...] = SIZES) -> Filled:
    """Write records of all forms, overwrite and delete some, and adopt contents."""
    chance = random.Random(seed)
    refs = [
        make(name, partition, keyspace)
        for make, name, partition, keyspace in itertools.product(
            (face, hidden), _NAMES, (b"", b"p\0", b"p"), (b"\0", b"k")
        )
    ]
    for ref in refs:
        await put(store, (ref, chance.randbytes(chance.choice((0, 10, 3000)))))
    await put(store, (hidden(b"longest"), chance.randbytes(RECORD_BYTES_MAX)))
    for ref in refs[::5]:
        await put(store, (ref, b"again"))
    for ref in refs[::7]:
        await put(store, (ref, None))
    bodies = [chance.randbytes(size) for size in sizes]
    ids = [(await store.contents.write(pieces(body), len(body))).id for body in bodies]
    last = await commit(store, Step(place(b"owner"), adopt=tuple(ids)))
    dropped = (await store.contents.write(pieces(b"dropped"), None)).id
    await commit(store, Step(place(b"owner"), adopt=(dropped,)))
    last = await commit(store, Step(place(b"owner"), drop=(dropped,)))
    found = await store.read([*refs, hidden(b"longest")])
    records = {
        ref: record
        for ref, record in zip([*refs, hidden(b"longest")], found, strict=True)
        if record is not None
    }
    return Filled(records, dict(zip(ids, bodies, strict=True)), last)


async def check(store: StorageEngine, filled: Filled) -> None:
    """Assert that a store holds this, and goes on behind it."""
    found = await store.read(list(filled.records))
    assert dict(zip(filled.records, found, strict=True)) == filled.records
    for content_id, body in filled.bodies.items():
        assert await content(store, content_id) == body, content_id
    assert await store.now() >= filled.last
    assert await put(store, (face(b"new"), b"")) > filled.last
    new = await store.contents.write(pieces(b"new body" * 40_000), None)
    assert new.id > max(filled.bodies, default=0)
    await commit(store, Step(place(b"owner"), adopt=(new.id,)))
    assert await content(store, new.id) == b"new body" * 40_000
    await commit(store, *writes((face(b"new"), None)))
