"""The bodies of a store in PostgreSQL: short ones in a row, long ones in chunks, or apart.

Lives here: the engine's `Contents`, and the writing of rows. Must not live here: how a body arrives
(intake.py), is read (reads.py) and removed (removal.py). Which contents a commit may adopt is in
adoptions.py, and where those apart lie in engines/bodies/.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Sequence

from strongroom.engines.adoptions import Adoptions
from strongroom.engines.base import Opened, Written
from strongroom.engines.bodies.base import BodyWriting
from strongroom.engines.bounds import check_small
from strongroom.engines.checksum import crc64
from strongroom.engines.postgres.commits.space import Space
from strongroom.engines.postgres.contents.intake import ArrivingBody
from strongroom.engines.postgres.contents.reads import ContentReads
from strongroom.engines.postgres.contents.removal import ContentRemoval
from strongroom.engines.postgres.contents.rows import (
    BATCH_MAX,
    ApartBodies,
    BodyRow,
    ContentWriter,
    signed,
)
from strongroom.engines.postgres.sessions.batcher import Batcher
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sessions.session import StatementResult
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import (
    FINISH_CONTENT,
    WRITE_APART,
    WRITE_CHUNK,
    WRITE_CONTENTS,
)


class PostgresContents:
    """The bodies of a store, as one gateway writes and reads them."""

    def __init__(
        self, pool: Pool, gateway: ContentWriter, space: Space, apart: ApartBodies | None
    ) -> None:
        self._pool = pool
        self._gateway = gateway
        self._space = space
        self._apart = apart
        # Kept of each content is whether it lies apart.
        self.reads = ContentReads(pool, gateway, apart)
        self.removal = ContentRemoval(pool, gateway, apart)
        self.adoptions: Adoptions[bool] = Adoptions(self.removal.delete)
        self._writes: Batcher[Sequence[BodyRow], None] = Batcher(
            self._write_rows, len(pool), BATCH_MAX
        )

    async def write(
        self, chunks: AsyncIterable[bytes], size_bytes: int | None, md5: bool = False
    ) -> Written:
        await self._gateway.ensure_serving()
        self._space.check_body(size_bytes or 0)
        writing = ArrivingBody(self, self._gateway.new_id(), size_bytes, md5)
        try:
            async for chunk in chunks:
                await writing.take(chunk)
            return await writing.finished()
        except BaseException:
            writing.give_up()
            raise

    async def write_all(self, bodies: Sequence[bytes | memoryview]) -> Sequence[Written]:
        check_small(bodies)
        await self._gateway.ensure_serving()
        self._space.check_body(sum(map(len, bodies)))
        new_id = self._gateway.new_id
        rows = [BodyRow(new_id(), len(body), crc64(body), bytes(body)) for body in bodies]
        if rows:
            await self.keep(rows)
        return [Written(row.id, row.size_bytes, row.crc64, None) for row in rows]

    async def keep(self, rows: Sequence[BodyRow]) -> None:
        """Write rows of contents. If the caller is cancelled, they are deleted again."""
        written = self._writes.call(rows)
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            written.add_done_callback(lambda _: self._forget(rows))
            raise
        for row in rows:
            self.adoptions.written[row.id] = False

    def _forget(self, rows: Sequence[BodyRow]) -> None:
        for row in rows:
            self.removal.delete(row.id, False)

    async def _write_rows(self, calls: Sequence[Sequence[BodyRow]]) -> list[None]:
        rows = [row for call in calls for row in call]
        columns = (
            wire.int8s([row.id for row in rows]),
            wire.int8s([row.size_bytes for row in rows]),
            wire.int8s([signed(row.crc64) for row in rows]),
            wire.byteas([row.data for row in rows]),
            wire.int4(self._gateway.number),
            wire.int8(self._gateway.incarnation),
        )
        await self._pool.write(WRITE_CONTENTS, lambda slot: (*columns, wire.int4(slot)))
        self._space.add(sum(row.size_bytes for row in rows))
        return [None] * len(calls)

    async def begin_long(self, content_id: int) -> None:
        await self.keep([BodyRow(content_id, 0, 0, None)])

    async def write_chunk(self, content_id: int, at: int, data: bytes) -> None:
        values = (wire.int8(content_id), wire.int8(at), data)
        await self._pool.write(WRITE_CHUNK, lambda _: values)

    async def finish_long(self, content_id: int, size_bytes: int, checksum: int) -> None:
        values = (
            wire.int8(content_id),
            wire.int8(size_bytes),
            wire.int8(signed(checksum)),
            wire.int4(self._gateway.number),
        )
        await self._pool.write(FINISH_CONTENT, lambda slot: (*values, wire.int4(slot)))
        self._space.add(size_bytes)

    @property
    def apart_above(self) -> int | None:
        return None if self._apart is None else self._apart.above_bytes

    async def begin_apart(self, content_id: int) -> BodyWriting:
        assert self._apart is not None, "it was asked before"
        return await self._apart.store.begin(content_id)

    async def keep_apart(self, content_id: int, size_bytes: int, checksum: int) -> None:
        values = (
            wire.int8(content_id),
            wire.int8(size_bytes),
            wire.int8(signed(checksum)),
            wire.int4(self._gateway.number),
            wire.int8(self._gateway.incarnation),
        )
        work = self._pool.write(WRITE_APART, lambda slot: (*values, wire.int4(slot)))
        writing = asyncio.ensure_future(work)
        try:
            await asyncio.shield(writing)
        except BaseException:
            # The row may be there, or come yet.
            writing.add_done_callback(lambda done: self._row_given_up(content_id, done))
            raise
        self._space.add(size_bytes)
        self.adoptions.written[content_id] = True

    def _row_given_up(self, content_id: int, writing: asyncio.Future[StatementResult]) -> None:
        if not writing.cancelled():
            writing.exception()  # its upload has failed already
        self.removal.delete(content_id, True)

    async def keep_row(self, content_id: int, data: bytes, checksum: int) -> None:
        await self.keep([BodyRow(content_id, len(data), checksum, data)])

    def reserve(self, size_bytes: int) -> None:
        self._space.check_body(size_bytes)
        self._space.under_way_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        self._space.under_way_bytes -= size_bytes

    async def open(self, content_id: int) -> Opened:
        return await self.reads.open(content_id)

    def discard(self, content_id: int) -> None:
        self.adoptions.discard(content_id)

    async def drain(self) -> None:
        await self._writes.drain()
        await self.reads.drain()
        await self.removal.drain()
