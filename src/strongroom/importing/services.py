"""Imports what a folder holds of each service: the passes over its database.

Lives here: which collections a pass reads, in which order, and the names under which refusals are
reported.

A database is read front to back once for each kind of record that needs another one. Snapshots need
their blobs, and these need their containers. So only the names of containers, queues and tables are
in memory, not those of blobs, messages and entities.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from strongroom.importing import documents
from strongroom.importing.blobs import BLOB, BlobImport, blob_place
from strongroom.importing.conversions import NotConvertible
from strongroom.importing.documents import (
    BlobDocument,
    ContainerDocument,
    MessageDocument,
    QueueDocument,
    StagedBlockDocument,
    TableDocument,
)
from strongroom.importing.entities import ENTITY, import_entity
from strongroom.importing.messages import MESSAGE, import_message, is_expired
from strongroom.importing.places import (
    CONTAINER,
    QUEUE,
    SERVICES,
    TABLE,
    import_container,
    import_queue,
    import_services,
    import_table,
)
from strongroom.importing.scanning import ScannedRecord, in_names
from strongroom.importing.session import Flight, ImportedPlace, ImportSession

SERVICE_NAMES: Final = {
    documents.BLOB_DATABASE: "blob",
    documents.QUEUE_DATABASE: "queue",
    documents.TABLE_DATABASE: "table",
}
_LARGE_RECORD_BYTES: Final = 256 * 1024
PASSES: Final = (3, 2, 2)
"""How often the databases of blobs, queues and tables are read."""
_BLOCK: Final = msgspec.json.Decoder(StagedBlockDocument)


async def import_blob_service(session: ImportSession) -> None:
    """Import the containers, blobs, snapshots and properties of the Blob service."""
    places = await _containers(session)
    with session.folder.extents(documents.BLOB_EXTENTS) as files:
        blobs = _Blobs(session, BlobImport(session, files), places)
        await blobs.read(are_snapshots=False)
        if blobs.has_snapshots:
            await blobs.read(are_snapshots=True)
        blobs.report_orphans()


async def _containers(session: ImportSession) -> dict[tuple[str, str], ImportedPlace]:
    """Import the containers and the properties, and report the staged blocks. Return the containers
    by account and name."""
    places: dict[tuple[str, str], ImportedPlace] = {}
    blocks = Counter[str]()
    wanted = in_names((documents.SERVICES, documents.CONTAINERS, documents.BLOCKS))

    async def container(document: ContainerDocument) -> None:
        places[document.account_name, document.name] = await import_container(session, document)

    async with Flight(session.report) as flight:
        for record in session.records(documents.BLOB_DATABASE, wanted):
            if record.collection == documents.SERVICES:
                await _services(session, flight, documents.BLOB_DATABASE, record)
            elif record.collection == documents.BLOCKS:
                _count_block(session, record, blocks)
            elif document := session.decoded(
                documents.BLOB_DATABASE, record, CONTAINER, "container"
            ):
                place = f"{document.account_name}/{document.name}"
                await flight.begin("container", place, container(document))
    for place, count in sorted(blocks.items()):
        session.report.skip("blocks", place, f"{count} blocks were staged and not committed")
    return places


def _count_block(session: ImportSession, record: ScannedRecord, blocks: Counter[str]) -> None:
    document = session.decoded(documents.BLOB_DATABASE, record, _BLOCK, "blocks")
    if document is not None:
        blocks[f"{document.account_name}/{document.container_name}/{document.blob_name}"] += 1


async def _services(
    session: ImportSession, flight: Flight, database: str, record: ScannedRecord
) -> None:
    document = session.decoded(database, record, SERVICES, "properties")
    if document is not None:
        service = SERVICE_NAMES[database]
        place = f"{document.account_name}/{service}"
        await flight.begin("properties", place, import_services(session, service, document))


class _Blobs:
    """The passes over blobs and snapshots.

    Attributes:
        has_snapshots: whether the first pass has seen a snapshot.
    """

    def __init__(
        self,
        session: ImportSession,
        blobs: BlobImport,
        places: dict[tuple[str, str], ImportedPlace],
    ) -> None:
        self.has_snapshots = False
        self._session = session
        self._import = blobs
        self._places = places
        self._orphans = Counter[str]()

    async def read(self, are_snapshots: bool) -> None:
        """Import all blobs, or all snapshots."""
        database, wanted = documents.BLOB_DATABASE, in_names((documents.BLOBS,))
        async with Flight(self._session.report) as flight:
            for record in self._session.records(database, wanted):
                document = self._decoded(record, are_snapshots)
                if document is not None and bool(document.snapshot) is are_snapshots:
                    await self._begin(flight, document)
                if len(record.data or b"") > _LARGE_RECORD_BYTES:
                    await flight.settle()  # many decoded records of this size would fill memory
                self.has_snapshots |= document is not None and bool(document.snapshot)

    def _decoded(self, record: ScannedRecord, are_snapshots: bool) -> BlobDocument | None:
        """Return a record. One that cannot be read is reported by the first pass."""
        if not are_snapshots:
            return self._session.decoded(documents.BLOB_DATABASE, record, BLOB, "blob")
        try:
            return BLOB.decode(record.data or b"")
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    async def _begin(self, flight: Flight, document: BlobDocument) -> None:
        container = document.account_name, document.container_name
        place = self._places.get(container)
        if place is None:
            self._orphans["/".join(container)] += 1
        elif not document.is_committed:
            reason = "it has only blocks that were not committed"
            self._session.report.skip("blob", blob_place(document), reason)
        elif document.snapshot:
            await flight.begin(
                "snapshot", blob_place(document), self._import.snapshot(place, document)
            )
        else:
            await flight.begin("blob", blob_place(document), self._import.base(place, document))

    def report_orphans(self) -> None:
        """Report the blobs of containers that were not imported."""
        for container, count in sorted(self._orphans.items()):
            reason = f"{count} blobs and snapshots are in a container that was not imported"
            self._session.report.lose("blob", container, reason)


async def import_queue_service(session: ImportSession) -> None:
    """Import the queues, messages and properties of the Queue service."""
    database, places = documents.QUEUE_DATABASE, dict[tuple[str, str], ImportedPlace]()

    async def queue(document: QueueDocument) -> None:
        places[document.account_name, document.name] = await import_queue(session, document)

    async with Flight(session.report) as flight:
        for record in session.records(database, in_names((documents.SERVICES, documents.QUEUES))):
            if record.collection == documents.SERVICES:
                await _services(session, flight, database, record)
            elif document := session.decoded(database, record, QUEUE, "queue"):
                await flight.begin(
                    "queue", f"{document.account_name}/{document.name}", queue(document)
                )
    await _messages(session, places)


async def _messages(session: ImportSession, places: dict[tuple[str, str], ImportedPlace]) -> None:
    database, expired, orphans = documents.QUEUE_DATABASE, Counter[str](), Counter[str]()
    now = await session.store.now()
    with session.folder.extents(documents.QUEUE_EXTENTS) as files:
        async with Flight(session.report) as flight:
            for record in session.records(database, in_names((documents.MESSAGES,))):
                document = session.decoded(database, record, MESSAGE, "message")
                if document is None:
                    continue
                queue = f"{document.account_name}/{document.queue_name}"
                place = places.get((document.account_name, document.queue_name))
                if place is None:
                    orphans[queue] += 1
                elif _has_expired(document, now):
                    expired[queue] += 1
                else:
                    work = import_message(session, files, place, document)
                    await flight.begin("message", f"{queue}/{document.message_id}", work)
    for queue, count in sorted(expired.items()):
        session.report.skip("message", queue, f"{count} messages have expired")
    for queue, count in sorted(orphans.items()):
        reason = f"{count} messages are in a queue that was not imported"
        session.report.lose("message", queue, reason)


def _has_expired(document: MessageDocument, now: int) -> bool:
    """Return whether a message has expired; one without a valid time is refused later."""
    try:
        return is_expired(document, now)
    except NotConvertible:
        return False


async def import_table_service(session: ImportSession) -> None:
    """Import the tables, entities and properties of the Table service."""
    database, places = documents.TABLE_DATABASE, dict[str, ImportedPlace]()

    async def table(document: TableDocument) -> None:
        place = await import_table(session, document)
        places[documents.entities_of(document.account, document.table)] = place

    async with Flight(session.report) as flight:
        for record in session.records(database, in_names((documents.SERVICES, documents.TABLES))):
            if record.collection == documents.SERVICES:
                await _services(session, flight, database, record)
            elif document := session.decoded(database, record, TABLE, "table"):
                await flight.begin("table", f"{document.account}/{document.table}", table(document))
    await _entities(session, places)


async def _entities(session: ImportSession, places: dict[str, ImportedPlace]) -> None:
    database, orphans = documents.TABLE_DATABASE, Counter[str]()
    own = in_names((documents.SERVICES, documents.TABLES))
    async with Flight(session.report) as flight:
        for record in session.records(database, lambda name: not own(name)):
            table = record.collection.replace("$", "/", 1)
            place = places.get(record.collection)
            if place is None:
                orphans[table] += 1
                continue
            row = session.decoded(database, record, ENTITY, "entity")
            if row is not None:
                name = f"{table}(PartitionKey={row.partition_key!r},RowKey={row.row_key!r})"
                work = import_entity(session, place, name, row)
                await flight.begin("entity", name, work)
    for table, count in sorted(orphans.items()):
        reason = f"{count} entities are in a table that was not imported"
        session.report.lose("entity", table, reason)
