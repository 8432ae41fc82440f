"""The directory that a backup, a restore, an import or a copy of a store writes.

Lives here: how such a directory is started and stamped as complete, and how the leftovers of a
killed backup are recognised and replaced. Must not live here: what is copied into it (backup.py,
strongroom/importing/).

    UNFINISHED      the first file, locked while the copy is made
    FORMAT          UNFINISHED is renamed to it when everything else is durable
    building/       a data directory of its own, in which an import writes with the engine

So a directory has UNFINISHED or FORMAT. If UNFINISHED exists and is not locked, the command was
killed. A copy that fails deletes what it has written, unless it can go on later.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Final

from strongroom.engines.embedded.disk.directory import (
    RECORDS_NAME,
    SEGMENT_NAME,
    DirectoryLayout,
    Format,
)
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.platform import files as system
from strongroom.platform.locks import lock

# What an operator keeps beside the records. It holds secrets, so a backup has it on request only.
PRIVATE_NAMES: Final = ("accounts.json", "roles.json")
# An operator may put such a file into an unfinished copy too. So ours has another name until the
# end: nothing of the operator's is ever taken for a leftover.
_COPYING: Final = ".copying"
_SEGMENTS: Final = "segments"
_BUILDING: Final = "building"
# The files of the directory in which an import writes, besides the records.
_BUILT: Final = frozenset({"FORMAT", "FORMAT.new", "LOCK", "BACKUP", "ballast"})
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
        beside: names of files of others, which may be there and are left alone.
        goes_on: returns whether the rest of a killed copy is used, rather than replaced. Such a
            copy stays when it fails.

    Attributes:
        is_resumed: whether the rest of a killed copy is used.

    Raises: FileExistsError (it holds something else, or another copy is being made in it), OSError;
        whatever `goes_on` raises.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        stamp: Format,
        beside: Collection[str] = (),
        goes_on: Callable[[DirectoryLayout], bool] | None = None,
    ) -> None:
        self._beside = frozenset(beside)
        self._goes_on = goes_on
        self.is_resumed = False
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
            if not self.is_resumed:
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
            if error is not None and self._goes_on is None:
                self._discard()
        finally:
            os.close(self._unfinished_descriptor)

    def private_path(self, name: str) -> str:
        """Of a file of PRIVATE_NAMES; `finish` gives it its name."""
        return os.path.join(self.layout.path, name + _COPYING)

    @property
    def building(self) -> str:
        """Where an import opens a store."""
        return os.path.join(self.layout.path, _BUILDING)

    def adopt_built(self) -> None:
        """Make the records and segments of the closed store in `building` those of this one."""
        files, built = OsFiles(), DirectoryLayout(self.building)
        for name in os.listdir(built.path):
            if name.startswith(RECORDS_NAME):
                files.rename(os.path.join(built.path, name), os.path.join(self.layout.path, name))
        os.rmdir(self.layout.segments)
        files.rename(built.segments, self.layout.segments)
        for name in os.listdir(built.path):
            files.unlink(os.path.join(built.path, name))
        os.rmdir(built.path)

    def finish(self) -> None:
        """A copy without the stamp is refused everywhere."""
        files = OsFiles()
        for name in PRIVATE_NAMES:
            if os.path.exists(self.private_path(name)):
                files.rename(self.private_path(name), os.path.join(self.layout.path, name))
        files.sync_directory(self.layout.segments)
        files.sync_directory(self.layout.path)
        files.rename(self.layout.unfinished_copy, self.layout.format)
        files.sync_directory(self.layout.path)
        _sync_folders_above(self.layout.path)

    def _discard(self) -> None:
        """What cannot be deleted is left, without the stamp."""
        layout = self.layout
        try:
            _delete(_leftovers(layout, self._beside), layout)
            os.unlink(layout.unfinished_copy)
            if self._is_new:
                os.rmdir(layout.path)
        except OSError as error:
            _log.warning("%s holds the rest of a copy that failed: %s", layout.path, error)

    def _begin(self) -> int:
        """Create or take over UNFINISHED, lock it, and return its descriptor. Refuse a directory
        that holds anything but an unfinished copy."""
        path, mark = self.layout.path, self.layout.unfinished_copy
        names = set(os.listdir(path)) - self._beside
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
                self._take_over(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _take_over(self, descriptor: int) -> None:
        """Use the leftovers of a killed copy, or delete them. Delete nothing if the directory holds
        anything else."""
        layout = self.layout
        if not os.path.exists(layout.unfinished_copy) or not os.path.samestat(
            os.fstat(descriptor), os.lstat(layout.unfinished_copy)
        ):
            raise FileExistsError(f"{layout.path} is not empty")  # it was stamped in the meantime
        left = _leftovers(layout, self._beside)
        if self._goes_on is not None:
            self.is_resumed = self._goes_on(layout)
            left = _leftovers(layout, self._beside)  # SQLite removes its log when it has looked
        if self.is_resumed:
            return
        _log.warning("%s holds a copy that was interrupted; it is replaced", layout.path)
        _delete(left, layout)


def _sync_folders_above(path: str) -> None:
    """Make the name of a folder durable, and those of the folders above it, which may be as new."""
    device, folder = os.stat(path).st_dev, os.path.dirname(path)
    OsFiles().sync_directory(folder)
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        if os.stat(folder).st_dev != device:
            return
        try:
            OsFiles().sync_directory(folder)
        except PermissionError:  # nothing was made in a folder that this user cannot read
            return


def _delete(left: list[str], layout: DirectoryLayout) -> None:
    """Delete the leftovers of a copy, except for its mark, and then their folders."""
    building = os.path.join(layout.path, _BUILDING)
    for path in left:
        if path != layout.unfinished_copy:
            os.unlink(path)
    for folder in (layout.segments, os.path.join(building, _SEGMENTS), building):
        if os.path.exists(folder):
            os.rmdir(folder)


def _lock(descriptor: int, path: str) -> None:
    if not lock(descriptor, shared=False, wait=False):
        raise FileExistsError(f"{path} is being written by another backup, restore, import or copy")


def _leftovers(layout: DirectoryLayout, beside: Collection[str]) -> list[str]:
    """Return the files of an unfinished copy. Raises FileExistsError when there is anything
    else."""
    found: list[str] = []
    for entry in os.scandir(layout.path):
        if entry.name in beside:
            continue
        if entry.name == _BUILDING and entry.is_dir(follow_symlinks=False):
            found += _files_in(entry.path, _BUILT | _FILES, layout)
        else:
            found += _files_of(entry, _FILES, layout)
    return found


def _files_in(folder: str, names: Collection[str], layout: DirectoryLayout) -> list[str]:
    return [path for entry in os.scandir(folder) for path in _files_of(entry, names, layout)]


def _files_of(
    entry: os.DirEntry[str], names: Collection[str], layout: DirectoryLayout
) -> list[str]:
    """Return a file of these names, or all files of the folder of the segments."""
    if entry.name != _SEGMENTS or not entry.is_dir(follow_symlinks=False):
        _expect(entry, entry.name in names, layout)
        return [entry.path]
    found = list(os.scandir(entry.path))
    for segment in found:
        _expect(segment, bool(SEGMENT_NAME.fullmatch(segment.name)), layout)
    return [segment.path for segment in found]


def _expect(entry: os.DirEntry[str], is_ours: bool, layout: DirectoryLayout) -> None:
    if not is_ours or not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
        raise FileExistsError(
            f"{layout.path} is not empty: besides an unfinished copy it holds {entry.path}"
        )
