"""Copies: the states of a copy, the progress that it reports, and the requests that a pending copy
refuses.

Sources: "Copy Blob", "Abort Copy Blob", "Copy Blob From URL", "Copy File", "Abort Copy File".
"""

from __future__ import annotations

import enum

import msgspec

from strongroom.errors import copies as copy_errors
from strongroom.errors.core import StorageError


class CopyStatus(enum.Enum):
    """The values of x-ms-copy-status."""

    PENDING = "pending"
    SUCCESS = "success"
    ABORTED = "aborted"
    FAILED = "failed"


class Copy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The last copy to a blob or file. A blob keeps it until it is written by other means.

    `id` is a GUID; `completed` is the tick at which it ended, 0 while pending; `description` is the
    reason why a copy failed.
    """

    id: str
    status: CopyStatus
    source: str
    copied_bytes: int
    total_bytes: int
    completed: int = 0
    description: str | None = None


def started(copy_id: str, source: str, total_bytes: int) -> Copy:
    return Copy(copy_id, CopyStatus.PENDING, source, 0, total_bytes)


def advanced(copy: Copy, copied_bytes: int) -> Copy:
    """The progress never decreases or exceeds the total."""
    reached = min(max(copied_bytes, copy.copied_bytes), copy.total_bytes)
    return msgspec.structs.replace(copy, copied_bytes=reached)


def succeeded(copy: Copy, now: int) -> Copy:
    return msgspec.structs.replace(
        copy, status=CopyStatus.SUCCESS, copied_bytes=copy.total_bytes, completed=now
    )


def failed(copy: Copy, description: str, now: int) -> Copy:
    return msgspec.structs.replace(
        copy, status=CopyStatus.FAILED, description=description, completed=now
    )


def aborted(copy: Copy | None, copy_id: str, now: int) -> Copy:
    """The destination of an aborted copy is left empty."""
    if not is_pending(copy):
        raise StorageError(copy_errors.NO_PENDING_COPY_OPERATION)
    assert copy is not None
    if copy.id != copy_id.lower():
        raise StorageError(copy_errors.COPY_ID_MISMATCH)
    return msgspec.structs.replace(copy, status=CopyStatus.ABORTED, completed=now)


def is_pending(copy: Copy | None) -> bool:
    return copy is not None and copy.status is CopyStatus.PENDING


def require_none_pending(copy: Copy | None) -> None:
    """Refuse requests that the destination of a pending copy forbids: writes, snapshots, leases."""
    if is_pending(copy):
        raise StorageError(copy_errors.PENDING_COPY_OPERATION)


def progress_text(copy: Copy) -> str:
    """x-ms-copy-progress: `copied/total` in bytes."""
    return f"{copy.copied_bytes}/{copy.total_bytes}"
