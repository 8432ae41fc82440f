"""What differs between operating systems: the one place that knows it.

Lives here: files, locks, syncs, private files, signals, limits and readiness of sockets. Each comes
with the promise that its callers rely on. `posix.py` keeps the promises with the calls of POSIX,
and `windows/` with those of Windows. Where that is impossible, the call raises UnsupportedSystem.
The page docs/platforms.md has the promises, how each system keeps them, and what was tried.
"""

from __future__ import annotations

import importlib
from typing import Final


class UnsupportedSystem(OSError):
    """This system cannot keep a promise; the text says which one, and why."""


FOLDER_LOCK_NAME: Final = "folder.lock"
"""The file that stands for a folder where folders cannot be locked; see locks.py."""


def _has(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


IS_POSIX: Final = _has("fcntl")
"""Whether the calls of POSIX are there. Python for Windows has no `fcntl`."""
