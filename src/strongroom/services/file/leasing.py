"""Lease Share: where the lease of a share lies.

Must not live here: the actions and the queue of those who wait (services/core/leasing.py), the
table of states (semantics/core/lease.py). Source: "Lease Share"; reference leases.md 7.
"""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec

from strongroom.engines.base import Record
from strongroom.semantics.core.lease import LeaseKind
from strongroom.services.core import leasing
from strongroom.services.core.calls import Call
from strongroom.services.core.leasing import LeaseAction, Leased
from strongroom.services.core.places import place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file.shares import change_share
from strongroom.store.core import records
from strongroom.store.core.records import ShareRecord
from strongroom.values import Lease


async def lease_share(services: Services, call: Call[LeaseAction]) -> Leased:
    """Lease Share: five actions, as on a container. It guards the share's own record, not files.

    Raises: StorageError of the lease table (409), ShareNotFound.
    """
    fresh_id = leasing.fresh_id(services, call.input)

    def decide(share: ShareRecord, now: int) -> tuple[Leased, ShareRecord | None]:
        lease, time_s = leasing.judge(call, share.lease, fresh_id, now, LeaseKind.SHARE)
        result = leasing.answer(call.input, share.etag, share.modified, lease, time_s)
        if lease == share.lease:
            return result, None
        return result, msgspec.structs.replace(share, lease=lease)

    def attempt() -> Awaitable[Leased]:
        return change_share(services, call, decide)

    if not leasing.may_wait(call):
        return await attempt()
    return await leasing.when_free(services, call, [place_ref(call)], attempt, _share_lease)


def _share_lease(found: Record | None) -> Lease | None:
    share = records.SHARE.of(found)
    return None if share is None else share.lease
