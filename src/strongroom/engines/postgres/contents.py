"""The bodies of a store in PostgreSQL: short ones in a row, long ones in chunks.

Lives here: the engine's `Contents`, and the removal of what was dropped. A short body comes with
its row when it is opened. A long one is read chunk by chunk, so it stays until no gateway reads it:
see `dropped` in tables.sql and `Horizon`. Must not live here: which contents a commit may adopt
(adoptions.py).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

import msgspec

from strongroom.engines.adoptions import Adoptions
from strongroom.engines.base import (
    CHUNK_BYTES_MAX,
    VERIFIED_BYTES_MAX,
    ContentMissing,
    DataDamaged,
    Opened,
    Written,
)
from strongroom.engines.bounds import check_small
from strongroom.engines.checksum import crc64
from strongroom.engines.content_in_memory import ContentInMemory
from strongroom.engines.gateways import Horizon, ReaderMark
from strongroom.engines.postgres.commits.space import Space
from strongroom.engines.postgres.sessions.batcher import Batcher
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import (
    CHUNKS,
    DISCARD,
    DROPPED,
    DROPPED_MAX,
    FINISH_CONTENT,
    OPEN,
    REMOVE_DROPPED,
    REMOVE_ORPHANS,
    WRITE_CHUNK,
    WRITE_CONTENTS,
)

CHUNK_BYTES: Final = 256 * 1024
_READ_BYTES: Final = CHUNK_BYTES_MAX
_BATCH_MAX: Final = 32
_SIGN: Final = 1 << 63
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


class _Body(msgspec.Struct, frozen=True):
    """A row of `contents` to be written; `data` None = it is in chunks, and not all are there."""

    id: int
    size_bytes: int
    crc64: int
    data: bytes | None


class _Row(msgspec.Struct, frozen=True):
    size_bytes: int
    crc64: int
    data: bytes | None


class PostgresContents:
    """The bodies of a store, as one gateway writes and reads them."""

    def __init__(self, pool: Pool, gateway: ContentWriter, space: Space) -> None:
        self._pool = pool
        self._gateway = gateway
        self._space = space
        self.adoptions: Adoptions[int] = Adoptions(self._delete)
        self.pins: Counter[int] = Counter()
        lanes = len(pool)
        self._writes: Batcher[Sequence[_Body], None] = Batcher(self._write_rows, lanes, _BATCH_MAX)
        self._opens: Batcher[int, _Row | None] = Batcher(self._open_rows, lanes, _BATCH_MAX)
        self._discards: Batcher[int, None] = Batcher(self._discard_rows, 1)

    async def write(
        self, chunks: AsyncIterable[bytes], size_bytes: int | None, md5: bool = False
    ) -> Written:
        await self._gateway.ensure_serving()
        self._space.check_body(size_bytes or 0)
        writing = _Writing(self, self._gateway.new_id(), size_bytes, md5)
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
        rows = [_Body(new_id(), len(body), crc64(body), bytes(body)) for body in bodies]
        if rows:
            await self.keep(rows)
        return [Written(row.id, row.size_bytes, row.crc64, None) for row in rows]

    async def keep(self, rows: Sequence[_Body]) -> None:
        """Write rows of contents. If the caller is cancelled, they are deleted again."""
        written = self._writes.call(rows)
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            written.add_done_callback(lambda _: self._forget(rows))
            raise
        for row in rows:
            self.adoptions.written[row.id] = row.size_bytes

    def _forget(self, rows: Sequence[_Body]) -> None:
        for row in rows:
            self._delete(row.id, 0)

    async def _write_rows(self, calls: Sequence[Sequence[_Body]]) -> list[None]:
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
        await self.keep([_Body(content_id, 0, 0, None)])

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

    def reserve(self, size_bytes: int) -> None:
        """Count bytes of an upload that is not complete. Raises: Full."""
        self._space.check_body(size_bytes)
        self._space.under_way_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        """So many bytes of an upload are counted elsewhere now, or will be deleted."""
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
        return LongContent(self._pool, content_id, row, lambda: self._unpin(content_id, mark))

    def _unpin(self, content_id: int, mark: ReaderMark) -> None:
        mark.end()
        self.pins[content_id] -= 1
        if not self.pins[content_id]:
            del self.pins[content_id]

    async def _open_rows(self, ids: Sequence[int]) -> list[_Row | None]:
        answer = await self._pool.run(OPEN, wire.int8s(ids))
        rows: dict[int, _Row] = {}
        for content_id, size, checksum, data in answer.rows:
            row = _Row(
                wire.number_of(size or b""), wire.number_of(checksum or b"") % (2 * _SIGN), data
            )
            rows[wire.number_of(content_id or b"")] = row
        return [rows.get(content_id) for content_id in ids]

    def discard(self, content_id: int) -> None:
        self.adoptions.discard(content_id)

    def _delete(self, content_id: int, _: int) -> None:
        self._discards.call(content_id)

    async def _discard_rows(self, ids: Sequence[int]) -> list[None]:
        values = (
            wire.int8s(ids),
            wire.int4(self._gateway.number),
            wire.int8(self._gateway.incarnation),
        )
        await self._pool.write(DISCARD, lambda slot: (*values, wire.int4(slot)))
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


class _Writing:
    """A body that arrives."""

    def __init__(
        self, contents: PostgresContents, content_id: int, size_bytes: int | None, md5: bool
    ) -> None:
        self._contents = contents
        self._id = content_id
        self._declared = size_bytes
        self._digest = hashlib.md5(usedforsecurity=False) if md5 else None
        self._buffer = bytearray()
        self._at = self._crc = self._reserved = 0
        self._under_way: asyncio.Task[None] | None = None

    async def take(self, chunk: bytes) -> None:
        self._buffer += chunk
        if self._declared is not None and self._at + len(self._buffer) > self._declared:
            raise ValueError("a content is longer than declared")
        self._crc = crc64(chunk, self._crc)
        if self._digest is not None:
            self._digest.update(chunk)
        while len(self._buffer) >= CHUNK_BYTES:
            await self._send(bytes(self._buffer[:CHUNK_BYTES]))
            del self._buffer[:CHUNK_BYTES]

    async def finished(self) -> Written:
        size_bytes = self._at + len(self._buffer)
        if self._declared is not None and size_bytes < self._declared:
            raise ValueError("a content is shorter than declared")
        contents = self._contents
        if size_bytes <= VERIFIED_BYTES_MAX:
            await contents.keep([_Body(self._id, size_bytes, self._crc, bytes(self._buffer))])
        else:
            if self._buffer:
                await self._send(bytes(self._buffer))
            await self._sent()
            await contents.finish_long(self._id, size_bytes, self._crc)
            contents.release(self._reserved)
            self._reserved = 0
        digest = None if self._digest is None else self._digest.digest()
        return Written(self._id, size_bytes, self._crc, digest)

    def give_up(self) -> None:
        """Delete what was written, once nothing more of it is on its way."""
        self._contents.release(self._reserved)
        under_way = self._under_way
        if under_way is None or under_way.done():
            self._contents.discard(self._id)
        else:
            under_way.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # its upload has failed already
        self._contents.discard(self._id)

    async def _send(self, data: bytes) -> None:
        """One chunk is on its way while the next one is gathered."""
        if self._at == 0:
            await self._contents.begin_long(self._id)
        await self._sent()
        self._contents.reserve(len(data))
        self._reserved += len(data)
        writing = self._contents.write_chunk(self._id, self._at, data)
        self._under_way = asyncio.ensure_future(writing)
        self._at += len(data)

    async def _sent(self) -> None:
        if self._under_way is not None:
            await self._under_way


class LongContent:
    """A content in chunks. See Opened.

    Arguments:
        unpin: called once, when it is closed.
    """

    def __init__(self, pool: Pool, content_id: int, row: _Row, unpin: Callable[[], None]) -> None:
        self._pool = pool
        self._id = content_id
        self._crc = row.crc64
        self.size_bytes = row.size_bytes
        self._unpin: Callable[[], None] | None = unpin

    async def read(self, offset: int, length: int) -> bytes:
        self._check(offset, length)
        whole = b"".join([piece async for piece in self.chunks()])
        return whole[offset : offset + length]

    async def slices(self, offset: int, length: int) -> AsyncIterator[bytes]:
        self._check(offset, length)
        end = offset + length
        while offset < end:
            last = min(end, offset + _READ_BYTES)
            first_chunk = offset - offset % CHUNK_BYTES
            answer = await self._pool.run(
                CHUNKS, wire.int8(self._id), wire.int8(first_chunk), wire.int8(last)
            )
            data = b"".join([piece or b"" for _, piece in answer.rows])
            piece = data[offset - first_chunk : last - first_chunk]
            if len(piece) != last - offset:
                raise DataDamaged(f"content {self._id}: bytes of it are missing")
            yield piece
            offset = last

    async def chunks(self, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        length_bytes = self.size_bytes - offset if length is None else length
        checksum = 0
        async for piece in self.slices(offset, length_bytes):
            checksum = crc64(piece, checksum)
            yield piece
        if length_bytes == self.size_bytes and checksum != self._crc:
            raise DataDamaged(
                f"content {self._id} of {self.size_bytes} bytes: its checksum differs"
            )

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise ValueError("the range lies outside the content")

    def close(self) -> None:
        if self._unpin is not None:
            self._unpin()
            self._unpin = None


def signed(checksum: int) -> int:
    """A checksum as PostgreSQL keeps it, which has no unsigned numbers."""
    return checksum - 2 * _SIGN if checksum >= _SIGN else checksum
