"""Create Symbolic Link, Get Symbolic Link, Create Hard Link: refused, since every share is for SMB.

Sources: "Create Symbolic Link", "Read Symbolic Link", "Create Hard Link", each with the
availability by protocol; reference file.md 5.
"""

from __future__ import annotations

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import Call
from strongroom.services.core.places import check_place, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file.snapshots.past_states import require_snapshot


async def refuse_link(services: Services, call: Call[None]) -> None:
    """Only shares for NFS have links. The share is checked first."""
    (share,) = await services.store.read([place_ref(call)])
    check_place(call, share)
    if call.target.snapshot is not None:
        require_snapshot(call, share)
    raise StorageError(file_errors.LINKS_REFUSED)
