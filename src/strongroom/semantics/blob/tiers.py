"""Access tiers: the list of tiers, and which requests an archived blob refuses.

Sources: "Set Blob Tier", "Access tiers for blob data"; reference section 11. A tier of None is the
account's default tier. A blob that was never given a tier has it.

A blob leaves the archive by rehydration. It stays archived until that ends, and until then:

| Set Blob Tier                          | answer                                                 |
| -------------------------------------- | ------------------------------------------------------ |
| to the tier that it is rehydrated to   | 202; High instead of Standard may make the end earlier |
| to another tier                        | 409 BlobBeingRehydrated                                |
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.semantics.blob import pages
from strongroom.values import BlobKind

HEADER: Final = "x-ms-access-tier"
ACCOUNT_TIER: Final = "Hot"
ARCHIVE: Final = "Archive"
STANDARD: Final = "Standard"
HIGH: Final = "High"
_ONLINE: Final = ("Hot", "Cool", "Cold")
TIERS: Final = (*_ONLINE, ARCHIVE)
"""The tiers of block blobs; page blobs in premium accounts have others."""


class Rehydration(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A rehydration in progress. `until` is its end in ticks."""

    tier: str
    priority: str
    until: int

    @property
    def status(self) -> str:
        """The value of x-ms-archive-status."""
        return f"rehydrate-pending-to-{self.tier.lower()}"


def after_repeated_set_tier(
    pending: Rehydration, tier: str, priority: str, until: int
) -> Rehydration:
    """The rehydration after a repeated Set Blob Tier.

    Arguments:
        until: the end of a rehydration that begins now.
    """
    if tier != pending.tier:
        raise StorageError(blob_errors.BLOB_BEING_REHYDRATED)
    if priority != HIGH or pending.priority == HIGH:
        return pending
    return Rehydration(tier, HIGH, min(until, pending.until))


def read_tier(name: str, value: str) -> str:
    """The tier that a header names, in any case."""
    for word in TIERS:
        if value.lower() == word.lower():
            return word
    raise invalid_header(name, value)


def read_any_tier(name: str, value: str) -> str:
    """The tier that a header names, of block blobs or of page blobs."""
    return pages.read_tier(name, value) if value.upper() in pages.TIERS else read_tier(name, value)


def check_given(kind: BlobKind, tier: str, size_bytes: int, before: str | None = None) -> None:
    """Refuse a tier that a blob of this type and length cannot have.

    Arguments:
        tier: as `read_any_tier` returns it.
        before: the tier that the blob was given before; None = none, or the blob is new.
    """
    if kind is BlobKind.APPEND:
        raise StorageError(blob_errors.ACCESS_TIER_NOT_SUPPORTED_FOR_BLOB_TYPE)
    if kind is BlobKind.PAGE:
        pages.check_new_tier(before, tier, size_bytes)
    else:
        read_tier(HEADER, tier)


def require_online(tier: str | None) -> None:
    """Refuse a request that needs the content of an archived blob."""
    if tier == ARCHIVE:
        raise StorageError(copy_errors.BLOB_ARCHIVED)


def require_copy_tier(source: str | None, wanted: str | None) -> None:
    """Refuse a copy of an archived blob unless the copy gets an online tier."""
    if wanted not in _ONLINE:
        require_online(source)


def leaves_archive(before: str | None, after: str) -> bool:
    return before == ARCHIVE and after != ARCHIVE


def inherited(before: str | None, size_bytes: int) -> str | None:
    """The tier of a blob that replaces another without naming a tier: that of the other.

    It is not inherited if it is Archive, because the new content could not be read. It is not
    inherited either if it is too low for the length of a page blob.
    """
    if before is None or before == ARCHIVE or not pages.fits_tier(before, size_bytes):
        return None
    return before
