"""The check and the cleanup of SQLite's log when a data directory is opened.

Lives here: a damaged log is refused, a torn one is reported, leftovers are removed, and an operator
may cut a damaged log on purpose. Must not live here: how damage is recognised (log/check.py).

Two torn commits, one after the other, would look like damage if both left frames in one log. So
after each opening the log starts afresh before the first commit. Usually it is emptied. It is not
emptied while a backup or a doctor reads it, nor on a full disk, where its space must be kept. The
frames after the last commit that SQLite counts are then overwritten with zeros.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from strongroom.engines.embedded.disk.directory import (
    Damaged,
    DirectoryInUse,
    DirectoryLayout,
    FileLock,
    ServerLock,
)
from strongroom.engines.embedded.disk.files import Files, OsFiles, write_file
from strongroom.engines.embedded.log.check import LogVerdict, examine_log
from strongroom.engines.embedded.log.wal_format import FRAME_HEAD_BYTES, HEADER_BYTES
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES

_ZEROS: Final = bytes(1024 * 1024)
_KEPT_SUFFIX: Final = ".damaged"
_NEW_SUFFIX: Final = ".new"

_log = logging.getLogger(__name__)


def refuse_damaged_log(layout: DirectoryLayout) -> None:
    """Refuse a damaged log of a directory that no server has open. Call it before SQLite opens the
    log, since SQLite drops the frames that it refuses.

    Logs a warning when the last commit is incomplete. Raises: Damaged, OSError.
    """
    verdict = _verdict(layout)
    if verdict.is_lost:
        raise Damaged(_damage_text(layout, verdict))
    if verdict.cut_frames:
        _log.warning("%s", _torn_text(layout, verdict))


def refuse_damaged_idle_log(layout: DirectoryLayout) -> None:
    """Check the log like `refuse_damaged_log`, unless a server has the directory open. Such a
    server has checked the log, and writes to it at present.

    Raises: Damaged, OSError.
    """
    if not _verdict(layout).cut_frames:
        return
    # Take the lock only now, so that a server that starts at the same time finds it free.
    lock = ServerLock(layout)
    if lock.acquire():
        try:
            refuse_damaged_log(layout)
        finally:
            lock.release()


def clear_log_tail(layout: DirectoryLayout, files: Files, frames: int | None) -> None:
    """Overwrite the frames after those that SQLite counts, in a log that could not be emptied. Call
    it after the checkpoint at the start, and before the first commit.

    A whole commit may follow them, if a server was killed in its sync while a backup had the log
    open. SQLite then uses the index that it shares with the backup, which lacks that commit.

    Arguments:
        frames: the number that SQLite counts. If it is unknown (None), all whole commits stay.

    Raises: OSError.
    """
    try:
        end = os.path.getsize(layout.log)
    except FileNotFoundError:
        return
    if frames is not None:
        start = HEADER_BYTES + frames * (FRAME_HEAD_BYTES + PAGE_BYTES)
    else:
        start = _verdict(layout).kept_bytes
    if start >= end:
        return
    descriptor = files.reopen(layout.log)
    try:
        for offset in range(start, end, len(_ZEROS)):
            files.write_at(descriptor, _ZEROS[: end - offset], offset)
        files.sync(descriptor)
    finally:
        files.close(descriptor)


def cut_damaged_log(directory: str | os.PathLike[str]) -> str | None:
    """Give up the commits after the damage in a log, so that the directory can be opened again.

    The damaged log is kept beside the new one.

    Returns: a sentence that says which commits were given up; None when the log is not damaged.
    Raises: DirectoryInUse, NotADataDirectory, UnknownFormat, FileExistsError, OSError.
    """
    layout = DirectoryLayout(os.path.abspath(directory))
    layout.read_format()
    server, readers = ServerLock(layout), FileLock(layout.backup_lock)
    try:
        # SQLite's file is about to be replaced: no process may have it open.
        if not (server.acquire() and readers.acquire()):
            raise DirectoryInUse(
                f"a server, a backup or a doctor has {layout.path} open; stop it first"
            )
        return _cut(layout, OsFiles())
    finally:
        readers.release()
        server.release()


def _cut(layout: DirectoryLayout, files: Files) -> str | None:
    verdict = _verdict(layout)
    if not verdict.is_lost:
        return None
    kept, new = layout.log + _KEPT_SUFFIX, layout.log + _NEW_SUFFIX
    with open(layout.log, "rb") as file:
        data = file.read()
    if not os.path.lexists(kept):
        write_file(files, kept, data)
    elif not _has_content(kept, data):
        raise FileExistsError(f"{kept} is there already, from an earlier cut; move it away first")
    if os.path.lexists(new):  # an earlier attempt was interrupted
        files.unlink(new)
    write_file(files, new, data[: verdict.kept_bytes])
    files.sync_directory(layout.path)
    files.rename(new, layout.log)
    files.sync_directory(layout.path)
    return (
        f"{layout.log} was cut {_position_text(verdict)}. Lost after the damage: "
        f"{_commits_text(verdict)}, which may have been acknowledged. The damaged log is kept in "
        f"{kept}."
    )


def _has_content(path: str, data: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read() == data


def _verdict(layout: DirectoryLayout) -> LogVerdict:
    try:
        with open(layout.log, "rb") as file:
            return examine_log(file, PAGE_BYTES)
    except FileNotFoundError:
        return LogVerdict()


def _position_text(verdict: LogVerdict) -> str:
    if verdict.refused_frame:
        return f"at frame {verdict.refused_frame} of {verdict.frames}"
    return f"at its header, before {verdict.frames} frames"


def _commits_text(verdict: LogVerdict) -> str:
    if verdict.cut_commits == 1:
        return "1 commit"
    return f"{verdict.cut_commits} commits"


def _damage_text(layout: DirectoryLayout, verdict: LogVerdict) -> str:
    return (
        f"{layout.log} is damaged {_position_text(verdict)}. After the damage there are "
        f"acknowledged changes ({_commits_text(verdict)}), which would be lost if the directory "
        "were opened. Nothing was changed. Copy the whole directory to another disk first. Then "
        f"restore a backup, or give those changes up: strongroom doctor --cut-log {layout.path}"
    )


def _torn_text(layout: DirectoryLayout, verdict: LogVerdict) -> str:
    return (
        f"the last commit in {layout.log} is incomplete: {verdict.cut_frames} of "
        f"{verdict.frames} frames are dropped. A kill, a power cut or a full disk during a commit "
        "causes this, and such a commit was never acknowledged. Only damage to the last commit "
        "itself looks the same."
    )
