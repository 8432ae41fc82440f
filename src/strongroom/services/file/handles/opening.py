"""TREE_CONNECT and CREATE."""

from __future__ import annotations

from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import (
    AsyncRequest,
    HandleOwner,
    OpenedHandle,
    OpenWanted,
    ShareAccess,
)


async def connect_share(services: Services, account: str, name: str) -> ShareAccess:
    """The share that a tree is connected to, whatever the case of its name.

    Raises: StorageError ShareNotFound (BAD_NETWORK_NAME).
    """
    raise NotImplementedError


async def open_node(
    services: Services,
    access: ShareAccess,
    wanted: OpenWanted,
    owner: HandleOwner,
    request: AsyncRequest,
) -> OpenedHandle:
    """Open a file or directory, in the order of checks of smb.md 2.4.

    Arguments:
        request: is told before the open waits for the break of a cache, and may be cancelled then.

    Raises: StorageError; CANCELLED when the request was cancelled.
    """
    raise NotImplementedError
