"""Page blobs: sizes, ranges, sequence numbers, tiers, and the rules of incremental copies.

Sources: "Put Blob", "Put Page", "Set Blob Properties", "Incremental Copy Blob", "Premium page blob
tiers"; reference section 5, conditions.md section 6.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from strongroom import limits
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.values import ByteRange

PAGE_BYTES: Final = 512
SEQUENCE_MAX: Final = 2**63 - 1
_GIB: Final = 1024 * limits.MIB
# The tiers of premium page blobs, the lowest first, and the maximum length of a blob in each.
_TIERS: Final = {
    "P4": 32 * _GIB,
    "P6": 64 * _GIB,
    "P10": 128 * _GIB,
    "P15": 256 * _GIB,
    "P20": 512 * _GIB,
    "P30": 1024 * _GIB,
    "P40": 2048 * _GIB,
    "P50": 4096 * _GIB,
    "P60": 8192 * _GIB,
    "P70": 16384 * _GIB,
    "P80": 32768 * _GIB,
}
TIERS: Final = tuple(_TIERS)


class IncrementalCopy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The source of an incremental copy blob.

    Attributes:
        source: the source's account, container, blob and generation, as one text.
        source_snapshot: the time of the source's snapshot in the last copy request, in ticks.
        snapshot: the time of the blob's own snapshot that the last complete copy made, 0 = none.
        copied: the snapshot of the source that this copy copied, 0 = none.
    """

    source: str
    source_snapshot: int
    snapshot: int = 0
    copied: int = 0


class PageState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    sequence_number: int = 0
    incremental: IncrementalCopy | None = None


class SequenceConditions(msgspec.Struct, frozen=True):
    """x-ms-if-sequence-number-le, -lt and -eq; None = not sent."""

    at_most: int | None = None
    below: int | None = None
    equal: int | None = None


NO_SEQUENCE_CONDITIONS: Final = SequenceConditions()


class SequenceAction(enum.Enum):
    """The values of x-ms-sequence-number-action."""

    MAX = "max"
    UPDATE = "update"
    INCREMENT = "increment"


def check_size(name: str, value: str, size_bytes: int) -> int:
    """Refuse a length that is no multiple of 512 bytes, or over 8 TiB."""
    if size_bytes % PAGE_BYTES or size_bytes > limits.PAGE_BLOB_BYTES_MAX:
        raise invalid_header(name, value, "A page blob has a multiple of 512 bytes, at most 8 TiB.")
    return size_bytes


def page_range(given: ByteRange) -> tuple[int, int]:
    """(offset, length) of whole pages."""
    first, last = given.first, given.last
    if last is None or first % PAGE_BYTES or (last + 1) % PAGE_BYTES or last < first:
        raise StorageError(blob_errors.INVALID_PAGE_RANGE)
    if last >= limits.PAGE_BLOB_BYTES_MAX:
        raise StorageError(blob_errors.INVALID_PAGE_RANGE)
    return first, last + 1 - first


def check_within(offset: int, length: int, size_bytes: int) -> None:
    if offset + length > size_bytes:
        raise StorageError(blob_errors.INVALID_PAGE_RANGE)


def check_sequence(wanted: SequenceConditions, number: int) -> None:
    meets = (
        (wanted.at_most is None or number <= wanted.at_most)
        and (wanted.below is None or number < wanted.below)
        and (wanted.equal is None or number == wanted.equal)
    )
    if not meets:
        raise StorageError(blob_errors.SEQUENCE_NUMBER_CONDITION_NOT_MET)


def next_number(action: SequenceAction, given: int | None, number: int) -> int:
    """The sequence number after an action.

    Arguments:
        given: x-ms-blob-sequence-number, already validated by `check_action`.
        number: the blob's current number.
    """
    if action is SequenceAction.INCREMENT:
        if number >= SEQUENCE_MAX:
            raise StorageError(blob_errors.SEQUENCE_NUMBER_INCREMENT_TOO_LARGE)
        return number + 1
    assert given is not None
    return max(given, number) if action is SequenceAction.MAX else given


def require_not_incremental_copy(state: PageState | None) -> None:
    if state is not None and state.incremental is not None:
        raise StorageError(blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB)


def read_tier(name: str, value: str) -> str:
    """The tier that a header names, in any case."""
    if value.upper() in _TIERS:
        return value.upper()
    raise invalid_header(name, value)


def fits_tier(tier: str, size_bytes: int) -> bool:
    """Tiers of other blob types set no limit."""
    return size_bytes <= _TIERS.get(tier, size_bytes)


def check_tier(tier: str | None, size_bytes: int) -> None:
    if tier is not None and not fits_tier(tier, size_bytes):
        raise StorageError(blob_errors.BLOB_TIER_INADEQUATE_FOR_CONTENT_LENGTH)


def check_new_tier(before: str | None, tier: str, size_bytes: int) -> None:
    """Check a new tier for Set Blob Tier. One of block blobs is invalid (400)."""
    if tier not in _TIERS:
        raise StorageError(blob_errors.INVALID_BLOB_TIER)
    if before is not None and _TIERS[tier] < _TIERS[before]:
        raise StorageError(blob_errors.CANNOT_CHANGE_TO_LOWER_TIER)
    check_tier(tier, size_bytes)


def check_next_source(before: IncrementalCopy, source: str, snapshot: int) -> None:
    """Check that an incremental copy blob may be copied from this source next.

    Arguments:
        source: see IncrementalCopy.
        snapshot: the time of the source's snapshot, in ticks.
    """
    if before.source != source:
        raise StorageError(blob_errors.INCREMENTAL_COPY_BLOB_MISMATCH)
    if snapshot < before.source_snapshot:
        raise StorageError(blob_errors.INCREMENTAL_COPY_OF_ERALIER_VERSION_SNAPSHOT_NOT_ALLOWED)
