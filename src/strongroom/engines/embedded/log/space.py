"""Preallocated space in SQLite's log.

Lives here: when the log's file is extended, and by how much. Source: "WAL-mode File Format",
section "The WAL File Format".

A sync that overwrites costs two thirds of one that extends a file, because the file system must
store the new length. So the file grows by a MiB of zeros at a time, until it has the length that it
reaches between two checkpoints. SQLite stops reading a log at a frame whose salts are not the
log's, so it never takes zeros for a frame.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES

_log = logging.getLogger(__name__)

STEP_BYTES: Final = 1024 * 1024
_AHEAD_BYTES: Final = STEP_BYTES // 4
_FRAME_BYTES: Final = PAGE_BYTES + 24
# The free space below this is left for data.
_FREE_BYTES_MIN: Final = 64 * STEP_BYTES


def is_scarce(files: Files, path: str) -> bool:
    """Return whether the disk of `path` has so little free space that a log is neither preallocated
    nor truncated. Raises OSError."""
    return files.free_bytes(path) < _FREE_BYTES_MIN


class LogSpace:
    """The length of one log's file.

    Arguments:
        path: the path of the log.
        most_pages: the length, in pages, up to which the file is extended.
    """

    def __init__(self, files: Files, path: str, most_pages: int) -> None:
        self._files = files
        self._path = path
        self._most_bytes = most_pages * _FRAME_BYTES
        self._end_bytes = 0

    def needs_extension(self, pages: int) -> bool:
        used_bytes = pages * _FRAME_BYTES
        return self._end_bytes < min(used_bytes + _AHEAD_BYTES, self._most_bytes)

    def extend(self) -> None:
        """A failure is harmless.

        Call it while no transaction is open. Nothing is synced: the next commit does that.
        """
        try:
            self._end_bytes = self._extended_bytes()
        except OSError as error:
            _log.debug("the log is not made longer ahead of its use: %s", error)
            self._end_bytes = self._most_bytes

    def _extended_bytes(self) -> int:
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
        """The file has been truncated to zero bytes."""
        self._end_bytes = 0
