"""The contents of a memory store as one gateway sees them: written, adopted, discarded.

Lives here: the memory engine's `Contents`, and the contents that an undecided commit may yet adopt.
Must not live here: the contents that partitions own (data.py).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterable, Sequence

from strongroom.engines.base import Step, Written
from strongroom.engines.bounds import check_small
from strongroom.engines.checksum import crc64
from strongroom.engines.memory.content import MemoryContent
from strongroom.engines.memory.data import MemoryData


class MemoryContents:
    """The contents of one gateway, as the contract's Contents has them.

    Arguments:
        now: returns store time.
        check_serving: raises Unavailable once the gateway no longer serves.

    Attributes:
        written: the contents that this gateway wrote and no commit has adopted.
    """

    def __init__(
        self, data: MemoryData, now: Callable[[], int], check_serving: Callable[[], None]
    ) -> None:
        self._data = data
        self._now = now
        self._check_serving = check_serving
        self.written: dict[int, MemoryContent] = {}
        # By content, how many undecided commits would adopt it; and which of these were discarded
        # since.
        self._wanted: Counter[int] = Counter()
        self._discarded: set[int] = set()

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
        content = self.written[content_id] = MemoryContent(body, crc64(body))
        self._data.size_bytes += content.size_bytes
        digest = hashlib.md5(body, usedforsecurity=False).digest() if md5 else None
        return Written(content_id, content.size_bytes, content.crc64, digest)

    async def write_all(self, bodies: Sequence[bytes | memoryview]) -> Sequence[Written]:
        check_small(bodies)
        self._check_serving()
        self._data.check_body(sum(map(len, bodies)))
        return [self._keep(bytes(body), md5=False) for body in bodies]

    async def open(self, content_id: int) -> MemoryContent:
        self._check_serving()
        return self._data.content(content_id)

    def discard(self, content_id: int) -> None:
        if self._wanted[content_id] > 0:
            self._discarded.add(content_id)
            return
        content = self.written.pop(content_id, None)
        self._data.size_bytes -= 0 if content is None else content.size_bytes

    def begin_adoption(self, content_ids: Iterable[int]) -> None:
        """Keep these contents until `end_adoption`: a commit that adopts them will be tried."""
        self._wanted.update(content_ids)

    def end_adoption(self, content_ids: Iterable[int]) -> None:
        """Take note that the commit that adopts these contents happened, or never will."""
        for content_id in content_ids:
            self._wanted[content_id] -= 1
            if self._wanted[content_id] <= 0:
                del self._wanted[content_id]
                if content_id in self._discarded:
                    self._discarded.discard(content_id)
                    self.discard(content_id)

    def check_adoptions(self, steps: Sequence[Step]) -> None:
        """Raise ValueError unless every content that the steps adopt is free to be adopted."""
        adopted = [content_id for step in steps for content_id in step.adopt]
        if len(set(adopted)) < len(adopted) or any(one not in self.written for one in adopted):
            raise ValueError("a commit adopts contents that were written and not adopted before")

    def adopt(self, step: Step) -> None:
        for content_id in step.adopt:
            self._data.contents[content_id] = self.written.pop(content_id)

    def discard_unadopted(self) -> None:
        """Delete all contents that this gateway wrote and no commit adopted: the gateway stops."""
        self._data.size_bytes -= sum(one.size_bytes for one in self.written.values())
        self.written.clear()
