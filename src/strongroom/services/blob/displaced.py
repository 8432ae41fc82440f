"""What becomes of a state that is displaced: a head that is replaced or deleted, a snapshot that is
deleted.

Lives here: the one place that decides whether such a state is given up or kept, and how. Must not
live here: which operations displace one (heads.py, snapshots.py), the end of a retention
(kept_blobs.py). Source: "Soft delete for blobs"; reference section 9.

| displaced                | without retention | with retention                                    |
| ------------------------ | ----------------- | ------------------------------------------------- |
| head, by Delete Blob     | given up          | kept in its place, as a deleted head              |
| head, by a new one       | given up          | kept as a deleted snapshot, as of the replacement |
| snapshot, by Delete Blob | given up          | kept in its place, as a deleted snapshot          |

A deleted head that a new one replaces is kept as a deleted snapshot until its own retention ends,
whatever the retention is by then. A blob of uncommitted blocks only has no state to keep.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from strongroom.semantics.core.retention import retention_end
from strongroom.services.blob.access import BlobState
from strongroom.services.blob.changes import BlobChange
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord, Deletion
from strongroom.store.blob.bodies.body import Body
from strongroom.store.core import keys


def displace_head(state: BlobState, change: BlobChange) -> None:
    """A new head takes the place of the one that is there, if any."""
    head, gone = state.head, state.gone
    if head is not None and head.committed and state.retention_days:
        _keep_as_snapshot(head, _deletion(state, change), state, change)
    elif head is not None:
        head.body.release(change, 0, alone=_is_alone(head))
    elif gone is not None and gone.deletion is not None:
        if gone.deletion.until > state.now:
            _keep_as_snapshot(gone, gone.deletion, state, change)
        else:
            gone.body.release(change, 0, alone=False)


def delete_head(head: BlobRecord, state: BlobState, change: BlobChange) -> None:
    """The blob is deleted, with all of its snapshots, if it has any."""
    if not state.retention_days:
        change.put(keys.HEAD_KEY, None)
        head.body.release(change, 0, alone=_is_alone(head))
        return
    deletion = _deletion(state, change)
    change.put_head(
        msgspec.structs.replace(
            head,
            lease=None,
            deletion=deletion,
            snapshots=0,
            shares=head.shares or head.snapshots > 0,
        )
    )


def delete_snapshot(ticks: int, snapshot: BlobRecord, state: BlobState, change: BlobChange) -> None:
    """A snapshot is deleted. Its head is to be written by `without_snapshots`."""
    key = keys.snapshot(ticks)
    if not state.retention_days:
        change.put(key, None)
        snapshot.body.release(change, ticks, alone=False)
        return
    kept = msgspec.structs.replace(snapshot, deletion=_deletion(state, change))
    change.put(key, blob_records.BLOB.encode(kept))


def without_snapshots(
    head: BlobRecord, deleted: Sequence[BlobRecord], state: BlobState
) -> BlobRecord:
    """The head after these of its snapshots were deleted."""
    left = head.snapshots - len(deleted)
    if deleted and state.retention_days:
        return msgspec.structs.replace(head, snapshots=left, shares=True)
    return msgspec.structs.replace(head, snapshots=left, body=body_without(head, deleted))


def body_without(head: BlobRecord, dropped: Sequence[BlobRecord]) -> Body:
    """The form of the head's body after the bodies of these snapshots were given up."""
    body = head.body
    for snapshot in dropped:
        body = body.without(snapshot.body)
    return body


def _is_alone(head: BlobRecord) -> bool:
    return head.snapshots == 0 and not head.shares


def _deletion(state: BlobState, change: BlobChange) -> Deletion:
    until = retention_end(change.stamp, state.retention_days)
    change.expire_at(until)
    return Deletion(change.stamp, until)


def _keep_as_snapshot(
    head: BlobRecord, deletion: Deletion, state: BlobState, change: BlobChange
) -> None:
    kept = msgspec.structs.replace(head, lease=None, snapshots=0, shares=False, deletion=deletion)
    change.put(keys.snapshot(change.stamp), blob_records.BLOB.encode(kept))
    left = head.body.snapshot(change, state.require_beside())
    # A shared body has moved as a whole. Others have left something in the head's place.
    if left != head.body or not head.body.is_shared:
        left.release(change, 0, alone=False)
