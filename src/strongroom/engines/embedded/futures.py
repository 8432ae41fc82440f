"""Futures that no caller need await.

Lives here: how asyncio is kept from logging their exceptions as never retrieved. Must not live
here: work.
"""

from __future__ import annotations

import asyncio
from typing import Any


def retrieved(future: asyncio.Future[Any]) -> None:
    """Retrieve the exception of `future`, as its callback: the engine reports failures by
    itself."""
    if not future.cancelled():
        future.exception()
