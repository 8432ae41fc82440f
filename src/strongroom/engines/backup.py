"""Backups and restores of a data directory, beside a running server or without one.

Lives here: copying. Must not live here: judging what was copied (check.py). A backup is one moment:
a snapshot of the records, and the segments that it names. While it is made, the server deletes no
segment (the BACKUP lock); what it appends meanwhile lies behind what the snapshot names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from strongroom.engines.directory import (
    FileLock,
    Format,
    Layout,
    NotADataDirectory,
    UnknownFormat,
)
from strongroom.engines.files import OsFiles, write_file
from strongroom.engines.log_gate import refuse_damaged_idle_log
from strongroom.engines.records_sqlite import Reader

Progress = Callable[[int, int], None]
"""progress(bytes done, bytes in all)."""

_PIECE_BYTES: Final = 4 * 1024 * 1024

_StrPath = str | os.PathLike[str]


def backup(source: _StrPath, target: _StrPath, progress: Progress | None = None) -> None:
    """Copy the data directory `source` as it is now to `target`.

    Holds every write that was acknowledged before the call. Sealed segments are hard links where
    the file system allows it; everything else is copied. May be called from any process and thread.

    Arguments:
        target: a directory that does not exist or is empty.
        progress: told how many bytes of the segments are done.

    Raises: NotADataDirectory, UnknownFormat, FileExistsError, OSError, apsw.Error.
    """
    home = Layout(os.path.abspath(source))
    found = home.read_format()
    if found.backup:
        raise UnknownFormat(f"{home.path} is a backup already; copy it as it is")
    refuse_damaged_idle_log(home)
    copy, files = _begin(target), OsFiles()
    lock = FileLock(home.backup_lock)
    lock.acquire(shared=True, wait=True)
    try:
        reader = Reader(home.records, None, scanning=True)
        try:
            reader.snapshot()
            # Read before the copy, in the same snapshot: both name the same segments.
            segments = reader.segment_sums()
            # First, since SQLite would let everybody read what it creates.
            files.close(files.create(copy.records))
            reader.copy_to(copy.records)
        finally:
            reader.release()
            reader.close()
        _sync_file(copy.records)
        _copy_segments(home, copy, segments, progress)
    finally:
        lock.release()
    _finish(copy, Format(test_clock=found.test_clock, backup=True))


def restore(source: _StrPath, target: _StrPath, progress: Progress | None = None) -> None:
    """Make a new data directory `target` from the backup `source`, which stays as it is.

    Raises: NotADataDirectory, UnknownFormat, FileExistsError, OSError.
    """
    home = Layout(os.path.abspath(source))
    found = home.read_format()
    if not found.backup:
        raise NotADataDirectory(f"{home.path} is a data directory, not a backup of one")
    copy = _begin(target)
    total = sum(os.path.getsize(home.segment(one)) for one in home.segment_ids())
    done = 0
    _copy_file(home.records, copy.records, os.path.getsize(home.records))
    for segment_id in home.segment_ids():
        size_bytes = os.path.getsize(home.segment(segment_id))
        _copy_file(home.segment(segment_id), copy.segment(segment_id), size_bytes)
        done += size_bytes
        if progress is not None:
            progress(done, total)
    _finish(copy, Format(test_clock=found.test_clock))


def _begin(target: _StrPath) -> Layout:
    copy = Layout(os.path.abspath(target))
    os.makedirs(copy.path, mode=0o700, exist_ok=True)
    if os.listdir(copy.path):
        raise FileExistsError(f"{copy.path} is not empty")
    os.mkdir(copy.segments, 0o700)
    return copy


def _finish(copy: Layout, stamp: Format) -> None:
    """Stamp the copy last: without the stamp nothing will take it for whole."""
    files = OsFiles()
    files.sync_directory(copy.segments)
    files.sync_directory(copy.path)
    write_file(files, copy.format, stamp.text().encode())
    files.sync_directory(copy.path)
    files.sync_directory(os.path.dirname(copy.path))


def _copy_segments(
    home: Layout,
    copy: Layout,
    segments: list[tuple[int, int, int, int, bool]],
    progress: Progress | None,
) -> None:
    total = sum(end for _, _, end, _, _ in segments)
    done = 0
    for segment_id, _, end, _, sealed in segments:
        if end:
            source, target = home.segment(segment_id), copy.segment(segment_id)
            if not (sealed and _link(source, target)):
                _copy_file(source, target, end)
        done += end
        if progress is not None:
            progress(done, total)


def _link(source: str, target: str) -> bool:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        return False
    return True


def _copy_file(source: str, target: str, size_bytes: int) -> None:
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
        os.fsync(writing.fileno())


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
