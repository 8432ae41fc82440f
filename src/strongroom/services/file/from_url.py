"""Put Range from URL, whose source is a file of the same account on this server.

Lives here: the source's bytes as the body of Put Range. Must not live here: Put Range itself
(ranges.py), how a URL is read (operations/file). Source: "Put Range from URL"; reference file.md 5.

Who signs with the account's key may read every file of the account, so that nothing else need be
asked. Other callers, and sources elsewhere, are answered 501.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from strongroom import blob_errors, errors
from strongroom.auth.request import Service
from strongroom.engines.checksum import crc64
from strongroom.errors import StorageError
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.core.calls import (
    NO_TERMS,
    Call,
    CallTarget,
    Client,
    ConditionUse,
    Rule,
)
from strongroom.services.core.runner import Services
from strongroom.services.file import nodes, ranges, reading
from strongroom.services.file.nodes import NodeWritten
from strongroom.services.file.paths import OnPath
from strongroom.services.file.ranges import PutRange
from strongroom.services.file.reading import GetFile
from strongroom.services.file.smb_properties import NOTHING_GIVEN, SmbProperties
from strongroom.values import ByteRange

_READS = Rule(LeaseUse.READ_FILE, ConditionUse.IGNORED)


class FileSource(msgspec.Struct, frozen=True):
    """A file, as the path of a URL names it."""

    account: str
    share: str
    path: str


class PutRangeFromUrl(OnPath, frozen=True, kw_only=True):
    """Input of Put Range from URL: (offset, length) here, and at the source, which is None where
    the URL is of another host."""

    span: tuple[int, int]
    source: FileSource | None
    source_span: tuple[int, int]
    source_trailing_dots: bool = False
    smb: SmbProperties = NOTHING_GIVEN


class RangeCopied(msgspec.Struct, frozen=True):
    """Result of Put Range from URL: the file, and the checksum of what was written."""

    written: NodeWritten
    crc64: int

    @property
    def record(self) -> object:
        """The file's attributes."""
        return self.written.record


async def put_range_from_url(services: Services, call: Call[PutRangeFromUrl]) -> RangeCopied:
    """Put Range from URL.

    Raises: StorageError NotImplemented (another source, or another caller), InvalidHeaderValue (two
        lengths), RequestBodyTooLarge, CannotVerifyCopySource, InvalidRange, and as Put Range.
    """
    given = call.input
    if given.source is None or not call.caller.owner or not _names_account(call, given.source):
        message = (
            "This server implements Put Range from URL only for requests that are signed with the "
            "account's key, from files of the same account on this server."
        )
        raise StorageError(errors.NOT_IMPLEMENTED, message)
    if given.span[1] != given.source_span[1]:
        text = "It has another length than the range of the file."
        raise errors.invalid_header("x-ms-source-range", str(given.source_span[1]), text)
    if given.span[1] > ranges.PUT_RANGE_BYTES_MAX:
        raise errors.body_too_large(ranges.PUT_RANGE_BYTES_MAX)
    # First: for a request that changes nothing, nothing is read.
    await nodes.view(services, call, is_directory=False)
    data = await _source_bytes(services, call, given.source)
    upload = PutRange(span=given.span, smb=given.smb, trailing_dots=given.trailing_dots)
    anything: Call[Any] = call
    body = msgspec.structs.replace(anything, client=_Uploading(call.client, data), input=upload)
    return RangeCopied(await ranges.put_range(services, body), crc64(data))


def _names_account(call: Call[Any], source: FileSource) -> bool:
    """Whether the URL begins its path with the account, as the request's own does. Below a host
    that names the account, a path begins with the share."""
    account = call.target.account
    is_host_style = call.client.host.lower().startswith(f"{account}.")
    return source.account == account and not is_host_style


async def _source_bytes(
    services: Services, call: Call[PutRangeFromUrl], source: FileSource
) -> bytes:
    first, length = call.input.source_span
    account = call.target.account
    place = await services.place(Service.FILE, account, source.share)
    wanted = GetFile(
        range=ByteRange(first, first + length - 1), trailing_dots=call.input.source_trailing_dots
    )
    anything: Call[Any] = call
    asked = msgspec.structs.replace(
        anything,
        rule=_READS,
        target=CallTarget(Service.FILE, account, source.share, source.path),
        place=place,
        terms=NO_TERMS,
        input=wanted,
    )
    try:
        if place is None:
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        found = await reading.get_file(services, asked)
    except StorageError as error:
        if error.row.status != errors.RESOURCE_NOT_FOUND.status:
            raise
        raise StorageError(blob_errors.CANNOT_VERIFY_COPY_SOURCE) from None
    assert found.finished is not None and not isinstance(found.pieces, bytes)
    try:
        if found.length != length:
            raise StorageError(errors.INVALID_RANGE)
        return b"".join([bytes(piece) async for piece in found.pieces if isinstance(piece, bytes)])
    finally:
        found.finished()


class _Bytes:
    """Bytes at hand as the body of a request."""

    is_held_back = False

    def __init__(self, data: bytes) -> None:
        self.size_bytes: int | None = len(data)
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class _Uploading:
    """The client of a request, whose body comes from elsewhere."""

    def __init__(self, client: Client, data: bytes) -> None:
        self.peer = client.peer
        self.gone = client.gone
        self.body = _Bytes(data)
        self._client = client

    @property
    def host(self) -> str:
        """The host that the client named."""
        return self._client.host

    def when_gone(self, callback: Callable[[], None]) -> None:
        """See Client.when_gone."""
        self._client.when_gone(callback)
