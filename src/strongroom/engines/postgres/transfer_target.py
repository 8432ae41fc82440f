"""A new store in PostgreSQL as the target of a copy from any engine.

Lives here: writing records and contents without a gateway, so that versions and ids are kept. Must
not live here: the session, and reading (transfer.py).

The row of `store` names the source until the end, and no gateway joins meanwhile. An advisory lock
keeps a second copy away. A batch need not be durable when it is answered. The database's log keeps
the order, and the last statement waits until everything before it is safe.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from strongroom.engines.base import Ref
from strongroom.engines.bodies.base import BodyStore
from strongroom.engines.postgres.apart.place import make_place, opened_known, place_row
from strongroom.engines.postgres.assembly import init_store
from strongroom.engines.postgres.contents.intake import CHUNK_BYTES
from strongroom.engines.postgres.contents.rows import APART_BYTES, signed
from strongroom.engines.postgres.sessions.session import StoreMissing
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.places import place_of
from strongroom.engines.postgres.sql.schema import TRANSFER_LOOK, Statement
from strongroom.engines.postgres.sql.versions import VERSION
from strongroom.engines.postgres.transfer import (
    PostgresSource,
    StoreLink,
    StoreSeen,
    record_ref,
    refuse_gateways,
)
from strongroom.engines.transfer import (
    PAGE_BYTES,
    ContentSum,
    CopyPlace,
    CopyRefused,
    SourceState,
    StoredRecord,
    StoreTraits,
    TransferSource,
)

_TEXT: Final = 25
_LOCK_TRIES: Final = 20
_LOCK_PAUSE_S: Final = 0.1

_BEGIN: Final = Statement(
    "transfer_begin",
    """WITH known AS (
        UPDATE membership SET version = version + 1 WHERE version = $1 RETURNING version)
    UPDATE store SET transfer = $2, allows_reset = $3, foreign_etags = $4
    WHERE transfer IS NULL AND EXISTS (SELECT FROM known)
    RETURNING 1""",
    (wire.INT8, _TEXT, wire.BOOL, wire.BOOL),
)
_IS_USED: Final = Statement(
    "transfer_is_used",
    """SELECT EXISTS (SELECT FROM records) OR EXISTS (SELECT FROM contents)
        OR EXISTS (SELECT FROM chunks) OR EXISTS (SELECT FROM dropped)""",
)
_LOCK: Final = Statement(
    "transfer_lock",
    "SELECT pg_try_advisory_lock(hashtextextended('strongroom copy ' || id::text, 0)) FROM store",
)
_PLACE: Final = Statement(
    "transfer_place",
    """SELECT (SELECT coalesce(max(id), 0) FROM contents),
        (SELECT place FROM records ORDER BY substr(place, 1, 2000) DESC, place DESC LIMIT 1)""",
)
_BODIES: Final = Statement(
    "transfer_bodies",
    """INSERT INTO contents (id, size, crc, data, gateway, incarnation, is_adopted)
    SELECT n.id, n.size, n.crc, n.data, 0, 0, true
    FROM unnest($1, $2, $3, $4) AS n(id, size, crc, data)""",
    (wire.INT8S, wire.INT8S, wire.INT8S, wire.BYTEAS),
)
_APART: Final = Statement(
    "transfer_apart",
    """INSERT INTO contents (id, size, crc, gateway, incarnation, is_adopted, is_apart)
    VALUES ($1, $2, $3, 0, 0, true, true)""",
    (wire.INT8, wire.INT8, wire.INT8),
)
_CHUNKS: Final = Statement(
    "transfer_chunks",
    """INSERT INTO chunks (id, at, data)
    SELECT $1, n.at, n.data FROM unnest($2, $3) AS n(at, data)
    ON CONFLICT (id, at) DO UPDATE SET data = EXCLUDED.data""",
    (wire.INT8, wire.INT8S, wire.BYTEAS),
)
_RECORDS: Final = Statement(
    "transfer_records",
    """INSERT INTO records (place, version, value)
    SELECT n.place, n.version, n.value FROM unnest($1, $2, $3) AS n(place, version, value)""",
    (wire.BYTEAS, wire.INT8S, wire.BYTEAS),
)
# A slot that no gateway has says what was copied.
_FINISH: Final = Statement(
    "transfer_finish",
    """WITH joined AS (UPDATE membership SET version = version + 1, body = $1),
    used AS (
        INSERT INTO slots AS o (gateway, slot, highest, bytes)
        SELECT -1, 0, $2,
            (SELECT coalesce(sum(length(place) + length(value)), 0) FROM records)
            + (SELECT coalesce(sum(size), 0) FROM contents)
            + (SELECT coalesce(sum(bytes), 0) FROM slots WHERE gateway = -1)
            - (SELECT bytes FROM totals_())
        ON CONFLICT (gateway, slot, epoch) DO UPDATE
        SET highest = greatest(o.highest, EXCLUDED.highest), bytes = EXCLUDED.bytes)
    UPDATE store SET transfer = NULL, shift = $3, test_clock = ($3 > 0)""",
    (wire.BYTEA, wire.INT8, wire.INT8),
)
_STATEMENTS: Final = (
    *(TRANSFER_LOOK, _BEGIN, _IS_USED, _LOCK, _PLACE, _BODIES, _APART, _CHUNKS, _RECORDS, _FINISH),
)


class PostgresTarget:
    """See TransferTarget; make it with `open`."""

    def __init__(self, link: StoreLink, url: str, schema: str, bodies: str | None) -> None:
        self._link = link
        self._bodies = bodies
        self._place: BodyStore | None = None
        self._url = url
        self._schema = schema
        self._traits: StoreTraits | None = None
        self.shown = link.shown

    @classmethod
    async def open(cls, url: str, schema: str, bodies: str | None = None) -> PostgresTarget:
        """The tables are made if the role may.

        Arguments:
            bodies: the URL of an empty folder for long bodies; None = they go to the database.

        Raises: Unavailable, DatabaseUnfit.
        """
        try:
            link = await StoreLink.open(url, schema, _STATEMENTS, VERSION)
        except StoreMissing:
            await init_store(url, schema)
            link = await StoreLink.open(url, schema, _STATEMENTS, VERSION)
        return cls(link, url, schema, bodies)

    async def begin(self, source: SourceState, traits: StoreTraits) -> CopyPlace:
        self._traits = traits
        await self._lock()
        seen = await self._link.look()
        if seen.transfer is None:
            await self._mark(seen, source, traits)
        elif seen.transfer.partition("\n")[0] != source.mark:
            raise CopyRefused(
                f"{self.shown} holds an unfinished copy of {seen.transfer.partition(chr(10))[2]}, "
                "of another store or as it was before a server opened it again. Name a new "
                f"schema or database, or delete that copy: {self._dropping()}"
            )
        await self._open_place()
        await self._link.simple("SELECT set_config('synchronous_commit', 'off', false)")
        ((content, place),) = (await self._link.run(_PLACE)).rows
        return CopyPlace(wire.number_of(content or b""), _ref(place))

    async def _open_place(self) -> None:
        if self._bodies is not None:
            await make_place(self._link, self._bodies)
        if known := (await place_row(self._link)).place:
            self._place = await opened_known(self._link, known)

    async def _lock(self) -> None:
        """A copy that was killed gives the lock back when the server has noticed."""
        for attempt in itertools.count():
            if (await self._link.run(_LOCK)).rows[0][0] == b"\1":
                return
            if attempt == _LOCK_TRIES:
                raise CopyRefused(f"{self.shown} is being written by another copy")
            await asyncio.sleep(_LOCK_PAUSE_S)

    async def _mark(self, seen: StoreSeen, source: SourceState, traits: StoreTraits) -> None:
        refuse_gateways(self.shown, seen)
        if (await self._link.run(_IS_USED)).rows[0][0] == b"\1":
            raise CopyRefused(
                f"{self.shown} holds data already, and a copy needs a new store. Name a new schema "
                f"or database, or delete what is there: {self._dropping()}"
            )
        marked = await self._link.run(
            _BEGIN,
            wire.int8(seen.version),
            f"{source.mark}\n{source.shown}".encode(),
            bytes([traits.allows_reset]),
            bytes([traits.foreign_etags]),
        )
        if not marked.rows:
            raise CopyRefused(f"a gateway has opened {self.shown} just now; stop it first")

    def _dropping(self) -> str:
        return f'DROP SCHEMA "{self._schema}" CASCADE'

    async def put_bodies(self, contents: Sequence[tuple[ContentSum, bytes]]) -> None:
        await self._put([one for one, _ in contents], [body for _, body in contents])

    async def put_long(self, content: ContentSum, chunks: AsyncIterator[bytes]) -> None:
        """Its row comes last, so what was cut has none."""
        if self._place is not None and content.size_bytes > APART_BYTES:
            await self._put_apart(self._place, content, chunks)
            return
        buffer, offset = bytearray(), 0
        async for chunk in chunks:
            buffer += chunk
            if len(buffer) >= PAGE_BYTES:
                size_bytes = len(buffer) - len(buffer) % CHUNK_BYTES
                await self._put_chunks(content.id, offset, bytes(buffer[:size_bytes]))
                del buffer[:size_bytes]
                offset += size_bytes
        if buffer:
            await self._put_chunks(content.id, offset, bytes(buffer))
        await self._put([content], [None])

    async def _put_apart(
        self, place: BodyStore, content: ContentSum, chunks: AsyncIterator[bytes]
    ) -> None:
        await place.remove((content.id,))  # a copy that was cut may have left a part of it
        writing = await place.begin(content.id)
        try:
            async for chunk in chunks:
                await writing.write(chunk)
            await writing.finish()
        except BaseException:
            writing.give_up()
            raise
        values = (content.id, content.size_bytes, signed(content.crc64))
        await self._link.run(_APART, *map(wire.int8, values))

    async def _put_chunks(self, content_id: int, offset: int, data: bytes) -> None:
        starts = range(0, len(data), CHUNK_BYTES)
        await self._link.run(
            _CHUNKS,
            wire.int8(content_id),
            wire.int8s([offset + start for start in starts]),
            wire.byteas([data[start : start + CHUNK_BYTES] for start in starts]),
        )

    async def _put(self, contents: Sequence[ContentSum], bodies: Sequence[bytes | None]) -> None:
        await self._link.run(
            _BODIES,
            wire.int8s([one.id for one in contents]),
            wire.int8s([one.size_bytes for one in contents]),
            wire.int8s([signed(one.crc64) for one in contents]),
            wire.byteas(bodies),
        )

    async def put_records(self, records: Sequence[StoredRecord]) -> None:
        await self._link.run(
            _RECORDS,
            wire.byteas([place_of(one.ref) for one in records]),
            wire.int8s([one.version for one in records]),
            wire.byteas([one.value for one in records]),
        )

    async def written(self) -> TransferSource:
        return await PostgresSource.open_unfinished(self._url, self._schema)

    async def finish(self, ceiling: int) -> None:
        await self._link.simple("RESET synchronous_commit")
        seen = await self._link.look()
        highest = max(ceiling, seen.table.highest)
        body = msgspec.msgpack.encode(msgspec.structs.replace(seen.table, highest=highest))
        assert self._traits is not None
        shift = max(0, ceiling - seen.now) if self._traits.test_clock else 0
        values = (body, wire.int8(ceiling), wire.int8(shift))
        # With a warning, no standby has confirmed it yet: another commit has to be confirmed.
        while (await self._link.run(_FINISH, *values)).warned:
            pass

    async def close(self) -> None:
        self._link.close()
        if self._place is not None:
            await self._place.close()


def _ref(place: bytes | None) -> Ref | None:
    return None if place is None else record_ref(place)
