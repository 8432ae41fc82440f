"""Locks on files, with LockFileEx.

A lock covers one byte far behind the end of any file, because Windows refuses reads and writes of
locked bytes. A file that is locked is opened without the right to delete it, so nobody can put
another file in its place. Source: "LockFileEx" and "Locking and Unlocking Byte Ranges in Files" in
the documentation of Windows: the system frees the locks of a process that ends.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from strongroom.platform import FOLDER_LOCK_NAME
from strongroom.platform.windows.files import open_file
from strongroom.platform.windows.kernel import (
    LOCK_EXCLUSIVE,
    LOCK_FAIL_IMMEDIATELY,
    kernel,
)

_LOCKED_BYTE: Final = (1 << 63) - 2


def lock(descriptor: int, *, shared: bool, wait: bool) -> bool:
    flags = (0 if shared else LOCK_EXCLUSIVE) | (0 if wait else LOCK_FAIL_IMMEDIATELY)
    return kernel().lock(descriptor, flags, _LOCKED_BYTE)


def open_directory(path: str) -> int:
    """Windows locks no folders."""
    raise OSError(errno.EOPNOTSUPP, "folders cannot be locked", path)


def open_folder_lock(path: str) -> int:
    """A file in the folder stands for it."""
    name = os.path.join(path, FOLDER_LOCK_NAME)
    return open_file(name, os.O_RDWR | os.O_CREAT, keeps_name=True)
