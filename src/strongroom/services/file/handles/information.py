"""QUERY_INFO and SET_INFO but for names and dispositions."""

from __future__ import annotations

from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import AsyncRequest, BasicWanted, Handle, NodeInfo


async def attributes(services: Services, handle: Handle) -> NodeInfo:
    """All that the information classes show. Rights are the caller's to check (`handle.may`)."""
    raise NotImplementedError


async def set_basic(services: Services, handle: Handle, wanted: BasicWanted) -> None:
    """FileBasicInformation. Raises: StorageError ACCESS_DENIED, INVALID_PARAMETER."""
    raise NotImplementedError


async def set_end_of_file(
    services: Services, handle: Handle, size_bytes: int, request: AsyncRequest
) -> None:
    """FileEndOfFileInformation. Raises: StorageError ACCESS_DENIED, INVALID_PARAMETER,
    DISK_FULL."""
    raise NotImplementedError


async def set_allocation(
    services: Services, handle: Handle, size_bytes: int, request: AsyncRequest
) -> None:
    """FileAllocationInformation: less than the end truncates, more is reserved until the last
    close. Raises: as set_end_of_file."""
    raise NotImplementedError


async def security(services: Services, handle: Handle) -> str:
    """The security descriptor as SDDL. Rights are the caller's to check."""
    raise NotImplementedError


async def set_security(
    services: Services, handle: Handle, text: str, request: AsyncRequest
) -> None:
    """Store a whole security descriptor; the caller has put its parts into the one that was there.

    Raises: StorageError FileInvalidPermission.
    """
    raise NotImplementedError
