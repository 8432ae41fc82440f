"""Declarations: the five actions of Lease Container and of Lease Blob.

Lives here: data only, five rows for two kinds of resource. Must not live here: behaviour. Source:
"Lease Container" and "Lease Blob" of the REST reference; docs/operations/blob.md, tables
"Containers" and "Blobs".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from strongroom import blob_errors, errors
from strongroom.auth.authorize import Permission
from strongroom.errors import ErrorCode
from strongroom.operations.blob.fields import container_fields as fields
from strongroom.operations.blob.fields import returned as give
from strongroom.operations.blob.fields.container_returned import LEASED_ETAG, LEASED_LAST_MODIFIED
from strongroom.operations.core import permissions
from strongroom.operations.core.spec import Field, Operation, Resource, Returned, When
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.blob import leasing
from strongroom.services.blob.leasing import LeaseAction
from strongroom.services.core.calls import ConditionUse, Existence, Rule
from strongroom.values import Purpose

HELD: Final = (errors.LEASE_ALREADY_PRESENT, errors.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED)
MISMATCH: Final = errors.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION
ABSENT: Final = errors.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION


@dataclass(frozen=True, slots=True)
class _Action:
    """A value of x-ms-lease-action: what it takes, and answers for either kind of resource."""

    word: str
    input: type[LeaseAction]
    accepts: tuple[Field, ...]
    fails: tuple[ErrorCode, ...]
    returns: tuple[Returned, ...] = ()
    success: int = 200
    waits: bool = False


_ACTIONS: Final = (
    _Action(
        "acquire",
        leasing.AcquireLease,
        (fields.DURATION, fields.PROPOSED_ID),
        HELD,
        (give.LEASE_ID,),
        success=201,
        waits=True,
    ),
    _Action(
        "renew",
        leasing.RenewLease,
        (fields.HELD_ID,),
        (MISMATCH, errors.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED),
        (give.LEASE_ID,),
    ),
    _Action(
        "change",
        leasing.ChangeLease,
        (fields.HELD_ID, fields.NEW_ID),
        (MISMATCH, ABSENT, errors.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED),
        (give.LEASE_ID,),
    ),
    _Action("release", leasing.ReleaseLease, (fields.HELD_ID,), (MISMATCH,)),
    _Action(
        "break",
        leasing.BreakLease,
        (fields.BREAK_PERIOD,),
        (ABSENT,),
        (give.LEASE_TIME,),
        success=202,
    ),
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What can be leased. `breaks` is the permission that breaking needs instead of `permission`;
    `fails` are the errors of every action."""

    title: str
    resource: Resource
    restype: str | None
    permission: Permission
    breaks: Permission
    rule: Rule
    run: Callable[..., Awaitable[Any]]
    fails: tuple[ErrorCode, ...] = ()


_KINDS: Final = (
    _Kind(
        "Container",
        Resource.CONTAINER,
        "container",
        permissions.CONTAINER_WRITE,
        permissions.CONTAINER_BREAK,
        Rule(LeaseUse.NONE, ConditionUse.DATES, purpose=Purpose.UPKEEP),
        leasing.lease_container,
    ),
    _Kind(
        "Blob",
        Resource.BLOB,
        None,
        permissions.WRITE,
        permissions.BREAK_LEASE,
        Rule(LeaseUse.NONE, ConditionUse.WRITE, Existence.ANY, purpose=Purpose.UPKEEP),
        leasing.lease_blob,
        (blob_errors.PENDING_COPY_OPERATION,),
    ),
)


def _declared(kind: _Kind, action: _Action) -> Operation:
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


OPERATIONS: Final = tuple(_declared(kind, action) for kind in _KINDS for action in _ACTIONS)
