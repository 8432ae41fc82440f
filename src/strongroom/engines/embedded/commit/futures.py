"""Futures of the engine's work.

Lives here: ending a future with an error, and retrieving an error that nobody awaits, which asyncio
would log otherwise.
"""

from __future__ import annotations

import asyncio
from typing import Any


def retrieve_exception(future: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a future that is done, so that asyncio does not log it.

    It is a callback for futures whose failures the engine reports itself.
    """
    if not future.cancelled():
        future.exception()


def refuse(future: asyncio.Future[Any], error: Exception) -> None:
    """End a future with an error, unless it has ended or its caller has gone."""
    if not future.done():
        future.set_exception(error)
