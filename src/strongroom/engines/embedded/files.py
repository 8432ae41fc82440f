"""The calls with which the embedded engine changes files outside SQLite.

Lives here: one small object with the system calls, so that tests can simulate a disk that fails,
fills up or loses power. Must not live here: what the files mean. Reads need no such object.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Sequence
from typing import Final, Protocol

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# macOS: fsync leaves data in the drive's cache; only this call flushes it.
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)

# Without this flag in the system, writes go through the cache.
_O_DIRECT: Final[int] = getattr(os, "O_DIRECT", 0)

# Linux: start to write the data back, so that the sync at the end of a body has less to wait for.
# This is only a hint: nothing counts as durable because of it.
_WRITE_BACK_BYTES: Final = 256 * 1024
_SYNC_FILE_RANGE_WRITE: Final = 2
_LIBC: Final = ctypes.CDLL(None, use_errno=False)
_SYNC_FILE_RANGE: Final = getattr(_LIBC, "sync_file_range", None)


def _start_write_back(descriptor: int, offset: int, length: int) -> None:
    if _SYNC_FILE_RANGE is not None:
        count, start = ctypes.c_int64(length), ctypes.c_int64(offset)
        _SYNC_FILE_RANGE(descriptor, start, count, _SYNC_FILE_RANGE_WRITE)


def _disable_direct_io(descriptor: int) -> bool:
    """Clear O_DIRECT on a descriptor. A file system may accept the flag at opening and then refuse
    the write. Return False when the flag was not set."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    if not flags & _O_DIRECT:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~_O_DIRECT)
    return True


def _without_first(data: Sequence[memoryview], count: int) -> list[memoryview]:
    """Return the rest of `data` after its first `count` bytes."""
    left: list[memoryview] = []
    for one in data:
        if count < len(one):
            left.append(one[count:])
        count = max(0, count - len(one))
    return left


def is_no_space(error: OSError) -> bool:
    """Return whether `error` says that the disk or a quota is full."""
    return error.errno in _NO_SPACE


def is_too_many_open_files(error: OSError) -> bool:
    """Return whether `error` says that too many files are open."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class Files(Protocol):
    """The calls that change files. All raise OSError; all may be called from any thread."""

    def make_directory(self, path: str) -> None:
        """Create a directory whose parent exists."""
        ...

    def create(self, path: str) -> int:
        """Create a file that does not exist yet. Return a descriptor for writing."""
        ...

    def reopen(self, path: str) -> int:
        """Return a descriptor for writing to an existing file."""
        ...

    def open_past_cache(self, path: str) -> int:
        """Open a file like `reopen`. Where the file system supports it, writes bypass the page
        cache."""
        ...

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of `data` at `offset`."""
        ...

    def write_aligned(self, descriptor: int, data: Sequence[memoryview], offset: int) -> None:
        """Write all of `data` at `offset`, to a descriptor of `open_past_cache`. Addresses, lengths
        and the offset must be aligned (bodies/buffers.py)."""
        ...

    def truncate(self, descriptor: int, length: int) -> None:
        """Cut a file to `length` bytes."""
        ...

    def sync(self, descriptor: int) -> None:
        """Make a file's contents and length durable."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make the entries of a directory durable."""
        ...

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file's directory entry."""
        ...

    def free_bytes(self, path: str) -> int:
        """Return how many more bytes the file system of `path` can hold for this user."""
        ...


class OsFiles:
    """The operating system's files."""

    def make_directory(self, path: str) -> None:
        os.mkdir(path, 0o700)

    def create(self, path: str) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def reopen(self, path: str) -> int:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def open_past_cache(self, path: str) -> int:
        flags = os.O_WRONLY | os.O_CLOEXEC
        try:
            return os.open(path, flags | _O_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return os.open(path, flags)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        written = os.pwrite(descriptor, data, offset)
        while written < len(data):
            # A short write hides its error; the next call raises it.
            rest = memoryview(data)[written:]
            written += os.pwrite(descriptor, rest, offset + written)
        if written >= _WRITE_BACK_BYTES:
            _start_write_back(descriptor, offset, written)

    def write_aligned(self, descriptor: int, data: Sequence[memoryview], offset: int) -> None:
        left = list(data)
        while left:
            try:
                written = os.pwritev(descriptor, left, offset)
            except OSError as error:
                if error.errno != errno.EINVAL or not _disable_direct_io(descriptor):
                    raise
                continue
            if not written:
                raise OSError(errno.EIO, "nothing was written")
            if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & _O_DIRECT:
                _start_write_back(descriptor, offset, written)
            offset += written
            left = _without_first(left, written)

    def truncate(self, descriptor: int, length: int) -> None:
        os.ftruncate(descriptor, length)

    def sync(self, descriptor: int) -> None:
        if _FULL_SYNC is not None:
            fcntl.fcntl(descriptor, _FULL_SYNC)
        elif hasattr(os, "fdatasync"):
            os.fdatasync(descriptor)
        else:
            os.fsync(descriptor)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def free_bytes(self, path: str) -> int:
        facts = os.statvfs(path)
        return facts.f_bavail * facts.f_frsize


def write_file(files: Files, path: str, data: bytes) -> None:
    """Create a file with `data`. It is durable except for its name: sync the directory for that."""
    descriptor = files.create(path)
    try:
        files.write_at(descriptor, data, 0)
        files.sync(descriptor)
    finally:
        files.close(descriptor)
