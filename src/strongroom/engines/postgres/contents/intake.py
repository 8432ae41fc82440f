"""A body that arrives: where it goes, and what becomes of it if its stream fails.

Lives here: `ArrivingBody`. Its length decides where it lies. If that is not known beforehand, it is
gathered up to the length from which bodies lie apart. Must not live here: rows and chunks
(contents.py), a place apart (engines/bodies/).
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final, Protocol

from strongroom.engines.base import CHUNK_BYTES_MAX, VERIFIED_BYTES_MAX, Written
from strongroom.engines.bodies.base import BodyWriting
from strongroom.engines.checksum import crc64

CHUNK_BYTES: Final = 256 * 1024
_APART_PIECE_BYTES: Final = CHUNK_BYTES_MAX


class BodyKeeper(Protocol):
    """Who keeps bodies: the contents of a gateway."""

    @property
    def apart_above(self) -> int | None:
        """Longer bodies lie apart; None = there is no place for them."""
        ...

    async def begin_apart(self, content_id: int) -> BodyWriting: ...

    async def keep_apart(self, content_id: int, size_bytes: int, checksum: int) -> None:
        """Write the row of a body that lies apart, and is durable there."""
        ...

    async def keep_row(self, content_id: int, data: bytes, checksum: int) -> None: ...

    async def begin_long(self, content_id: int) -> None: ...

    async def write_chunk(self, content_id: int, at: int, data: bytes) -> None: ...

    async def finish_long(self, content_id: int, size_bytes: int, checksum: int) -> None: ...

    def reserve(self, size_bytes: int) -> None:
        """Count bytes of an upload that is not complete. Raises: Full."""
        ...

    def release(self, size_bytes: int) -> None:
        """So many bytes of an upload are counted elsewhere now, or will be deleted."""
        ...

    def discard(self, content_id: int) -> None: ...


class ArrivingBody:
    """A body of one upload. It ends by `finished` or by `give_up`."""

    def __init__(
        self, contents: BodyKeeper, content_id: int, size_bytes: int | None, md5: bool
    ) -> None:
        self._contents = contents
        self._id = content_id
        self._declared = size_bytes
        self._digest = hashlib.md5(usedforsecurity=False) if md5 else None
        self._buffer = bytearray()
        self._at = self._crc = self._reserved = 0
        self._under_way: asyncio.Task[None] | None = None
        self._apart: BodyWriting | None = None

    async def take(self, chunk: bytes) -> None:
        self._buffer += chunk
        size_bytes = self._at + len(self._buffer)
        if self._declared is not None and size_bytes > self._declared:
            raise ValueError("a content is longer than declared")
        self._crc = crc64(chunk, self._crc)
        if self._digest is not None:
            self._digest.update(chunk)
        if self._apart is None and self._is_long(self._declared or size_bytes):
            self._apart = await self._contents.begin_apart(self._id)
        if self._apart is not None:
            await self._send_pieces(self._apart, _APART_PIECE_BYTES)
        elif self._declared is not None or self._contents.apart_above is None:
            await self._send_chunks(CHUNK_BYTES)

    def _is_long(self, size_bytes: int) -> bool:
        above = self._contents.apart_above
        return above is not None and size_bytes > above

    async def finished(self) -> Written:
        size_bytes = self._at + len(self._buffer)
        if self._declared is not None and size_bytes < self._declared:
            raise ValueError("a content is shorter than declared")
        contents = self._contents
        if self._apart is not None:
            await self._send_pieces(self._apart, 1)
            await self._apart.finish()
            await contents.keep_apart(self._id, size_bytes, self._crc)
        elif size_bytes <= VERIFIED_BYTES_MAX:
            await contents.keep_row(self._id, bytes(self._buffer), self._crc)
        else:
            await self._send_chunks(1)
            await self._sent()
            await contents.finish_long(self._id, size_bytes, self._crc)
        contents.release(self._reserved)
        self._reserved = 0
        digest = None if self._digest is None else self._digest.digest()
        return Written(self._id, size_bytes, self._crc, digest)

    def give_up(self) -> None:
        """Delete what was written, once nothing more of it is on its way."""
        self._contents.release(self._reserved)
        if self._apart is not None:
            self._apart.give_up()
        under_way = self._under_way
        if under_way is None or under_way.done():
            self._contents.discard(self._id)
        else:
            under_way.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # its upload has failed already
        self._contents.discard(self._id)

    async def _send_pieces(self, apart: BodyWriting, least_bytes: int) -> None:
        """Send what was gathered apart, unless it is less than a piece."""
        if len(self._buffer) >= least_bytes:
            piece = bytes(self._buffer)
            self._buffer.clear()
            self._count(len(piece))
            await apart.write(piece)

    async def _send_chunks(self, least_bytes: int) -> None:
        """Send what was gathered in chunks; the last one is at least so long."""
        while len(self._buffer) >= least_bytes:
            chunk = bytes(self._buffer[:CHUNK_BYTES])
            del self._buffer[:CHUNK_BYTES]
            await self._send(chunk)

    async def _send(self, data: bytes) -> None:
        """One chunk is on its way while the next one is gathered."""
        if self._at == 0:
            await self._contents.begin_long(self._id)
        await self._sent()
        at = self._at
        self._count(len(data))
        self._under_way = asyncio.ensure_future(self._contents.write_chunk(self._id, at, data))

    def _count(self, size_bytes: int) -> None:
        self._contents.reserve(size_bytes)
        self._reserved += size_bytes
        self._at += size_bytes

    async def _sent(self) -> None:
        if self._under_way is not None:
            await self._under_way
