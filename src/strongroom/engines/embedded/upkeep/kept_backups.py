"""A folder of backups: which are there, and the end of the oldest.

Lives here: what counts as a complete backup, the names of those that `--keep` makes, and how one is
deleted. Must not live here: making a backup (backup.py).

Only a whole backup that this program has made is ever deleted. Its name is one of ours, and its
FORMAT says that it is a complete backup. Nobody reads it, and it holds only files of a backup. Its
FORMAT is renamed to UNFINISHED first. So a deletion that is killed leaves no directory that
passes for a backup.
"""

from __future__ import annotations

import datetime
import os
import re
import stat
from collections.abc import Iterator
from typing import Final

from strongroom.engines.base import EngineError
from strongroom.engines.embedded.disk.directory import (
    RECORDS_NAME,
    SEGMENT_NAME,
    DirectoryLayout,
    FileLock,
    Format,
)
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.upkeep.copy_target import PRIVATE_NAMES

_NAME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z", re.ASCII)
_FILES: Final = frozenset(
    {"FORMAT", "BACKUP", *PRIVATE_NAMES, *(RECORDS_NAME + end for end in ("", "-wal", "-shm"))}
)


class NotDeleted(Exception):
    """A backup is left as it is; the text names it and says why."""


def name_of(moment: datetime.datetime) -> str:
    """Return the name of a backup that is made now: names sort as their times do."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H%M%SZ")


def newest_backup(folder: str) -> str | None:
    """Return the backup in a folder that was completed last; None if there is none."""
    backups = [(os.stat(DirectoryLayout(one).format).st_mtime, one) for one in _backups(folder)]
    return max(backups)[1] if backups else None


def surplus(folder: str, keep: int) -> list[str]:
    """Return the complete backups of our names beyond the newest `keep`, the oldest first."""
    ours = sorted(one for one in _backups(folder) if _NAME.fullmatch(os.path.basename(one)))
    return ours[: max(0, len(ours) - keep)]


def unfinished(folder: str) -> list[str]:
    """Return the directories of our names whose backup, or whose deletion, was not completed."""
    return sorted(
        entry.path
        for entry in os.scandir(folder)
        if _NAME.fullmatch(entry.name)
        and os.path.lexists(DirectoryLayout(entry.path).unfinished_copy)
    )


def delete_backup(path: str) -> None:
    """Delete a complete backup, and nothing else. Raises: NotDeleted, OSError."""
    layout = DirectoryLayout(path)
    if _complete_format(path) is None or not _NAME.fullmatch(os.path.basename(path)):
        raise NotDeleted(f"{path} is no complete backup of --keep")
    lock = FileLock(layout.backup_lock)
    if not lock.acquire():
        raise NotDeleted(f"{path} is being read")
    try:
        files = [
            one for one in _own_files(layout) if one not in (layout.format, layout.backup_lock)
        ]
        OsFiles().rename(layout.format, layout.unfinished_copy)
        OsFiles().sync_directory(path)
        for file in files:
            os.unlink(file)
        os.rmdir(layout.segments)
    finally:
        lock.release()
    # Not every system deletes a file that is open. From the rename on, nobody takes this for a
    # backup, so the lock is not needed any more.
    os.unlink(layout.backup_lock)
    os.unlink(layout.unfinished_copy)
    os.rmdir(path)


def _backups(folder: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and _complete_format(entry.path) is not None:
            yield entry.path


def _complete_format(path: str) -> Format | None:
    """Return the format of a complete backup of the present version; None for anything else."""
    try:
        stamp = DirectoryLayout(path).read_format()
    except (EngineError, OSError):
        return None
    return stamp if stamp.backup and stamp.is_current and not stamp.upgrading else None


def _own_files(layout: DirectoryLayout) -> Iterator[str]:
    """Yield the files of a backup. Raises: NotDeleted, if it holds anything else."""
    for entry in os.scandir(layout.path):
        if entry.path != layout.segments:
            yield _own(entry, entry.name in _FILES, layout)
    for entry in os.scandir(layout.segments):
        yield _own(entry, bool(SEGMENT_NAME.fullmatch(entry.name)), layout)


def _own(entry: os.DirEntry[str], is_ours: bool, layout: DirectoryLayout) -> str:
    if not is_ours or not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
        raise NotDeleted(f"{layout.path} holds {entry.path}, which no backup has")
    return entry.path
