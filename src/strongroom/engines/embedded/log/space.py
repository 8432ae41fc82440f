"""Room in SQLite's log ahead of its use.

Lives here: when the log's file is made longer, and by how much. Must not live here: what stands in
it, checkpoints. Source: "WAL-mode File Format", section "The WAL File Format".

A sync that overwrites costs two thirds of one that makes a file longer, because the file system
must store the new length. So the file grows by a MiB of zeros at a time, until it is as long as it
becomes between two checkpoints. SQLite ends its reading of a log where a frame's salts are not the
log's: zeros are never taken for a frame.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from strongroom.engines.embedded.files import Files
from strongroom.engines.embedded.records.checksummed_pages import PAGE_BYTES

_log = logging.getLogger(__name__)

STEP_BYTES: Final = 1024 * 1024
_AHEAD_BYTES: Final = STEP_BYTES // 4
_FRAME_BYTES: Final = PAGE_BYTES + 24
# What is left on the disk is for data.
_FREE_BYTES_MIN: Final = 64 * STEP_BYTES


def is_scarce(files: Files, path: str) -> bool:
    """Whether the disk of `path` has so little free space that a log is neither preallocated nor
    truncated. Raises OSError."""
    return files.free_bytes(path) < _FREE_BYTES_MIN


class LogSpace:
    """The length of one log's file.

    Arguments:
        path: of the log.
        most_pages: as far as it is worth it.
    """

    def __init__(self, files: Files, path: str, most_pages: int) -> None:
        self._files = files
        self._path = path
        self._most_bytes = most_pages * _FRAME_BYTES
        self._end_bytes = 0

    def is_short(self, pages: int) -> bool:
        """Whether the file should be made longer, now that the log has so many pages."""
        used_bytes = pages * _FRAME_BYTES
        return self._end_bytes < min(used_bytes + _AHEAD_BYTES, self._most_bytes)

    def lengthen(self) -> None:
        """Make it longer, if that is possible: zeros that cannot be written are no loss.

        While no transaction is open. Nothing is synced: the next commit does that.
        """
        try:
            self._end_bytes = self._lengthened_bytes()
        except OSError as error:
            _log.debug("the log is not made longer ahead of its use: %s", error)
            self._end_bytes = self._most_bytes

    def _lengthened_bytes(self) -> int:
        files = self._files
        if is_scarce(files, self._path):
            return self._most_bytes
        descriptor = files.reopen(self._path)
        try:
            end_bytes = os.fstat(descriptor).st_size
            if end_bytes >= self._most_bytes:
                return end_bytes
            files.write_at(descriptor, bytes(STEP_BYTES), end_bytes)
            return end_bytes + STEP_BYTES
        finally:
            files.close(descriptor)

    def emptied(self) -> None:
        """The file has been cut to nothing."""
        self._end_bytes = 0
