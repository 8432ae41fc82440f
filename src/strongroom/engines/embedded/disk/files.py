"""The calls with which the embedded engine changes files outside SQLite.

Lives here: one small object with the system calls, so that tests can simulate a disk that fails,
fills up or loses power. Reads need no such object.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Final, Protocol

from strongroom.platform import files as system

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# From this size on, the system is told to start writing the data back, so that the sync at the end
# of a body has less to wait for. This is only a hint: nothing counts as durable because of it.
_WRITE_BACK_BYTES: Final = 256 * 1024


def _without_first(data: Sequence[memoryview], count: int) -> list[memoryview]:
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
        """Its parent exists."""
        ...

    def create(self, path: str) -> int:
        """It must not exist yet. Return a descriptor for writing."""
        ...

    def reopen(self, path: str) -> int:
        """Return a descriptor for writing to an existing file."""
        ...

    def open_past_cache(self, path: str) -> int:
        """Like `reopen`. Where the file system supports it, writes bypass the page cache."""
        ...

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None: ...

    def write_aligned(self, descriptor: int, data: Sequence[memoryview], offset: int) -> None:
        """To a descriptor of `open_past_cache`. Addresses, lengths and the offset must be aligned
        (bodies/buffers.py)."""
        ...

    def truncate(self, descriptor: int, length: int) -> None: ...

    def sync(self, descriptor: int) -> None:
        """Contents and length become durable."""
        ...

    def sync_directory(self, path: str) -> None:
        """The entries become durable."""
        ...

    def close(self, descriptor: int) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """The target is replaced."""
        ...

    def unlink(self, path: str) -> None:
        """Only the entry in the directory."""
        ...

    def free_bytes(self, path: str) -> int:
        """How many more bytes the file system of `path` can hold for this user."""
        ...


class OsFiles:
    """The operating system's files."""

    def make_directory(self, path: str) -> None:
        system.make_directory(path)

    def create(self, path: str) -> int:
        return system.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def reopen(self, path: str) -> int:
        return system.open_file(path, os.O_WRONLY)

    def open_past_cache(self, path: str) -> int:
        return system.open_past_cache(path)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> None:
        written = system.pwrite(descriptor, data, offset)
        while written < len(data):
            # A short write hides its error; the next call raises it.
            rest = memoryview(data)[written:]
            written += system.pwrite(descriptor, rest, offset + written)
        if written >= _WRITE_BACK_BYTES:
            system.start_write_back(descriptor, offset, written)

    def write_aligned(self, descriptor: int, data: Sequence[memoryview], offset: int) -> None:
        left = list(data)
        while left:
            try:
                written = system.pwritev(descriptor, left, offset)
            except OSError as error:
                # A file system may accept the descriptor at opening and then refuse the write.
                if error.errno != errno.EINVAL or not system.use_cache(descriptor):
                    raise
                continue
            if not written:
                raise OSError(errno.EIO, "nothing was written")
            if not system.is_past_cache(descriptor):
                system.start_write_back(descriptor, offset, written)
            offset += written
            left = _without_first(left, written)

    def truncate(self, descriptor: int, length: int) -> None:
        os.ftruncate(descriptor, length)

    def sync(self, descriptor: int) -> None:
        system.sync_data(descriptor)

    def sync_directory(self, path: str) -> None:
        system.sync_directory(path)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        system.rename(source, target)

    def unlink(self, path: str) -> None:
        system.unlink(path)

    def free_bytes(self, path: str) -> int:
        return system.free_bytes(path)


def write_file(files: Files, path: str, data: bytes) -> None:
    """Create a file with `data`. It is durable except for its name: sync the directory for that."""
    descriptor = files.create(path)
    try:
        files.write_at(descriptor, data, 0)
        files.sync(descriptor)
    finally:
        files.close(descriptor)
