"""LOCK."""

from __future__ import annotations

from collections.abc import Sequence

from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import AsyncRequest, Handle, LockWanted


async def lock(
    services: Services,
    handle: Handle,
    wanted: Sequence[LockWanted],
    request: AsyncRequest,
    *,
    fails_immediately: bool,
) -> None:
    """Take all locks or none. Only a single one may wait.

    Raises: StorageError LOCK_NOT_GRANTED, INVALID_LOCK_RANGE, CANCELLED; RANGE_NOT_LOCKED when the
        handle is closed while it waits.
    """
    raise NotImplementedError


async def unlock(services: Services, handle: Handle, ranges: Sequence[tuple[int, int]]) -> None:
    """Free locks; those before a range that is not locked stay freed.

    Raises: StorageError RANGE_NOT_LOCKED.
    """
    raise NotImplementedError
