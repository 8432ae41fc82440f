"""What Azure switches for a whole account outside of the services' own operations.

Lives here: the switches that this server has, as one value. Must not live here: files and flags
that set them (auth/accounts.py, cli/account.py), what they change (services/). Source: "Storage
account overview" (kinds), "Soft delete for containers" (1 to 365 days), "Version-level WORM
policies for immutable blob data" (support for an account).
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.limits import RETENTION_DAYS_MAX

KINDS: Final = ("StorageV2", "Storage", "BlobStorage", "BlockBlobStorage", "FileStorage")


class Switches(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The switches of one account.

    Attributes:
        kind: what Get Account Information calls the account.
        container_retention_days: how long deleted containers are kept; 0 = they are not.
        versioning: whether writes of blobs make versions.
        immutability: whether blobs may be given immutability policies and legal holds.
        last_access: whether it is tracked when blobs were last read.
    """

    kind: str = KINDS[0]
    container_retention_days: int = 0
    versioning: bool = False
    immutability: bool = False
    last_access: bool = False

    def problem(self) -> str | None:
        """Why these switches cannot be used; None when they can."""
        if self.kind not in KINDS:
            return f"kind {self.kind!r} is none of {', '.join(KINDS)}"
        if not 0 <= self.container_retention_days <= RETENTION_DAYS_MAX:
            return f"container_retention_days must be 0 (off) to {RETENTION_DAYS_MAX}"
        return None


DEFAULT_SWITCHES: Final = Switches()
