"""The segments that are open: the one that small bodies share, and those that wait for a body.

Lives here: which one the next body gets, and new segment files. Must not live here: the rooms in a
segment, and when it is sealed (segments.py).
"""

from __future__ import annotations

from collections.abc import Callable

from strongroom.engines.embedded.bodies.dead_space import IDLE_MAX
from strongroom.engines.embedded.bodies.failures import Failures
from strongroom.engines.embedded.bodies.handles import Handles
from strongroom.engines.embedded.bodies.segment import Segment
from strongroom.engines.embedded.disk.directory import DirectoryLayout


class OpenSegments:
    """The open segments of one store. Used on the event loop.

    Arguments:
        by_id: all segments; new ones are added to it.
        new_id: returns unique, rising ids.

    Attributes:
        idle: those that wait for the next body and keep their descriptors.
    """

    def __init__(
        self,
        by_id: dict[int, Segment],
        layout: DirectoryLayout,
        handles: Handles,
        failures: Failures,
        new_id: Callable[[], int],
    ) -> None:
        self.idle: list[Segment] = []
        self._by_id = by_id
        self._layout = layout
        self._handles = handles
        self._failures = failures
        self._new_id = new_id
        self._shared: Segment | None = None

    def shared(self) -> Segment:
        self._shared = self._shared or self.take()
        return self._shared

    def take(self) -> Segment:
        """A segment that nobody else gets before it is idle again.

        Raises: Full, Busy, Unavailable.
        """
        if self.idle:
            return self.idle.pop()
        segment_id = self._new_id()
        path = self._layout.segment(segment_id)
        files = self._handles.files
        try:
            # Each writer opens the file in its own mode, so that many uploads need one descriptor
            # each.
            files.close(files.create(path))
        except OSError as error:
            raise self._failures.of_write(error) from error
        segment = self._by_id[segment_id] = Segment(segment_id, path)
        return segment

    def remove(self, segment: Segment) -> None:
        """It gets no more bodies."""
        if self._shared is segment:
            self._shared = None
        if segment in self.idle:
            self.idle.remove(segment)

    def is_crowded(self, segment: Segment) -> bool:
        return len(self.idle) > IDLE_MAX and segment in self.idle

    def rest(self, segment: Segment) -> None:
        """Close the descriptors of a segment, if too many are idle: many uploads would else leave
        many of them open."""
        if not (segment.busy or segment.sealed) and self.is_crowded(segment):
            self._handles.close_writing(segment)
