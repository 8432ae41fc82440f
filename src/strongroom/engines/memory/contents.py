"""The contents of a memory store as one gateway sees them: written, adopted, discarded.

Lives here: the memory engine's `Contents`. Must not live here: the contents that partitions own
(data.py), which of the others a commit may adopt (adoptions.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, Callable, Sequence

from strongroom.engines.adoptions import Adoptions
from strongroom.engines.base import Step, Written
from strongroom.engines.bounds import check_small
from strongroom.engines.checksum import crc64
from strongroom.engines.content_in_memory import ContentInMemory
from strongroom.engines.memory.data import MemoryData


class MemoryContents:
    """The contents of one gateway, as the contract's Contents has them.

    Arguments:
        now: returns store time.
        check_serving: raises Unavailable once the gateway no longer serves.

    Attributes:
        adoptions: the contents that this gateway wrote and no commit has adopted.
    """

    def __init__(
        self, data: MemoryData, now: Callable[[], int], check_serving: Callable[[], None]
    ) -> None:
        self._data = data
        self._now = now
        self._check_serving = check_serving
        self.adoptions: Adoptions[ContentInMemory] = Adoptions(self._delete)

    async def write(
        self, chunks: AsyncIterable[bytes], size_bytes: int | None, md5: bool = False
    ) -> Written:
        self._check_serving()
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            if size_bytes is not None and len(body) > size_bytes:
                raise ValueError("a content is longer than declared")
            self._data.check_body(len(body))
        if size_bytes is not None and len(body) < size_bytes:
            raise ValueError("a content is shorter than declared")
        self._check_serving()
        return self._keep(bytes(body), md5=md5)

    def _keep(self, body: bytes, *, md5: bool) -> Written:
        content_id = self._data.new_content_id(self._now())
        content = self.adoptions.written[content_id] = ContentInMemory(body, crc64(body))
        self._data.size_bytes += content.size_bytes
        digest = hashlib.md5(body, usedforsecurity=False).digest() if md5 else None
        return Written(content_id, content.size_bytes, content.crc64, digest)

    async def write_all(self, bodies: Sequence[bytes | memoryview]) -> Sequence[Written]:
        check_small(bodies)
        self._check_serving()
        self._data.check_body(sum(map(len, bodies)))
        return [self._keep(bytes(body), md5=False) for body in bodies]

    async def open(self, content_id: int) -> ContentInMemory:
        self._check_serving()
        return self._data.content(content_id)

    def discard(self, content_id: int) -> None:
        self.adoptions.discard(content_id)

    def _delete(self, _: int, content: ContentInMemory) -> None:
        self._data.size_bytes -= content.size_bytes

    def adopt(self, step: Step) -> None:
        for content_id in step.adopt:
            self._data.contents[content_id] = self.adoptions.written.pop(content_id)

    def discard_unadopted(self) -> None:
        """Delete all contents that this gateway wrote and no commit adopted: the gateway stops."""
        written = self.adoptions.written
        self._data.size_bytes -= sum(one.size_bytes for one in written.values())
        written.clear()
