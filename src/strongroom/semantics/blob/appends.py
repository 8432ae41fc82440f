"""Append blobs: when an append or a seal is refused, and which copies are sealed.

Sources: "Append Block", "Append Blob Seal", "Copy Blob"; conditions.md section 6.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom import limits
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError
from strongroom.values import BlobKind

SINCE: Final = "2015-02-21"
"""The first x-ms-version that has append blobs."""


class AppendConditions(msgspec.Struct, frozen=True):
    """The conditions of append blobs; None = not sent. `position` is x-ms-blob-condition-appendpos:
    the length that the blob must have. `max_size_bytes` is x-ms-blob-condition-maxsize: the length
    that it may have afterwards."""

    position: int | None = None
    max_size_bytes: int | None = None


NO_CONDITIONS: Final = AppendConditions()


def require_version(version: str) -> None:
    if version < SINCE:
        raise StorageError(blob_errors.FEATURE_VERSION_MISMATCH)


def block_bytes_max(version: str) -> int:
    return next(row[1] for row in limits.APPEND_SIZES_BY_VERSION if version >= row[0])


def check(conditions: AppendConditions, size_bytes: int, added_bytes: int = 0) -> None:
    """Check the conditions that only append blobs have.

    Arguments:
        size_bytes: the blob's length.
        added_bytes: the length of the new block; 0 for a seal.
    """
    limit, position = conditions.max_size_bytes, conditions.position
    if limit is not None and size_bytes + added_bytes > limit:
        raise StorageError(blob_errors.MAX_BLOB_SIZE_CONDITION_NOT_MET)
    if position is not None and size_bytes != position:
        raise StorageError(blob_errors.APPEND_POSITION_CONDITION_NOT_MET)


def require_appendable(sealed: bool, count: int) -> None:
    """`count` is the number of the blob's blocks."""
    if sealed:
        raise StorageError(blob_errors.BLOB_IS_SEALED)
    if count >= limits.COMMITTED_BLOCKS_MAX:
        raise StorageError(blob_errors.BLOCK_COUNT_EXCEEDS_LIMIT)


def sealed_copy(kind: BlobKind, sealed: bool, requested: bool | None) -> bool:
    """Whether a copy is sealed.

    Arguments:
        kind, sealed: of the source.
        requested: x-ms-seal-blob; None = not sent, so the copy is sealed if its source is.
    """
    if requested and kind is not BlobKind.APPEND:
        raise StorageError(blob_errors.INVALID_BLOB_TYPE)
    return sealed if requested is None else requested
