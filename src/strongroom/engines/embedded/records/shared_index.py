"""Space for SQLite's shared index of the log (`-shm`), before it is mapped into memory.

Lives here: the one system call of SQLite that is replaced, and how a full disk is recognised there.
Must not live here: connections (checksummed_pages.py), the log's own space (log/space.py).

SQLite makes this file longer by writing one byte in each 4 KiB, and then maps it. Where the file
system has smaller blocks (1 KiB is the default of ext4 below 512 MB), most of the file is a hole.
On a full disk a write into a mapped hole ends the process by SIGBUS. So its blocks are allocated in
front of `mmap`, whose replacement reports a full disk to SQLite as an error. Sources: `unixShmMap`
of SQLite's os_unix.c, and "xSetSystemCall" in the documentation of sqlite3_vfs.
"""

from __future__ import annotations

import ctypes
import errno
import threading
from collections.abc import Callable
from typing import Final

import apsw

from strongroom.platform.memory import MAP_SHARED, PROT_WRITE, c_library

# SQLite maps the index in pieces of 32 KiB, each for 4,096 pages of the log. The blocks of further
# pieces are allocated with the first one, as many as a log of 256 MiB needs. A later piece is first
# mapped when a commit is in the log already, which is too late to find the disk full.
PIECE_BYTES: Final = 32 * 1024
AHEAD_BYTES: Final = 8 * PIECE_BYTES

_KEEP_SIZE: Final = 1  # FALLOC_FL_KEEP_SIZE of linux/falloc.h
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_SYSTEM_VFS: Final = "unix"
_MMAP_ARGUMENTS: Final = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
)
_MMAP_TYPE: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, *_MMAP_ARGUMENTS, use_errno=True)
_MAP_FAILED: Final = ctypes.c_void_p(-1).value
_last = threading.local()
_installing = threading.Lock()

Allocate = Callable[[int, int, int, int], int]
"""allocate(descriptor, mode, offset, length): 0, or the error's number."""


def _system_allocate() -> Allocate | None:
    """Return Linux's fallocate; None on systems without it."""
    call = getattr(c_library(), "fallocate", None)
    if call is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)

    def allocate(descriptor: int, mode: int, offset: int, length: int) -> int:
        while call(descriptor, mode, offset, length):
            if (number := ctypes.get_errno()) != errno.EINTR:
                return number
        return 0

    return allocate


def allocate_index(allocate: Allocate, descriptor: int, offset: int, length: int) -> int:
    """Allocate a piece of the index, and further pieces if there is space for them. Return 0, or
    the error's number if the disk is full.

    Any other error is ignored: some file systems cannot allocate ahead.
    """
    number = allocate(descriptor, 0, offset, length)
    if number in _NO_SPACE:
        return number
    if not number and offset % AHEAD_BYTES == 0:
        allocate(descriptor, _KEEP_SIZE, offset + length, AHEAD_BYTES)
    return 0


def mapping(allocate: Allocate) -> Callable[..., int | None]:
    """Return the replacement of `mmap`: it allocates what is mapped for shared writing."""
    library = c_library()
    assert library is not None, "what allocates is a function of this library"
    system_mmap = library.mmap
    system_mmap.restype, system_mmap.argtypes = ctypes.c_void_p, _MMAP_ARGUMENTS

    def map_allocated(
        address: int | None, length: int, access: int, flags: int, descriptor: int, offset: int
    ) -> int | None:
        # An exception would become the address 0, so none may leave.
        try:
            _last.error = 0
            if access & PROT_WRITE and flags & MAP_SHARED and descriptor >= 0:
                _last.error = allocate_index(allocate, descriptor, offset, length)
            if not _last.error:
                mapped: int | None = system_mmap(address, length, access, flags, descriptor, offset)
                return mapped
            ctypes.set_errno(_last.error)
        except BaseException:
            ctypes.set_errno(errno.ENOMEM)
        return _MAP_FAILED

    return map_allocated


# SQLite keeps its address, so it lives as long as the process.
_replacements: Final[list[object]] = []


def allocate_before_mapping() -> None:
    """Let SQLite allocate its shared indexes in this process before it maps them. Idempotent."""
    allocate = _system_allocate()
    with _installing:
        if _replacements or allocate is None:
            return
        replacement = _MMAP_TYPE(mapping(allocate))
        _replacements.append(replacement)
        vfs = apsw.VFS("strongroom-system-calls", base=_SYSTEM_VFS)
        try:
            address = ctypes.cast(replacement, ctypes.c_void_p).value
            vfs.xSetSystemCall("mmap", address or 0)
        finally:
            vfs.unregister()


def is_without_space(error: BaseException) -> bool:
    """Return whether SQLite could not make its shared index long enough, because the disk is full.

    Call it in the thread that got the error, before that thread uses SQLite again.
    """
    code = getattr(error, "extendedresult", None)
    if code == apsw.SQLITE_IOERR_SHMMAP:
        return getattr(_last, "error", 0) in _NO_SPACE
    # The write that makes the file longer failed.
    return code == apsw.SQLITE_IOERR_SHMSIZE
