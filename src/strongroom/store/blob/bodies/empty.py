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
    """No bytes."""

    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        """See Body.open."""
        return OpenBody(b"")

    def inspect(self, found: InspectedBody) -> BodyFindings:
        """See Body.inspect."""
        return BodyFindings(0)


EMPTY: Final[Body] = Empty()
