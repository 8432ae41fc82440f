"""Backups and restores of a data directory, beside a running server or without one.

Lives here: copying. Must not live here: checking the copy (check.py). A backup shows one point in
time: a snapshot of the records, and the segments that it names. While it is made, the server
deletes no segment (the BACKUP lock). Bytes that the server appends in the meantime lie after those
that the snapshot names. An interrupted copy is never mistaken for a complete one (copy_target.py).
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable
from typing import Final

import apsw

from strongroom.engines.embedded.check import Finding, Inspection
from strongroom.engines.embedded.copy_target import PRIVATE_NAMES, CopyTarget
from strongroom.engines.embedded.directory import (
    FORMAT_VERSION,
    RECORDS_NAME,
    Damaged,
    DirectoryLayout,
    FileLock,
    Format,
    NotADataDirectory,
    UnknownFormat,
)
from strongroom.engines.embedded.files import OsFiles, write_file
from strongroom.engines.embedded.log.gate import refuse_damaged_idle_log
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES, masked
from strongroom.engines.embedded.records.checksummed_pages import is_damage
from strongroom.engines.embedded.records.record_copy import RecordCopier
from strongroom.engines.embedded.upgrade.steps import lock_settled, settled_format
from strongroom.platform.files import sync_file

Progress = Callable[[int, int], None]
"""progress(bytes copied, total bytes)."""

_log = logging.getLogger(__name__)
_MARK: Final = b"a backup was complete when this file was written\n"
_PIECE_BYTES: Final = 4 * 1024 * 1024

_StrPath = str | os.PathLike[str]


def backup(
    source: _StrPath,
    target: _StrPath,
    progress: Progress | None = None,
    with_private: bool = False,
    verify: bool = True,
) -> None:
    """Copy the current data directory `source` to `target`.

    The copy contains every write that was acknowledged before the call. Sealed segments are hard
    links where the file system allows it; everything else is copied. May be called from any process
    and thread. The backup of a directory of the format before this one has the present format.

    Arguments:
        target: a directory that does not exist, is empty, or holds the rest of a killed backup.
        progress: called with the number of segment bytes that are done, and of all.
        with_private: copy the files of PRIVATE_NAMES too; a restore brings them back.
        verify: check all pages of the records and the checksums of all bodies. Without it, the
            pages that are copied are verified, and no body is.

    Raises: NotADataDirectory, UnknownFormat, FileExistsError, Damaged (nothing is left in
        `target`), OSError, apsw.Error.
    """
    home = DirectoryLayout(os.path.abspath(source))
    if settled_format(home).backup:
        raise UnknownFormat(f"{home.path} is a backup already; copy it as it is")
    refuse_damaged_idle_log(home)
    lock = FileLock(home.backup_lock)
    found = lock_settled(home, lock)
    try:
        stamp = dataclasses.replace(found, version=FORMAT_VERSION, backup=True)
        with CopyTarget(target, stamp) as making:
            segments = _copy_records(home, making.layout, found, verify)
            _copy_segments(home, making.layout, segments, progress)
            if verify:
                _refuse_damaged_bodies(home, making.layout, stamp)
            if with_private:
                _copy_private(home, making)
            making.finish()
    finally:
        lock.release()
    _mark_complete(home)


def _mark_complete(home: DirectoryLayout) -> None:
    """Let the source show when its last backup was complete. The backup is whole without it."""
    try:
        with open(home.backup_lock, "r+b") as file:
            file.write(_MARK)
    except OSError as error:
        _log.warning("%s: the time of this backup cannot be noted: %s", home.backup_lock, error)


def _copy_records(
    home: DirectoryLayout, copy: DirectoryLayout, found: Format, verify: bool
) -> list[tuple[int, int, int, int, bool]]:
    """Copy the records. Return their segments, from the same snapshot. Raises Damaged."""
    copier = RecordCopier(home.records, OsFiles(), is_bound=found.is_current)
    try:
        copier.begin_copy(copy.records)
        problems = list(copier.findings()) if verify else []
        if problems:
            raise Damaged(_damaged_source_text(home, Finding(RECORDS_NAME, problems[0])))
        segments = copier.segment_sums()
        copier.copy()
    except (apsw.IOError, apsw.CorruptError) as error:
        if not is_damage(error) and not isinstance(error, apsw.CorruptError):
            raise
        finding = Finding(RECORDS_NAME, "the checksum of a page differs")
        raise Damaged(_damaged_source_text(home, finding)) from error
    finally:
        copier.close()
    return segments


def _refuse_damaged_bodies(home: DirectoryLayout, copy: DirectoryLayout, stamp: Format) -> None:
    with Inspection(copy.path, stamp=stamp) as inspection:
        for finding in inspection.body_findings():
            raise Damaged(_damaged_source_text(home, finding))


def _damaged_source_text(home: DirectoryLayout, finding: Finding) -> str:
    return (
        f"{home.path} is damaged, so no backup was made ({finding.place}: {finding.problem}). "
        f"strongroom doctor {home.path} names what is damaged. Keep the last whole backup: "
        "strongroom restore makes a new directory from it."
    )


def restore(
    source: _StrPath,
    target: _StrPath,
    progress: Progress | None = None,
    accept_damage: bool = False,
) -> None:
    """Make a new data directory `target` from the backup `source`, which stays unchanged.

    The copy is checked before it can be used: its records, and the checksums of all bodies. The
    directory from a backup of the format before this one has the present format.

    Arguments:
        target: a directory that does not exist, is empty, or holds the rest of a killed restore.
        progress: called with the number of segment bytes that are done, and of all.
        accept_damage: complete the restore without that check, so that a damaged backup can be
            used.

    Raises: NotADataDirectory (no backup, or an interrupted one), UnknownFormat, FileExistsError,
        Damaged (the backup is damaged or incomplete), OSError, apsw.Error.
    """
    home = DirectoryLayout(os.path.abspath(source))
    found = settled_format(home)
    if not found.backup:
        raise NotADataDirectory(f"{home.path} is a data directory, not a backup of one")
    stamp = dataclasses.replace(found, version=FORMAT_VERSION, backup=False)
    for path in (home.records, home.segments):
        if not os.path.exists(path):
            raise Damaged(f"{home.path} is not whole: {path} is missing")
    with CopyTarget(target, stamp) as making:
        copy = making.layout
        if found.is_current:
            _copy_file(home.records, copy.records, os.path.getsize(home.records))
        else:
            _bind_records(home, copy)
        _restore_segments(home, copy, progress)
        _copy_private(home, making)
        if not accept_damage:
            _refuse_damage(home, copy, stamp)
        making.finish()


def _bind_records(home: DirectoryLayout, copy: DirectoryLayout) -> None:
    """Copy the records of a backup of the old format page by page, and bind each to its number.

    Damaged pages stay damaged, so the check of the copy finds them. SQLite does not open the
    backup, which may be on a file system that is mounted read-only.
    """
    with os.fdopen(OsFiles().create(copy.records), "wb") as writing:
        with open(home.records, "rb") as reading:
            while page := reading.read(PAGE_BYTES):
                whole = len(page) == PAGE_BYTES
                writing.write(masked(page, writing.tell()) if whole else page)
        writing.flush()
        sync_file(writing.fileno())


def _restore_segments(
    home: DirectoryLayout, copy: DirectoryLayout, progress: Progress | None
) -> None:
    segment_ids = home.segment_ids()
    sizes = [os.path.getsize(home.segment(one)) for one in segment_ids]
    done = 0
    for segment_id, size_bytes in zip(segment_ids, sizes, strict=True):
        _copy_file(home.segment(segment_id), copy.segment(segment_id), size_bytes)
        done += size_bytes
        if progress is not None:
            progress(done, sum(sizes))


def _refuse_damage(home: DirectoryLayout, copy: DirectoryLayout, stamp: Format) -> None:
    """Raise Damaged when the copy, and so the backup, is damaged or incomplete."""
    try:
        with Inspection(copy.path, stamp=stamp) as inspection:
            findings = list(inspection.findings())
    except apsw.Error as error:
        findings = [Finding(RECORDS_NAME, f"it cannot be read: {error}")]
    if findings:
        raise Damaged(_damaged_backup_text(home, findings))


def _damaged_backup_text(home: DirectoryLayout, findings: list[Finding]) -> str:
    first, more = findings[0], len(findings) - 1
    others = f", and {more} more problem{'s' if more > 1 else ''}" if more else ""
    return (
        f"{home.path} is not whole: {first.place}: {first.problem}{others}. "
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


def _copy_private(home: DirectoryLayout, making: CopyTarget) -> None:
    for name in PRIVATE_NAMES:
        path = os.path.join(home.path, name)
        if os.path.exists(path):
            # Opened once: another command may replace the file at any time.
            with open(path, "rb") as file:
                write_file(OsFiles(), making.private_path(name), file.read())


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
        sync_file(writing.fileno())
