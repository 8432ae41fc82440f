"""Guards carry the fencing token of a hold to a resource and make it refuse an older one.

Lives here: `Guards`, what `held.guard` is; one module per kind of resource, imported when it is
asked for. A guard takes anything that has `name`, `fence` and `check()`: a handle, or the name and
the fence as they were sent to another process (`Token`). Must not live here: handles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.coordination.guards.fencing import Fenced, FencedOut, Token

if TYPE_CHECKING:
    from strongroom.coordination.guards.blob import BlobGuard

__all__ = ["Fenced", "FencedOut", "Guards", "Token"]


class Guards:
    """The guards of one hold.

    Arguments:
        held: what they carry to the resources.
    """

    def __init__(self, held: Fenced) -> None:
        self._held = held

    def blob(self, url: str, *, timeout_s: float = 10.0) -> BlobGuard:
        """Return the guard of the blobs in a container; see `blob.BlobGuard`."""
        from strongroom.coordination.guards.blob import BlobGuard

        return BlobGuard(self._held, url, timeout_s=timeout_s)
