"""The source of an import: a folder that Azurite wrote, read without following links.

Lives here: which files belong to it, how they are opened, whether they changed meanwhile. Must not
live here: what is in the databases (documents.py). No name from a database becomes a path: the id
of an extent must be a UUID, in the form in which Azurite writes it.

A file or folder that is replaced during the import, be it by a link, changes the signature of the
folder. So the import is refused at its end.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import OrderedDict
from collections.abc import Container, Iterator
from typing import BinaryIO, Final

from strongroom.importing.documents import (
    DATABASES,
    EXTENT_DATABASES,
    EXTENT_FOLDERS,
    ZEROS,
    ExtentRange,
)

PEER_NAMES: Final = frozenset((*DATABASES, *EXTENT_DATABASES, *EXTENT_FOLDERS))
"""The names in such a folder."""
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
# A pipe in the place of a file is opened without waiting for a writer, and then refused.
_FLAG_NAMES: Final = ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
_FLAGS: Final[int] = sum(getattr(os, name, 0) for name in _FLAG_NAMES)
_OPEN_EXTENTS_MAX: Final = 64
_PIECE_BYTES: Final = 256 * 1024
_NO_BYTES: Final = bytes(_PIECE_BYTES)
_State = tuple[int, int, int, int]
_Signature = dict[str, _State]


class ImportRefused(Exception):
    """The import cannot be made; the text says why, and what to do."""


class NotAnAzuriteFolder(ImportRefused):
    """The folder has no database of Azurite, or a part of it cannot be opened."""


class FolderChanged(ImportRefused):
    """A file of the folder changed during the import."""


class ExtentRefused(Exception):
    """A record names bytes that cannot be read; the text says why."""


def is_azurite_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder has one of Azurite's databases. Raises OSError if it cannot be
    listed."""
    return not set(DATABASES).isdisjoint(os.listdir(path))


class Folder:
    """A folder of Azurite, as it is now.

    Raises: NotAnAzuriteFolder, OSError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        if not is_azurite_folder(self.path):
            raise NotAnAzuriteFolder(
                f"{self.path} is not a folder of Azurite: it has none of {', '.join(DATABASES)}"
            )
        self._begun = self._signature()

    def size_bytes(self, name: str) -> int:
        """Return the length of a database; 0 if there is none."""
        return self._begun[name][0] if name in self._begun else 0

    def open(self, name: str) -> BinaryIO | None:
        """Open a database; None if there is none. Raises NotAnAzuriteFolder, OSError."""
        try:
            return os.fdopen(_open_file(os.path.join(self.path, name)), "rb", buffering=0)
        except FileNotFoundError:
            return None

    def extents(self, name: str) -> ExtentFiles:
        """Return the files of one of EXTENT_FOLDERS; it may be absent. Raises
        NotAnAzuriteFolder."""
        path = os.path.join(self.path, name)
        if os.path.lexists(path) and not stat.S_ISDIR(os.lstat(path).st_mode):
            raise _not_plain(path, "folder")
        return ExtentFiles(path)

    def require_unchanged(self) -> None:
        """Check that no file was written, added or removed since the folder was opened.

        Raises: FolderChanged.
        """
        now = self._signature()
        changed = {name for name, _ in now.items() ^ self._begun.items()}
        if changed:
            raise FolderChanged(
                f"{os.path.join(self.path, min(changed))} changed while it was imported. Stop "
                "Azurite, and import again."
            )

    def _signature(self) -> _Signature:
        """Return what changes when a file of the folder is written: by name, its length, time of
        change, inode and time of change of that."""
        states = dict(_states(self.path, PEER_NAMES))
        for folder in EXTENT_FOLDERS:
            if folder in states and stat.S_ISDIR(os.lstat(os.path.join(self.path, folder)).st_mode):
                inner = _states(os.path.join(self.path, folder))
                states |= {f"{folder}/{name}": state for name, state in inner}
        return states


class ExtentFiles:
    """The files with the bodies of one service. Use it in a `with` statement.

    A few stay open. Each is a regular file of the folder, and no link.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: OrderedDict[str, int] = OrderedDict()

    def __enter__(self) -> ExtentFiles:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def check(self, extent: ExtentRange) -> None:
        """Check that the bytes are there. Raises ExtentRefused."""
        if extent.offset < 0 or extent.count < 0:
            raise ExtentRefused(f"the range {extent.offset} + {extent.count} is negative")
        if not extent.count or extent.id == ZEROS:
            return
        size_bytes = os.fstat(self._file(extent.id)).st_size
        if extent.offset + extent.count > size_bytes:
            raise ExtentRefused(
                f"its bytes reach to {extent.offset + extent.count}, but the file {extent.id} has "
                f"{size_bytes} bytes"
            )

    def read(self, extent: ExtentRange) -> Iterator[bytes]:
        """Yield the bytes, in pieces. Raises ExtentRefused."""
        self.check(extent)
        at, left = extent.offset, extent.count
        while left:
            size_bytes = min(left, _PIECE_BYTES)
            if extent.id == ZEROS:
                piece = _NO_BYTES[:size_bytes]
            else:
                piece = self._read_file(extent.id, size_bytes, at)
            yield piece
            at, left = at + len(piece), left - len(piece)

    def _read_file(self, extent_id: str, size_bytes: int, offset: int) -> bytes:
        try:
            piece = _read_at(self._file(extent_id), size_bytes, offset)
        except OSError as error:
            raise ExtentRefused(f"the file {extent_id} cannot be read: {error.strerror}") from error
        if not piece:
            raise ExtentRefused(f"the file {extent_id} became shorter")
        return piece

    def _file(self, extent_id: str) -> int:
        """Return the descriptor of an extent's file. Raises ExtentRefused."""
        if extent_id in self._open:
            self._open.move_to_end(extent_id)
            return self._open[extent_id]
        if _UUID.fullmatch(extent_id) is None:
            raise ExtentRefused(f"{extent_id[:80]!r} is not the UUID of a file with bodies")
        try:
            descriptor = _open_file(os.path.join(self._path, extent_id))
        except FileNotFoundError:
            raise ExtentRefused(f"the file {extent_id} is missing") from None
        except (NotAnAzuriteFolder, OSError) as error:
            raise ExtentRefused(f"the file {extent_id} cannot be used: {error}") from error
        self._open[extent_id] = descriptor
        if len(self._open) > _OPEN_EXTENTS_MAX:
            os.close(self._open.popitem(last=False)[1])
        return descriptor


def _read_at(descriptor: int, size_bytes: int, offset: int) -> bytes:
    # Windows has no pread; nothing else moves the position of these descriptors.
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size_bytes)


def _open_file(path: str) -> int:
    """Open a regular file. Raises NotAnAzuriteFolder for anything else; OSError."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise _not_plain(path, "file")
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_plain(path, "file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_plain(path, "file")
    return descriptor


def _not_plain(path: str, what: str) -> NotAnAzuriteFolder:
    return NotAnAzuriteFolder(f"{path} is no plain {what}; links are not followed")


def _states(folder: str, names: Container[str] | None = None) -> Iterator[tuple[str, _State]]:
    """Yield the name and the signature of each file of a folder, or of those of some names."""
    for name in os.listdir(folder):
        if names is None or name in names:
            status = os.lstat(os.path.join(folder, name))
            yield name, (status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)
