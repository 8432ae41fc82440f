"""Waiting until something holds, with a limit that only a defect reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.01


def until(holds: Callable[[], bool], complaint: str) -> None:
    """Return once `holds` returns True."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, complaint
        time.sleep(_PAUSE_S)


async def soon(holds: Callable[[], bool], complaint: str) -> None:
    """Like `until`, on an event loop. `holds` is called in a thread, since it may ask a server."""
    end = time.monotonic() + PATIENCE_S
    while True:
        if await asyncio.to_thread(holds):
            return
        assert time.monotonic() < end, complaint
        await asyncio.sleep(_PAUSE_S)
