"""The body of a blob without bytes."""

from __future__ import annotations

from typing import Final

from strongroom.store.blob.bodies.body import (
    Body,
    BodyFindings,
    BodyPlace,
    InspectedBody,
    OpenBody,
    P,
    ReadSpan,
)


class Empty(Body, frozen=True, array_like=True, tag=0):
    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        return OpenBody(b"")

    def inspect(self, found: InspectedBody) -> BodyFindings:
        return BodyFindings(0)


EMPTY: Final[Body] = Empty()
