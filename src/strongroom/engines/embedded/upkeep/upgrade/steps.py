"""The upgrade of a data directory or a backup from the format before this one.

Lives here: the steps, and how an upgrade that was interrupted is completed. Must not live here: how
records are copied (records/record_copy.py), what the formats are (directory.py), texts (report.py).

    1.  The log is checked, and every page of the old file.
    2.  records.sqlite.new is written, and is checked. It is durable, and so is its name.
    3.  FORMAT says "strongroom 4 upgrading": from here on the new records count.
    4.  The old log is deleted, and records.sqlite.new is renamed to records.sqlite.
    5.  FORMAT says "strongroom 4".

FORMAT is replaced by a rename, and each step is durable before the next one begins. So after a kill
before step 3 the directory is of the old format, with all its files. Then records.sqlite.new means
nothing, and the next upgrade deletes it. After step 3 whoever opens the directory completes steps 4
and 5, which can be repeated. An older program knows neither text of FORMAT, and refuses both.

The upgrade holds both locks of the directory: no server, backup or doctor has its files open. Only
the records are converted. Segments are the same in both formats.
"""

from __future__ import annotations

import logging
import os
from typing import Final

import apsw
import msgspec

from strongroom.clock import elapsed_s
from strongroom.engines.base import EngineError, Unavailable
from strongroom.engines.embedded.disk.directory import (
    FORMAT_VERSION,
    Damaged,
    DirectoryInUse,
    DirectoryLayout,
    FileLock,
    Format,
    ServerLock,
    give_to_owner_of,
)
from strongroom.engines.embedded.disk.files import Files, OsFiles, write_file
from strongroom.engines.embedded.log.gate import refuse_damaged_log
from strongroom.engines.embedded.records.checksummed_pages import is_damage
from strongroom.engines.embedded.records.record_copy import RecordCopier
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.embedded.space.ballast import BALLAST_BYTES, Ballast
from strongroom.engines.embedded.space.reserve import is_full
from strongroom.engines.embedded.upkeep.upgrade.report import LoggedUpgrade, UpgradeReport, mib_text

_MARGIN_BYTES: Final = 1024 * 1024
_LEFTOVERS: Final = ("", "-journal", "-wal", "-shm")

_log = logging.getLogger(__name__)


def upgrade(
    directory: str | os.PathLike[str], report: UpgradeReport, files: Files | None = None
) -> bool:
    """Upgrade a data directory or a backup. Return False when it has the present format already.

    Raises: NotADataDirectory, UnknownFormat, DirectoryInUse, Damaged (it is damaged, and nothing
        was changed), Unavailable (the disk has too little space), OSError, apsw.Error.
    """
    layout = DirectoryLayout(os.path.abspath(directory))
    stamp = layout.read_format()
    if stamp.is_current and not stamp.upgrading:
        return False
    lock = ServerLock(layout)
    if not lock.acquire():
        raise DirectoryInUse(f"a server has {layout.path} open; stop it first")
    try:
        upgrade_locked(layout, files or OsFiles(), None, report)
    finally:
        lock.release()
    return True


def settled_format(layout: DirectoryLayout) -> Format:
    """Return the format of a directory, after an interrupted upgrade was completed.

    Raises: NotADataDirectory, UnknownFormat, DirectoryInUse, OSError.
    """
    stamp = layout.read_format()
    if stamp.upgrading:
        upgrade(layout.path, LoggedUpgrade())
        stamp = layout.read_format()
    return stamp


def lock_settled(layout: DirectoryLayout, readers: FileLock) -> Format:
    """Take the lock of backups shared, and return the format, which stays as it is until the lock
    is released. Complete an upgrade that was killed while this waited for the lock.

    Raises: see `settled_format`; the lock is not held then.
    """
    while True:
        readers.acquire(shared=True, wait=True)
        try:
            found = layout.read_format()
        except BaseException:
            readers.release()
            raise
        if not found.upgrading:
            return found
        readers.release()
        settled_format(layout)


def lock_backup(layout: DirectoryLayout, readers: FileLock) -> Format:
    """Take the lock of a backup shared, so that it is not deleted while it is read, and return its
    format. A backup that has no such file, or is on a read-only volume, is read without a lock.

    Raises: see `settled_format`.
    """
    found = settled_format(layout)
    if not os.path.exists(layout.backup_lock):
        return found
    try:
        return lock_settled(layout, readers)
    except OSError as error:
        _log.info("%s is read without its lock: %s", layout.path, error)
        return found


def upgrade_locked(
    layout: DirectoryLayout, files: Files, vfs: str | None, report: UpgradeReport
) -> Format:
    """Upgrade a directory, or complete its upgrade, if that is needed. Return its format. The
    caller holds the server's lock.

    Raises: see `upgrade`.
    """
    found = layout.read_format()
    if found.is_current and not found.upgrading:
        return found
    readers = FileLock(layout.backup_lock)
    if not readers.acquire():
        raise DirectoryInUse(
            f"{layout.path} cannot be upgraded while a backup or a doctor has it open; "
            "try again when that has ended"
        )
    began_s = elapsed_s()
    try:
        if not found.upgrading:
            _convert(layout, found, files, vfs, report)
        stamp = _complete(layout, found, files)
    finally:
        readers.release()
    report.ended(layout.path, elapsed_s() - began_s)
    return stamp


