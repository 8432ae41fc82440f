"""Backups and restores of a data directory, beside a running server or without one.

Lives here: copying. Must not live here: checking the copy (check.py), how a segment gets into it
(upkeep/segment_copies.py). A backup shows one point in
time: a snapshot of the records, and the segments that it names. While it is made, the server
deletes no segment (the BACKUP lock). Bytes that the server appends in the meantime lie after those
that the snapshot names. An interrupted copy is never mistaken for a complete one (copy_target.py).
"""

from __future__ import annotations

import logging
import os
from typing import Final

import apsw
import msgspec

from strongroom.engines.embedded.disk.directory import (
    FORMAT_VERSION,
    RECORDS_NAME,
    Damaged,
    DirectoryLayout,
    FileLock,
    Format,
    NotADataDirectory,
    UnknownFormat,
)
from strongroom.engines.embedded.disk.files import OsFiles, write_file
from strongroom.engines.embedded.log.gate import refuse_damaged_idle_log
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES, masked
from strongroom.engines.embedded.records.checksummed_pages import is_damage
from strongroom.engines.embedded.records.record_copy import RecordCopier
from strongroom.engines.embedded.records.segment_sums import SegmentSum
from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.engines.embedded.upkeep.copy_target import PRIVATE_NAMES, CopyTarget
from strongroom.engines.embedded.upkeep.segment_copies import (
    CopiedSegments,
    Progress,
    copy_anew,
    copy_file,
    copy_segments,
)
from strongroom.engines.embedded.upkeep.upgrade.steps import (
    lock_backup,
    lock_settled,
    settled_format,
)
from strongroom.engines.findings import Finding
from strongroom.platform.files import sync_file

_log = logging.getLogger(__name__)
_MARK: Final = b"a backup was complete when this file was written\n"
_StrPath = str | os.PathLike[str]


class BackupReport(msgspec.Struct, frozen=True):
    """What a backup took. Lengths of segments: reused of the base, linked to the data directory's
    own, and copied."""

    records_bytes: int
    reused_bytes: int
    linked_bytes: int
    copied_bytes: int


def backup(
    source: _StrPath,
    target: _StrPath,
    progress: Progress | None = None,
    with_private: bool = False,
    verify: bool = True,
    base: _StrPath | None = None,
) -> BackupReport:
    """Copy the current data directory `source` to `target`.

    The copy contains every write that was acknowledged before the call. Sealed segments are hard
    links where the file system allows it; everything else is copied. May be called from any process
    and thread. The backup of a directory of the format before this one has the present format.

    Arguments:
        target: a directory that does not exist, is empty, or holds the rest of a killed backup.
        progress: called with the number of segment bytes that are done, and of all.
        with_private: copy the files of PRIVATE_NAMES too; a restore brings them back.
        verify: check all pages of the records and the checksums of all bodies, as the copy has
            them. Without it, the pages that are copied are verified, and no body is.
        base: a complete backup of the same directory, whose segments are reused where they are
            long enough. What it has is verified, and copied anew if it is damaged.

    Raises: ValueError (a base, and `verify` is False), NotADataDirectory, UnknownFormat,
        FileExistsError, Damaged (nothing is left in `target`), OSError, apsw.Error.
    """
    if base is not None and not verify:
        raise ValueError("what comes from an earlier backup has to be verified")
    home = DirectoryLayout(os.path.abspath(source))
    earlier = None if base is None else DirectoryLayout(os.path.abspath(base))
    if settled_format(home).backup:
        raise UnknownFormat(f"{home.path} is a backup already; copy it as it is")
    refuse_damaged_idle_log(home)
    lock = FileLock(home.backup_lock)
    found = lock_settled(home, lock)
    try:
        stamp = msgspec.structs.replace(found, version=FORMAT_VERSION, backup=True)
        with CopyTarget(target, stamp) as making:
            segments = _copy_records(home, making.layout, found, verify)
            copied = copy_segments(home, making.layout, earlier, segments, progress)
            if verify:
                copied = _verified(home, making.layout, stamp, copied)
            if with_private:
                _copy_private(home, making)
            _make_lock(making.layout)
            making.finish()
            records_bytes = os.path.getsize(making.layout.records)
    finally:
        lock.release()
    _mark_complete(home)
    reused_bytes = sum(copied.reused.values())
    return BackupReport(records_bytes, reused_bytes, copied.linked_bytes, copied.copied_bytes)


def _make_lock(copy: DirectoryLayout) -> None:
    """Make the file that readers of the backup lock, who may not write there."""
    lock = FileLock(copy.backup_lock)
    lock.acquire()
    lock.release()


def _mark_complete(home: DirectoryLayout) -> None:
    """Let the source show when its last backup was complete. The backup is whole without it."""
    try:
        with open(home.backup_lock, "r+b") as file:
            file.write(_MARK)
    except OSError as error:
        _log.warning("%s: the time of this backup cannot be noted: %s", home.backup_lock, error)


def _copy_records(
    home: DirectoryLayout, copy: DirectoryLayout, found: Format, verify: bool
) -> list[SegmentSum]:
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


def _verified(
    home: DirectoryLayout, copy: DirectoryLayout, stamp: Format, copied: CopiedSegments
) -> CopiedSegments:
    """Read the copy back. Return how its segments got there in the end. Raises: Damaged."""
    finding = _first_finding(copy, stamp)
    if finding is not None and copied.reused:
        _log.warning("the earlier backup lacks what is needed (%s), so all is copied", finding)
        copied = copy_anew(home, copy, copied)
        finding = _first_finding(copy, stamp)
    if finding is not None:
        raise Damaged(_damaged_source_text(home, finding))
    return copied


def _first_finding(copy: DirectoryLayout, stamp: Format) -> Finding | None:
    with Inspection(copy.path, stamp=stamp) as inspection:
        return next(inspection.findings(), None)


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
    """Make a new data directory `target` from the backup `source`, which stays unchanged. No other
    command deletes it meanwhile.

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
    if not settled_format(home).backup:
        raise NotADataDirectory(f"{home.path} is a data directory, not a backup of one")
    lock = FileLock(home.backup_lock)
    try:
        _restore(home, lock_backup(home, lock), target, progress, accept_damage)
    finally:
        lock.release()


def _restore(
    home: DirectoryLayout,
    found: Format,
    target: _StrPath,
    progress: Progress | None,
    accept_damage: bool,
) -> None:
    stamp = msgspec.structs.replace(found, version=FORMAT_VERSION, backup=False)
    for path in (home.records, home.segments):
        if not os.path.exists(path):
            raise Damaged(f"{home.path} is not whole: {path} is missing")
    with CopyTarget(target, stamp) as making:
        copy = making.layout
        if found.is_current:
            copy_file(home.records, copy.records, os.path.getsize(home.records))
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
        copy_file(home.segment(segment_id), copy.segment(segment_id), size_bytes)
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


def _copy_private(home: DirectoryLayout, making: CopyTarget) -> None:
    for name in PRIVATE_NAMES:
        path = os.path.join(home.path, name)
        if os.path.exists(path):
            # Opened once: another command may replace the file at any time.
            with open(path, "rb") as file:
                write_file(OsFiles(), making.private_path(name), file.read())
