"""The intake of bodies: each is durable, and its checksum known, before it gets an id.

Lives here: how each body is written, and the cleanup after a failure. Must not live here: how bytes
are gathered and written (body_writes.py), where there is room (segments.py), or which partition
owns the content.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Sequence
from concurrent.futures import Executor

from strongroom.engines.base import Full, Written
from strongroom.engines.embedded.bodies.batches import SharedBatch
from strongroom.engines.embedded.bodies.body_writes import (
    BodyWrite,
    BodyWriteOptions,
    SharedBodyWrite,
    TailBodyWrite,
)
from strongroom.engines.embedded.bodies.buffers import Buffers
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.bodies.unadopted import Unadopted
from strongroom.engines.embedded.records.sqlite import Location


class BodyWriter:
    """Writes bodies.

    Arguments:
        unadopted: takes over each durable body.
        new_id: returns unique, rising ids.
        has_space: returns whether bodies may be written; False while the disk is full.
    """

    def __init__(
        self,
        segments: SegmentStore,
        unadopted: Unadopted,
        executor: Executor,
        new_id: Callable[[], int],
        has_space: Callable[[], bool],
    ) -> None:
        self._segments = segments
        self._unadopted = unadopted
        self._executor = executor
        self._new_id = new_id
        self._has_space = has_space
        self._buffers = Buffers()

    async def write(
        self, chunks: AsyncIterable[bytes], size_bytes: int | None, md5: bool
    ) -> Written:
        """A body that is under way when the disk becomes full is refused too. It would take the
        space that is then released for what frees space."""
        self._check_space()
        body = self._new_write(size_bytes, md5)
        try:
            await body.write(chunks)
            await asyncio.shield(self._segments.durable(body.reservation.segment))
        except BaseException:
            body.abandon()
            raise
        digest = None if body.md5 is None else body.md5.digest()
        return self._kept(body.reservation.location(body.size_bytes, body.crc64), digest)

    async def write_all(self, bodies: Sequence[bytes | memoryview]) -> list[Written]:
        self._check_space()
        batch = SharedBatch(self._segments, self._executor, bodies)
        try:
            await batch.write()
            for segment in batch.touched:
                await asyncio.shield(self._segments.durable(segment))
        except BaseException:
            batch.abandon()
            raise
        return [self._kept(location) for location in batch.locations]

    def _kept(self, location: Location, md5: bytes | None = None) -> Written:
        content_id = self._new_id()
        self._unadopted.keep(content_id, location)
        return Written(content_id, location.length, location.crc64, md5)

    def release_memory(self) -> None:
        self._buffers.drop()

    def _check_space(self) -> None:
        if not self._has_space():
            raise Full

    def _new_write(self, size_bytes: int | None, md5: bool) -> BodyWrite:
        reservation = self._segments.reserve(size_bytes)
        options = BodyWriteOptions(
            self._segments, reservation, self._executor, size_bytes, md5, self._check_space
        )
        return (
            TailBodyWrite(options, self._buffers)
            if reservation.is_tail
            else SharedBodyWrite(options)
        )
