"""The contents of an embedded store: bodies in segment files, located by rows of the database.

Lives here: the embedded engine's `Contents`. Must not live here: how a body is written to the disk
(bodies/intake.py), where it is stored (segments.py), or the commit that adopts it
(serial_point.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import apsw

from strongroom.engines.base import ContentMissing, EngineError, Written
from strongroom.engines.bounds import check_small
from strongroom.engines.embedded.bodies.intake import BodyWriter
from strongroom.engines.embedded.bodies.segment_content import SegmentContent
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.bodies.unadopted import Unadopted
from strongroom.engines.embedded.records.checksummed_pages import unreadable
from strongroom.engines.embedded.records.sqlite import Reader

T = TypeVar("T")


class EmbeddedContents:
    """The contents of one store, as the contract's Contents has them.

    Arguments:
        reader: reads the rows that locate contents.
        stopped: returns the reason why the store no longer serves; None while it does.
    """

    def __init__(
        self,
        segments: SegmentStore,
        bodies: BodyWriter,
        unadopted: Unadopted,
        reader: Reader,
        stopped: Callable[[], EngineError | None],
    ) -> None:
        self._segments = segments
        self._bodies = bodies
        self._unadopted = unadopted
        self._reader = reader
        self._stopped = stopped

    async def write(
        self, chunks: AsyncIterable[bytes], size_bytes: int | None, md5: bool = False
    ) -> Written:
        return await self._written(self._bodies.write(chunks, size_bytes, md5))

    async def write_all(self, bodies: Sequence[bytes | memoryview]) -> Sequence[Written]:
        check_small(bodies)
        return await self._written(self._bodies.write_all(bodies))

    async def _written(self, writing: Coroutine[Any, Any, T]) -> T:
        try:
            self._check_serving()
            return await writing
        except RuntimeError as error:
            if (stopped := self._stopped()) is not None:  # the threads have ended
                raise stopped from error
            raise
        finally:
            writing.close()  # one that was refused has not begun

    async def open(self, content_id: int) -> SegmentContent:
        self._check_serving()
        try:
            location = self._reader.locate(content_id)
        except apsw.Error as error:
            raise unreadable(error) from error
        if location is None:
            raise ContentMissing(f"no partition owns content {content_id}")
        return self._segments.pin(location)

    def discard(self, content_id: int) -> None:
        if self._stopped() is None:
            self._unadopted.discard(content_id)

    def release_memory(self) -> None:
        self._bodies.release_memory()

    def _check_serving(self) -> None:
        if (error := self._stopped()) is not None:
            raise error
