"""A simulated kernel of Windows: the calls that the package makes, on the files of this machine.

What it keeps of the real one, and what the package has to cope with:

- A file that was not opened with the right to delete it (SHARE_DELETE) can be neither removed nor
  renamed, and a file that is open at all cannot be replaced. Python's own `open` gives no such
  right.
- A lock belongs to one opening of a file. It is free when that is closed or the process ends.
  Shared locks exclude the exclusive one. A lock that is not waited for fails with
  ERROR_LOCK_VIOLATION.
- Directories cannot be opened as files. A sync needs a descriptor for writing.
- A new file is readable by everybody, unless a security descriptor says who may use it. Here the
  mode stands for it: 0600 and 0700 if only its owner, the system and administrators may.
- A renaming that is not written through may be lost, so it is refused here.

What it does not keep: locks of bytes (a whole file is locked), the rights themselves, removal of a
file that is open and stays visible until it is closed, as on older systems. Arguments are converted
by the types that the package has given to ctypes, so that a wrong type is an error here too.

Sources: "CreateFileW", "LockFileEx", "MoveFileExW", "FlushFileBuffers" of Microsoft's
documentation.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import types
from collections.abc import Callable
from typing import Any, Final

_HANDLES_FROM: Final = 0x10000
_INVALID_HANDLE: Final = (1 << 64) - 1
_GENERIC_WRITE, _GENERIC_READ = 0x4000_0000, 0x8000_0000
_SHARE_DELETE: Final = 0x4
_NOT_FOUND, _ACCESS_DENIED, _SHARING_VIOLATION, _LOCK_VIOLATION = 2, 5, 32, 33
_EXISTS, _PARAMETER, _DIRECTORY, _FULL = 80, 87, 267, 112
_CODES: Final = {
    errno.ENOENT: _NOT_FOUND,
    errno.EEXIST: _EXISTS,
    errno.ENOTDIR: 3,
    errno.EMFILE: 4,
    errno.EACCES: _ACCESS_DENIED,
    errno.EISDIR: _ACCESS_DENIED,
    errno.ENOSPC: _FULL,
}
# The functions as they were before anything was taken away.
_open, _close, _fsync, _fstat, _stat = os.open, os.close, os.fsync, os.fstat, os.stat
_replace, _unlink, _mkdir, _chmod, _statvfs = os.replace, os.unlink, os.mkdir, os.chmod, os.statvfs
_listdir = os.listdir
_flock, _fcntl, _getfl = fcntl.flock, fcntl.fcntl, fcntl.F_GETFL
_shared, _exclusive, _at_once = fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_NB
_directory_flag, _append = os.O_DIRECTORY, os.O_APPEND
_identity: Final[dict[int, tuple[int, int]]] = {}  # descriptors that permit removal -> their file


class Refused(Exception):
    """A call failed, with a number of winerror.h."""


class SimulatedKernel:
    """kernel32 and advapi32.

    Arguments:
        file_system: what the volume of every path says that it is.
    """

    def __init__(self, file_system: str) -> None:
        self.file_system = file_system
        self.last_error = 0
        self._descriptors: dict[int, str] = {}

    def WinDLL(self, name: str, use_last_error: bool) -> _Library:  # noqa: N802
        """See ctypes.WinDLL."""
        assert use_last_error and name in ("kernel32", "advapi32"), name
        return _Library(self)

    def get_last_error(self) -> int:
        """See ctypes.get_last_error."""
        return self.last_error

    def CreateFileW(  # noqa: N802
        self,
        path: str,
        access: int,
        share: int,
        security: Any,
        disposition: int,
        attributes: int,
        template: None,
    ) -> int:
        if os.path.isdir(path):
            raise Refused(_ACCESS_DENIED)
        flags = {_GENERIC_READ: os.O_RDONLY, _GENERIC_WRITE: os.O_WRONLY}.get(access, os.O_RDWR)
        flags |= {1: os.O_CREAT | os.O_EXCL, 3: 0, 4: os.O_CREAT}[disposition]
        descriptor = _open(path, flags, 0o644 if security is None else self._mode_of(security))
        if share & _SHARE_DELETE:
            found = _fstat(descriptor)
            _identity[descriptor] = (found.st_dev, found.st_ino)
        else:
            _identity.pop(descriptor, None)
        return _HANDLES_FROM + descriptor

    def CreateDirectoryW(self, path: str, security: Any) -> int:  # noqa: N802
        _mkdir(path, 0o755 if security is None else self._mode_of(security))
        return 1

    def SetFileSecurityW(self, path: str, what: int, descriptor: Any) -> int:  # noqa: N802
        assert what == 4, "the list of who may use it"
        _chmod(path, self._mode(descriptor.value))
        return 1

    def LockFileEx(  # noqa: N802
        self, handle: int, flags: int, reserved: int, low: int, high: int, place: Any
    ) -> int:
        at = place._obj.offset + (place._obj.offset_high << 32)
        assert (reserved, low, high) == (0, 1, 0), "one byte"
        assert at > 1 << 60, "bytes of the content could not be read while they are locked"
        how = (_exclusive if flags & 2 else _shared) | (_at_once if flags & 1 else 0)
        try:
            _flock(handle - _HANDLES_FROM, how)
        except BlockingIOError:
            raise Refused(_LOCK_VIOLATION) from None
        return 1

    def MoveFileExW(self, source: str, target: str, flags: int) -> int:  # noqa: N802
        if not flags & 8:
            raise Refused(_PARAMETER)
        refuse_open(source)
        if os.path.exists(target) and not flags & 1:
            raise Refused(_EXISTS)
        if os.path.exists(target) and _openings(target):
            raise Refused(_ACCESS_DENIED)
        _replace(source, target)
        return 1

    def GetDiskFreeSpaceExW(  # noqa: N802
        self, path: str, free: Any, total: None, all_free: None
    ) -> int:
        if not os.path.isdir(path):
            raise Refused(_DIRECTORY)
        facts = _statvfs(path)
        free._obj.value = facts.f_bavail * facts.f_frsize
        return 1

    def GetVolumePathNameW(self, path: str, root: Any, length: int) -> int:  # noqa: N802
        root.value = "C:\\"
        return 1

    def GetVolumeInformationW(  # noqa: N802
        self, root: str, *rest: Any
    ) -> int:
        assert root.endswith("\\"), "the root of a volume ends so"
        rest[-2].value = self.file_system
        return 1

    def ConvertStringSecurityDescriptorToSecurityDescriptorW(  # noqa: N802
        self, sddl: str, revision: int, made: Any, size: None
    ) -> int:
        number = 1 + max(self._descriptors, default=0)
        self._descriptors[number] = sddl
        made._obj.value = number
        return 1

    def LocalFree(self, descriptor: Any) -> None:  # noqa: N802
        del self._descriptors[descriptor.value]

    def leaked(self) -> int:
        """Return how many security descriptors were not freed."""
        return len(self._descriptors)

    def _mode_of(self, security: Any) -> int:
        assert not security._obj.inherits, "a child process must not keep a lock"
        return self._mode(security._obj.descriptor)

    def _mode(self, number: int) -> int:
        sddl = self._descriptors[number]
        assert sddl.startswith("D:P("), "what the folder permits must not be inherited"
        permitted = {entry.rsplit(";", 1)[1] for entry in sddl[3:].strip("()").split(")(")}
        bits = 0o700 if "OICI" in sddl else 0o600
        return bits if permitted == {"OW", "SY", "BA"} else bits | 0o055


class _Library:
    """One of the two libraries. Its functions convert their arguments as ctypes does."""

    def __init__(self, kernel: SimulatedKernel) -> None:
        self._kernel = kernel

    def __getattr__(self, name: str) -> _Function:
        return _Function(self._kernel, getattr(self._kernel, name))


class _Function:
    restype: Any = None
    argtypes: tuple[Any, ...] = ()

    def __init__(self, kernel: SimulatedKernel, act: Callable[..., Any]) -> None:
        self._kernel, self._act = kernel, act

    def __call__(self, *arguments: Any) -> Any:
        assert len(arguments) == len(self.argtypes), (self._act.__name__, arguments)
        for kind, argument in zip(self.argtypes, arguments, strict=True):
            kind.from_param(argument)
        self._kernel.last_error = 0  # each call replaces the error of the one before
        try:
            return self._act(*arguments)
        except Refused as refused:
            self._kernel.last_error = refused.args[0]
        except OSError as error:
            self._kernel.last_error = _CODES[error.errno or 0]
        return _INVALID_HANDLE if self._act.__name__ == "CreateFileW" else 0


def msvcrt() -> types.ModuleType:
    """Return the module that turns handles into descriptors."""
    made = types.ModuleType("msvcrt")
    made.open_osfhandle = lambda handle, flags: handle - _HANDLES_FROM  # type: ignore[attr-defined]
    made.get_osfhandle = lambda descriptor: _HANDLES_FROM + descriptor  # type: ignore[attr-defined]
    return made


def _openings(path: str) -> list[int]:
    """Return the descriptors of this process that have a file open."""
    wanted = os.lstat(path)
    found = []
    for name in _listdir("/proc/self/fd"):
        try:
            opened = _fstat(int(name))
        except OSError:
            continue  # the one of the list itself
        if (opened.st_dev, opened.st_ino) == (wanted.st_dev, wanted.st_ino):
            found.append(int(name))
    return found


def refuse_open(path: str) -> None:
    """Raise Refused if a file is open without the right to remove or rename it."""
    found = os.lstat(path)
    for descriptor in _openings(path):
        if _identity.get(descriptor) != (found.st_dev, found.st_ino):
            raise Refused(_SHARING_VIOLATION)


def restrict_os() -> None:
    """Let the functions of `os` do no more than they do on Windows."""

    def opened(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        if not options and os.path.isdir(path):
            raise PermissionError(errno.EACCES, "a directory cannot be opened", path)
        descriptor = _open(path, flags, mode, **options)
        _identity.pop(descriptor, None)
        return descriptor

    def synced(descriptor: int) -> None:
        if _fcntl(descriptor, _getfl) & (os.O_WRONLY | os.O_RDWR) == 0:
            raise OSError(errno.EBADF, "a sync needs a descriptor for writing")
        _fsync(descriptor)

    def removed(path: Any, **options: Any) -> None:
        if not options:
            try:
                refuse_open(os.fspath(path))
            except Refused:
                raise PermissionError(errno.EACCES, "the file is open", path) from None
        _unlink(path, **options)

    def replaced(source: Any, target: Any) -> None:
        raise AssertionError(f"{target} was replaced without a write-through")

    changed: dict[str, Any] = {
        "open": opened,
        "fsync": synced,
        "unlink": removed,
        "remove": removed,
    }
    changed |= {"replace": replaced, "rename": replaced}
    for name, act in changed.items():
        setattr(os, name, act)


def is_private(path: str) -> bool:
    """Return whether only its owner can use a file."""
    return not stat.S_IMODE(_stat(path).st_mode) & 0o077


def install(ctypes_module: Any, file_system: str) -> SimulatedKernel:
    """Put a simulated kernel where the package looks for the real one."""
    kernel = SimulatedKernel(file_system)
    ctypes_module.WinDLL, ctypes_module.get_last_error = kernel.WinDLL, kernel.get_last_error
    sys.modules["msvcrt"] = msvcrt()
    restrict_os()
    return kernel
