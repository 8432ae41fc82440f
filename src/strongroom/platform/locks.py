"""Locks on files and folders, between processes.

The promise: while a process holds a file's exclusive lock, no other holds a lock on that file. A
lock belongs to an open file. It is free when that file is closed or its process ends in any way,
`kill -9` included. Network file systems may break the promise. Sources: flock(2); "LockFileEx" in
the documentation of Windows.

    lock(descriptor, shared=, wait=)    take the lock; False if another holds it and `wait` is False
    open_directory(path)                a descriptor of a folder, to lock it; OSError with
    EOPNOTSUPP on Windows, which locks no folders open_folder_lock(path)              a descriptor
    that stands for a folder in `locked_folder`
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from strongroom.platform import IS_POSIX

if IS_POSIX:
    from strongroom.platform.posix import lock, open_directory, open_folder_lock
else:
    from strongroom.platform.windows.locks import lock, open_directory, open_folder_lock

__all__ = ["lock", "locked_folder", "open_directory"]


@contextmanager
def locked_folder(path: str) -> Iterator[int]:
    """Hold the exclusive lock of a folder; wait for it. The value is a descriptor: `sync_file` of
    it makes the names in the folder durable. Raises OSError."""
    descriptor = open_folder_lock(path)
    try:
        lock(descriptor, shared=False, wait=True)
        yield descriptor
    finally:
        os.close(descriptor)
