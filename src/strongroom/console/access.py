"""Whose records a viewer may read, and where it may act: by the server's own rules.

Lives here: the questions to `auth.authorize`. Reading a record here needs what Get Blob of that
record needs, and an act needs what Put Blob needs. Must not live here: who the viewer is
(servers/console/viewers.py).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from strongroom.auth.authorize import Permission, authorize
from strongroom.auth.claims import BearerClaim, SharedKeyClaim
from strongroom.auth.request import Service, Target
from strongroom.errors.core import StorageError
from strongroom.operations.blob.blob import GET_BLOB, PUT_BLOB
from strongroom.values import PublicAccess


class Access(msgspec.Struct, frozen=True):
    """What one request to the coordination view may see and do.

    Attributes:
        claim: the proof of who asks, which was verified.
        is_operator: whether it may see the further stores.
        label: what records say about who acted.
        wall_ticks: the current wall time.
    """

    claim: SharedKeyClaim | BearerClaim
    is_operator: bool
    label: str
    wall_ticks: Callable[[], int]

    @property
    def account(self) -> str:
        """The account whose records are asked for."""
        return self.claim.account

    def may_read(self, container: str, key: str | None = None) -> bool:
        """Return whether the viewer may read the records of a container."""
        return self._may(GET_BLOB.permission, container, key)

    def may_act(self, container: str, key: str | None = None) -> bool:
        """Return whether the viewer may write the records of a container."""
        return self._may(PUT_BLOB.permission, container, key)

    def _may(self, needs: Permission, container: str, key: str | None) -> bool:
        target = Target(Service.BLOB, self.account, container, key)
        now = self.wall_ticks()
        try:
            grant = authorize(
                self.claim,
                needs,
                target,
                PublicAccess.NONE,
                (),
                now_wall_ticks=now,
                peer_ip="127.0.0.1",
                tls=True,
                version=None,
            )
        except StorageError:
            return False
        return grant.may_overwrite or needs is GET_BLOB.permission
