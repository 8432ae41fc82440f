"""The settings that a share may have: its quota, its access tier, its protocols.

Sources: "Create Share" and "Set Share Properties" of the Azure Storage REST reference; file.md 2.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_header

QUOTA_GIB: Final = (1, 102_400)
DEFAULT_QUOTA_GIB: Final = 5120
# Premium is the tier of accounts of another kind, so no share of this server can have it.
TIERS: Final = ("TransactionOptimized", "Hot", "Cool")
DEFAULT_TIER: Final = TIERS[0]
SMB: Final = "SMB"
_NFS: Final = "nfs"


def read_tier(name: str, value: str) -> str:
    """An access tier, given in any case."""
    for tier in TIERS:
        if tier.lower() == value.lower():
            return tier
    raise invalid_header(name, value, f"It must be one of {', '.join(TIERS)}.")


def check_protocols(name: str, value: str) -> None:
    """NotImplemented for NFS, InvalidHeaderValue for anything else but SMB."""
    words = {word.strip().lower() for word in value.split(",")}
    if _NFS in words:
        raise StorageError(
            errors.NOT_IMPLEMENTED, "Shares for NFS are not implemented by this server."
        )
    if words != {SMB.lower()}:
        raise invalid_header(name, value, "It must be SMB.")
