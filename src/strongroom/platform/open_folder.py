"""A folder held open: what is done in it happens there, wherever its path leads later.

The promise: a name is looked up below the folder that was opened. So it is never looked up below
one that was mounted over it since, or in a mount point without its mount. Windows has no such
calls.

Lives here: `OpenFolder`. All calls raise OSError, and may be made from any thread. Sources:
openat(2), unlinkat(2), renameat(2).
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from typing import BinaryIO, Final

from strongroom.platform import IS_POSIX, UnsupportedSystem
from strongroom.platform.files import sync_file
from strongroom.platform.locks import open_directory

_NO_LINKS: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final[int] = getattr(os, "O_DIRECTORY", 0)
# A pipe would be waited for until somebody writes to it.
_AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0)
_NO_FILE: Final = (errno.ELOOP, errno.ENXIO)
"""What is there is a link, or a socket."""


class OpenFolder:
    """A folder. It is closed when nobody refers to it any more.

    Arguments:
        path: of a folder that exists.

    Attributes:
        identity: of the folder, among all of this machine.
    """

    def __init__(self, path: str) -> None:
        if not IS_POSIX:
            raise UnsupportedSystem("a folder cannot be held open on this system")
        self._descriptor = open_directory(path)
        weakref.finalize(self, os.close, self._descriptor)
        self.identity = identity_of(os.fstat(self._descriptor))

    def create(self, name: str) -> int:
        """It must not exist yet. Return a descriptor for writing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS
        return os.open(name, flags, 0o600, dir_fd=self._descriptor)

    def reader(self, name: str) -> BinaryIO:
        """Return an unbuffered file for reading. Anything but a file is missing."""
        flags = os.O_RDONLY | _NO_LINKS | _AT_ONCE
        try:
            descriptor = os.open(name, flags, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno in _NO_FILE:
                raise _missing(name) from None
            raise
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _missing(name)
        except BaseException:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "rb", buffering=0)

    def make_folder(self, name: str) -> None:
        """For its owner alone."""
        os.mkdir(name, 0o700, dir_fd=self._descriptor)

    def names(self, folder: str = ".") -> list[str]:
        """Return what is in a folder below, or in this one."""
        descriptor = os.open(folder, os.O_RDONLY | _FOLDER | _NO_LINKS, dir_fd=self._descriptor)
        try:
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)

    def state(self, name: str) -> tuple[int, float]:
        """Return the length of a file in bytes, and when it was changed, by its server's clock.
        Anything but a file is missing."""
        found = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            raise _missing(name)
        return found.st_size, found.st_mtime

    def rename(self, source: str, target: str) -> None:
        """The target is replaced."""
        os.replace(source, target, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def unlink(self, name: str) -> None:
        os.unlink(name, dir_fd=self._descriptor)

    def sync(self, folder: str = ".") -> None:
        """The names in a folder below, or in this one, become durable."""
        descriptor = os.open(folder, os.O_RDONLY | _FOLDER | _NO_LINKS, dir_fd=self._descriptor)
        try:
            sync_file(descriptor)
        finally:
            os.close(descriptor)


def _missing(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "it is no file", name)


def identity_of(found: os.stat_result) -> tuple[int, int]:
    """Return by which numbers a file or folder is known on this machine."""
    return found.st_dev, found.st_ino


def identity_at(path: str) -> tuple[int, int]:
    """Return the identity of what a path leads to now. Raises: OSError."""
    return identity_of(os.stat(path))
