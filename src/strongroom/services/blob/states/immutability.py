"""Set and Delete Blob Immutability Policy, Set Blob Legal Hold, and protection that a write gives.

Lives here: the decisions, what protects a state, and what a caller and an account need to protect a
blob at all. A protection refuses in displaced.py for states that would go, in `refuse_change` for
those that would change. Source: "Set Blob Immutability Policy", "Delete Blob Immutability Policy",
"Set Blob Legal Hold"; reference section 16.

A container is deleted in one commit, which cannot read its blobs. So the deletion first marks the
container and then checks for blobs (containers/deleting.py). A blob cannot be protected while that
mark is set. The mark is removed first, so the deletion has to check again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import immutability as rules
from strongroom.semantics.blob.container_protection import of_state
from strongroom.semantics.blob.immutability import Attempt, Immutability
from strongroom.services.blob.decisions import changing
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState, DeletionUnderWay
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.blob.blob_records import BlobRecord


def refuse_change(head: BlobRecord, state: BlobState, appends: bool = False) -> None:
    """Refuse with 409 a change of a protected blob's content, metadata or properties. `appends`:
    blocks are added to an append blob, which its container may permit."""
    container = state.protection
    if appends and container is not None and container.appends:
        rules.require_permitted(head.immutability, Attempt.CHANGE, state.now)
    else:
        refuse(head, Attempt.CHANGE, state)


def refuse(record: BlobRecord, attempt: Attempt, state: BlobState) -> None:
    """Refuse an attempt that a state's protection, its own or its container's, forbids."""
    protection = rules.combined(record.immutability, _of_container(record, state))
    rules.require_permitted(protection, attempt, state.now)


def refuse_by_container(record: BlobRecord, attempt: Attempt, state: BlobState) -> None:
    """Refuse an attempt that the container's protection forbids; the state's own is not checked."""
    rules.require_permitted(_of_container(record, state), attempt, state.now)


def _of_container(record: BlobRecord, state: BlobState) -> Immutability | None:
    if state.protection is None or not record.committed:
        return None
    return of_state(state.protection, record.kind, record.created, record.modified)


def check_new_blob_allowed(state: BlobState) -> None:
    """Check that a blob may be created or restored in a container that protects its blobs.

    Raises: DeletionUnderWay, after which the decision runs again.
    """
    if state.protection is not None:
        _require_unmarked(state)


def check_requested_protection(
    call: Call[Any], state: BlobState, requested: Immutability
) -> Immutability:
    """Return the protection that a write gives the new blob."""
    if not call.caller.grant.may_protect:
        row = errors.AUTHORIZATION_PERMISSION_MISMATCH
        text = f"{row.message} Immutability policies and legal holds need the permission i."
        raise StorageError(row, text)
    if requested.until:
        rules.require_usable(requested.until, state.now)
    _require_protectable(state)
    return requested


def _require_protectable(state: BlobState) -> None:
    """The account must allow protection, and no deletion of the container may be under way."""
    if not state.switches.immutability:
        raise StorageError(blob_errors.IMMUTABILITY_NOT_ENABLED)
    _require_unmarked(state)


def _require_unmarked(state: BlobState) -> None:
    if state.container is not None and state.container.deleting:
        raise DeletionUnderWay


class SetPolicy(msgspec.Struct, frozen=True):
    policy: Immutability


async def set_policy(services: Services, call: Call[SetPolicy]) -> Immutability:
    """Of a blob, a snapshot or a version. ETag, Last-Modified and the lease do not change."""
    policy = call.input.policy

    def decide(state: BlobState, change: BlobChange) -> Immutability:
        named = _named(state)
        _require_protectable(state)
        after = rules.with_policy(named.immutability, policy.until, policy.locked, state.now)
        _put(state, after, change)
        return after

    return await changing.change_blob(services, call, decide)


async def delete_policy(services: Services, call: Call[Any]) -> None:
    """Nothing changes if there is none."""

    def decide(state: BlobState, change: BlobChange) -> None:
        named = _named(state)
        after = rules.without_policy(named.immutability)
        if after != named.immutability:
            _put(state, after, change)

    await changing.change_blob(services, call, decide)


class SetHold(msgspec.Struct, frozen=True):
    hold: bool


async def set_hold(services: Services, call: Call[SetHold]) -> SetHold:
    def decide(state: BlobState, change: BlobChange) -> SetHold:
        named = _named(state)
        if call.input.hold:
            _require_protectable(state)
        after = rules.with_hold(named.immutability, call.input.hold)
        if after != named.immutability:
            _put(state, after, change)
        return call.input

    return await changing.change_blob(services, call, decide)


def _named(state: BlobState) -> BlobRecord:
    assert state.named is not None
    return state.named


def _put(state: BlobState, after: Immutability | None, change: BlobChange) -> None:
    named = _named(state)
    change.put_state(state.past, named, msgspec.structs.replace(named, immutability=after))
