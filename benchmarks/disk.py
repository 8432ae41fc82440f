"""The speed of the disk itself in the same run: append and fdatasync, without any server."""

import os
import time
from pathlib import Path
from typing import Final

_BLOCK_BYTES: Final = 4 << 20
_FILE_BYTES_MAX: Final = 1 << 30


def append_and_sync_mb_s(folder: Path, duration_s: float) -> float:
    """Return megabytes per second of 4 MiB appends with an fdatasync after each.

    A durable upload of one block after another has to do at least this work.
    """
    count, elapsed_s = _append(folder, os.urandom(_BLOCK_BYTES), duration_s)
    return count * _BLOCK_BYTES / 1e6 / elapsed_s


def syncs_per_s(folder: Path, duration_s: float) -> float:
    """Return how often per second 1 KiB can be appended and synced."""
    count, elapsed_s = _append(folder, os.urandom(1024), duration_s)
    return count / elapsed_s


def _append(folder: Path, block: bytes, duration_s: float) -> tuple[int, float]:
    path = folder / "raw-append"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    count, began = 0, time.monotonic()
    try:
        while (elapsed_s := time.monotonic() - began) < duration_s:
            if (count + 1) * len(block) > _FILE_BYTES_MAX:
                break
            os.write(descriptor, block)
            os.fdatasync(descriptor)
            count += 1
        return count, max(elapsed_s, 1e-9)
    finally:
        os.close(descriptor)
        path.unlink()
