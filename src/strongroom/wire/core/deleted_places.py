"""Deleted containers and shares in listings. Source: "List Containers", "List Shares"."""

from __future__ import annotations

import msgspec

from strongroom.values import rfc1123


class DeletedItem(msgspec.Struct, frozen=True):
    """The time of a deletion (ticks), the days that remain of the retention, and the version."""

    time: int
    remaining_days: int
    version: str

    def elements_after_name(self) -> str:
        return f"<Deleted>true</Deleted><Version>{self.version}</Version>"

    def property_elements(self) -> str:
        """The elements at the end of the properties."""
        return (
            f"<DeletedTime>{rfc1123(self.time)}</DeletedTime>"
            f"<RemainingRetentionDays>{self.remaining_days}</RemainingRetentionDays>"
        )
