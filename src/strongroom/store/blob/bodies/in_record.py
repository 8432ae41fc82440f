"""A few bytes in the blob's record itself: one key to read or write instead of two."""

from __future__ import annotations

from strongroom.engines.base import DataDamaged
from strongroom.engines.checksum import crc64
from strongroom.store.blob.bodies.body import (
    Body,
    BodyFindings,
    BodyPlace,
    InspectedBody,
    OpenBody,
    P,
    ReadSpan,
)


class InRecord(Body, frozen=True, array_like=True, tag=4):
    """The bytes and their CRC64. A snapshot's record has its own copy."""

    data: bytes
    crc64: int

    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        return OpenBody(verified(self.data, self.crc64)[offset : offset + length])

    def inspect(self, found: InspectedBody) -> BodyFindings:
        return inspect_bytes(self.data, self.crc64, found)


def verified(data: bytes, checksum: int) -> bytes:
    """Raises: DataDamaged when the checksum differs."""
    if crc64(data) != checksum:
        raise DataDamaged(f"a body of {len(data)} bytes among the records: its checksum differs")
    return data


def inspect_bytes(data: bytes, checksum: int, found: InspectedBody) -> BodyFindings:
    if crc64(data) == checksum:
        return BodyFindings(len(data))
    text = f"the bytes of {found.which} are damaged: their checksum differs"
    return BodyFindings(len(data), (), (text,))
