"""The entities in a page of records, in parts.

Lives here: the conversion of records to entities.
"""

from __future__ import annotations

from typing import Final

from strongroom.engines.base import Page, Position
from strongroom.semantics.table.table_predicate import Candidates
from strongroom.store.core import keys
from strongroom.store.table import entity_records

# Other tasks run after this many entities were filtered: a filter may be a hundred comparisons.
_FILTERED_AT_ONCE: Final = 250


class Scanned:
    """The entities in a page of records. Raises: DamagedRecord.

    Attributes:
        parts: its entities with all their chunks.
        last_partition: the partition of the last entity; None when there is none.
        resume: where to continue: at an entity of which the page has only the beginning.
    """

    def __init__(self, page: Page) -> None:
        candidates, self.resume = _whole_entities(page)
        partitions = candidates.partition_keys
        self.last_partition = partitions[-1] if partitions else None
        self.parts = candidates.parts(_FILTERED_AT_ONCE)


def _whole_entities(page: Page) -> tuple[Candidates, Position | None]:
    if not page.values:
        return Candidates.of(()), page.resume
    if not keys.any_entity_chunk(page.keys):
        columns = entity_records.small(page.values)
        if columns is not None:
            return Candidates(page.partitions, page.keys, *columns), page.resume
    rows: list[tuple[bytes, bytes, int, bytes]] = []
    faces = page.faces()
    for at, (partition, key, value, _) in enumerate(faces):
        # A read that starts inside an entity skips the rest of its chunks.
        if keys.is_entity_chunk(key):
            continue
        head = entity_records.head(value)
        timestamp, chunks, fragment = head
        if chunks:
            rest = [face.value for face in faces[at + 1 : at + 1 + chunks]]
            if len(rest) < chunks and page.resume is not None:
                return Candidates.of(rows), Position(partition, key)
            fragment = entity_records.whole(head, rest).fragment
        rows.append((partition, key, timestamp, fragment))
    return Candidates.of(rows), page.resume
