"""The check of tables: every entity has all its records, and belongs to a table.

Lives here: the check of all tables. An entity's records follow one another, so its memory grows
with the tables and not with their entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from strongroom.engines.base import Partition, Record, Ref
from strongroom.semantics.table import edm, entities
from strongroom.semantics.table.edm import NotOfType, OutOfRange
from strongroom.store.core import keys
from strongroom.store.core.records import Job, JobKind, TableRecord
from strongroom.store.table import entity_records
from strongroom.store.table.entity_records import EntityHead

_NUMBER_BYTES: Final = 8


@dataclass(slots=True)
class _Entity:
    """An entity of which the check has read the head and some chunks."""

    place: Ref
    head: EntityHead
    chunks: list[bytes] = field(default_factory=list)


class EntitiesCheck:
    """The check of all tables of one snapshot: `take` all records, in their order, then call
    `problems`."""

    def __init__(self) -> None:
        self.table_count = 0
        self.entity_count = 0
        self._alive: set[int] = set()
        self._swept: set[int] = set()
        self._generations: set[int] = set()
        self._open: _Entity | None = None
        self._broken: list[tuple[str, str, Ref]] = []

    def take_table(self, ref: Ref, table: TableRecord) -> bool:
        """Return False when the key is that of another name."""
        self.table_count += 1
        self._alive.add(table.generation)
        return ref.partition.name == table.name.lower().encode()

    def take_job(self, job: Job) -> None:
        if job.kind is JobKind.SWEEP_TABLE:
            self._swept.add(job.generation)

    def take(self, ref: Ref, record: Record) -> bool:
        """The next record of an entity. Return False if no entity can have a record there.

        Raises: DamagedRecord, and ValueError for keys that are not UTF-8.
        """
        generation, key = ref.partition.keyspace[1:], ref.key
        if len(generation) != _NUMBER_BYTES or key.hidden:
            return False
        self._generations.add(int.from_bytes(generation, "big"))
        if keys.is_entity_chunk(key.name):
            return self._take_chunk(ref, record.value)
        self._close()
        self._open = None
        head = entity_records.head(record.value)
        ref.partition.name.decode()
        key.name.decode()
        self._open = _Entity(ref, head)
        self.entity_count += 1
        return True

    def _take_chunk(self, ref: Ref, value: bytes) -> bool:
        entity = self._open
        if entity is None or ref.partition != entity.place.partition:
            return False
        if ref.key != keys.entity_chunk(entity.place.key.name, len(entity.chunks)):
            return False
        if len(entity.chunks) == entity.head.chunks:
            return False
        entity.chunks.append(value)
        return True

    def _close(self) -> None:
        """Check the open entity: all of its records have been read."""
        entity = self._open
        if entity is None:
            return
        problem = _problem(entity)
        if problem:
            self._broken.append((entity_name(entity.place), problem, entity.place))

    def problems(self) -> Iterator[tuple[str, str, Ref | None]]:
        """(place, problem, a record there), once all records were noted."""
        self._close()
        self._open = None
        yield from self._broken
        for generation in sorted(self._generations - self._alive - self._swept):
            yield f"entities {generation}", "their table is gone, and no job cleans up", None


def _problem(entity: _Entity) -> str:
    """Empty when there is none."""
    there, needed = len(entity.chunks), entity.head.chunks
    if there != needed:
        return f"it has {there} of its {needed} further records"
    stored = entity_records.whole(entity.head, entity.chunks)
    try:
        properties = entities.properties_of(stored.fragment)
    except (msgspec.DecodeError, NotOfType, OutOfRange) as error:
        return f"its properties cannot be read: {error}"
    if edm.fragment(properties) != stored.fragment:
        return "its properties are not written as they should be"
    return ""


def entity_name(place: Ref) -> str:
    """As text for findings."""
    partition: Partition = place.partition
    shown = (text.decode("utf-8", "backslashreplace") for text in (partition.name, place.key.name))
    return "entity ({!r}, {!r})".format(*shown)
