"""The end of the segments of a directory that no server has open: where a copy appends bodies.

Lives here: one open segment, and the files of a copy that was cut. Must not live here: the segments
of a served store (bodies/segments.py), rows (transfer_target.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from strongroom.engines.embedded.disk.directory import DirectoryLayout
from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.records.sqlite import SegmentRow


class SegmentTail:
    """The segment that is written.

    Arguments:
        segment_bytes: a segment of this length or more gets no further body.

    Attributes:
        end: where the next body begins.
    """

    def __init__(self, layout: DirectoryLayout, files: Files, segment_bytes: int) -> None:
        self._layout = layout
        self._files = files
        self._segment_bytes = segment_bytes
        self._id = 0
        self._descriptor: int | None = None
        self._sealed: list[int] = []
        self.end = 0

    def resume(self, rows: Sequence[SegmentRow]) -> None:
        """Go on in the last segment, and remove what no row names."""
        known = {row.id for row in rows}
        for segment in self._layout.segment_ids():
            if segment not in known:
                self._files.unlink(self._layout.segment(segment))
        for row in rows:
            if not row.sealed:
                self._id, self.end = row.id, row.reach_bytes
                self._descriptor = self._files.reopen(self._layout.segment(row.id))
                self._files.truncate(self._descriptor, self.end)

    def ready(self, content_id: int) -> tuple[int, int]:
        """Return the segment and the offset of the next body.

        Arguments:
            content_id: of that body; a new segment gets this number, which no other has.
        """
        if self._descriptor is not None and self.end >= self._segment_bytes:
            self._sealed.append(self._id)
            self.close()
        if self._descriptor is None:
            self._descriptor = self._files.create(self._layout.segment(content_id))
            self._files.sync_directory(self._layout.segments)
            self._id, self.end = content_id, 0
        return self._id, self.end

    def append(self, data: bytes) -> None:
        assert self._descriptor is not None
        self._files.write_at(self._descriptor, data, self.end)
        self.end += len(data)

    def sync(self) -> None:
        assert self._descriptor is not None
        self._files.sync(self._descriptor)

    def take_sealed(self) -> Sequence[int]:
        """The segments that are full. Return each once."""
        sealed, self._sealed = self._sealed, []
        return sealed

    def close(self) -> None:
        """Idempotent."""
        if self._descriptor is not None:
            self._files.close(self._descriptor)
            self._descriptor = None
