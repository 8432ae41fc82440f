"""Copies of blobs: the rules for the type and the lease of the destination.

The states of a copy: semantics/core/copies.py. Source: "Copy Blob".
"""

from __future__ import annotations

from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core.lease import INFINITE, LeaseState, state
from strongroom.values import BlobKind, Lease


def require_same_type(source: BlobKind, destination: BlobKind) -> None:
    if source is not destination:
        raise StorageError(blob_errors.INVALID_BLOB_TYPE)


def require_infinite_lease(lease: Lease | None, now: int) -> None:
    """Refuse an asynchronous copy to a blob with a fixed lease, which could end before the copy
    does.

    The lease id has been checked before.
    """
    is_held = state(lease, now) in (LeaseState.LEASED, LeaseState.BREAKING)
    if lease is not None and is_held and lease.duration_s != INFINITE:
        raise StorageError(blob_errors.INFINITE_LEASE_DURATION_REQUIRED)
