"""Waiting for commits that go on when whoever began them is cancelled.

Lives here: `to_its_end`, for all that must not end before its commit: holds, entries and registers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(commit: Awaitable[T]) -> T:
    """Wait for a commit even if the caller is cancelled meanwhile, also more than once: nothing
    that depends on it may begin before."""
    deciding = asyncio.ensure_future(commit)
    try:
        return await asyncio.shield(deciding)
    except asyncio.CancelledError:
        # After the time of a request is over, its client may leave too, and cancel it again.
        while not deciding.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((deciding,))
        if not deciding.cancelled():
            # Nobody is left to receive the error; fetching it keeps asyncio from logging it.
            deciding.exception()
        raise
    finally:
        # The traceback of an error has this frame, and the task has the error: a cycle.
        del commit, deciding
