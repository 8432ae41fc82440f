"""Backups and restores of a data directory, beside a running server or without one.

Lives here: copying. Must not live here: checking the copy (check.py). A backup shows one point in
time: a snapshot of the records, and the segments that it names. While it is made, the server
deletes no segment (the BACKUP lock). Bytes that the server appends in the meantime lie after those
that the snapshot names. An interrupted copy is never mistaken for a complete one (copy_target.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import apsw

from strongroom.engines.embedded.check import Finding, Inspection
from strongroom.engines.embedded.copy_target import CopyTarget
from strongroom.engines.embedded.directory import (
    RECORDS_NAME,
    Damaged,
    DirectoryLayout,
    FileLock,
    Format,
    NotADataDirectory,
    UnknownFormat,
)
from strongroom.engines.embedded.files import OsFiles
from strongroom.engines.embedded.log.gate import refuse_damaged_idle_log
from strongroom.engines.embedded.records.sqlite import Reader

Progress = Callable[[int, int], None]
"""progress(bytes copied, total bytes)."""

_PIECE_BYTES: Final = 4 * 1024 * 1024

_StrPath = str | os.PathLike[str]


def backup(source: _StrPath, target: _StrPath, progress: Progress | None = None) -> None:
    """Copy the current data directory `source` to `target`.

    The copy contains every write that was acknowledged before the call. Sealed segments are hard
    links where the file system allows it; everything else is copied. May be called from any process
    and thread.

    Arguments:
        target: a directory that does not exist, is empty, or holds the rest of a killed backup.
        progress: called with the number of segment bytes that are done, and of all.

    Raises: NotADataDirectory, UnknownFormat, FileExistsError, OSError, apsw.Error.
    """
    home = DirectoryLayout(os.path.abspath(source))
    found = home.read_format()
    if found.backup:
        raise UnknownFormat(f"{home.path} is a backup already; copy it as it is")
    refuse_damaged_idle_log(home)
    stamp = Format(test_clock=found.test_clock, backup=True)
    files, lock = OsFiles(), FileLock(home.backup_lock)
    with CopyTarget(target, stamp) as making:
        copy = making.layout
        lock.acquire(shared=True, wait=True)
        try:
            reader = Reader(home.records, None, scanning=True)
            try:
                reader.snapshot()
                # Read before the copy, in the same snapshot, so that both name the same segments.
                segments = reader.segment_sums()
                # Create the file first: SQLite would create one that everybody may read.
                files.close(files.create(copy.records))
                reader.copy_to(copy.records)
            finally:
                reader.release()
                reader.close()
            _sync_file(copy.records)
            _copy_segments(home, copy, segments, progress)
        finally:
            lock.release()
        making.finish()


def restore(
    source: _StrPath,
    target: _StrPath,
    progress: Progress | None = None,
    accept_damage: bool = False,
) -> None:
    """Make a new data directory `target` from the backup `source`, which stays unchanged.

    The copy is checked before it can be used: its records, and the checksums of all bodies.

    Arguments:
        target: a directory that does not exist, is empty, or holds the rest of a killed restore.
        progress: called with the number of segment bytes that are done, and of all.
        accept_damage: complete the restore without that check, so that a damaged backup can be
            used.

    Raises: NotADataDirectory (no backup, or an interrupted one), UnknownFormat, FileExistsError,
        Damaged (the backup is damaged or incomplete), OSError, apsw.Error.
    """
    home = DirectoryLayout(os.path.abspath(source))
    found = home.read_format()
    if not found.backup:
        raise NotADataDirectory(f"{home.path} is a data directory, not a backup of one")
    stamp = Format(test_clock=found.test_clock)
    for path in (home.records, home.segments):
        if not os.path.exists(path):
            raise Damaged(f"{home.path} is not whole: {path} is missing")
    with CopyTarget(target, stamp) as making:
        copy = making.layout
        total = sum(os.path.getsize(home.segment(one)) for one in home.segment_ids())
        done = 0
        _copy_file(home.records, copy.records, os.path.getsize(home.records))
        for segment_id in home.segment_ids():
            size_bytes = os.path.getsize(home.segment(segment_id))
            _copy_file(home.segment(segment_id), copy.segment(segment_id), size_bytes)
            done += size_bytes
            if progress is not None:
                progress(done, total)
        if not accept_damage:
            _refuse_damage(home, copy, stamp)
        making.finish()


def _refuse_damage(home: DirectoryLayout, copy: DirectoryLayout, stamp: Format) -> None:
    """Raise Damaged when the copy, and so the backup, is damaged or incomplete."""
    try:
        with Inspection(copy.path, stamp=stamp) as inspection:
            findings = list(inspection.findings())
    except apsw.Error as error:
        findings = [Finding(RECORDS_NAME, f"it cannot be read: {error}")]
    if findings:
        first = findings[0]
        more = f", and {len(findings) - 1} more problems" if findings[1:] else ""
        raise Damaged(
            f"{home.path} is not whole: {first.place}: {first.problem}{more}. "
            f"strongroom doctor {home.path} names them all. Restore another backup, or what there "
            "is of this one with --accept-damage."
        )


def _copy_segments(
    home: DirectoryLayout,
    copy: DirectoryLayout,
    segments: list[tuple[int, int, int, int, bool]],
    progress: Progress | None,
) -> None:
    total = sum(end for _, _, end, _, _ in segments)
    done = 0
    for segment_id, _, end, _, sealed in segments:
        if end:
            source, target = home.segment(segment_id), copy.segment(segment_id)
            if os.path.getsize(source) < end:
                raise OSError(f"{source} is shorter than its records say")
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
