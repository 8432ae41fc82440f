"""The check of SQLite's log while commits go on.

Lives here: which frames must be whole, and how they are read beside the commits. Must not live
here: their layout (wal_format.py), the check of a log that nobody writes (check.py).

A frame that belongs to a commit stays as it is until the log starts anew. Then SQLite writes
another header, and only after that any frame. So if the header is the same after some frames were
read, none of them was being overwritten meanwhile. SQLite itself compares the checksums of frames
only when it opens the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from strongroom.engines.embedded.log.wal_format import (
    FRAME_HEAD_BYTES,
    HEADER_BYTES,
    LogHeader,
    frame_sum,
    parse_frame,
    parse_header,
)
from strongroom.platform.files import open_reader, pread


@dataclass(frozen=True, slots=True)
class LogMoment:
    """The log between two commits.

    Arguments:
        header: its first bytes; empty if there is no log.
        frames: how many of its frames belong to commits.
    """

    header: bytes
    frames: int


def log_moment(path: str, frames: int) -> LogMoment:
    """Return the state of the log. Call it while no transaction is open. Raises OSError."""
    if not frames:
        return LogMoment(b"", 0)
    with open_reader(path) as file:
        return LogMoment(pread(file.fileno(), HEADER_BYTES, 0), frames)


class LiveLogCheck:
    """The check of the frames that a log had at one moment, some at a time.

    Attributes:
        problem: what is wrong; None = nothing so far.
        is_done: whether there is nothing more to read. All frames are checked, or one is damaged,
            or the log has started anew. It does that when all of it is in the database.
    """

    def __init__(self, path: str, moment: LogMoment) -> None:
        self._path = path
        self._moment = moment
        self._header = parse_header(moment.header)
        self._seed = (0, 0) if self._header is None else self._header.sum
        self._number = 0
        self.problem: str | None = None
        self.is_done = moment.frames == 0
        if moment.frames and self._header is None:
            self._refuse("its header is damaged")

    def read(self, count: int) -> int:
        """The next frames, at most `count`. Return how many bytes were read. Raises OSError."""
        if self.is_done or self._header is None:
            return 0
        with open_reader(self._path) as file:
            wrong, read_bytes = self._first_wrong(file, self._header, count)
            if pread(file.fileno(), HEADER_BYTES, 0) != self._moment.header:
                self.is_done = True
            elif wrong is not None:
                self._refuse(f"frame {wrong} of {self._moment.frames} is damaged")
            elif self._number == self._moment.frames:
                self.is_done = True
        return read_bytes

    def _first_wrong(self, file: BinaryIO, header: LogHeader, count: int) -> tuple[int | None, int]:
        """The first wrong one of the next frames, and how many bytes were read."""
        size_bytes = FRAME_HEAD_BYTES + header.page_bytes
        last = min(self._number + count, self._moment.frames)
        offset = HEADER_BYTES + self._number * size_bytes
        data = pread(file.fileno(), (last - self._number) * size_bytes, offset)
        for start in range(0, (last - self._number) * size_bytes, size_bytes):
            one = data[start : start + size_bytes]
            if len(one) < size_bytes:
                return self._number + 1, len(data)
            frame = parse_frame(self._number + 1, one)
            right = frame_sum(header.order, self._seed, one)
            if frame.salts != header.salts or frame.sum != right:
                return frame.number, len(data)
            self._number, self._seed = frame.number, right
        return None, len(data)

    def _refuse(self, problem: str) -> None:
        self.problem = problem
        self.is_done = True
