"""What happens to a displaced state: a head that is changed, replaced or deleted, a snapshot or a
version that is deleted.

Lives here: the one place that decides whether such a state is dropped or kept, and how. Source:
"Soft delete for blobs", "Blob versioning"; reference section 9.

| displaced                     | versions         | retention                  | neither  | |
----------------------------- | ---------------- | -------------------------- | -------- | | head,
by Delete Blob          | previous version | deleted head, in its place | given up | | head, by a
new one            | previous version | deleted snapshot           | given up | | head, by Set Blob
Metadata    | previous version | not kept                   | not kept | | head, by Snapshot Blob
| previous version | not kept                   | not kept | | snapshot, by Delete Blob      | as
without       | deleted snapshot           | given up | | previous version, by the same | as without
| deleted version            | given up |

The first column that applies decides. "Versions": the account makes versions, or did so when the
head was written. A head that is a version is never lost because versioning was switched off. A head
that is no version becomes one under the time of its last change. Snapshot Blob is no such change,
so it makes a version only while the account makes versions.

A soft-deleted head that a new head replaces is kept as a deleted snapshot until its own retention
ends. The present retention does not matter. A blob of uncommitted blocks only has no state to keep.
A state that an immutability policy or a legal hold protects may become a previous version, which is
protected as well. Every other request that would displace it is refused, and so is Delete Blob
under a legal hold. A state that its container protects may not become a previous version either.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from strongroom.semantics.blob import immutability
from strongroom.semantics.blob.immutability import Attempt
from strongroom.semantics.core.retention import retention_end
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.states.immutability import refuse, refuse_by_container
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord, Deletion
from strongroom.store.blob.bodies.body import HEAD, Body
from strongroom.store.core import keys
from strongroom.store.core.keys import Past


def new_version(state: BlobState, change: BlobChange) -> int:
    """Return the version id of the head that a write makes; 0 = it is no version."""
    return change.stamp if state.is_versioned else 0


def displace_head(state: BlobState, change: BlobChange) -> None:
    """Displace the present head, if any, because a new head replaces it."""
    head, deleted_head = state.head, state.deleted_head
    if head is not None and _becomes_version(head, state):
        refuse_by_container(head, Attempt.OVERWRITE, state)
        _move_to_version(head, state, change)
        return
    if head is not None:
        refuse(head, Attempt.OVERWRITE, state)
    if head is not None and head.committed and state.retention_days:
        _keep_as_snapshot(head, _deletion(state, change), state, change)
    elif head is not None:
        head.body.release(change, HEAD, alone=_is_only_user(head))
    elif deleted_head is not None and deleted_head.deletion is not None:
        if deleted_head.deletion.until > state.now:
            _keep_as_snapshot(deleted_head, deleted_head.deletion, state, change)
        else:
            deleted_head.body.release(change, HEAD, alone=False)


def is_kept(head: BlobRecord, state: BlobState) -> bool:
    """Return whether the head remains, as a version or a snapshot, when a new one replaces it."""
    return _becomes_version(head, state) or (head.committed and state.retention_days > 0)


def head_to_modify(head: BlobRecord, state: BlobState, change: BlobChange) -> BlobRecord:
    """Return the head from which a change that keeps its body begins.

    With versioning on, the present state becomes a previous version first.
    """
    if not _becomes_version(head, state):
        return head
    body = _keep_as_version(head, state, change)
    return msgspec.structs.replace(head, body=body, shares=True, version=new_version(state, change))


def require_deletable(head: BlobRecord, state: BlobState) -> None:
    """Refuse the deletion of a blob that is protected."""
    if _becomes_version(head, state):
        refuse_by_container(head, Attempt.DELETE, state)
        immutability.require_no_hold(head.immutability)
    else:
        refuse(head, Attempt.DELETE, state)


def delete_head(head: BlobRecord, state: BlobState, change: BlobChange) -> bool:
    """Delete the blob with all of its snapshots. Return whether it is permanently deleted."""
    require_deletable(head, state)
    if _becomes_version(head, state):
        change.remove_head(_move_to_version(head, state, change))
        return False
    if not state.retention_days:
        change.remove_head()
        head.body.release(change, HEAD, alone=_is_only_user(head))
        return True
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
    return False


def delete_past(past: Past, record: BlobRecord, state: BlobState, change: BlobChange) -> None:
    """Delete a snapshot or a previous version.

    The caller writes the head afterwards, as `without_snapshots` or `without_version` returns it.
    """
    refuse(record, Attempt.DELETE, state)
    if state.retention_days:
        kept = msgspec.structs.replace(record, deletion=_deletion(state, change))
        change.put_state(past, record, kept)
    else:
        drop_past(past, record, change)


def drop_past(past: Past, record: BlobRecord, change: BlobChange) -> None:
    """Drop a snapshot or a previous version and its body, without keeping it."""
    if past.is_version:
        change.remove_version(record)
    else:
        change.put(keys.past(past), None)
    record.body.release(change, past, alone=False)


def without_snapshots(
    head: BlobRecord, deleted: Sequence[BlobRecord], state: BlobState
) -> BlobRecord:
    left = head.snapshots - len(deleted)
    if deleted and state.retention_days:
        return msgspec.structs.replace(head, snapshots=left, shares=True)
    return msgspec.structs.replace(head, snapshots=left, body=body_without(head, deleted))


def without_version(head: BlobRecord, deleted: BlobRecord, state: BlobState) -> BlobRecord:
    if state.retention_days:
        return head
    return msgspec.structs.replace(head, body=body_without(head, [deleted]))


def body_without(head: BlobRecord, dropped: Sequence[BlobRecord]) -> Body:
    body = head.body
    for snapshot in dropped:
        body = body.without(snapshot.body)
    return body


def _is_only_user(head: BlobRecord) -> bool:
    return head.snapshots == 0 and not head.shares


def _deletion(state: BlobState, change: BlobChange) -> Deletion:
    until = retention_end(change.stamp, state.retention_days)
    change.expire_at(until)
    return Deletion(change.stamp, until)


def _keep_as_snapshot(
    head: BlobRecord, deletion: Deletion, state: BlobState, change: BlobChange
) -> None:
    kept = msgspec.structs.replace(
        head, lease=None, snapshots=0, shares=False, deletion=deletion, tagged=0, versions=0
    )
    past = Past(change.stamp)
    change.put(keys.past(past), blob_records.BLOB.encode(kept))
    _release_left(head, head.body.snapshot(change, state.require_body_records(), past), change)


def _becomes_version(head: BlobRecord, state: BlobState) -> bool:
    return head.committed and (state.is_versioned or head.version > 0)


def _keep_as_version(head: BlobRecord, state: BlobState, change: BlobChange) -> Body:
    """Add the head as a previous version. Return the body that the head has from now on."""
    version = blob_records.as_version(head)
    change.add_version(version)
    return head.body.snapshot(change, state.require_body_records(), Past(version.version, True))


def _move_to_version(head: BlobRecord, state: BlobState, change: BlobChange) -> int:
    """Move the head to a previous version. Return the version's id."""
    _release_left(head, _keep_as_version(head, state, change), change)
    return blob_records.as_version(head).version


def _release_left(head: BlobRecord, left: Body, change: BlobChange) -> None:
    """Drop what a moved body left in the head's place. A shared body has moved as a whole, so it
    left nothing."""
    if left != head.body or not head.body.is_shared:
        left.release(change, HEAD, alone=False)