def _convert(
    layout: DirectoryLayout,
    found: Format,
    files: Files,
    vfs: str | None,
    report: UpgradeReport,
) -> None:
    """Steps 1 to 3."""
    refuse_damaged_log(layout)
    _delete_leftovers(layout, files)
    try:
        _write_records(layout, files, vfs, report)
        _check_new_records(layout, vfs)
        files.sync_directory(layout.path)
        decided = msgspec.structs.replace(found, version=FORMAT_VERSION, upgrading=True)
        _prepare_format(layout, files, decided)
    except (apsw.Error, OSError, EngineError) as error:
        _delete_after_failure(layout, files)
        raise _failure(layout, error) from error
    _replace_format(layout, files)


def _write_records(
    layout: DirectoryLayout, files: Files, vfs: str | None, report: UpgradeReport
) -> None:
    copier = RecordCopier(layout.records, files, vfs, is_bound=False)
    try:
        needed_bytes = copier.used_bytes() + _MARGIN_BYTES
        report.begins(layout.path, needed_bytes, files.free_bytes(layout.path))
        _make_space(layout, files, needed_bytes)
        for problem in copier.findings():
            raise Damaged(_damage_text(layout, problem))
        copier.begin_copy(layout.new_records)
        give_to_owner_of(layout.records, layout.new_records)
        copier.copy(report.copied)
    finally:
        copier.close()


def _make_space(layout: DirectoryLayout, files: Files, needed_bytes: int) -> None:
    """Release the ballast if the upgrade needs its space; it is filled again when the directory is
    opened. Raises Unavailable."""
    ballast = Ballast(files, layout.ballast, BALLAST_BYTES)
    missing_bytes = needed_bytes - files.free_bytes(layout.path)
    held_bytes = ballast.held_bytes()
    if missing_bytes > held_bytes:
        more = mib_text(missing_bytes - held_bytes)
        raise Unavailable(
            f"{layout.path} has format 3, and its upgrade needs {more} "
            "more space on the disk. Nothing was changed."
        )
    if missing_bytes > 0:
        ballast.cut(held_bytes - missing_bytes)


def _check_new_records(layout: DirectoryLayout, vfs: str | None) -> None:
    """Read all of the new file once more. Raises Unavailable."""
    reader = Reader(layout.new_records, vfs, scanning=True)
    try:
        for problem in reader.findings():
            raise Unavailable(f"the new records of {layout.path} cannot be read again: {problem}")
    finally:
        reader.close()


def _complete(layout: DirectoryLayout, found: Format, files: Files) -> Format:
    """Steps 4 and 5."""
    # A process that was killed may have renamed a file without the sync after it.
    files.sync_directory(layout.path)
    if os.path.exists(layout.new_records):
        if os.path.exists(layout.log):
            files.unlink(layout.log)
        # The old log must not be found beside the new records.
        files.sync_directory(layout.path)
        files.rename(layout.new_records, layout.records)
        files.sync_directory(layout.path)
    stamp = msgspec.structs.replace(found, version=FORMAT_VERSION, upgrading=False)
    _prepare_format(layout, files, stamp)
    _replace_format(layout, files)
    return stamp


def _prepare_format(layout: DirectoryLayout, files: Files, stamp: Format) -> None:
    if os.path.exists(layout.new_format):
        files.unlink(layout.new_format)
    write_file(files, layout.new_format, stamp.text().encode())
    give_to_owner_of(layout.format, layout.new_format)


def _replace_format(layout: DirectoryLayout, files: Files) -> None:
    files.rename(layout.new_format, layout.format)
    files.sync_directory(layout.path)


def _delete_leftovers(layout: DirectoryLayout, files: Files) -> None:
    for path in (layout.new_format, *(layout.new_records + end for end in _LEFTOVERS)):
        if os.path.exists(path):
            files.unlink(path)


def _delete_after_failure(layout: DirectoryLayout, files: Files) -> None:
    try:
        _delete_leftovers(layout, files)
    except OSError as error:
        _log.warning("%s is left behind, and harmless: %s", layout.new_records, error)


def _failure(layout: DirectoryLayout, error: Exception) -> Exception:
    """Return what to raise when the conversion failed. Nothing was changed."""
    if is_damage(error) or isinstance(error, apsw.CorruptError):
        return Damaged(_damage_text(layout, "the checksum of a page differs"))
    if not isinstance(error, EngineError) and is_full(error):
        return Unavailable(
            f"{layout.path} has format 3, and the disk became full during its upgrade. Nothing was "
            "changed. Free some space and try again."
        )
    return error


def _damage_text(layout: DirectoryLayout, problem: str) -> str:
    return (
        f"{layout.path} has format 3 and is damaged, so it was not upgraded ({problem}). Nothing "
        f"was changed. strongroom doctor {layout.path} names what is damaged. Restore the last "
        "whole backup; this version also restores backups of format 3."
    )
