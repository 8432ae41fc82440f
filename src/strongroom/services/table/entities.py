"""Entities: written in transactions of one or many, read one at a time.

Lives here: the one commit behind every write of entities, and the point query. Must not live here:
how a write changes an entity (semantics/table/entities.py), queries (query_entities.py), JSON.
Source: "Performing entity group transactions", "Insert Entity" and the pages of the other writes;
reference sections 5 and 7.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from strongroom import errors, table_errors
from strongroom.engines.base import (
    COMMIT_BYTES_MAX,
    COMMIT_WRITES_MAX,
    Commit,
    Record,
    Ref,
    Step,
    Write,
)
from strongroom.errors import StorageError
from strongroom.semantics.table import entities
from strongroom.semantics.table.entities import EntityChange, EntityWrite, Properties, StoredEntity
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision
from strongroom.services.core.places import check_place, generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys
from strongroom.store.table import entity_records
from strongroom.values import Entity

# The part of a commit beside the entities' own bytes: their keys, and a margin.
_COMMIT_RESERVE_BYTES: Final = 1024 * 1024
_TOO_MANY_WRITES: Final = "The entities are too large to be replaced or removed at once."


class EntityDocument(msgspec.Struct, frozen=True):
    """The entity of a request's body. A key that the body does not contain is None."""

    partition_key: str | None = None
    row_key: str | None = None
    properties: Properties = {}


NO_DOCUMENT: Final = EntityDocument()


class WriteEntity(msgspec.Struct, frozen=True):
    """Input of every write.

    `match` is the Timestamp of If-Match; None = `*`, or no condition. `echo`: the answer to an
    insert contains the entity.
    """

    change: EntityChange
    document: EntityDocument = NO_DOCUMENT
    match: int | None = None
    echo: bool = True


class EntityWritten(msgspec.Struct, frozen=True):
    """Result of a write: the entity after it; `stored` None = it was deleted."""

    partition_key: str
    row_key: str
    stored: StoredEntity | None
    echo: bool


class PartFailed(Exception):
    """One write of a transaction was refused, so none was carried out."""

    def __init__(self, index: int, error: StorageError) -> None:
        super().__init__(f"{index}: {error}")
        self.index = index
        self.error = error


class _OtherChunkCount(Exception):
    """Entities to be merged have another number of chunks than was read."""

    def __init__(self, chunks: dict[int, int]) -> None:
        super().__init__()
        self.chunks = chunks


def keys_of(call: Call[WriteEntity]) -> tuple[str, str]:
    """Return PartitionKey and RowKey of the entity to write: the URL's, else the body's.

    Raises: StorageError PropertiesNeedValue, InvalidInput for a body that contradicts the URL; the
        errors of check_key; AuthorizationFailure for a key outside of the SAS.
    """
    document = call.input.document
    if call.target.entity is None:
        partition_key, row_key = entities.require_keys(document.partition_key, document.row_key)
    else:
        partition_key, row_key = call.target.entity
        for given, meant in ((document.partition_key, partition_key), (document.row_key, row_key)):
            if given is not None and given != meant:
                raise entities.invalid("The keys in the body are not those of the URL.")
    check_keys_in_range(call, partition_key, row_key)
    return partition_key, row_key


def check_keys_in_range(call: Call[Any], partition_key: str, row_key: str) -> None:
    """Check that the keys are valid, and within the key range of the caller's SAS.

    Raises: as entities.check_key; StorageError AuthorizationFailure.
    """
    entities.check_key("PartitionKey", partition_key)
    entities.check_key("RowKey", row_key)
    if call.caller.grant.key_range is not None and not call.caller.grant.key_range.contains(
        partition_key, row_key
    ):
        message = (
            f"{errors.AUTHORIZATION_FAILURE.message} The entity is outside of the key range of the "
            "shared access signature."
        )
        raise StorageError(errors.AUTHORIZATION_FAILURE, message)


async def write_entity(services: Services, call: Call[WriteEntity]) -> EntityWritten:
    """Insert, Update, Merge, Delete, Insert Or Replace or Insert Or Merge Entity, as a transaction
    of one write.

    Raises: StorageError TableNotFound, and what keys_of and entities.decide raise.
    """
    if call.place is None:
        raise StorageError(table_errors.TABLE_NOT_FOUND)  # also for an entity without keys
    try:
        return (await transact(services, [call]))[0]
    except PartFailed as failed:
        raise failed.error from None


async def transact(services: Services, calls: Sequence[Call[WriteEntity]]) -> list[EntityWritten]:
    """Write entities of one partition of one table: all of them, or none.

    Arguments:
        calls: each authorized; all name different entities of the same partition.

    Raises: PartFailed for the first that is refused.
    """
    transaction = _transaction([call.with_pure_authorization() for call in calls])
    while True:
        try:
            return await services.commit(transaction)
        except _OtherChunkCount as other_count:
            transaction = transaction.with_chunks(other_count.chunks)


def _transaction(calls: Sequence[Call[WriteEntity]]) -> _Transaction:
    """Return the decision on all writes. Raises: PartFailed for invalid keys."""
    pairs: list[tuple[str, str]] = []
    for index, call in enumerate(calls):
        try:
            pairs.append(keys_of(call))
            generation_of(call)
        except StorageError as error:
            raise PartFailed(index, error) from None
    generation = generation_of(calls[0])
    heads = [keys.entity(generation, *pair) for pair in pairs]
    purpose = min(call.rule.purpose for call in calls)
    reads = [place_ref(calls[0]), *heads]
    return _Transaction(heads[0].partition, reads, purpose, calls, pairs, heads, {})


