"""Opening the source of a copy to a blob: a blob of this server in one consistent state.

Lives here: the pinning of a source, so that a copy never mixes two of its states. Also here: the
request for the tags of a source on another server. Source: "Copy Blob", "Remarks"; "Copy Blob From
URL", header x-ms-copy-source-tag-option.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

from strongroom import limits
from strongroom.auth.request import Service
from strongroom.engines.base import ContentMissing, Partition, Record, Ref
from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import pages, tags, tiers
from strongroom.semantics.core import conditions as conditional
from strongroom.services.blob.bodies.rereading import RetriedRead
from strongroom.services.blob.copies.sources import OpenBlob, PageSource, as_blob
from strongroom.services.blob.decisions.rehydration import as_of
from strongroom.services.core.calls import Call
from strongroom.services.core.copies import opening
from strongroom.services.core.copies.sources import (
    WHOLE,
    CopySources,
    LocalSource,
    Opener,
    SourceBroken,
    SourceRequest,
    cannot_read,
    require_part,
    source_missing,
)
from strongroom.services.core.decisions import UNDECODED, ReadAll, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import BodyPlace
from strongroom.store.blob.bodies.kinds import read_with
from strongroom.store.blob.bodies.readers import Readers, Reading
from strongroom.store.blob.bodies.reading import to_store
from strongroom.store.core import keys, records
from strongroom.store.core.keys import Past
from strongroom.values import Metadata, etag_text
from strongroom.wire.blob.tags import read_tags

# To read a range of a content that is longer than this, the whole content is not verified.
_VERIFIED_FOR_RANGE_BYTES_MAX: Final = 16 * limits.MIB


async def open_named(
    services: Services, call: Call[Any], url: str, wanted: SourceRequest
) -> tuple[OpenBlob, LocalSource | None]:
    """Return the open source, and where it is on this server; None = it is on another."""
    opened, local = await opening.open_named(services, call, url, wanted, OWN)
    source = as_blob(opened)
    if local is None and wanted.with_tags:
        await _add_tags(services.held.of(CopySources), source, url, wanted)
    return source, local


async def _add_tags(
    sources: CopySources, source: OpenBlob, url: str, wanted: SourceRequest
) -> None:
    """Request the tags of a source on another server. Close the source if that fails."""
    try:
        source.tags = await _remote_tags(sources, url, wanted.authorization)
    except SourceBroken as broken:
        await source.close()
        raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, str(broken)) from None
    except BaseException:
        await source.close()
        raise


async def _remote_tags(sources: CopySources, url: str, authorization: str | None) -> Metadata:
    """Request the tags of a source on another server, as Get Blob Tags does.

    The credentials in `url`, or `authorization`, must permit reading the tags.
    """
    address = url.partition("#")[0]
    joined = "&" if "?" in address else "?"
    request = SourceRequest(authorization=authorization)
    source = await sources.open_remote(f"{address}{joined}comp=tags", request)
    data = b""
    try:
        async for chunk in source:
            data += chunk
            if len(data) > limits.XML_BODY_BYTES_MAX:
                raise SourceBroken("the document of its tags is too long")
    finally:
        await source.close()
    try:
        return tags.check(read_tags(data))
    except StorageError as refusal:
        text = f"The copy source's tags cannot be read: {refusal.message}"
        raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, text) from None


async def open_local(
    services: Services, source: LocalSource, wanted: SourceRequest = WHOLE
) -> OpenBlob:
    """Pin a blob of this server, check the conditions on it, and return it open.

    Raises: DataDamaged, also while it is read; InternalError when a part of the source is missing.
    """
    partition = keys.blob(source.generation, source.blob)
    blob_name = f"{source.account}/{source.container}/{source.blob}"
    retried_read = RetriedRead(blob_name, lambda: _look(services, partition, source))
    while True:
        # Registered before the head is read: what the head refers to is not swept while it is read.
        reading = services.held.of(Readers).begin(partition, services.store.gateways)
        try:
            await reading.wait_for_mutations()
            blob, body_records = await _look(services, partition, source)
            reading.set_position(blob.body.position)
            retried_read.note_body(blob.body)
            if source.past is None:
                pages.require_not_incremental_copy(blob.page)
            _check_conditions(wanted, blob)
            return await _open(services, partition, (blob, body_records), wanted, reading)
        except ContentMissing as reason:
            # The blob was replaced between the read of its head and the pin. Read the new head.
            reading.end()
            await retried_read.prepare_retry(reason)
        except BaseException:
            reading.end()
            raise


OWN: Final = Opener(Service.BLOB, open_local)
"""The opener of sources that are blobs of this server."""


def _check_conditions(wanted: SourceRequest, blob: BlobRecord) -> None:
    blob_tags = dict(blob.tags)
    if not wanted.is_read:
        # A copy of an archived blob may be possible, depending on the tier of the copy.
        conditional.check_source(wanted.conditions, blob.shown_etag, blob.modified, blob_tags)
        return
    conditional.check_read_source(wanted.conditions, blob.shown_etag, blob.modified, blob_tags)
    try:
        tiers.require_online(blob.tier)
    except StorageError as refusal:
        raise cannot_read(refusal.row, None, refusal.row.status, refusal.row.code) from None


async def _look(
    services: Services, partition: Partition, source: LocalSource
) -> tuple[BlobRecord, Sequence[Record | None]]:
    reads = Reads()
    place = reads.add(keys.container(source.account, source.container), records.CONTAINER)
    state = _StateReads.of(reads, partition, source.past)
    # The version may be the current one: then the head has it.
    head = None if source.version is None else _StateReads.of(reads, partition, None)
    found = await services.read(reads)
    container = found[place]
    if container is None or container.generation != source.generation:
        raise source_missing(errors.CONTAINER_NOT_FOUND)
    current = None if head is None else blob_records.shown(found[head.blob])
    if head is not None and current is not None and current.version == source.version:
        state = head
    blob = blob_records.shown(found[state.blob])
    if blob is None or not blob.committed:
        raise source_missing(blob_errors.BLOB_NOT_FOUND)
    if blob.rehydration is not None:
        blob = as_of(blob, await services.store.now())
    return blob, found.records(state.body)


class _StateReads(NamedTuple):
    blob: ReadOne[BlobRecord]
    body: ReadAll[bytes]

    @classmethod
    def of(cls, reads: Reads, partition: Partition, past: Past | None) -> _StateReads:
        """Add the reads of a state; `past` None = the head."""
        key = keys.HEAD_KEY if past is None else keys.past(past)
        blob = reads.add(Ref(partition, key), blob_records.BLOB)
        beside = [Ref(partition, one) for one in read_with(past)]
        return cls(blob, reads.add_all(beside, UNDECODED))


async def _open(
    services: Services,
    partition: Partition,
    found: tuple[BlobRecord, Sequence[Record | None]],
    wanted: SourceRequest,
    reading: Reading,
) -> OpenBlob:
    blob, body_records = found
    offset, length = 0, blob.size_bytes
    if wanted.range is not None:
        offset, length = require_part(wanted.range, blob.size_bytes)
    is_whole = length == blob.size_bytes
    place = BodyPlace(services.store, partition, body_records)
    take = to_store() if is_whole else to_store(_VERIFIED_FOR_RANGE_BYTES_MAX)
    opened = await blob.body.open(place, offset, length, take)
    reading.left = opened.left

    def release() -> None:
        if opened.close is not None:
            opened.close()
        reading.end()

    pieces = opened.pieces
    return OpenBlob(
        length,
        _once(pieces) if isinstance(pieces, bytes) else pieces,
        release,
        blob.properties,
        blob.metadata,
        etag_text(blob.shown_etag),
        opened.copy_writer if is_whole else None,
        blob.tier,
        blob.tags,
        kind=blob.kind,
        sealed=blob.sealed,
        page=None if blob.page is None else PageSource(blob.page, place, blob.body),
    )


async def _once(data: bytes) -> AsyncIterator[bytes]:
    if data:
        yield data
