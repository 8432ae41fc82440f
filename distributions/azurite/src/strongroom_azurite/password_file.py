"""The password of `--pwd` as a file that only this process reads, while it serves.

Lives here: where that file lies. Must not live here: what it protects (strongroom reads PFX files).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def password_file(password: str) -> Iterator[Path]:
    """Provide the file. On Linux it lies in memory: a container may have no folder to write to."""
    content = password.encode()
    if sys.platform == "linux":
        number = os.memfd_create("azurite-password")
        try:
            os.write(number, content)
            yield Path(f"/proc/self/fd/{number}")
        finally:
            os.close(number)
    else:
        with tempfile.TemporaryDirectory(prefix="azurite-") as folder:  # its owner's only
            path = Path(folder, "password")
            path.write_bytes(content)
            yield path
