"""FileRenameInformation and FileDispositionInformation."""

from __future__ import annotations

from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import AsyncRequest, Handle, RenameWanted


async def set_disposition(
    services: Services, handle: Handle, *, delete: bool, request: AsyncRequest
) -> None:
    """Mark for deletion, or take it back.

    Raises: StorageError ACCESS_DENIED, CANNOT_DELETE, DIRECTORY_NOT_EMPTY.
    """
    raise NotImplementedError


async def rename(
    services: Services, handle: Handle, wanted: RenameWanted, request: AsyncRequest
) -> None:
    """Rename, in the order of checks of smb.md 3.7."""
    raise NotImplementedError
