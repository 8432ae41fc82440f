"""Bytes in memory as a file, for libraries that read files only.

Source: memfd_create(2).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from strongroom.platform.files import open_file

# Linux only: elsewhere no path leads to an open file.
_new_memory_file: Final[Callable[[str], int] | None] = (
    getattr(os, "memfd_create", None) if sys.platform == "linux" else None
)


@contextmanager
def file_of_bytes(content: bytes) -> Iterator[str]:
    """Yield a path from which this process, and no other user, can read the bytes meanwhile.

    On Linux they stay in memory, since a container may have no folder that can be written.
    Elsewhere the file lies in a folder for temporary files. Raises OSError.
    """
    if _new_memory_file is not None:
        with os.fdopen(_new_memory_file("strongroom"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.TemporaryDirectory(prefix="strongroom-") as folder:
            path = os.path.join(folder, "content")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            with os.fdopen(open_file(path, flags), "wb") as file:
                file.write(content)
            yield path
