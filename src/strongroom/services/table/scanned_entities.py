"""The entities of a page of records, in parts; what was made of a page is remembered with it.

Lives here: from records to entities, and which of them match. Must not live here: which pages are
read, and when an answer is full (query_entities.py). An engine may answer with the very page that
it has answered with before (page_cache.py of the embedded engine). Such a page is not taken apart
again. What was made of it goes when the page goes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

from strongroom.engines.base import Page, Position
from strongroom.semantics.table.table_predicate import Candidates, Predicate
from strongroom.store.core import keys
from strongroom.store.table import entity_records
from strongroom.values import Entity

# Others get a turn after so many have been judged: a filter may be a hundred comparisons.
_JUDGED_AT_ONCE: Final = 1000
_PREDICATES_REMEMBERED: Final = 4


class Entities:
    """Entities that are judged in one go."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._rows: dict[int, Entity] = {}
        # What is remembered for a predicate goes with it: there are a few hundred at most.
        self._chosen: WeakKeyDictionary[Predicate, list[int]] = WeakKeyDictionary()

    def matching(self, predicate: Predicate | None, most: int) -> list[Entity]:
        """The first `most` of those that match, in their order."""
        everything = range(len(self._candidates.fragments))
        chosen = everything if predicate is None else self._choose(predicate, everything)
        known = self._rows
        return [known.get(at) or self._row(at) for at in itertools.islice(chosen, most)]

    def _choose(self, predicate: Predicate, everything: range) -> Sequence[int]:
        """Which match. Equal filters are one predicate as long as they are asked for."""
        chosen = self._chosen.get(predicate)
        if chosen is None:
            if len(self._chosen) >= _PREDICATES_REMEMBERED:
                self._chosen.clear()
            chosen = list(itertools.compress(everything, predicate.select(self._candidates)))
            self._chosen[predicate] = chosen
        return chosen

    def _row(self, at: int) -> Entity:
        found = self._candidates
        partition, row = found.partition_keys[at].decode(), found.row_keys[at].decode()
        made = Entity(partition, row, found.timestamps[at], found.fragments[at])
        self._rows[at] = made
        return made


class Scanned:
    """What a page of records holds.

    Attributes:
        parts: its entities with all their chunks.
        last_partition: of the last of them; None when there is none.
        resume: where to go on: at an entity of which only the beginning was in the page.
        records, size_bytes: how much the page itself is.
    """

    def __init__(self, page: Page) -> None:
        candidates, self.resume = _whole_entities(page)
        partitions = candidates.partition_keys
        self.last_partition = partitions[-1] if partitions else None
        self.parts = [Entities(part) for part in candidates.parts(_JUDGED_AT_ONCE)]
        self.records = len(page.values)
        self.size_bytes = sum(map(len, page.values))


_scanned: Final[WeakKeyDictionary[Page, Scanned]] = WeakKeyDictionary()


def scanned(page: Page) -> Scanned:
    """What a page holds. Raises CorruptRecord."""
    found = _scanned.get(page)
    if found is None:
        found = _scanned[page] = Scanned(page)
    return found


def _whole_entities(page: Page) -> tuple[Candidates, Position | None]:
    if not page.values:
        return Candidates.of(()), page.resume
    if not keys.any_entity_chunk(page.keys):
        columns = entity_records.small(page.values)
        if columns is not None:
            return Candidates(page.partitions, page.keys, *columns), page.resume
    found: list[tuple[bytes, bytes, int, bytes]] = []
    faces = page.faces()
    for at, (partition, key, value, _) in enumerate(faces):
        # A reader who begins inside of an entity does not see it.
        if keys.is_entity_chunk(key):
            continue
        head = entity_records.head(value)
        timestamp, chunks, fragment = head
        if chunks:
            rest = [face.value for face in faces[at + 1 : at + 1 + chunks]]
            if len(rest) < chunks and page.resume is not None:
                return Candidates.of(found), Position(partition, key)
            fragment = entity_records.whole(head, rest).fragment
        found.append((partition, key, timestamp, fragment))
    return Candidates.of(found), page.resume
