"""Lease Share and Lease File: in which record each lease is stored.

Must not live here: the actions and the queue of waiters (services/core/leasing.py), the table of
states (semantics/core/lease.py). Source: "Lease Share", "Lease File"; reference leases.md 6 and 7.
"""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec

from strongroom.engines.base import Record
from strongroom.semantics.core.lease import LeaseKind
from strongroom.semantics.file.accesses import FileOperation
from strongroom.services.core import leasing
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Found
from strongroom.services.core.leasing import LeaseAction, LeaseResult
from strongroom.services.core.places import place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.turns import Turn
from strongroom.services.file.node.deciding import AdmittedNode, NodeChange, NodeRule
from strongroom.services.file.rest.nodes import change_attributes
from strongroom.services.file.shares.share_snapshots import snapshot_ref
from strongroom.services.file.shares.shares import change_share
from strongroom.store.core import records
from strongroom.store.core.records import ShareRecord
from strongroom.values import Lease


async def lease_share(services: Services, call: Call[LeaseAction]) -> LeaseResult:
    """Five actions, as on a container. The lease guards the share's own record, not its files."""
    fresh_id = leasing.fresh_id(services, call.input)

    def decide(share: ShareRecord, now: int) -> tuple[LeaseResult, ShareRecord | None]:
        lease, time_s = leasing.apply_or_wait(call, share.lease, fresh_id, now, LeaseKind.SHARE)
        result = leasing.result_of(call.input, share.etag, share.modified, lease, time_s)
        if lease == share.lease:
            return result, None
        return result, msgspec.structs.replace(share, lease=lease)

    def attempt(turn: Turn | None = None) -> Awaitable[LeaseResult]:
        return change_share(services, leasing.with_turn(call, turn), decide)

    if not leasing.waits_for_lease(call):
        return await attempt()
    snapshot = call.target.snapshot
    refs = [place_ref(call) if snapshot is None else snapshot_ref(call, snapshot)]
    return await leasing.acquire_in_turn(services, call, refs, attempt, _share_lease)


async def lease_file(services: Services, call: Call[LeaseAction]) -> LeaseResult:
    """A file lease is infinite, so it is never renewed; a break takes effect at once."""
    rule = _LeaseFile(call, leasing.fresh_id(services, call.input))
    _, result = await change_attributes(services, call, FileOperation.LEASE_FILE, rule)
    return result


class _LeaseFile(NodeRule[LeaseResult], frozen=True):
    call: Call[LeaseAction]
    fresh_id: str | None

    def decide(self, node: AdmittedNode, found: Found, stamp: int) -> NodeChange[LeaseResult]:
        call, record = self.call, node.record
        lease, time_s = leasing.apply_or_wait(
            call, record.lease, self.fresh_id, stamp, LeaseKind.FILE
        )
        result = leasing.result_of(call.input, record.etag, record.modified, lease, time_s)
        if lease == record.lease:
            return NodeChange(result, None)
        return NodeChange(result, msgspec.structs.replace(record, lease=lease))


def _share_lease(found: Record | None) -> Lease | None:
    share = records.SHARE.of(found)
    return None if share is None else share.lease
