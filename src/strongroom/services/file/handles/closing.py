"""CLOSE, lost connections and forced closes."""

from __future__ import annotations

from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import Handle, HandleOwner, NodeInfo


async def close(
    services: Services, handle: Handle, *, wants_attributes: bool = False
) -> NodeInfo | None:
    """Close a handle: its locks and its cache go, and the file with it if its deletion is pending.

    Arguments:
        wants_attributes: SMB2_CLOSE_FLAG_POSTQUERY_ATTRIB: as they were before the close.

    Raises: StorageError HANDLE_CLOSED.
    """
    raise NotImplementedError


async def disconnected(services: Services, owner: HandleOwner) -> None:
    """Close all handles of a session whose connection, or which itself, has gone."""
    raise NotImplementedError


async def tree_disconnected(services: Services, owner: HandleOwner, handles: list[Handle]) -> None:
    """Close the handles of a tree."""
    raise NotImplementedError
