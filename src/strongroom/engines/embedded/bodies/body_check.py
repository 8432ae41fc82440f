"""The check of a segment and of the contents in it, piece by piece.

Lives here: what `doctor` and the scrub check of a segment. Must not live here: which of them is
checked when (check.py, scrub/), rows (records/sqlite.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, Final

from strongroom.engines.checksum import crc64
from strongroom.engines.embedded.records.segment_sums import SegmentSum
from strongroom.engines.embedded.records.sqlite import Location
from strongroom.platform.files import forget_cached, pread

CHECKSUM_DIFFERS: Final = "its checksum differs"
FILE_MISSING: Final = "the file is missing"


def size_of(path: str) -> int | None:
    """Return the length of a segment's file; None = it is missing. Raises OSError."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return None


def segment_problems(found: SegmentSum, size_bytes: int | None) -> Iterator[str]:
    """Yield what is wrong with a segment, apart from the bytes of its contents.

    Arguments:
        found: what the records say of it.
        size_bytes: the length of its file; None = it is missing.
    """
    if found.live_bytes != found.noted_bytes:
        yield f"{found.live_bytes} bytes are alive, but {found.noted_bytes} are noted"
    if size_bytes is None:
        if found.end:
            yield FILE_MISSING
    elif size_bytes < found.end:
        yield f"{size_bytes} bytes long, but contents reach to {found.end}"


class BodyCheck:
    """The check of one content, which reads it once, in order.

    Arguments:
        reads_disk: whether the bytes are dropped from memory before and after they are read. So
            those on the disk are checked, and they displace no others.
    """

    def __init__(self, location: Location, *, reads_disk: bool = False) -> None:
        self._location = location
        self._reads_disk = reads_disk
        self._done_bytes = self._checksum = 0

    @property
    def left_bytes(self) -> int:
        return self._location.length - self._done_bytes

    def read(self, file: BinaryIO, max_bytes: int) -> int:
        """Read on. Return how many bytes; 0 = there are no more. Raises OSError."""
        offset = self._location.offset + self._done_bytes
        count = min(max_bytes, self.left_bytes)
        if self._reads_disk:
            forget_cached(file.fileno(), offset, count)
        data = pread(file.fileno(), count, offset) if count else b""
        if self._reads_disk:
            forget_cached(file.fileno(), offset, count)
        self._checksum = crc64(data, self._checksum)
        self._done_bytes += len(data)
        return len(data)

    def problem(self) -> str | None:
        """Once all of it has been read; None = nothing is wrong."""
        is_right = not self.left_bytes and self._checksum == self._location.crc64
        return None if is_right else CHECKSUM_DIFFERS
