"""A process in which what Linux has and other systems lack is taken away, before the package is
imported.

    python -m tests.platforms.deprived SYSTEM ACTION [ARGUMENT...]

SYSTEM is `windows`, `fat` (Windows with another file system), `macos`, or `neither` (without the
locks of any system). ACTION is a function of actions.py. The standard library is imported before
anything is taken away, and nothing of the package is.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import importlib
import mmap
import multiprocessing  # noqa: F401
import os
import select
import selectors
import shutil
import signal
import socket
import ssl  # noqa: F401
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import time
import uuid  # noqa: F401
from typing import Any, Final

from tests.platforms import windows_kernel

_POSIX_MODULES: Final = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "syslog")
_LINUX_OS: Final = (
    "O_DIRECT", "O_NOATIME", "O_PATH", "O_TMPFILE", "copy_file_range", "fdatasync", "pipe2",
    "posix_fadvise", "posix_fallocate", "sched_getaffinity", "sched_setaffinity", "eventfd",
    "memfd_create", "splice",
)  # fmt: skip
_POSIX_OS: Final = (
    "O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "O_NOCTTY",
    "P_ALL", "WEXITED", "WNOHANG", "WNOWAIT", "chown", "fchmod", "fchown", "fork", "forkpty",
    "fstatvfs", "geteuid", "getegid", "getgid", "getpgrp", "getuid", "killpg", "lchown",
    "lockf", "mkfifo", "pread", "preadv", "pwrite", "pwritev", "register_at_fork", "sendfile",
    "setsid", "statvfs", "sysconf", "sync", "tcgetpgrp", "tcsetpgrp", "uname", "waitid",
)  # fmt: skip
_MAPPINGS: Final = (
    "MAP_ANONYMOUS",
    "MAP_ANON",
    "MAP_PRIVATE",
    "MAP_SHARED",
    "PROT_WRITE",
    "PROT_READ",
)
_SIGNALS: Final = ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGCONT", "SIGTTOU")
_FULL_SYNC: Final = 51  # F_FULLFSYNC of macOS
_LINUX_C: Final = ("fallocate", "malloc_trim", "mallopt", "prctl", "sync_file_range")


def _remove(module: Any, *names: str) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def _no_signal_handler(*arguments: object) -> None:
    raise NotImplementedError


def as_windows(file_system: str | None = "NTFS") -> None:
    """Leave what Python has on Windows; without a file system, no kernel of Windows either."""
    shutil._use_fd_functions = False  # type: ignore[attr-defined] # as shutil decides on Windows
    if file_system is not None:
        windows_kernel.install(ctypes, file_system)
    for name in _POSIX_MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    _remove(os, *_LINUX_OS, *_POSIX_OS)
    _remove(signal, *_SIGNALS)
    _remove(mmap, *_MAPPINGS)
    _remove(select, "poll", "epoll")
    _remove(time, "clock_gettime", "clock_gettime_ns", "CLOCK_BOOTTIME", "CLOCK_MONOTONIC")
    selectors.DefaultSelector = selectors.SelectSelector  # type: ignore[misc,assignment]
    socket.SO_EXCLUSIVEADDRUSE = socket.SO_REUSEADDR  # type: ignore[attr-defined]
    loops = importlib.import_module("asyncio.unix_events")
    loops._UnixSelectorEventLoop.add_signal_handler = _no_signal_handler
    loops._UnixSelectorEventLoop.remove_signal_handler = _no_signal_handler
    asyncio.new_event_loop = _no_default_loop
    ctypes.CDLL = _CdllOfWindows  # type: ignore[misc]


def _no_default_loop() -> asyncio.AbstractEventLoop:
    raise AssertionError("Python's default loop for Windows is not the one that was chosen")


class _CdllOfWindows(ctypes.CDLL):
    def __init__(self, name: str | None, *arguments: Any, **options: Any) -> None:
        if name is None:
            raise TypeError("Windows has no handle of the whole process")
        super().__init__(name, *arguments, **options)


class _CdllOfMac(ctypes.CDLL):
    def __getattr__(self, name: str) -> Any:
        if name in _LINUX_C:
            raise AttributeError(name)
        return super().__getattr__(name)


def as_macos() -> None:
    """Leave what Python has on macOS, where only F_FULLFSYNC reaches the disk."""
    sync, control = os.fsync, fcntl.fcntl

    def controlled(descriptor: Any, command: int, argument: Any = 0) -> Any:
        return sync(descriptor) if command == _FULL_SYNC else control(descriptor, command, argument)

    def halfway(descriptor: int) -> None:
        raise OSError(errno.EIO, "a sync that ends in the cache of the drive")

    changed: Any = fcntl
    changed.F_FULLFSYNC, changed.fcntl = _FULL_SYNC, controlled
    changed = os
    changed.fsync = halfway
    _remove(os, *_LINUX_OS)
    _remove(time, "CLOCK_BOOTTIME")
    _remove(select, "epoll")
    selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc,assignment]
    ctypes.CDLL = _CdllOfMac  # type: ignore[misc]


def main() -> None:
    """Take away what the system lacks, and run the action."""
    system, action, *arguments = sys.argv[1:]
    loaded = [name for name in sys.modules if name.startswith("strongroom")]
    assert not loaded, f"imported too early: {loaded}"
    if system == "macos":
        as_macos()
    else:
        as_windows({"windows": "NTFS", "fat": "exFAT", "neither": None}[system])
    actions = importlib.import_module("tests.platforms.actions")
    getattr(actions, action)(*arguments)


if __name__ == "__main__":
    main()
