"""The directory that a backup or a restore writes.

Lives here: how such a directory is started and stamped as complete, and how the leftovers of a
killed backup are recognised and replaced. Must not live here: what is copied into it (backup.py).

    UNFINISHED      the first file, locked while the copy is made
    FORMAT          UNFINISHED is renamed to it when everything else is durable

So a directory has one of the two. If UNFINISHED exists and is not locked, the backup or restore was
killed. A copy that fails deletes what it has written.
"""

from __future__ import annotations

import logging
import os
import stat
from types import TracebackType
from typing import Final

from strongroom.engines.embedded.directory import (
    RECORDS_NAME,
    SEGMENT_NAME,
    DirectoryLayout,
    Format,
)
from strongroom.engines.embedded.files import OsFiles
from strongroom.platform import files as system
from strongroom.platform.locks import lock

# What an operator keeps beside the records. It holds secrets, so a backup has it on request only.
PRIVATE_NAMES: Final = ("accounts.json", "roles.json")
# An operator may put such a file into an unfinished copy too. So ours has another name until the
# end: nothing of the operator's is ever taken for a leftover.
_COPYING: Final = ".copying"
_SEGMENTS: Final = "segments"
# The files of a copy in progress; BACKUP is the lock of a process that checked it.
_FILES: Final = frozenset(
    {
        "UNFINISHED",
        "BACKUP",
        *(name + _COPYING for name in PRIVATE_NAMES),
        *(RECORDS_NAME + end for end in ("", "-journal", "-wal", "-shm")),
    }
)

_log = logging.getLogger(__name__)


class CopyTarget:
    """A directory that becomes a copy. Use it in a `with` statement; only `finish` stamps it.

    Arguments:
        path: a directory that does not exist, is empty, or holds the rest of a killed copy.
        stamp: the content of its FORMAT file.

    Raises: FileExistsError (it holds something else, or another copy is being made in it), OSError.
    """

    def __init__(self, path: str | os.PathLike[str], stamp: Format) -> None:
        self.layout = DirectoryLayout(os.path.abspath(path))
        self._is_new = not os.path.exists(self.layout.path)
        os.makedirs(self.layout.path, mode=0o700, exist_ok=True)
        system.refuse_unsafe_volume(self.layout.path)
        if self._is_new:
            system.protect_new_files(self.layout.path)
        self._unfinished_descriptor = self._begin()
        try:
            text = stamp.text().encode()
            os.ftruncate(self._unfinished_descriptor, 0)
            system.pwrite(self._unfinished_descriptor, text, 0)
            system.sync_file(self._unfinished_descriptor)
            # Sync this first: a directory with other files but without the mark is never replaced.
            OsFiles().sync_directory(self.layout.path)
            system.make_directory(self.layout.segments)
        except BaseException:
            os.close(self._unfinished_descriptor)
            raise

    def __enter__(self) -> CopyTarget:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None:
                self._discard()
        finally:
            os.close(self._unfinished_descriptor)

    def private_path(self, name: str) -> str:
        """Return where a file of PRIVATE_NAMES is written; `finish` gives it its name."""
        return os.path.join(self.layout.path, name + _COPYING)

    def finish(self) -> None:
        """Stamp the copy as complete. A copy without the stamp is refused everywhere."""
        files = OsFiles()
        for name in PRIVATE_NAMES:
            if os.path.exists(self.private_path(name)):
                files.rename(self.private_path(name), os.path.join(self.layout.path, name))
        files.sync_directory(self.layout.segments)
        files.sync_directory(self.layout.path)
        files.rename(self.layout.unfinished_copy, self.layout.format)
        files.sync_directory(self.layout.path)
        files.sync_directory(os.path.dirname(self.layout.path))

    def _discard(self) -> None:
        """Delete what was written. What cannot be deleted is left, without the stamp."""
        layout = self.layout
        try:
            for path in _leftovers(layout):
                if path != layout.unfinished_copy:
                    os.unlink(path)
            os.rmdir(layout.segments)
            os.unlink(layout.unfinished_copy)
            if self._is_new:
                os.rmdir(layout.path)
        except OSError as error:
            _log.warning("%s holds the rest of a copy that failed: %s", layout.path, error)

    def _begin(self) -> int:
        """Create or take over UNFINISHED, lock it, and return its descriptor. Refuse a directory
        that holds anything but an unfinished copy."""
        path, mark = self.layout.path, self.layout.unfinished_copy
        names = os.listdir(path)
        if names and os.path.basename(mark) not in names:
            raise FileExistsError(f"{path} is not empty")
        flags = os.O_RDWR | (0 if names else os.O_CREAT | os.O_EXCL)
        try:
            descriptor = system.open_file(mark, flags, follows_links=False)
        except (FileExistsError, FileNotFoundError) as error:  # another copy began or ended now
            raise FileExistsError(f"{path} is not empty") from error
        try:
            _lock(descriptor, path)
            if names:
                self._clear(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _clear(self, descriptor: int) -> None:
        """Delete the leftovers of a killed copy. Delete nothing if the directory holds anything
        else."""
        layout = self.layout
        if not os.path.exists(layout.unfinished_copy) or not os.path.samestat(
            os.fstat(descriptor), os.lstat(layout.unfinished_copy)
        ):
            raise FileExistsError(f"{layout.path} is not empty")  # it was stamped in the meantime
        left = _leftovers(layout)
        _log.warning("%s holds a copy that was interrupted; it is replaced", layout.path)
        for path in left:
            if path != layout.unfinished_copy:
                os.unlink(path)
        if os.path.exists(layout.segments):
            os.rmdir(layout.segments)


def _lock(descriptor: int, path: str) -> None:
    if not lock(descriptor, shared=False, wait=False):
        raise FileExistsError(f"{path} is being written by another backup or restore")


def _leftovers(layout: DirectoryLayout) -> list[str]:
    """Return the files of an unfinished copy. Raises FileExistsError when there is anything
    else."""
    found = []
    for entry in os.scandir(layout.path):
        if entry.name == _SEGMENTS and entry.is_dir(follow_symlinks=False):
            for segment in os.scandir(entry.path):
                _expect(segment, bool(SEGMENT_NAME.fullmatch(segment.name)), layout)
                found.append(segment.path)
        else:
            _expect(entry, entry.name in _FILES, layout)
            found.append(entry.path)
    return found


def _expect(entry: os.DirEntry[str], is_ours: bool, layout: DirectoryLayout) -> None:
    if not is_ours or not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
        raise FileExistsError(
            f"{layout.path} is not empty: besides an unfinished copy it holds {entry.path}"
        )
