"""SQLite on a simulated disk: an apsw VFS that reports SQLite's writes and syncs to the disk.

Lives here: the VFS. Must not live here: what survives a power cut (disk.py). The shared-memory file
is not recorded, because SQLite rebuilds it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from types import TracebackType
from typing import Final

import apsw

from strongroom.engines.embedded.records.bound_pages import (
    PAGE_BYTES,
    has_bound_pages,
    masked,
)
from strongroom.engines.embedded.records.checksummed_pages import (
    CHECKSUM_VFS,
    register_checksum_vfs,
)
from strongroom.engines.embedded.records.database_space import CHUNK_BYTES
from tests.engines.disks.disk import Disk

# SQLite's own unix VFS syncs the directory with the first sync of a new file of these kinds.
_SYNCS_ITS_NAME: Final = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


class DiskVfs(apsw.VFS):
    """The VFS `name` on `disk`. Use it in a `with` statement, which unregisters it at the end."""

    def __init__(self, disk: Disk, name: str) -> None:
        self.name = name
        self.disk = disk
        register_checksum_vfs()
        super().__init__(name, CHECKSUM_VFS)

    def __enter__(self) -> DiskVfs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unregister()

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        if name is None:
            return apsw.VFSFile(CHECKSUM_VFS, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        return _DiskVfsFile(self.disk, name, os.path.abspath(path), flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        try:
            self.disk.begin_operation("unlink", filename)
        except OSError as error:
            raise _as_sqlite(error, apsw.SQLITE_IOERR_DELETE) from error
        super().xDelete(filename, syncdir)
        if self.disk.exists(filename):
            self.disk.unlinked(filename)
        if syncdir:
            self.disk.directory_synced(os.path.dirname(filename))


class _DiskVfsFile(apsw.VFSFile):
    def __init__(
        self, disk: Disk, name: str | apsw.URIFilename, path: str, flags: list[int]
    ) -> None:
        self._disk = disk
        self._path = path
        self._sync_name = False
        self._has_bound_pages = has_bound_pages(name, flags)
        super().__init__(CHECKSUM_VFS, name, flags)
        if not disk.exists(path):
            disk.created(path)
            self._sync_name = bool(flags[0] & _SYNCS_ITS_NAME)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        try:
            self._disk.begin_operation("write", self._path)
            self._disk.require_room(self._path, len(data), offset)
        except OSError as error:
            raise _as_sqlite(error, apsw.SQLITE_IOERR_WRITE) from error
        page = bytearray(data)  # the checksum VFS adds its checksum
        super().xWrite(page, offset)
        is_page = self._has_bound_pages and len(page) == PAGE_BYTES
        self._disk.written(self._path, masked(bytes(page), offset) if is_page else page, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        try:
            self._disk.begin_operation("truncate", self._path)
        except OSError as error:
            raise _as_sqlite(error, apsw.SQLITE_IOERR_TRUNCATE) from error
        super().xTruncate(newsize)
        self._disk.truncated(self._path, newsize)

    def xFileControl(self, op: int, ptr: int) -> bool:  # noqa: N802
        if op == apsw.SQLITE_FCNTL_SIZE_HINT:
            self._lengthen(ctypes.c_int64.from_address(ptr).value)
        return super().xFileControl(op, ptr)

    def _lengthen(self, size_bytes: int) -> None:
        """Extend the file with zeros to the size that SQLite has announced, in whole chunks."""
        end_bytes = self._disk.size_bytes(self._path)
        missing_bytes = -(-size_bytes // CHUNK_BYTES) * CHUNK_BYTES - end_bytes
        if missing_bytes <= 0:
            return
        try:
            self._disk.begin_operation("write", self._path)
            self._disk.written(self._path, bytes(missing_bytes), end_bytes)
        except OSError as error:
            raise apsw.IOError("disk I/O error") from error

    def xSync(self, flags: int) -> None:  # noqa: N802
        try:
            self._disk.begin_operation("sync", self._path)
        except OSError as error:
            raise _as_sqlite(error, apsw.SQLITE_IOERR_FSYNC) from error
        self._disk.synced(self._path)
        if self._sync_name:
            self._sync_name = False
            self._disk.directory_synced(os.path.dirname(self._path))


def _as_sqlite(error: OSError, code: int) -> apsw.Error:
    if error.errno == errno.ENOSPC:
        return apsw.FullError("database or disk is full")
    failure = apsw.IOError("disk I/O error")
    failure.extendedresult = code  # type: ignore[attr-defined]  # not in the stubs of apsw
    return failure
