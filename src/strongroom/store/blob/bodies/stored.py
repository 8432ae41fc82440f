"""A body that consists of one content."""

from __future__ import annotations

from typing import ClassVar

from strongroom.engines.base import VERIFIED_BYTES_MAX
from strongroom.store.blob.bodies.blocks import Span
from strongroom.store.blob.bodies.body import (
    Body,
    BodyChange,
    BodyFindings,
    BodyPlace,
    InspectedBody,
    NamedParts,
    OpenBody,
    P,
    ReadSpan,
)
from strongroom.store.core.keys import Past


class Stored(Body, frozen=True, array_like=True, tag=2):
    """The content, which is stored with its CRC64; the head and its snapshots may share it."""

    content: int

    is_shared: ClassVar[bool] = True

    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        """The content is pinned until the body is closed."""
        opened = await place.store.contents.open(self.content)
        if opened.size_bytes > VERIFIED_BYTES_MAX:
            return OpenBody(take(opened, Span(self.content, offset, length)), opened.close)
        try:
            return OpenBody(await opened.read(offset, length))
        finally:
            opened.close()

    def release(self, change: BodyChange, past: Past, alone: bool) -> None:
        if alone:
            change.drop(self.content)
        else:
            change.retire(self)

    @property
    def named(self) -> NamedParts:
        return NamedParts((), (self.content,))

    def inspect(self, found: InspectedBody) -> BodyFindings:
        """The engine's own check verifies the checksum of the bytes."""
        return BodyFindings(found.size_bytes, (self.content,))
