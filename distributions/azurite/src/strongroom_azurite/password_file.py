"""The password of `--pwd` as a file that only this process reads, while it serves.

Lives here: where that file lies. Must not live here: what it protects (strongroom reads PFX files).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strongroom.platform.file_of_bytes import file_of_bytes


@contextmanager
def password_file(password: str) -> Iterator[Path]:
    """Provide the file."""
    with file_of_bytes(os.fsencode(password)) as path:  # the bytes that were typed
        yield Path(path)
