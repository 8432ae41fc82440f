"""How lists show a deleted container or share.

Must not live here: which ones are listed. Source: "List Containers", "List Shares".
"""

from __future__ import annotations

import msgspec

from strongroom.values import rfc1123


class DeletedItem(msgspec.Struct, frozen=True):
    """When a container or share was deleted (ticks), for how many days it is kept, its version."""

    time: int
    remaining_days: int
    version: str

    def named(self) -> str:
        """The elements behind the name."""
        return f"<Deleted>true</Deleted><Version>{self.version}</Version>"

    def properties(self) -> str:
        """The elements at the end of the properties."""
        return (
            f"<DeletedTime>{rfc1123(self.time)}</DeletedTime>"
            f"<RemainingRetentionDays>{self.remaining_days}</RemainingRetentionDays>"
        )
