"""The `timeout` of a request, and the error when the request has not ended by then.

Lives here: the limit, and the record of what a request is waiting for. Must not live here: the
waits themselves (waiting.py; services/file/opens/admission.py for the caches of SMB clients).
Source: "Setting timeouts" of the Azure Storage REST reference; smb.md 4.5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode, StorageError

T = TypeVar("T")

# Set while one request runs; each request has its own task.
_WAITS: Final[ContextVar[list[ErrorCode] | None]] = ContextVar("waits", default=None)


async def with_timeout(result: Awaitable[T], limit_s: float) -> T:
    """Raises: StorageError OperationTimedOut, or the error of the wait that was in progress at the
    limit."""
    waits: list[ErrorCode] = []
    token = _WAITS.set(waits)
    try:
        async with asyncio.timeout(limit_s):
            return await result
    except TimeoutError:
        raise StorageError(waits[-1] if waits else errors.OPERATION_TIMED_OUT) from None
    finally:
        _WAITS.reset(token)


@contextmanager
def waiting(timeout_error: ErrorCode) -> Iterator[None]:
    """Within this context, a request whose `timeout` ends is answered with `timeout_error`."""
    waits = _WAITS.get()
    if waits is None:
        yield
        return
    waits.append(timeout_error)
    try:
        yield
    except asyncio.CancelledError:
        raise  # the wait stays in the list, for with_timeout
    except BaseException:
        waits.remove(timeout_error)
        raise
    waits.remove(timeout_error)
