"""READ, WRITE, FLUSH, and the ranges of a file."""

from __future__ import annotations

from collections.abc import Sequence

from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import AsyncRequest, Handle


async def read(
    services: Services, handle: Handle, offset: int, length: int, request: AsyncRequest
) -> Sequence[bytes]:
    """The bytes of [offset, offset + length) as far as the file goes, in pieces.

    Raises: StorageError END_OF_FILE (offset at or behind the end, length not 0),
        FileLockConflict, ACCESS_DENIED, INVALID_DEVICE_REQUEST (a directory).
    """
    raise NotImplementedError


async def write(
    services: Services,
    handle: Handle,
    offset: int,
    data: bytes | memoryview,
    request: AsyncRequest,
) -> None:
    """Write bytes, durably when this returns; the file grows as far as needed.

    Arguments:
        data: at most 8 MiB.

    Raises: StorageError FileLockConflict, ACCESS_DENIED, DISK_FULL.
    """
    raise NotImplementedError


async def flush(services: Services, handle: Handle, request: AsyncRequest) -> None:
    """Nothing is left to be done: each write is durable before its answer. Raises ACCESS_DENIED."""
    raise NotImplementedError


async def zero_data(
    services: Services, handle: Handle, offset: int, end: int, request: AsyncRequest
) -> None:
    """FSCTL_SET_ZERO_DATA: [offset, end) become zeros, as far as the file goes.

    Raises: StorageError FileLockConflict, ACCESS_DENIED.
    """
    raise NotImplementedError


async def allocated_ranges(
    services: Services, handle: Handle, offset: int, length: int, max_ranges: int
) -> tuple[Sequence[tuple[int, int]], bool]:
    """FSCTL_QUERY_ALLOCATED_RANGES: (offset, length) pairs, and whether that is all of them.

    Raises: StorageError ACCESS_DENIED.
    """
    raise NotImplementedError
