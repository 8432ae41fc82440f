"""Contents that are durable and that no commit has adopted yet.

Lives here: the end of each: adopted by a commit, or deleted. Must not live here: where its bytes
are stored (segments.py), the transaction that adopts it (serial_point.py).

A content is never deleted while a transaction that adopts it is in progress. `discard` waits for
its outcome.
"""

from __future__ import annotations

from collections.abc import Sequence

from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.records.sqlite import Location


class Unadopted:
    """A content keeps its segment busy until a commit adopts it (see serial_point.Bodies)."""

    def __init__(self, segments: SegmentStore) -> None:
        self._segments = segments
        self._written: dict[int, Location] = {}
        self._adopting: set[int] = set()
        self._discarded: set[int] = set()

    def keep(self, content_id: int, location: Location) -> None:
        """The content takes over a reservation in its segment."""
        self._written[content_id] = location

    def discard(self, content_id: int) -> None:
        if content_id in self._adopting:
            self._discarded.add(content_id)
            return
        location = self._written.pop(content_id, None)
        if location is not None:
            self._segments.release(self._segments.by_id[location.segment])

    def location(self, content_id: int) -> Location | None:
        return self._written.get(content_id)

    def begin_adoption(self, content_id: int) -> None:
        self._adopting.add(content_id)

    def adoption_committed(self, adopted: Sequence[int], live: Sequence[tuple[int, int]]) -> None:
        if live:
            self._segments.count_live(live)
        for content_id in adopted:
            self._adopting.discard(content_id)
            self._discarded.discard(content_id)
            location = self._written.pop(content_id)
            self._segments.release(self._segments.by_id[location.segment])

    def adoption_rolled_back(self, adopted: Sequence[int]) -> None:
        self._adopting.difference_update(adopted)
        for content_id in adopted:
            if content_id in self._discarded:
                self._discarded.discard(content_id)
                self.discard(content_id)
