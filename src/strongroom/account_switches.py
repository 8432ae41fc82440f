"""Switches that Azure sets for a whole account, outside of the services' own operations.

Lives here: the switches that this server has, as values. Must not live here: files and flags that
set them (auth/accounts.py, cli/), or their effects (services/). The permitted changes of a
container's protection are in semantics/blob/container_protection.py. Source: "Storage account
overview" (kinds), "Soft delete for containers" (1 to 365 days). Also "Version-level WORM policies
for immutable blob data" and "Container-level WORM policies for immutable blob data".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from strongroom.limits import RETENTION_DAYS_MAX

KINDS: Final = ("StorageV2", "Storage", "BlobStorage", "BlockBlobStorage", "FileStorage")


IMMUTABILITY_DAYS_MAX: Final = 146_000
"""The longest retention of an immutability policy, 400 years."""
HOLDS_MAX: Final = 10
EXTENSIONS_MAX: Final = 5
_HOLD: Final = re.compile(r"[a-z0-9]{3,23}")


class ContainerProtection(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The protection of all blobs of one container.

    Attributes:
        retention_days: the days for which the time-based policy protects each blob; 0 = there is no
            policy.
        locked: whether the policy can only be extended.
        extensions: how often the locked policy was extended.
        holds: the tags of the legal holds.
        appends: whether Append Block is permitted in spite of the policy.
    """

    retention_days: int = 0
    locked: bool = False
    extensions: int = 0
    holds: tuple[str, ...] = ()
    appends: bool = False

    def problem(self) -> str | None:
        """Return the reason why this protection is invalid; None if it is valid."""
        if not 0 <= self.retention_days <= IMMUTABILITY_DAYS_MAX:
            return f"the retention must be 1 to {IMMUTABILITY_DAYS_MAX} days"
        if self.locked and not self.retention_days:
            return "there is no policy that could be locked: give a retention"
        if not 0 <= self.extensions <= EXTENSIONS_MAX:
            return f"a locked policy can be extended {EXTENSIONS_MAX} times at most"
        if len(self.holds) > HOLDS_MAX:
            return f"a container can have {HOLDS_MAX} legal holds at most"
        for tag in self.holds:
            if not _HOLD.fullmatch(tag):
                return f"legal hold {tag!r}: a tag has 3 to 23 letters and digits"
        return None


class Switches(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The switches of one account.

    Attributes:
        kind: the kind that Get Account Information reports.
        container_retention_days: how long deleted containers are kept; 0 = they are not kept.
        share_retention_days: the same for deleted shares.
        versioning: whether writes of blobs create versions.
        immutability: whether blobs may be given immutability policies and legal holds.
        last_access: whether the time of the last read of each blob is tracked.
        containers: the protection of containers, by the container's name.
    """

    kind: str = KINDS[0]
    container_retention_days: int = 0
    share_retention_days: int = 0
    versioning: bool = False
    immutability: bool = False
    last_access: bool = False
    containers: Mapping[str, ContainerProtection] = msgspec.field(default_factory=dict)

    def problem(self) -> str | None:
        """Return the reason why these switches are invalid; None if they are valid."""
        if self.kind not in KINDS:
            return f"kind {self.kind!r} is none of {', '.join(KINDS)}"
        for name in ("container_retention_days", "share_retention_days"):
            if not 0 <= getattr(self, name) <= RETENTION_DAYS_MAX:
                return f"{name} must be 0 (off) to {RETENTION_DAYS_MAX}"
        for name, protection in self.containers.items():
            problem = protection.problem()
            if problem is not None:
                return f"container {name!r}: {problem}"
        return None


DEFAULT_SWITCHES: Final = Switches()
