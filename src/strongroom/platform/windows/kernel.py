"""The calls of kernel32 and advapi32 that Python's own library does not make.

Lives here: their types, and how their errors become OSError. Source: the documentation of the
Windows API, a page for each function.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import wintypes
from typing import Any, Final

from strongroom.platform import UnsupportedSystem

GENERIC_READ: Final = 0x8000_0000
GENERIC_WRITE: Final = 0x4000_0000
SHARE_READ_WRITE: Final = 0x1 | 0x2
SHARE_DELETE: Final = 0x4
CREATE_NEW: Final = 1
OPEN_EXISTING: Final = 3
OPEN_ALWAYS: Final = 4
ATTRIBUTE_NORMAL: Final = 0x80
FLAG_OPEN_REPARSE_POINT: Final = 0x0020_0000  # open a link itself, not what it names
LOCK_FAIL_IMMEDIATELY: Final = 0x1
LOCK_EXCLUSIVE: Final = 0x2
MOVE_REPLACE_EXISTING: Final = 0x1
MOVE_WRITE_THROUGH: Final = 0x8
DACL_SECURITY_INFORMATION: Final = 0x4

_ERROR_LOCK_VIOLATION: Final = 33
_ERROR_IO_PENDING: Final = 997
_SDDL_REVISION_1: Final = 1
_INVALID_HANDLE: Final = ctypes.c_void_p(-1).value
_NAME_LENGTH_MAX: Final = 261
_PATH_LENGTH_MAX: Final = 32_768
# Numbers of winerror.h, and what Python's own functions raise for them.
_ERRNO_OF: Final = {
    2: errno.ENOENT,
    3: errno.ENOENT,
    4: errno.EMFILE,
    5: errno.EACCES,
    8: errno.ENOMEM,
    32: errno.EACCES,
    33: errno.EACCES,
    39: errno.ENOSPC,
    80: errno.EEXIST,
    112: errno.ENOSPC,
    183: errno.EEXIST,
    206: errno.ENAMETOOLONG,
    1295: errno.EDQUOT,
}


class Overlapped(ctypes.Structure):
    """OVERLAPPED: the position of a lock."""

    _fields_ = (
        ("internal", ctypes.c_void_p),
        ("internal_high", ctypes.c_void_p),
        ("offset", wintypes.DWORD),
        ("offset_high", wintypes.DWORD),
        ("event", wintypes.HANDLE),
    )


class SecurityAttributes(ctypes.Structure):
    """SECURITY_ATTRIBUTES: who may use a new file; children inherit no handle of it."""

    _fields_ = (
        ("length", wintypes.DWORD),
        ("descriptor", ctypes.c_void_p),
        ("inherits", wintypes.BOOL),
    )


class Kernel:
    """The calls. Each raises OSError.

    Raises: UnsupportedSystem: this is not Windows either.
    """

    def __init__(self) -> None:
        try:
            self._msvcrt: Any = importlib.import_module("msvcrt")
            libraries: Any = ctypes
            self._last_error = libraries.get_last_error
            kernel32 = libraries.WinDLL("kernel32", use_last_error=True)
            advapi32 = libraries.WinDLL("advapi32", use_last_error=True)
        except (ImportError, AttributeError, OSError) as error:
            raise UnsupportedSystem(
                "this Python has neither the locks of POSIX (fcntl) nor those of Windows (msvcrt, "
                "kernel32), so nothing would keep a second server out of a data directory. Data is "
                "kept on Linux, macOS and Windows with CPython only; serve with --in-memory here"
            ) from error
        text, number, pointer = wintypes.LPCWSTR, wintypes.DWORD, ctypes.c_void_p
        handle, truth = wintypes.HANDLE, wintypes.BOOL
        calls: Mapping[str, tuple[Any, Any, tuple[Any, ...]]] = {
            "CreateFileW": (
                kernel32,
                handle,
                (text, number, number, pointer, number, number, handle),
            ),
            "CreateDirectoryW": (kernel32, truth, (text, pointer)),
            "LockFileEx": (kernel32, truth, (handle, number, number, number, number, pointer)),
            "MoveFileExW": (kernel32, truth, (text, text, number)),
            "GetDiskFreeSpaceExW": (kernel32, truth, (text, pointer, pointer, pointer)),
            "GetVolumePathNameW": (kernel32, truth, (text, wintypes.LPWSTR, number)),
            "GetVolumeInformationW": (
                kernel32,
                truth,
                (text, pointer, number, pointer, pointer, pointer, wintypes.LPWSTR, number),
            ),
            "LocalFree": (kernel32, pointer, (pointer,)),
            "ConvertStringSecurityDescriptorToSecurityDescriptorW": (
                advapi32,
                truth,
                (text, number, pointer, pointer),
            ),
            "SetFileSecurityW": (advapi32, truth, (text, number, pointer)),
        }
        self._calls = {name: _typed(name, *row) for name, row in calls.items()}

    def open_file(
        self,
        path: str,
        access: int,
        share: int,
        disposition: int,
        attributes: int,
        sddl: str | None,
    ) -> int:
        """Open or create a file; return a descriptor that belongs to it.

        Arguments:
            sddl: who may use the file if it is created; None: as the folder says.
        """
        with self._security(sddl) as security:
            place = (path, access, share, security, disposition, attributes, None)
            handle = self._calls["CreateFileW"](*place)
            # At the end of the block, another call replaces the error.
            if handle is None or handle == _INVALID_HANDLE:
                raise self._error(path)
        # Without a flag for text, the descriptor is binary.
        return int(self._msvcrt.open_osfhandle(handle, 0))

    def make_directory(self, path: str, sddl: str) -> None:
        with self._security(sddl) as security:
            self._check(self._calls["CreateDirectoryW"](path, security), path)

    def protect(self, path: str, sddl: str) -> None:
        """Replace the list of who may use a file or directory."""
        with self._descriptor(sddl) as descriptor:
            done = self._calls["SetFileSecurityW"](path, DACL_SECURITY_INFORMATION, descriptor)
            self._check(done, path)

    def lock(self, descriptor: int, flags: int, position: int) -> bool:
        """One byte. Return False if it is locked and may not be waited for."""
        place = Overlapped(offset=position & 0xFFFF_FFFF, offset_high=position >> 32)
        handle = self._msvcrt.get_osfhandle(descriptor)
        if self._calls["LockFileEx"](handle, flags, 0, 1, 0, ctypes.byref(place)):
            return True
        if self._last_error() in (_ERROR_LOCK_VIOLATION, _ERROR_IO_PENDING):
            return False
        raise self._error("a lock")

    def move(self, source: str, target: str, flags: int) -> None:
        self._check(self._calls["MoveFileExW"](source, target, flags), target)

    def free_bytes(self, path: str) -> int:
        """Return how many more bytes this user may write to the volume of a directory."""
        free = ctypes.c_uint64()
        self._check(self._calls["GetDiskFreeSpaceExW"](path, ctypes.byref(free), None, None), path)
        return free.value

    def file_system(self, path: str) -> str:
        """Return the name of the file system on the volume of `path`, for example NTFS."""
        root = ctypes.create_unicode_buffer(_PATH_LENGTH_MAX)
        self._check(self._calls["GetVolumePathNameW"](path, root, _PATH_LENGTH_MAX), path)
        name = ctypes.create_unicode_buffer(_NAME_LENGTH_MAX)
        wanted = (root.value, None, 0, None, None, None, name, _NAME_LENGTH_MAX)
        done = self._calls["GetVolumeInformationW"](*wanted)
        self._check(done, path)
        return name.value

    @contextmanager
    def _descriptor(self, sddl: str) -> Iterator[ctypes.c_void_p]:
        """Yield the security descriptor that `sddl` describes; free it afterwards."""
        made = ctypes.c_void_p()
        convert = self._calls["ConvertStringSecurityDescriptorToSecurityDescriptorW"]
        self._check(convert(sddl, _SDDL_REVISION_1, ctypes.byref(made), None), sddl)
        try:
            yield made
        finally:
            self._calls["LocalFree"](made)

    @contextmanager
    def _security(self, sddl: str | None) -> Iterator[object]:
        """Yield the argument that gives a new file its security descriptor."""
        if sddl is None:
            yield None
            return
        with self._descriptor(sddl) as descriptor:
            length = ctypes.sizeof(SecurityAttributes)
            yield ctypes.byref(SecurityAttributes(length, descriptor, inherits=False))

    def _check(self, done: object, path: str) -> None:
        if not done:
            raise self._error(path)

    def _error(self, path: str) -> OSError:
        """Return the last error, of the class that Python gives its own errors."""
        code = self._last_error()
        number = _ERRNO_OF.get(code, errno.EIO)
        return OSError(number, f"{os.strerror(number)} (error {code} of Windows)", path)


def _typed(name: str, library: Any, result: Any, arguments: tuple[Any, ...]) -> Any:
    call = getattr(library, name)
    call.restype, call.argtypes = result, arguments
    return call


@functools.cache
def kernel() -> Kernel:
    """Return the calls; they are loaded when they are first needed. Raises UnsupportedSystem."""
    return Kernel()
