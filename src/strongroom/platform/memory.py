"""Memory from the system, and the C library of this process.

Sources: mmap(2); "CreateFileMapping" of Windows.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable
from typing import Final

PROT_WRITE: Final[int] = getattr(mmap, "PROT_WRITE", 0)
MAP_SHARED: Final[int] = getattr(mmap, "MAP_SHARED", 0)
_new_mapping: Final[Callable[..., mmap.mmap]] = mmap.mmap
_PRIVATE: Final[int] = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)


def new_memory(size_bytes: int) -> mmap.mmap:
    """Return new memory that begins at a page. It takes no space until it is used. Raises
    OSError."""
    # The third argument is a name on Windows, so its type differs.
    kind = (_PRIVATE,) if _PRIVATE else ()
    return _new_mapping(-1, size_bytes, *kind)


@functools.cache  # each one made would leave a cycle of objects
def c_library() -> ctypes.CDLL | None:
    """Return the C library of this process; None if its functions cannot be reached by name."""
    try:
        return ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):
        return None
