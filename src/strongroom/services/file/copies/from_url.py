"""Put Range from URL: Put Range with the bytes of a source.

Lives here: the operation's input, the digests of the source's bytes, and the order in which
destination and source are checked. Must not live here: Put Range itself (rest/ranges.py). Source:
"Put Range from URL"; reference file.md 5.
"""

from __future__ import annotations

import msgspec

from strongroom.engines.checksum import crc64
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.core import copies
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.opening import open_named
from strongroom.services.core.copies.sources import SourceRequest, check_url
from strongroom.services.core.copies.upload import BytesBody, SourceBody, uploading
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.reading import OWN
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.names.smb_properties import NOTHING_GIVEN, SmbProperties
from strongroom.services.file.rest import nodes, ranges
from strongroom.services.file.rest.nodes import NodeWritten
from strongroom.services.file.rest.ranges import PutRange
from strongroom.values import crc64_text


class SourceDigests(msgspec.Struct, frozen=True):
    """The CRC64 values of the source's bytes that a request declares; None = not declared.

    Attributes:
        sent: the expected CRC64. A mismatch means that bytes were damaged in transit.
        match, none_match: the conditions that the CRC64 is, or is not, this one.
    """

    sent: int | None = None
    match: int | None = None
    none_match: int | None = None

    def check(self, calculated: int) -> None:
        """Raises: StorageError Crc64Mismatch; CannotVerifyCopySource (412)."""
        if self.sent is not None and self.sent != calculated:
            raise StorageError(
                errors.CRC64_MISMATCH,
                None,
                (
                    ("UserSpecifiedCrc64", crc64_text(self.sent)),
                    ("ServerCalculatedCrc64", crc64_text(calculated)),
                ),
            )
        is_met = self.match in (None, calculated) and self.none_match != calculated
        if not is_met:
            raise conditional.source_unmet(copy_errors.COPY_SOURCE_CONDITION_NOT_MET)


NO_DIGESTS = SourceDigests()


class PutRangeFromUrl(OnPath, frozen=True, kw_only=True):
    """`span`: (offset, length) in the destination. `wanted` has the range at the source, with both
    ends."""

    span: tuple[int, int]
    source: str
    wanted: SourceRequest
    digests: SourceDigests = NO_DIGESTS
    smb: SmbProperties = NOTHING_GIVEN


class RangeCopied(msgspec.Struct, frozen=True):
    """The file, and the CRC64 of the bytes that were written."""

    written: NodeWritten
    crc64: int

    @property
    def record(self) -> object:
        return self.written.record


async def put_range_from_url(services: Services, call: Call[PutRangeFromUrl]) -> RangeCopied:
    """Write a range of a blob, a file or another server's content to a file. InvalidHeaderValue for
    two lengths, or no usable URL."""
    request = call.input
    source_range = request.wanted.range
    assert source_range is not None and source_range.last is not None
    if request.span[1] != source_range.last + 1 - source_range.first:
        text = "It has another length than the range of the file."
        value = f"bytes={source_range.first}-{source_range.last}"
        raise errors.invalid_header("x-ms-source-range", value, text)
    if request.span[1] > ranges.PUT_RANGE_BYTES_MAX:
        raise errors.body_too_large(ranges.PUT_RANGE_BYTES_MAX)
    check_url(request.source)
    # This comes first: a refused request neither asks another server nor reads a source.
    view = await nodes.view(services, call, is_directory=False)
    copies.require_none_pending(view.record.copy)
    source, _ = await open_named(services, call, request.source, request.wanted, OWN)
    try:
        # At most 4 MiB. All of them are checked before any is written.
        data = b"".join([chunk async for chunk in SourceBody(source)])
    finally:
        await source.close()
    calculated = crc64(data)
    request.digests.check(calculated)
    put = PutRange(span=request.span, smb=request.smb, trailing_dots=request.trailing_dots)
    written = await ranges.put_range(services, uploading(call, BytesBody(data), put), view)
    return RangeCopied(written, calculated)
