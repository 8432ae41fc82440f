"""The snapshots of a share, as SMB lists and finds them: previous versions.

Must not live here: tokens (semantics/file/previous_versions.py), opens in a snapshot (opening.py),
Snapshot Share (shares/share_snapshots.py). Sources: [MS-SMB2] sections 3.3.5.9.4 and 3.3.5.15.1;
smb.md 2.4 and 2.7.
"""

from __future__ import annotations

import msgspec

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import previous_versions
from strongroom.services.core.runner import Services
from strongroom.services.file.node.access import share_of
from strongroom.services.file.node.origins import TreeOrigin
from strongroom.services.file.opens.open_handle import ShareAccess


async def tokens(services: Services, access: ShareAccess) -> list[str]:
    """Newest first."""
    share = await share_of(services, TreeOrigin(access))
    return previous_versions.tokens(share.snapshots)


async def access_at(services: Services, access: ShareAccess, ticks: int) -> ShareAccess:
    share = await share_of(services, TreeOrigin(access))
    snapshot = previous_versions.snapshot_at(share.snapshots, ticks)
    if snapshot is None:
        raise StorageError(file_errors.SNAPSHOT_UNKNOWN)
    return msgspec.structs.replace(access, snapshot=snapshot)
