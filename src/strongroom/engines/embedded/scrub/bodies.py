"""The check of segments and contents, one piece at a time, on the scrub's thread.

Lives here: how contents are read, and what one piece has. Must not live here: the second look at
what seems to be damaged (pieces.py), pauses (scrub.py), the checks (bodies/body_check.py).

Nothing keeps a segment from being removed meanwhile: each piece opens the file and closes it again,
so that no removed file keeps its space. So what is missing here may only have moved.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from strongroom.engines.embedded.bodies.body_check import (
    FILE_MISSING,
    BodyCheck,
    segment_problems,
    size_of,
)
from strongroom.engines.embedded.records.scrub_reader import ScrubReader
from strongroom.engines.embedded.records.sqlite import Location
from strongroom.engines.embedded.scrub.pace import PIECE_BYTES
from strongroom.platform.files import open_reader

Row = tuple[int, Location]
"""A content's id, and its location."""

ROWS_MAX: Final = 64
# These errors are those of a process or of its user, not of the disk.
_NO_DAMAGE: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM, errno.EINTR}
)


@dataclass(frozen=True, slots=True)
class ReadBodies:
    """What a piece has read.

    Attributes:
        sound: the contents that were checked and are right.
        doubtful: what is wrong with those that are not, or whose bytes were not found.
    """

    read_bytes: int = 0
    sound: Sequence[int] = ()
    doubtful: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class BodyReading:
    """The contents of a segment that are being checked.

    Arguments:
        path: the segment's file.
        rows: the contents, in the order of their ids.
    """

    path: str
    rows: list[Row]
    _current: BodyCheck | None = field(default=None)

    def read_piece(self) -> ReadBodies:
        """The next contents, or a part of a large one. There must be rows. Raises OSError: this
        process cannot read the file at present."""
        read_bytes = 0
        sound: list[int] = []
        doubtful: dict[int, str] = {}
        try:
            with open_reader(self.path) as file:
                while self.rows and read_bytes < PIECE_BYTES:
                    content_id, location = self.rows[0]
                    self._current = self._current or BodyCheck(location, reads_disk=True)
                    count = self._current.read(file, PIECE_BYTES - read_bytes)
                    read_bytes += count
                    if count and self._current.left_bytes:
                        continue
                    problem = self._current.problem()
                    if problem is None:
                        sound.append(content_id)
                    else:
                        doubtful[content_id] = problem
                    self._next()
        except OSError as error:
            if error.errno in _NO_DAMAGE:
                raise
            is_missing = isinstance(error, FileNotFoundError)
            reason = FILE_MISSING if is_missing else f"it cannot be read: {error.strerror}"
            doubtful[self.rows[0][0]] = reason
            self._next()
        return ReadBodies(read_bytes, sound, doubtful)

    def _next(self) -> None:
        self._current = None
        del self.rows[0]


def problem_of_segment(reader: ScrubReader, segment: int, path: str) -> str | None:
    """Return what is wrong with a segment, apart from the bytes of its contents; None = nothing.

    The order makes it right beside writes. Bytes are in the file before their rows are, so the rows
    are read before the length of the file. A file is removed only after its rows. So if it is
    missing, they are read again.

    Raises: OSError, apsw.Error.
    """
    noted = reader.segment_sum(segment)
    size_bytes = size_of(path)
    if size_bytes is None:
        noted = reader.segment_sum(segment)
    return "; ".join(segment_problems(noted, size_bytes)) or None
