"""Futures that nobody need wait for.

Lives here: how their failures are kept from being logged as forgotten. Must not live here: work.
"""

from __future__ import annotations

import asyncio
from typing import Any


def retrieved(future: asyncio.Future[Any]) -> None:
    """Take note of a failure, as a callback of `future`: the engine tells of it by itself."""
    if not future.cancelled():
        future.exception()
