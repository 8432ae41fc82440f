"""The segments of a backup or a restore: linked, taken from an earlier backup, or copied.

Lives here: how each segment gets into a copy. Must not live here: which segments a snapshot names
(backup.py), whether their bytes are whole (check.py).

Bytes of a segment never change once a record names them: nothing is written there again, and its id
is never given again. Only what no record names is cut off its end (bodies/cuts.py). So a file of an
earlier backup that is long enough has the same bytes. It becomes a hard link. No command writes to
the segments of a complete backup, so neither of the two backups can change the other. They share
the bytes on the disk, and so a damage of these. Whoever reuses them has to verify them, and
`copy_anew` replaces them by the source's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from strongroom.engines.embedded.disk.directory import DirectoryLayout
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.records.segment_sums import SegmentSum
from strongroom.platform.files import sync_file

Progress = Callable[[int, int], None]
"""progress(bytes copied, total bytes)."""

_PIECE_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CopiedSegments:
    """How the segments of a backup got there.

    Attributes:
        reused: the end of each segment that is a link to an earlier backup's, by its id.
        linked_bytes: of links to the data directory's own files.
    """

    reused: Mapping[int, int] = field(default_factory=dict)
    linked_bytes: int = 0
    copied_bytes: int = 0


def copy_segments(
    home: DirectoryLayout,
    copy: DirectoryLayout,
    base: DirectoryLayout | None,
    segments: list[SegmentSum],
    progress: Progress | None,
) -> CopiedSegments:
    """Bring the segments of a snapshot into a copy.

    Arguments:
        base: an earlier backup of the same directory; None = there is none.

    Raises: OSError.
    """
    total = sum(one.end for one in segments)
    reused: dict[int, int] = {}
    linked_bytes = copied_bytes = 0
    done = 0
    for one in segments:
        if one.end:
            target = copy.segment(one.id)
            if one.sealed and _is_linked(home.segment(one.id), target, one.end):
                linked_bytes += one.end
            elif base is not None and _is_linked(base.segment(one.id), target, one.end):
                reused[one.id] = one.end
            else:
                copy_file(home.segment(one.id), target, one.end)
                copied_bytes += one.end
        done += one.end
        if progress is not None:
            progress(done, total)
    return CopiedSegments(reused, linked_bytes, copied_bytes)


def copy_anew(
    home: DirectoryLayout, copy: DirectoryLayout, copied: CopiedSegments
) -> CopiedSegments:
    """Replace all segments that are links to an earlier backup's. Raises: OSError."""
    for segment_id, end in copied.reused.items():
        os.unlink(copy.segment(segment_id))
        copy_file(home.segment(segment_id), copy.segment(segment_id), end)
    more_bytes = sum(copied.reused.values())
    return CopiedSegments({}, copied.linked_bytes, copied.copied_bytes + more_bytes)


def copy_file(source: str, target: str, size_bytes: int) -> None:
    """Copy the first bytes of a file to a new one, durably but for its name. Raises: OSError."""
    descriptor = OsFiles().create(target)
    with os.fdopen(descriptor, "wb") as writing, open(source, "rb") as reading:
        left = size_bytes
        while left:
            piece = reading.read(min(_PIECE_BYTES, left))
            if not piece:
                raise OSError(f"{source} is shorter than its records say")
            writing.write(piece)
            left -= len(piece)
        writing.flush()
        sync_file(writing.fileno())


def _is_linked(source: str, target: str, end: int) -> bool:
    """Make a link to a regular file that is long enough; return whether there is one now."""
    try:
        if os.path.islink(source) or os.path.getsize(source) < end:
            return False
        os.link(source, target)
    except OSError:  # missing, on another file system, or on one without links
        return False
    return True
