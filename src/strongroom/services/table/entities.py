"""Entities: written in transactions of one or many, read one at a time.

Lives here: the one commit behind every write of entities, and the point query. Source: "Performing
entity group transactions", "Insert Entity" and the pages of the other writes; reference sections 5
and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from strongroom.engines.base import COMMIT_BYTES_MAX, COMMIT_WRITES_MAX, Commit, Ref, Step, Write
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.table import entities
from strongroom.semantics.table.entities import EntityChange, EntityWrite, Properties, StoredEntity
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import UNDECODED, Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.places import check_place, generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import TableRecord
from strongroom.store.table import entity_records
from strongroom.store.table.entity_records import EntityHead
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
    """The input of every write.

    `match` is the Timestamp of If-Match; None = `*`, or no condition. `echo`: the answer to an
    insert contains the entity.
    """

    change: EntityChange
    document: EntityDocument = NO_DOCUMENT
    match: int | None = None
    echo: bool = True


class EntityWritten(msgspec.Struct, frozen=True):
    """The entity after the write; `stored` None = it was deleted."""

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
    """PartitionKey and RowKey of the entity to write: the URL's, else the body's."""
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
    """They must be valid, and within the key range of the caller's SAS."""
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
    """Any single write, as a transaction of one."""
    if call.place is None:
        raise StorageError(errors.TABLE_NOT_FOUND)  # also for an entity without keys
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
    """Raises: PartFailed for invalid keys."""
    pairs: list[tuple[str, str]] = []
    for index, call in enumerate(calls):
        try:
            pairs.append(keys_of(call))
            generation_of(call)
        except StorageError as error:
            raise PartFailed(index, error) from None
    generation, reads = generation_of(calls[0]), Reads()
    table = reads.add(place_ref(calls[0]), records.TABLE)
    refs = [keys.entity(generation, *pair) for pair in pairs]
    heads = reads.add_all(refs, entity_records.HEAD)
    purpose = min(call.rule.purpose for call in calls)
    return _Transaction(refs[0].partition, reads.refs, purpose, calls, pairs, table, heads, {})


class _Transaction(Decision[list[EntityWritten]], frozen=True):
    """The writes of one commit.

    Arguments:
        pairs: the keys of the entities, in order.
        heads: the entities' first records, in order.
        chunks: the further records, by index, of entities that are to be merged.
    """

    calls: Sequence[Call[WriteEntity]]
    pairs: Sequence[tuple[str, str]]
    table: ReadOne[TableRecord]
    heads: ReadAll[EntityHead]
    chunks: dict[int, ReadAll[bytes]]

    def with_chunks(self, counts: dict[int, int]) -> _Transaction:
        reads = Reads((self.table.ref, *self.heads.refs))
        chunks = {
            index: reads.add_all(_chunk_refs(self.heads.refs[index], count), UNDECODED)
            for index, count in counts.items()
        }
        return msgspec.structs.replace(self, reads=reads.refs, chunks=chunks)

    def decide(self, found: Found, stamp: int) -> Commit[list[EntityWritten]]:
        """Raises: PartFailed; _OtherChunkCount, after which it runs again `with_chunks`."""
        heads, stored = found[self.heads], self._stored(found)
        parts = zip(self.calls, self.heads.refs, heads, stored, strict=True)
        results: list[EntityWritten] = []
        writes: list[Write] = []
        size_bytes = 0
        for index, (call, ref, head, before) in enumerate(parts):
            try:
                check_place(call, found.record(self.table))
                after = self._after(index, before, stamp)
                values = [] if after is None else entity_records.encode(after)
                size_bytes += sum(map(len, values))
                if size_bytes > COMMIT_BYTES_MAX - _COMMIT_RESERVE_BYTES:
                    raise entities.invalid("The entities are too large to be written at once.")
            except StorageError as error:
                raise PartFailed(index, error) from None
            writes.extend(_writes(ref, values, head))
            if len(writes) > COMMIT_WRITES_MAX:
                raise PartFailed(index, entities.invalid(_TOO_MANY_WRITES))
            results.append(EntityWritten(*self.pairs[index], after, call.input.echo))
        return Commit(results, (Step(self.partition, tuple(writes)),))

    def _stored(self, found: Found) -> list[StoredEntity | None]:
        """Return the entities before the writes. A large one is complete only if it is to be
        merged. Raises: _OtherChunkCount."""
        stored: list[StoredEntity | None] = []
        needed: dict[int, int] = {}
        for index, head in enumerate(found[self.heads]):
            if head is None:
                stored.append(None)
                continue
            if not head.chunks or not self._merges(index):
                stored.append(StoredEntity(head.timestamp, head.fragment))
                continue
            needed[index] = head.chunks
            chunks = found[self.chunks[index]] if index in self.chunks else ()
            if len(chunks) == head.chunks:
                values = [chunk for chunk in chunks if chunk is not None]
                stored.append(entity_records.whole(head, values))
        if any(self._chunk_count(index) != count for index, count in needed.items()):
            raise _OtherChunkCount(needed)
        return stored

    def _chunk_count(self, index: int) -> int:
        chunks = self.chunks.get(index)
        return 0 if chunks is None else len(chunks.refs)

    def _merges(self, index: int) -> bool:
        return self.calls[index].input.change in entities.MERGES

    def _after(self, index: int, stored: StoredEntity | None, stamp: int) -> StoredEntity | None:
        request = self.calls[index].input
        write = EntityWrite(request.change, request.document.properties, request.match)
        fragment = entities.decide(stored, write, *self.pairs[index])
        return None if fragment is None else StoredEntity(stamp, fragment)


def _writes(head: Ref, values: Sequence[bytes], before: EntityHead | None) -> list[Write]:
    chunks_before = 0 if before is None else before.chunks
    writes = [Write(head.key, values[0] if values else None)]
    for index in range(max(len(values) - 1, chunks_before)):
        value = values[index + 1] if index + 1 < len(values) else None
        writes.append(Write(keys.entity_chunk(head.key.name, index), value))
    return writes


def _chunk_refs(head: Ref, count: int) -> list[Ref]:
    chunk = keys.entity_chunk
    return [Ref(head.partition, chunk(head.key.name, index)) for index in range(count)]


async def get_entity(services: Services, call: Call[Any]) -> Entity:
    """In one committed state."""
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
