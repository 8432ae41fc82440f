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


def require_absent(found: Record | None) -> None:
    """Check that this is the first record of its name. Raises NotConvertible."""
    if found is not None:
        raise NotConvertible(_TWICE)


async def import_container(session: ImportSession, given: ContainerDocument) -> ImportedPlace:
    """Import a container without its blobs. Raises NotConvertible, StorageError."""
    conversions.check_account(given.account_name)
    names.check_container(given.name)
    properties = given.properties
    record = ContainerRecord(
        0,
        0,
        conversions.time(properties.last_modified, "time of the last change"),
        metadata=conversions.metadata(given.metadata),
        public_access=conversions.public_access(properties.public_access),
        policies=conversions.policies(given.container_acl),
        lease=conversions.lease(given, properties.lease_state, await session.store.now()),
    )
    text = conversions.etag(properties.etag)
    ref = keys.container(given.account_name, given.name)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        foreign = None if text is None else ForeignEtag(stamp, text)
        stamped = msgspec.structs.replace(record, generation=stamp, etag=stamp, foreign=foreign)
        return (_put(ref, records.CONTAINER.encode(stamped)),)

    stamp = await session.commit(ref.partition, [ref], steps)
    _count(session, given.account_name, "containers")
    if text is None:
        place, reason = f"{given.account_name}/{given.name}", conversions.etag_loss(properties.etag)
        session.report.lose("etag", place, reason)
    return ImportedPlace(stamp)


async def import_queue(session: ImportSession, given: QueueDocument) -> ImportedPlace:
    """Import a queue without its messages. Raises NotConvertible, StorageError."""
    conversions.check_account(given.account_name)
    names.check_queue(given.name)
    secret = session.clock.random_bytes(_SECRET_BYTES)
    metadata = conversions.metadata(given.metadata)
    policies = conversions.policies(given.queue_acl, is_queue=True)
    ref = keys.queue(given.account_name, given.name)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        record = QueueRecord(stamp, stamp, secret, metadata, policies)
        begun = new_epoch(f"{given.account_name}/{given.name}", stamp, 0, stamp)
        return (*begun, _put(ref, records.QUEUE.encode(record)))

    stamp = await session.commit(ref.partition, [ref], steps)
    _count(session, given.account_name, "queues")
    return ImportedPlace(stamp, stamp)


async def import_table(session: ImportSession, given: TableDocument) -> ImportedPlace:
    """Import a table without its entities. Raises NotConvertible, StorageError."""
    conversions.check_account(given.account)
    names.check_table(given.table)
    policies = conversions.policies(given.table_acl)
    ref = keys.table(given.account, given.table)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        return (_put(ref, records.TABLE.encode(TableRecord(stamp, given.table, policies))),)

    stamp = await session.commit(ref.partition, [ref], steps)
    _count(session, given.account, "tables")
    return ImportedPlace(stamp)


async def import_services(session: ImportSession, service: str, given: ServicesDocument) -> None:
    """Import the properties of a service. Raises NotConvertible."""
    conversions.check_account(given.account_name)
    properties = DEFAULTS[service].updated(conversions.service_properties(given, service == "blob"))
    value = records.PROPERTIES.encode(properties)
    ref = keys.service_properties(given.account_name, service)

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        return (_put(ref, value),)

    await session.commit(ref.partition, [ref], steps)
    _count(session, given.account_name, "properties")


def _count(session: ImportSession, account: str, what: str) -> None:
    session.report.accounts.add(account)
    session.report.counts[what] += 1


def _put(ref: Ref, value: bytes) -> Step:
    return Step(ref.partition, (Write(ref.key, value),))
