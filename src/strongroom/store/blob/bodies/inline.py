"""Bytes in a hidden record beside the blob's own, so that scans of blobs need not read them."""

from __future__ import annotations

from collections.abc import Sequence

from strongroom.engines.base import ContentMissing, Record
from strongroom.store.blob.bodies.body import (
    Body,
    BodyChange,
    BodyFindings,
    BodyPlace,
    InspectedBody,
    OpenBody,
    P,
    ReadSpan,
)
from strongroom.store.blob.bodies.in_record import inspect_bytes, verified
from strongroom.store.core import keys
from strongroom.store.core.keys import Past


class Inline(Body, frozen=True, array_like=True, tag=1):
    """The CRC64 of the bytes, which are stored under `keys.inline`. A snapshot or version has a
    copy of its own."""

    crc64: int

    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        return OpenBody(self._data(place.beside)[offset : offset + length])

    def _data(self, beside: Sequence[Record | None]) -> bytes:
        (record,) = beside
        if record is None:
            raise ContentMissing("inline body")
        return verified(record.value, self.crc64)

    def release(self, change: BodyChange, past: Past, alone: bool) -> None:
        change.put(keys.inline(*past), None)

    def snapshot(self, change: BodyChange, beside: Sequence[Record | None], past: Past) -> Body:
        change.put(keys.inline(*past), self._data(beside))
        return self

    def inspect(self, found: InspectedBody) -> BodyFindings:
        data = found.record(keys.inline(*found.past))
        return BodyFindings(None) if data is None else inspect_bytes(data, self.crc64, found)
