"""One run of `strongroom backup`: the backup, and the end of older ones.

Lives here: which directory it is written to, what it builds on, what it leaves. Must not live here:
flags and texts for people (cli/backup.py), copying and deleting (engines/embedded/).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from strongroom.cli.progress import Progress
from strongroom.clock import SystemClock
from strongroom.engines.base import EngineError
from strongroom.engines.embedded.disk.directory import DirectoryLayout
from strongroom.engines.embedded.upkeep import kept_backups
from strongroom.engines.embedded.upkeep.backup import backup
from strongroom.values import datetime_of


@dataclass(frozen=True, slots=True)
class BackupOrder:
    """What is wanted.

    Attributes:
        target: the new directory; with `keep`, the folder of all backups.
        keep: how many backups stay in the folder; None = it is no such folder.
    """

    data: Path
    target: Path
    keep: int | None
    incremental: bool
    with_accounts: bool
    verify: bool


@dataclass(frozen=True, slots=True)
class BackupMade:
    """What was done. `base` None = nothing was reused.

    Attributes:
        removed: the backups that were deleted.
        left: why others were not deleted, a sentence each.
        unfinished: directories of the folder whose backup or deletion was interrupted.
    """

    target: str
    base: str | None
    verified: bool
    records_bytes: int
    reused_bytes: int
    linked_bytes: int
    copied_bytes: int
    removed: tuple[str, ...]
    left: tuple[str, ...]
    unfinished: tuple[str, ...]


class NotAFolderOfBackups(EngineError):
    """The folder of --keep is a data directory or a backup itself."""


def make_backup(order: BackupOrder, progress: Progress | None) -> BackupMade:
    """Make a backup, then delete those beyond `keep`. Raises: as backup.backup;
    NotAFolderOfBackups."""
    target = os.path.abspath(order.target)
    if order.keep is not None:
        target = _new_in(target)
    base = kept_backups.newest_backup(os.path.dirname(target)) if order.incremental else None
    took = backup(order.data, target, progress, order.with_accounts, verify=order.verify, base=base)
    removed, left = _end_surplus(os.path.dirname(target), order.keep)
    return BackupMade(
        target=target,
        base=base if took.reused_bytes else None,
        verified=order.verify,
        records_bytes=took.records_bytes,
        reused_bytes=took.reused_bytes,
        linked_bytes=took.linked_bytes,
        copied_bytes=took.copied_bytes,
        removed=removed,
        left=left,
        unfinished=() if order.keep is None else _unfinished(os.path.dirname(target)),
    )


def _new_in(folder: str) -> str:
    layout = DirectoryLayout(folder)
    for mark in (layout.format, layout.unfinished, layout.unfinished_copy, layout.records):
        if os.path.lexists(mark):
            raise NotAFolderOfBackups(
                f"{folder} is a data directory or a backup; with --keep, name a folder of backups"
            )
    os.makedirs(folder, mode=0o700, exist_ok=True)
    now = datetime_of(SystemClock().wall_ticks())
    return os.path.join(folder, kept_backups.name_of(now))


def _end_surplus(folder: str, keep: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which backups were deleted, and why others were not."""
    removed: list[str] = []
    left: list[str] = []
    try:
        for path in () if keep is None else kept_backups.surplus(folder, keep):
            try:
                kept_backups.delete_backup(path)
                removed.append(path)
            except (kept_backups.NotDeleted, OSError) as error:
                left.append(f"{path} is not deleted: {error}")
    except OSError as error:
        left.append(f"{folder} cannot be read: {error}")
    return tuple(removed), tuple(left)


def _unfinished(folder: str) -> tuple[str, ...]:
    try:
        return tuple(kept_backups.unfinished(folder))
    except OSError:
        return ()  # `left` says it already
