"""Reading contents: a short one comes with its row, a long one piece by piece.

Lives here: `ContentReads`, with the pins of what is open here. A long content stays until no
gateway reads it: see `dropped` in tables.sql and `Horizon`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from strongroom.engines.base import ContentMissing, DataDamaged, Opened, Unavailable
from strongroom.engines.bodies.base import BodyMissing, OpenedBody
from strongroom.engines.content_in_memory import ContentInMemory
from strongroom.engines.content_in_pieces import ContentInPieces
from strongroom.engines.gateways import ReaderMark
from strongroom.engines.postgres.contents.intake import CHUNK_BYTES
from strongroom.engines.postgres.contents.rows import BATCH_MAX, SIGN, ApartBodies, ContentWriter
from strongroom.engines.postgres.sessions.batcher import Batcher
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import CHUNKS, OPEN


class ContentRow(msgspec.Struct, frozen=True):
    size_bytes: int
    crc64: int
    data: bytes | None
    is_apart: bool


class ContentReads:
    """Open contents of one gateway.

    Attributes:
        pins: how often each long content is open here.
    """

    def __init__(self, pool: Pool, gateway: ContentWriter, apart: ApartBodies | None) -> None:
        self._pool = pool
        self._gateway = gateway
        self._apart = apart
        self.pins: Counter[int] = Counter()
        self._opens: Batcher[int, ContentRow | None] = Batcher(
            self._open_rows, len(pool), BATCH_MAX
        )

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

    async def _opened_apart(self, content_id: int, row: ContentRow) -> OpenedBody:
        if self._apart is None:
            raise Unavailable(
                f"content {content_id}: its body lies in the folder of --bodies, and this gateway "
                "was started without --bodies; restart it with that flag"
            )
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
        self, content_id: int, row: ContentRow, body: OpenedBody | None, mark: ReaderMark
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

    async def _open_rows(self, ids: Sequence[int]) -> list[ContentRow | None]:
        answer = await self._pool.run(OPEN, wire.int8s(ids))
        rows: dict[int, ContentRow] = {}
        for content_id, size, checksum, data, apart in answer.rows:
            row = ContentRow(
                wire.number_of(size or b""),
                wire.number_of(checksum or b"") % (2 * SIGN),
                data,
                apart == b"\1",
            )
            rows[wire.number_of(content_id or b"")] = row
        return [rows.get(content_id) for content_id in ids]

    async def drain(self) -> None:
        await self._opens.drain()