class _Transaction(Decision[list[EntityWritten]], frozen=True):
    """The writes of one commit. It reads the table, the heads in order, then chunks.

    Arguments:
        calls: see transact.
        pairs: the keys of the entities, in order.
        heads: the keys of the entities' first records, in order.
        chunks: the number of chunks to read, by index, for entities that are to be merged.
    """

    calls: Sequence[Call[WriteEntity]]
    pairs: Sequence[tuple[str, str]]
    heads: Sequence[Ref]
    chunks: dict[int, int]

    def with_chunks(self, chunks: dict[int, int]) -> _Transaction:
        """Return the same transaction, which reads this many chunks of the entities."""
        reads = list(self.reads[: 1 + len(self.heads)])
        for index, count in chunks.items():
            reads.extend(_chunk_refs(self.heads[index], count))
        return msgspec.structs.replace(self, reads=reads, chunks=chunks)

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[list[EntityWritten]]:
        """See Decision.decide. Raises: PartFailed; _OtherChunkCount, after which it runs again
        `with_chunks`."""
        heads = found[1 : 1 + len(self.heads)]
        stored = self._stored(heads, iter(found[1 + len(self.heads) :]))
        results: list[EntityWritten] = []
        writes: list[Write] = []
        size_bytes = 0
        for index, call in enumerate(self.calls):
            try:
                check_place(call, found[0])
                after = self._after(index, stored[index], stamp)
                values = [] if after is None else entity_records.encode(after)
                size_bytes += sum(map(len, values))
                if size_bytes > COMMIT_BYTES_MAX - _COMMIT_RESERVE_BYTES:
                    raise entities.invalid("The entities are too large to be written at once.")
            except StorageError as error:
                raise PartFailed(index, error) from None
            writes.extend(_writes(self.heads[index], values, heads[index]))
            if len(writes) > COMMIT_WRITES_MAX:
                raise PartFailed(index, entities.invalid(_TOO_MANY_WRITES))
            results.append(EntityWritten(*self.pairs[index], after, call.input.echo))
        return Commit(results, (Step(self.heads[0].partition, tuple(writes)),))

    def _stored(
        self, heads: Sequence[Record | None], rest: Iterator[Record | None]
    ) -> list[StoredEntity | None]:
        """Return the entities before the writes. A large one is complete only if it is to be
        merged."""
        found: list[StoredEntity | None] = []
        needed: dict[int, int] = {}
        for index, record in enumerate(heads):
            wanted = self.chunks.get(index, 0)
            read = list(itertools.islice(rest, wanted)) if wanted else []
            if record is None:
                found.append(None)
                continue
            head = entity_records.head(record.value)
            count = head.chunks if self._merges(index) else 0
            if not count:
                found.append(StoredEntity(head.timestamp, head.fragment))
                continue
            needed[index] = count
            if len(read) == count:
                values = [chunk.value for chunk in read if chunk is not None]
                found.append(entity_records.whole(head, values))
            else:
                found.append(None)
        if needed and any(self.chunks.get(index) != count for index, count in needed.items()):
            raise _OtherChunkCount(needed)
        return found

    def _merges(self, index: int) -> bool:
        return self.calls[index].input.change in entities.MERGES

    def _after(self, index: int, stored: StoredEntity | None, stamp: int) -> StoredEntity | None:
        given = self.calls[index].input
        wanted = EntityWrite(given.change, given.document.properties, given.match)
        fragment = entities.decide(stored, wanted, *self.pairs[index])
        return None if fragment is None else StoredEntity(stamp, fragment)


def _writes(head: Ref, values: Sequence[bytes], before: Record | None) -> list[Write]:
    """Return the writes that replace the records of an entity."""
    chunks_before = 0 if before is None else entity_records.head(before.value).chunks
    found = [Write(head.key, values[0] if values else None)]
    for index in range(max(len(values) - 1, chunks_before)):
        value = values[index + 1] if index + 1 < len(values) else None
        found.append(Write(keys.entity_chunk(head.key.name, index), value))
    return found


def _chunk_refs(head: Ref, count: int) -> list[Ref]:
    chunk = keys.entity_chunk
    return [Ref(head.partition, chunk(head.key.name, index)) for index in range(count)]


async def get_entity(services: Services, call: Call[Any]) -> Entity:
    """Query Entities by both keys: return the entity in one committed state.

    Raises: StorageError TableNotFound, ResourceNotFound, and what check_keys_in_range raises.
    """
    assert call.target.entity is not None
    check_keys_in_range(call, *call.target.entity)
    ref = keys.entity(generation_of(call), *call.target.entity)
    stored = await read_entity(services, ref)
    if stored is None:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    return Entity(*call.target.entity, stored.timestamp, stored.fragment)


async def read_entity(services: Services, ref: Ref) -> StoredEntity | None:
    """Return the committed entity whose head is at `ref`, all of it from one state."""
    refs = [ref]
    while True:
        record, *rest = await services.store.read(refs)
        if record is None:
            return None
        head = entity_records.head(record.value)
        if head.chunks == len(rest):
            chunks = [chunk.value for chunk in rest if chunk is not None]
            return entity_records.whole(head, chunks)
        refs = [ref, *_chunk_refs(ref, head.chunks)]
