"""The bodies of a store in PostgreSQL: short ones in a row, long ones in chunks, or apart.

Lives here: the engine's `Contents`, and the removal of what was dropped. A short body comes with
its row when it is opened. A long one is read piece by piece, so it stays until no gateway reads it:
see `dropped` in tables.sql and `Horizon`. Must not live here: which contents a commit may adopt
(adoptions.py), how a body arrives (intake.py), where those apart lie (engines/bodies/).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import Final

import msgspec

from strongroom.engines.adoptions import Adoptions
from strongroom.engines.base import ContentMissing, DataDamaged, EngineError, Opened, Written
from strongroom.engines.bodies.base import BodyMissing, BodyStore, BodyWriting, OpenedBody
from strongroom.engines.bounds import check_small
from strongroom.engines.checksum import crc64
from strongroom.engines.content_in_memory import ContentInMemory
from strongroom.engines.content_in_pieces import ContentInPieces
from strongroom.engines.gateways import Horizon, ReaderMark
from strongroom.engines.postgres.commits.space import Space
from strongroom.engines.postgres.intake import CHUNK_BYTES, ArrivingBody
from strongroom.engines.postgres.sessions.batcher import Batcher
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sessions.session import StatementResult
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import (
    CHUNKS,
    DISCARD,
    DISCARD_APART,
    DROPPED,
    DROPPED_MAX,
    FINISH_CONTENT,
    OPEN,
    REMOVE_DROPPED,
    REMOVE_ORPHANS,
    WRITE_APART,
    WRITE_CHUNK,
    WRITE_CONTENTS,
)

APART_BYTES: Final = 1024 * 1024
"""Longer bodies lie apart, where there is a place for them."""
_BATCH_MAX: Final = 32
_REMOVALS_S: Final = 5.0
_SIGN: Final = 1 << 63
_log = logging.getLogger(__name__)
_REMOVED_BYTES: Final = 256 * 1024 * 1024
"""About so much is deleted by one statement."""


class ContentWriter(msgspec.Struct, frozen=True):
    """What contents need of their gateway.

    Attributes:
        new_id: gives the id of a new content, greater than all before.
        ensure_serving: raises Unavailable unless the gateway may serve.
        begin_reading: see Gateways.
    """

    number: int
    incarnation: int
    new_id: Callable[[], int]
    ensure_serving: Callable[[], Awaitable[None]]
    begin_reading: Callable[[], ReaderMark]


class ApartBodies(msgspec.Struct, frozen=True):
    """The place of long bodies.

    Attributes:
        above_bytes: bodies that are longer lie there.
    """

    store: BodyStore
    above_bytes: int = APART_BYTES


class BodyRow(msgspec.Struct, frozen=True):
    """A row of `contents` to be written; `data` None = it is in chunks, and not all are there."""

    id: int
    size_bytes: int
    crc64: int
    data: bytes | None


class _Row(msgspec.Struct, frozen=True):
    size_bytes: int
    crc64: int
    data: bytes | None
    is_apart: bool


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
        self.adoptions: Adoptions[bool] = Adoptions(self._delete)
        self.pins: Counter[int] = Counter()
        lanes = len(pool)
        self._writes: Batcher[Sequence[BodyRow], None] = Batcher(
            self._write_rows, lanes, _BATCH_MAX
        )
        self._opens: Batcher[int, _Row | None] = Batcher(self._open_rows, lanes, _BATCH_MAX)
        self._discards: Batcher[tuple[int, bool], None] = Batcher(self._discard_rows, 1)
        # Of its own, so that a folder that hangs delays no other row.
        self._removals: Batcher[int, None] = Batcher(self._remove_apart, 1)

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
            self._delete(row.id, False)

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
        self._delete(content_id, True)

    async def keep_row(self, content_id: int, data: bytes, checksum: int) -> None:
        await self.keep([BodyRow(content_id, len(data), checksum, data)])

    def reserve(self, size_bytes: int) -> None:
        self._space.check_body(size_bytes)
        self._space.under_way_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        self._space.under_way_bytes -= size_bytes

    async def open(self, content_id: int) -> Opened:
        await self._gateway.ensure_serving()
        mark = self._gateway.begin_reading()
        self.pins[content_id] += 1
        try:
            row = await self._opens.call(content_id)
            if row is None:
                raise ContentMissing(f"no partition owns content {content_id}")
            mark.narrow((content_id,))
        except BaseException:
            self._unpin(content_id, mark)
            raise
        if row.data is not None:
            self._unpin(content_id, mark)
            return ContentInMemory(row.data, row.crc64)
        try:
            body = await self._opened_apart(content_id, row) if row.is_apart else None
        except BaseException:
            self._unpin(content_id, mark)
            raise
        return self._in_pieces(content_id, row, body, mark)

    async def _opened_apart(self, content_id: int, row: _Row) -> OpenedBody:
        if self._apart is None:
            raise DataDamaged(f"content {content_id} lies apart, and this store has no place")
        store = self._apart.store
        try:
            body = await store.open(content_id)
        except BodyMissing:
            raise DataDamaged(
                f"content {content_id}: its body in {store.shown} is missing"
            ) from None
        if body.size_bytes != row.size_bytes:
            body.close()
            raise DataDamaged(
                f"content {content_id}: its body in {store.shown} has {body.size_bytes} of "
                f"{row.size_bytes} bytes"
            )
        return body

    def _in_pieces(
        self, content_id: int, row: _Row, body: OpenedBody | None, mark: ReaderMark
    ) -> ContentInPieces:
        async def read(offset: int, length: int) -> bytes:
            if body is not None:
                return await body.read(offset, length)
            return await self._read_chunks(content_id, offset, length)

        def closed() -> None:
            if body is not None:
                body.close()
            self._unpin(content_id, mark)

        return ContentInPieces(f"content {content_id}", row.size_bytes, row.crc64, read, closed)

    async def _read_chunks(self, content_id: int, offset: int, length: int) -> bytes:
        first, last = offset - offset % CHUNK_BYTES, offset + length
        bounds = (wire.int8(first), wire.int8(last))
        answer = await self._pool.run(CHUNKS, wire.int8(content_id), *bounds)
        data = b"".join([piece or b"" for _, piece in answer.rows])
        return data[offset - first : last - first]

    def _unpin(self, content_id: int, mark: ReaderMark) -> None:
        mark.end()
        self.pins[content_id] -= 1
        if not self.pins[content_id]:
            del self.pins[content_id]

    async def _open_rows(self, ids: Sequence[int]) -> list[_Row | None]:
        answer = await self._pool.run(OPEN, wire.int8s(ids))
        rows: dict[int, _Row] = {}
        for content_id, size, checksum, data, apart in answer.rows:
            row = _Row(
                wire.number_of(size or b""),
                wire.number_of(checksum or b"") % (2 * _SIGN),
                data,
                apart == b"\1",
            )
            rows[wire.number_of(content_id or b"")] = row
        return [rows.get(content_id) for content_id in ids]

    def discard(self, content_id: int) -> None:
        self.adoptions.discard(content_id)

    def _delete(self, content_id: int, is_apart: bool) -> None:
        self._discards.call((content_id, is_apart))

    async def _discard_rows(self, contents: Sequence[tuple[int, bool]]) -> list[None]:
        gateway = (wire.int4(self._gateway.number), wire.int8(self._gateway.incarnation))
        if rows := [one for one, is_apart in contents if not is_apart]:
            ids = wire.int8s(rows)
            await self._pool.write(DISCARD, lambda slot: (ids, *gateway, wire.int4(slot)))
        if bodies := [one for one, is_apart in contents if is_apart]:
            apart = wire.int8s(bodies)
            answer = await self._pool.write(
                DISCARD_APART, lambda slot: (apart, *gateway, wire.int4(slot))
            )
            for (content_id,) in answer.rows:
                self._removals.call(wire.number_of(content_id or b""))
        return [None] * len(contents)

    async def _remove_apart(self, ids: Sequence[int]) -> list[None]:
        """Remove bodies that this gateway wrote, and that no commit has adopted. What fails is left
        to the sweep."""
        assert self._apart is not None, "the bodies lay there"
        try:
            await self._apart.store.remove(ids)
        except EngineError as error:
            _log.debug("bodies are left to the sweep: %s", error)
        return [None] * len(ids)

    async def remove_dropped(self, horizon: Horizon) -> bool:
        """Delete the chunks of dropped contents that nobody reads. Return whether there may be more
        of them."""
        rows = (await self._pool.run(DROPPED)).rows
        free: list[int] = []
        size_bytes = 0
        for row in rows:
            content_id, stamp, content_bytes = (wire.number_of(cell or b"") for cell in row)
            if horizon.frees(content_id, stamp) and content_id not in self.pins:
                free.append(content_id)
                size_bytes += content_bytes
            if size_bytes >= _REMOVED_BYTES:
                break
        if free:
            ids = wire.int8s(free)
            await self._pool.write(REMOVE_DROPPED, lambda _: (ids,))
        return size_bytes >= _REMOVED_BYTES or len(free) == DROPPED_MAX

    async def remove_orphans(self) -> None:
        """Delete what dead gateways wrote and no commit adopted."""
        number = wire.int4(self._gateway.number)
        await self._pool.write(REMOVE_ORPHANS, lambda slot: (number, wire.int4(slot)))

    async def drain(self) -> None:
        for batcher in (self._writes, self._opens, self._discards):
            await batcher.drain()
        try:
            async with asyncio.timeout(_REMOVALS_S):
                await self._removals.drain()
        except TimeoutError:
            _log.debug("bodies are left to the sweep: their place does not answer")


def signed(checksum: int) -> int:
    """A checksum as PostgreSQL keeps it, which has no unsigned numbers."""
    return checksum - 2 * _SIGN if checksum >= _SIGN else checksum
