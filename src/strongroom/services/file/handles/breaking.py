"""OPLOCK_BREAK: acknowledgements."""

from __future__ import annotations

from strongroom.semantics.file.oplocks import Caching, OplockLevel
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import Handle


def acknowledge_oplock(services: Services, handle: Handle, level: int) -> OplockLevel:
    """The holder of an oplock answers a notice.

    Returns: the level that is left. Raises: StorageError as smb.md 2.12 lists them.
    """
    raise NotImplementedError


def acknowledge_lease(
    services: Services, client_guid: bytes, lease_key: bytes, state: int
) -> Caching:
    """The holder of a lease answers a notice.

    Returns: the state that is left. Raises: StorageError as smb.md 2.12 lists them.
    """
    raise NotImplementedError
