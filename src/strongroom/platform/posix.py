"""The promises about files, with the calls of POSIX.

Lives here: the calls for Linux and macOS. Must not live here: which system this is (files.py,
locks.py and limits.py choose). Sources: flock(2), fdatasync(2), open(2), sync_file_range(2),
getrlimit(2); fcntl(2) of macOS on F_FULLFSYNC.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import importlib
import mmap
import os
import stat
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final

from strongroom.platform.memory import c_library

# Type checkers for Windows know none of these names, so they are reached through values of any
# type. Each function below has a type of its own.
_os: Final[Any] = os
_fcntl: Final[Any] = fcntl

# macOS: fsync leaves data in the drive's cache; only this call flushes it.
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
# Without this flag in the system, writes go through the cache.
_O_DIRECT: Final[int] = getattr(os, "O_DIRECT", 0)
# Only Linux has the data sync, and macOS does not need it.
_HAS_DATA_SYNC: Final = hasattr(os, "fdatasync")
_SYNC_FILE_RANGE_WRITE: Final = 2


_sync_file_range: Final = getattr(c_library(), "sync_file_range", None)
# macOS lacks the call. Linux drops whole pages only.
_advise: Final[Callable[[int, int, int, int], None] | None] = getattr(_os, "posix_fadvise", None)


def open_file(
    path: str,
    flags: int,
    mode: int = 0o600,
    *,
    follows_links: bool = True,
    keeps_name: bool = False,
) -> int:
    """A name is never kept: POSIX removes names of open files."""
    del keeps_name
    return os.open(path, flags if follows_links else flags | _os.O_NOFOLLOW, mode)


def open_reader(path: str) -> BinaryIO:
    return open(path, "rb", buffering=0)


def open_past_cache(path: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | _O_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, os.O_WRONLY)


def is_past_cache(descriptor: int) -> bool:
    return bool(_fcntl.fcntl(descriptor, _fcntl.F_GETFL) & _O_DIRECT)


def use_cache(descriptor: int) -> bool:
    flags = _fcntl.fcntl(descriptor, _fcntl.F_GETFL)
    if not flags & _O_DIRECT:
        return False
    _fcntl.fcntl(descriptor, _fcntl.F_SETFL, flags & ~_O_DIRECT)
    return True


pread: Final[Callable[[int, int, int], bytes]] = _os.pread
pwrite: Final[Callable[[int, bytes | memoryview, int], int]] = _os.pwrite


def pwritev(descriptor: int, data: Sequence[memoryview], offset: int) -> int:
    return int(_os.pwritev(descriptor, data, offset))


def start_write_back(descriptor: int, offset: int, length: int) -> None:
    if _sync_file_range is not None:
        count, start = ctypes.c_int64(length), ctypes.c_int64(offset)
        _sync_file_range(descriptor, start, count, _SYNC_FILE_RANGE_WRITE)


def forget_cached(descriptor: int, offset: int, length: int) -> None:
    if _advise is not None and length > 0:  # 0 would mean: up to the end of the file
        start = offset // mmap.PAGESIZE * mmap.PAGESIZE
        end = -(-(offset + length) // mmap.PAGESIZE) * mmap.PAGESIZE
        _advise(descriptor, start, end - start, _os.POSIX_FADV_DONTNEED)


def sync_data(descriptor: int) -> None:
    if _FULL_SYNC is None and _HAS_DATA_SYNC:
        _os.fdatasync(descriptor)
    else:
        sync_file(descriptor)


def sync_file(descriptor: int) -> None:
    if _FULL_SYNC is not None:
        _fcntl.fcntl(descriptor, _FULL_SYNC)
    else:
        os.fsync(descriptor)


def sync_directory(path: str) -> None:
    descriptor = open_directory(path)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def open_directory(path: str) -> int:
    return os.open(path, os.O_RDONLY | _os.O_DIRECTORY)


def open_folder_lock(path: str) -> int:
    return open_directory(path)


def rename(source: str, target: str) -> None:
    os.replace(source, target)


def unlink(path: str) -> None:
    os.unlink(path)


def make_directory(path: str) -> None:
    os.mkdir(path, 0o700)


def protect_new_files(directory: str) -> None:
    """Each file has a mode of its own, and SQLite gives its files the database's."""
    del directory


def refuse_unsafe_volume(path: str) -> None:
    """Every file system of these systems can make a name durable."""
    del path


def free_bytes(path: str) -> int:
    facts = _os.statvfs(path)
    return int(facts.f_bavail * facts.f_frsize)


def give_to_owner_of(path: str, made: int | str) -> None:
    if _os.geteuid():
        return
    found = os.stat(path)
    if isinstance(made, int):
        _os.fchown(made, found.st_uid, found.st_gid)
    else:
        _os.chown(made, found.st_uid, found.st_gid, follow_symlinks=False)


def rights_of_others(descriptor: int) -> str:
    mode = os.fstat(descriptor).st_mode
    reads = "r" if mode & (stat.S_IRGRP | stat.S_IROTH) else ""
    writes = "w" if mode & (stat.S_IWGRP | stat.S_IWOTH) else ""
    return reads + writes


def lock(descriptor: int, *, shared: bool, wait: bool) -> bool:
    how = (_fcntl.LOCK_SH if shared else _fcntl.LOCK_EX) | (0 if wait else _fcntl.LOCK_NB)
    try:
        _fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    return True


def open_files_limits() -> tuple[int | None, int | None] | None:
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:
        return None
    soft, hard = (
        None if one == resource.RLIM_INFINITY else int(one)
        for one in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    return soft, hard


def set_open_files_limits(soft: int, hard: int | None) -> None:
    resource: Any = importlib.import_module("resource")
    most = resource.RLIM_INFINITY if hard is None else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
