"""Lease Blob and Lease Container: where each lease is stored.

Source: "Lease Blob", "Lease Container".
"""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec

from strongroom.engines.base import Record, Ref
from strongroom.errors import core as errors
from strongroom.semantics.core.lease import LeaseKind
from strongroom.services.blob.decisions import changing
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.decisions.containers import change_container
from strongroom.services.blob.states.heads import refuse_pending_copy
from strongroom.services.core import leasing
from strongroom.services.core.calls import Call
from strongroom.services.core.leasing import LeaseAction, LeaseResult
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.services.core.turns import Turn
from strongroom.store.blob import blob_records
from strongroom.store.core import keys, records
from strongroom.store.core.records import ContainerRecord
from strongroom.values import Lease, iso7


async def lease_blob(services: Services, call: Call[LeaseAction]) -> LeaseResult:
    """A blob with only uncommitted blocks can be leased too."""
    if call.target.snapshot is not None:
        reason = "Snapshots cannot be leased."
        raise errors.invalid_query("snapshot", iso7(call.target.snapshot), reason)
    fresh_id = leasing.fresh_id(services, call.input)

    def attempt(turn: Turn | None = None) -> Awaitable[LeaseResult]:
        return changing.change_blob(
            services,
            leasing.with_turn(call, turn),
            lambda state, change: _lease_head(call, fresh_id, state, change),
        )

    if not leasing.waits_for_lease(call):
        return await attempt()
    head = Ref(keys.blob(generation_of(call), call.target.blob), keys.HEAD_KEY)
    refs = [head, keys.container(call.target.account, call.target.container)]
    return await leasing.acquire_in_turn(services, call, refs, attempt, _blob_lease)


def _lease_head(
    call: Call[LeaseAction], fresh_id: str | None, state: BlobState, change: BlobChange
) -> LeaseResult:
    head = state.head
    assert head is not None
    refuse_pending_copy(head)
    lease, time_s = leasing.apply_or_wait(call, head.lease, fresh_id, state.now, LeaseKind.BLOB)
    if lease != head.lease:
        change.put_head(msgspec.structs.replace(head, lease=lease))
    etag, modified = (head.shown_etag, head.modified) if head.committed else (0, 0)
    return leasing.result_of(call.input, etag, modified, lease, time_s)


async def lease_container(services: Services, call: Call[LeaseAction]) -> LeaseResult:
    fresh_id = leasing.fresh_id(services, call.input)

    def decide(container: ContainerRecord, now: int) -> tuple[LeaseResult, ContainerRecord | None]:
        lease, time_s = leasing.apply_or_wait(
            call, container.lease, fresh_id, now, LeaseKind.CONTAINER
        )
        result = leasing.result_of(
            call.input, container.shown_etag, container.modified, lease, time_s
        )
        if lease == container.lease:
            return result, None
        return result, msgspec.structs.replace(container, lease=lease)

    def attempt(turn: Turn | None = None) -> Awaitable[LeaseResult]:
        return change_container(services, leasing.with_turn(call, turn), decide)

    if not leasing.waits_for_lease(call):
        return await attempt()
    refs = [keys.container(call.target.account, call.target.container)]
    return await leasing.acquire_in_turn(services, call, refs, attempt, _container_lease)


def _blob_lease(record: Record | None) -> Lease | None:
    blob = blob_records.visible(record)
    return None if blob is None else blob.lease


def _container_lease(record: Record | None) -> Lease | None:
    container = records.CONTAINER.of(record)
    return None if container is None else container.lease
