"""Imports the entities of tables.

Lives here: one commit per entity. Must not live here: the rules of properties (semantics/table/),
the form of a record (store/table/entity_records.py).

The ETag of an entity is made of its Timestamp, here as at Azurite. So both are kept together, in
the field of the Timestamp.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from strongroom.engines.base import Record, Step, Write
from strongroom.importing import conversions
from strongroom.importing.conversions import NotConvertible, refusal
from strongroom.importing.documents import EntityRow
from strongroom.importing.places import require_absent
from strongroom.importing.session import ImportedPlace, ImportSession
from strongroom.semantics.table import edm, entities
from strongroom.semantics.table.edm import EdmType
from strongroom.semantics.table.entities import EntityChange, EntityWrite, StoredEntity
from strongroom.store.core import keys
from strongroom.store.table import entity_records
from strongroom.wire.table import odata

ENTITY: Final = msgspec.json.Decoder(EntityRow)
_ANNOTATION: Final = "@odata.type"
_OWN: Final = frozenset(("PartitionKey", "RowKey", "Timestamp"))
_GUID: Final = re.compile(rb"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
_Scalar = str | bool | int | float


async def import_entity(
    session: ImportSession, place: ImportedPlace, place_text: str, row: EntityRow
) -> None:
    """Import an entity; `place_text` is its name for a report. Raises NotConvertible,
    StorageError."""
    partition_key, row_key = row.partition_key, row.row_key
    entities.check_key("PartitionKey", partition_key)
    entities.check_key("RowKey", row_key)
    timestamp = conversions.time(row.modified, "Timestamp")
    stored = StoredEntity(timestamp, _fragment(row))
    ref = keys.entity(place.generation, partition_key, row_key)
    head, *chunks = entity_records.encode(stored)
    writes = [Write(ref.key, head)]
    for index, chunk in enumerate(chunks):
        writes.append(Write(keys.entity_chunk(ref.key.name, index), chunk))

    def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
        require_absent(*found)
        return (Step(ref.partition, tuple(writes)),)

    await session.commit(ref.partition, [ref], steps)
    session.report.counts["entities"] += 1
    if row.etag is not None and odata.etag_text(timestamp) != row.etag:
        session.report.lose("etag", place_text, conversions.etag_loss(row.etag))


def _fragment(row: EntityRow) -> bytes:
    """Return the properties in their stored form. Raises NotConvertible, StorageError."""
    properties: dict[str, edm.Value] = {}
    for name, raw in row.properties.items():
        if name in _OWN or name.endswith(_ANNOTATION) or raw is None:
            continue
        type_name = row.properties.get(name + _ANNOTATION)
        if type_name is not None and not isinstance(type_name, str):
            raise NotConvertible(f"the type of its property {name[:80]!r} is no text")
        try:
            properties[name] = edm.value_of(_plain(raw, type_name), type_name)
        except (edm.NotOfType, edm.OutOfRange) as error:
            raise NotConvertible(f"its property {name[:80]!r}: {refusal(error)}") from None
    entities.check_names(properties.keys())
    entities.check_values(properties)
    insert = EntityWrite(EntityChange.INSERT, properties)
    return entities.decide(None, insert, row.partition_key, row.row_key) or b""


def _plain(raw: _Scalar, type_name: str | None) -> _Scalar:
    """Return a property's value as clients send it. Azurite stores the text of a GUID in base64."""
    if type_name != EdmType.GUID.value or not isinstance(raw, str):
        return raw
    try:
        decoded = base64.b64decode(raw, validate=True)
    except (binascii.Error, ValueError):
        return raw
    return decoded.decode("ascii") if _GUID.fullmatch(decoded) else raw
