"""Imports containers, queues and tables, without what is in them, and the properties of services.

Lives here: one commit per container, queue, table or service. Each place gets a generation of this
store, as a new one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from strongroom.engines.base import Record, Ref, Step, Write
from strongroom.importing import conversions
from strongroom.importing.conversions import NotConvertible
from strongroom.importing.documents import (
    ContainerDocument,
    QueueDocument,
    ServicesDocument,
    TableDocument,
)
from strongroom.importing.session import ImportedPlace, ImportSession
from strongroom.semantics.core import names
from strongroom.service_properties import DEFAULTS
from strongroom.services.queue.message_changes import new_epoch
from strongroom.store.core import keys, records
from strongroom.store.core.records import ContainerRecord, QueueRecord, TableRecord
from strongroom.values import ForeignEtag

CONTAINER: Final = msgspec.json.Decoder(ContainerDocument)
QUEUE: Final = msgspec.json.Decoder(QueueDocument)
TABLE: Final = msgspec.json.Decoder(TableDocument)
SERVICES: Final = msgspec.json.Decoder(ServicesDocument)
_SECRET_BYTES: Final = 32
_TWICE: Final = "it is there twice; the first one is imported"


def require_absent(record: Record | None) -> None:
    """Check that this is the first record of its name. Raises NotConvertible."""
    if record is not None:
        raise NotConvertible(_TWICE)


async def import_container(session: ImportSession, document: ContainerDocument) -> ImportedPlace:
    """Import a container without its blobs. Raises NotConvertible, StorageError."""
    conversions.check_account(document.account_name)
    names.check_container(document.name)
    properties = document.properties
    record = ContainerRecord(
        0,
        0,
        conversions.time(properties.last_modified, "time of the last change"),
        metadata=conversions.metadata(document.metadata),
        public_access=conversions.public_access(properties.public_access),
        policies=conversions.policies(document.container_acl),
        lease=conversions.lease(document, properties.lease_state, await session.store.now()),
    )
    text = conversions.etag(properties.etag)
    ref = keys.container(document.account_name, document.name)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        foreign = None if text is None else ForeignEtag(stamp, text)
        stamped = msgspec.structs.replace(record, generation=stamp, etag=stamp, foreign=foreign)
        return (_put(ref, records.CONTAINER.encode(stamped)),)

    stamp = await session.commit(ref.partition, [ref], steps)
    _count(session, document.account_name, "containers")
    if text is None:
        place = f"{document.account_name}/{document.name}"
        session.report.lose("etag", place, conversions.etag_loss(properties.etag))
    return ImportedPlace(stamp)


async def import_queue(session: ImportSession, document: QueueDocument) -> ImportedPlace:
    """Import a queue without its messages. Raises NotConvertible, StorageError."""
    conversions.check_account(document.account_name)
    names.check_queue(document.name)
    secret = session.clock.random_bytes(_SECRET_BYTES)
    metadata = conversions.metadata(document.metadata)
    policies = conversions.policies(document.queue_acl, is_queue=True)
    ref = keys.queue(document.account_name, document.name)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        record = QueueRecord(stamp, stamp, secret, metadata, policies)
        begun = new_epoch(f"{document.account_name}/{document.name}", stamp, 0, stamp)
        return (*begun, _put(ref, records.QUEUE.encode(record)))

    stamp = await session.commit(ref.partition, [ref], steps)
    _count(session, document.account_name, "queues")
    return ImportedPlace(stamp, stamp)


async def import_table(session: ImportSession, document: TableDocument) -> ImportedPlace:
    """Import a table without its entities. Raises NotConvertible, StorageError."""
    conversions.check_account(document.account)
    names.check_table(document.table)
    policies = conversions.policies(document.table_acl)
    ref = keys.table(document.account, document.table)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        return (_put(ref, records.TABLE.encode(TableRecord(stamp, document.table, policies))),)

    stamp = await session.commit(ref.partition, [ref], steps)
    _count(session, document.account, "tables")
    return ImportedPlace(stamp)


async def import_services(session: ImportSession, service: str, document: ServicesDocument) -> None:
    """Import the properties of a service. Raises NotConvertible."""
    conversions.check_account(document.account_name)
    properties = DEFAULTS[service].updated(
        conversions.service_properties(document, service == "blob")
    )
    value = records.PROPERTIES.encode(properties)
    ref = keys.service_properties(document.account_name, service)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        return (_put(ref, value),)

    await session.commit(ref.partition, [ref], steps)
    _count(session, document.account_name, "properties")


def _count(session: ImportSession, account: str, what: str) -> None:
    session.report.accounts.add(account)
    session.report.counts[what] += 1


def _put(ref: Ref, value: bytes) -> Step:
    return Step(ref.partition, (Write(ref.key, value),))
