"""The five actions on a lease, declared once for every kind of resource that can be leased.

The actions, their fields and headers, and the declarations made of them. Source: "Lease Blob",
"Lease Container", "Lease Share" and "Lease File" of the REST reference.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.auth.authorize import Permission
from strongroom.errors import leases as lease_errors
from strongroom.errors.core import ErrorCode, missing_header
from strongroom.operations.core.fields import LEASE_ID_HEADER, filled, header, integer
from strongroom.operations.core.listing_fields import ANY_INTEGER
from strongroom.operations.core.spec import Field, Operation, Resource, Returned, When
from strongroom.semantics.core import lease as leases
from strongroom.services.core import leasing
from strongroom.services.core.calls import Rule
from strongroom.services.core.leasing import LeaseAction
from strongroom.values import Lease, etag_text, rfc1123
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query


def _duration_s(name: str, value: str) -> int:
    return leases.require_duration(wire.integer(name, value, -ANY_INTEGER, ANY_INTEGER))


DURATION: Final = header("duration_s", "x-ms-lease-duration", _duration_s, required=True)
PROPOSED_ID: Final = header("proposed_id", "x-ms-proposed-lease-id", wire.guid)
NEW_ID: Final = header("proposed_id", "x-ms-proposed-lease-id", wire.guid, required=True)
BREAK_PERIOD: Final = header(
    "period_s", "x-ms-lease-break-period", integer(*limits.LEASE_BREAK_PERIOD_S)
)


def _held_id(request: Request, query: Query) -> None:
    if filled(request, LEASE_ID_HEADER) is None:
        raise missing_header(LEASE_ID_HEADER)


HELD_ID: Final = Field("", _held_id, headers=(LEASE_ID_HEADER,))
"""Requires the id of the lease. The call contains the id already, so this sets no field."""

LEASE_ID: Final = Returned("x-ms-lease-id", lambda result: result.lease_id)
LEASE_TIME: Final = Returned(
    "x-ms-lease-time", lambda result: None if result.time_s is None else str(result.time_s)
)
# A blob with only uncommitted blocks can be leased, and has neither ETag nor Last-Modified.
LEASED_ETAG: Final = Returned(
    "ETag", lambda leased: etag_text(leased.etag) if leased.etag else None
)
LEASED_LAST_MODIFIED: Final = Returned(
    "Last-Modified", lambda leased: rfc1123(leased.modified) if leased.modified else None
)


def lease_headers(lease: Lease | None, now: int) -> tuple[tuple[str, str], ...]:
    """Status and state, and the duration while leased."""
    trio = [
        ("x-ms-lease-status", leases.status(lease, now)),
        ("x-ms-lease-state", leases.state(lease, now).value),
    ]
    duration = leases.reported_duration(lease, now)
    if duration is not None:
        trio.append(("x-ms-lease-duration", duration))
    return tuple(trio)


HELD: Final = (
    lease_errors.LEASE_ALREADY_PRESENT,
    lease_errors.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED,
)
MISMATCH: Final = lease_errors.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION
ABSENT: Final = lease_errors.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION


class LeaseActionRow(msgspec.Struct, frozen=True):
    """A value of x-ms-lease-action: the fields it accepts, and its answer for every kind of
    resource."""

    word: str
    input: type[LeaseAction]
    accepts: tuple[Field, ...]
    fails: tuple[ErrorCode, ...]
    returns: tuple[Returned, ...] = ()
    success: int = 200
    waits: bool = False


ACTIONS: Final = (
    LeaseActionRow(
        "acquire",
        leasing.AcquireLease,
        (DURATION, PROPOSED_ID),
        HELD,
        (LEASE_ID,),
        success=201,
        waits=True,
    ),
    LeaseActionRow(
        "renew",
        leasing.RenewLease,
        (HELD_ID,),
        (MISMATCH, lease_errors.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED),
        (LEASE_ID,),
    ),
    LeaseActionRow(
        "change",
        leasing.ChangeLease,
        (HELD_ID, NEW_ID),
        (MISMATCH, ABSENT, lease_errors.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED),
        (LEASE_ID,),
    ),
    LeaseActionRow("release", leasing.ReleaseLease, (HELD_ID,), (MISMATCH,)),
    LeaseActionRow(
        "break",
        leasing.BreakLease,
        (BREAK_PERIOD,),
        (ABSENT,),
        (LEASE_TIME,),
        success=202,
    ),
)


class LeasedKind(msgspec.Struct, frozen=True):
    """A kind of resource that can be leased.

    `breaks` is the permission that breaking needs instead of `permission`. `fails` are the errors
    of every action.
    """

    title: str
    resource: Resource
    restype: str | None
    permission: Permission
    breaks: Permission
    rule: Rule
    run: Callable[..., Awaitable[Any]]
    fails: tuple[ErrorCode, ...] = ()


def declared(kind: LeasedKind, action: LeaseActionRow) -> Operation:
    return Operation(
        name=f"Lease {kind.title} ({action.word})",
        id=f"{kind.title.lower()}_{action.word}_lease",
        methods=("PUT",),
        resource=kind.resource,
        restype=kind.restype,
        comp="lease",
        when=(When("x-ms-lease-action", action.word),),
        permission=kind.breaks if action.word == "break" else kind.permission,
        rule=kind.rule,
        waits=action.waits,
        input=action.input,
        accepts=action.accepts,
        success=action.success,
        returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, *action.returns),
        fails=(*action.fails, *kind.fails),
        run=kind.run,
    )
