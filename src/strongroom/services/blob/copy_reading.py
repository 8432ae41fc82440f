"""Opening the source of a copy: a blob of this server as it is at one moment, or whatever an order
says.

Lives here: the pinning of a source, so that what is copied is one of its contents and never a
mixture. Must not live here: who may read it (the locator that the program is composed with).
Source: "Copy Blob", "Remarks".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from strongroom import blob_errors
from strongroom.engines.base import ContentMissing, Partition, Record, Ref
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.blob.copy_sources import (
    CopySources,
    LocalSource,
    OpenSource,
    source_missing,
)
from strongroom.services.blob.rereading import Rereading
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import BodyPlace
from strongroom.store.blob.bodies.kinds import read_with
from strongroom.store.blob.bodies.readers import Readers, Reading
from strongroom.store.blob.bodies.reading import to_store
from strongroom.store.core import keys, records
from strongroom.store.core.records import CopyOrder
from strongroom.values import etag_text


async def open_local(
    services: Services, source: LocalSource, conditions: Conditions = conditional.NONE
) -> OpenSource:
    """Pin a blob of this server, judge the conditions on it, and return it open.

    Raises: StorageError CannotVerifyCopySource (missing, or uncommitted), SourceConditionNotMet,
        InternalError (something of the source is missing). DataDamaged, also while it is read.
    """
    partition = keys.blob(source.generation, source.blob)
    what = f"{source.account}/{source.container}/{source.blob}"
    looks = Rereading(what, lambda: _look(services, partition, source))
    while True:
        # Registered before the look at the head: what it names is not swept while it is read.
        reading = services.held.of(Readers).begin(partition, services.store.gateways)
        try:
            blob, beside = await _look(services, partition, source)
            looks.saw(blob.body)
            conditional.check_source(conditions, blob.etag, blob.modified, dict(blob.tags))
            return await _open(services, partition, blob, beside, reading)
        except ContentMissing as reason:
            # Replaced between the look at the head and the pin: the new head decides.
            reading.end()
            await looks.again(reason)
        except BaseException:
            reading.end()
            raise


async def open_ordered(services: Services, order: CopyOrder) -> OpenSource:
    """Open again what a pending copy reads.

    Raises: as open_local and RemoteReader.open; SourceConditionNotMet when conditions were put on
        the source and it has changed since.
    """
    etags = None if order.etag is None else (order.etag,)
    conditions = conditional.NONE if etags is None else Conditions(if_match=etags)
    if order.url:
        return await services.held.of(CopySources).open_remote(order.url, conditions)
    source = LocalSource(
        order.account, order.container, order.generation, order.blob, order.snapshot
    )
    return await open_local(services, source, conditions)


async def _look(
    services: Services, partition: Partition, source: LocalSource
) -> tuple[BlobRecord, Sequence[Record | None]]:
    key = keys.HEAD_KEY if source.snapshot is None else keys.snapshot(source.snapshot)
    refs = [Ref(partition, one) for one in (key, *read_with(source.snapshot))]
    place, named, *beside = await services.store.read(
        [keys.container(source.account, source.container), *refs]
    )
    container = records.CONTAINER.of(place)
    if container is None or container.generation != source.generation:
        raise source_missing(blob_errors.CONTAINER_NOT_FOUND)
    blob = blob_records.BLOB.of(named)
    if blob is None or not blob.committed:
        raise source_missing(blob_errors.BLOB_NOT_FOUND)
    return blob, beside


async def _open(
    services: Services,
    partition: Partition,
    blob: BlobRecord,
    beside: Sequence[Record | None],
    reading: Reading,
) -> OpenSource:
    place = BodyPlace(services.store, partition, beside)
    opened = await blob.body.open(place, 0, blob.size_bytes, to_store())
    reading.left = opened.left

    def release() -> None:
        if opened.close is not None:
            opened.close()
        reading.end()

    pieces = opened.pieces
    return OpenSource(
        blob.size_bytes,
        _once(pieces) if isinstance(pieces, bytes) else pieces,
        release,
        blob.properties,
        blob.metadata,
        etag_text(blob.etag),
        opened.copy_writer,
        blob.tier,
        blob.tags,
    )


async def _once(data: bytes) -> AsyncIterator[bytes]:
    if data:
        yield data
