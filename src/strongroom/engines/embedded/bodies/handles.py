"""The open files of segments: how each is opened, and how many stay open.

Lives here: the three handles that a segment may have. Must not live here: what is written or synced
through them (body_writes.py, syncs.py), which body may be written where (segments.py).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import BinaryIO, Final

from strongroom.engines.base import Busy, Unavailable
from strongroom.engines.embedded.bodies.segment import Segment
from strongroom.engines.embedded.disk.files import Files, is_too_many_open_files
from strongroom.platform.files import open_reader

_READERS_MAX: Final = 64


class Handles:
    """The open files of all segments. Files for reading stay open for the next reader; the least
    recently used are closed first. Files for writing stay open until their segment is sealed or
    idle.

    Attributes:
        is_stopped: no more files are opened for writing, and the threads are about to end.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.is_stopped = False
        self._reading: OrderedDict[int, Segment] = OrderedDict()

    def writing(self, segment: Segment) -> int:
        if segment.descriptor is None:
            self.check_open()
            segment.descriptor = self.files.reopen(segment.path)
        return segment.descriptor

    def writing_past_cache(self, segment: Segment) -> int:
        """Return a descriptor like that of `writing`, only for aligned bytes at aligned offsets."""
        if segment.past_cache is None:
            self.check_open()
            segment.past_cache = self.files.open_past_cache(segment.path)
        return segment.past_cache

    def reading(self, segment: Segment) -> BinaryIO:
        """It stays open while the segment is pinned. Raises Busy, Unavailable."""
        if segment.reader is None:
            try:
                segment.reader = open_reader(segment.path)
            except OSError as error:
                kind = Busy if is_too_many_open_files(error) else Unavailable
                raise kind(f"segment {segment.id:016x} cannot be read: {error}") from error
            self._reading[segment.id] = segment
            self._close_unused()
        else:
            self._reading.move_to_end(segment.id)
        return segment.reader

    def _close_unused(self) -> None:
        if len(self._reading) <= _READERS_MAX:
            return
        for segment in [one for one in self._reading.values() if not one.pins][:-1]:
            if len(self._reading) > _READERS_MAX:
                self._close_reading(segment)

    def _close_reading(self, segment: Segment) -> None:
        if segment.reader is not None:
            segment.reader.close()
            segment.reader = None
            del self._reading[segment.id]

    def close_writing(self, segment: Segment) -> None:
        descriptors = (segment.descriptor, segment.past_cache)
        segment.descriptor = segment.past_cache = None
        for descriptor in descriptors:
            if descriptor is not None:
                self.files.close(descriptor)

    def close(self, segment: Segment) -> None:
        self._close_reading(segment)
        self.close_writing(segment)

    def stop(self) -> None:
        self.is_stopped = True

    def check_open(self) -> None:
        if self.is_stopped:
            raise Unavailable("the store is closed")
