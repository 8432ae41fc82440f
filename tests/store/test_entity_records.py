"""The records of entities: whole ones, large ones, damaged ones."""

from __future__ import annotations

import pytest

from strongroom.engines.base import RECORD_BYTES_MAX
from strongroom.semantics.table.entities import StoredEntity
from strongroom.store.core.records import DamagedRecord
from strongroom.store.table import entity_records
from strongroom.store.table.entity_records import CHUNK_BYTES_MAX, CHUNKS_MAX, HEAD_BYTES_MAX

MOMENT = 635_000_000_000_000_007


@pytest.mark.parametrize(
    ("size_bytes", "chunks"),
    [
        (0, 0),
        (1, 0),
        (HEAD_BYTES_MAX, 0),
        (HEAD_BYTES_MAX + 1, 1),
        (HEAD_BYTES_MAX + CHUNK_BYTES_MAX, 1),
        (HEAD_BYTES_MAX + CHUNK_BYTES_MAX + 1, 2),
        (3 * 1024 * 1024, 51),
    ],
)
def test_an_entity_is_read_back_whole(size_bytes: int, chunks: int) -> None:
    stored = StoredEntity(MOMENT, bytes(index % 251 for index in range(size_bytes)))
    first, *rest = entity_records.encode(stored)
    assert len(rest) == chunks <= CHUNKS_MAX
    assert all(len(value) <= RECORD_BYTES_MAX for value in (first, *rest))
    head = entity_records.head(first)
    assert (head.timestamp, head.chunks) == (MOMENT, chunks)
    assert entity_records.whole(head, rest) == stored
    if rest:
        with pytest.raises(DamagedRecord, match="chunks"):
            entity_records.whole(head, rest[:-1])


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x02" + bytes(20), bytes(20)])
def test_what_is_no_head_is_damage(value: bytes) -> None:
    with pytest.raises(DamagedRecord):
        entity_records.head(value)
    (whole,) = entity_records.encode(StoredEntity(MOMENT, b'"A":1'))
    with pytest.raises(DamagedRecord):
        entity_records.small([whole, value, whole])


def test_small_entities_are_read_by_column() -> None:
    stored = [StoredEntity(MOMENT + number, b'"A":%d' % number) for number in (0, 7, 2**40)]
    values = [entity_records.encode(one)[0] for one in stored]
    timestamps, fragments = entity_records.small(values) or ((), [])
    assert list(timestamps) == [one.timestamp for one in stored]
    assert fragments == [one.fragment for one in stored]
    large, *_ = entity_records.encode(StoredEntity(MOMENT, bytes(HEAD_BYTES_MAX + 1)))
    assert entity_records.small([*values, large]) is None
