"""Declarations: the five actions of Lease Container and of Lease Blob.

Lives here: data only. Must not live here: functions. Source: "Lease Container" and "Lease Blob" of
the REST reference; docs/operations/blob.md, tables "Containers" and "Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom import errors
from strongroom.operations import container_fields as fields
from strongroom.operations import permissions
from strongroom.operations import returned as give
from strongroom.operations.container_returned import LEASED_ETAG, LEASED_LAST_MODIFIED
from strongroom.operations.spec import Operation, Resource, When
from strongroom.semantics.lease import LeaseUse
from strongroom.services import leasing
from strongroom.services.calls import ConditionUse, Existence, Rule

CONTAINER: Final = Rule(LeaseUse.NONE, ConditionUse.DATES)
BLOB: Final = Rule(LeaseUse.NONE, ConditionUse.WRITE, Existence.ANY)
HELD: Final = (errors.LEASE_ALREADY_PRESENT, errors.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED)
MISMATCH: Final = errors.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION
ABSENT: Final = errors.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION

ACQUIRE_CONTAINER_LEASE: Final = Operation(
    name="Lease Container (acquire)",
    id="container_acquire_lease",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="lease",
    when=(When("x-ms-lease-action", "acquire"),),
    permission=permissions.CONTAINER_WRITE,
    rule=CONTAINER,
    waits=True,
    input=leasing.AcquireLease,
    accepts=(fields.DURATION, fields.PROPOSED_ID),
    success=201,
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, give.LEASE_ID),
    fails=(*HELD,),
    run=leasing.lease_container,
)

RENEW_CONTAINER_LEASE: Final = Operation(
    name="Lease Container (renew)",
    id="container_renew_lease",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="lease",
    when=(When("x-ms-lease-action", "renew"),),
    permission=permissions.CONTAINER_WRITE,
    rule=CONTAINER,
    input=leasing.RenewLease,
    accepts=(fields.HELD_ID,),
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, give.LEASE_ID),
    fails=(
        MISMATCH,
        errors.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED,
    ),
    run=leasing.lease_container,
)

CHANGE_CONTAINER_LEASE: Final = Operation(
    name="Lease Container (change)",
    id="container_change_lease",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="lease",
    when=(When("x-ms-lease-action", "change"),),
    permission=permissions.CONTAINER_WRITE,
    rule=CONTAINER,
    input=leasing.ChangeLease,
    accepts=(fields.HELD_ID, fields.NEW_ID),
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, give.LEASE_ID),
    fails=(
        MISMATCH,
        ABSENT,
        errors.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED,
    ),
    run=leasing.lease_container,
)

RELEASE_CONTAINER_LEASE: Final = Operation(
    name="Lease Container (release)",
    id="container_release_lease",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="lease",
    when=(When("x-ms-lease-action", "release"),),
    permission=permissions.CONTAINER_WRITE,
    rule=CONTAINER,
    input=leasing.ReleaseLease,
    accepts=(fields.HELD_ID,),
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED),
    fails=(MISMATCH,),
    run=leasing.lease_container,
)

BREAK_CONTAINER_LEASE: Final = Operation(
    name="Lease Container (break)",
    id="container_break_lease",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="lease",
    when=(When("x-ms-lease-action", "break"),),
    permission=permissions.CONTAINER_BREAK,
    rule=CONTAINER,
    input=leasing.BreakLease,
    accepts=(fields.BREAK_PERIOD,),
    success=202,
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, give.LEASE_TIME),
    fails=(ABSENT,),
    run=leasing.lease_container,
)

ACQUIRE_BLOB_LEASE: Final = Operation(
    name="Lease Blob (acquire)",
    id="blob_acquire_lease",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="lease",
    when=(When("x-ms-lease-action", "acquire"),),
    permission=permissions.WRITE,
    rule=BLOB,
    waits=True,
    input=leasing.AcquireLease,
    accepts=(fields.DURATION, fields.PROPOSED_ID),
    success=201,
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, give.LEASE_ID),
    fails=(
        *HELD,
        errors.PENDING_COPY_OPERATION,
    ),
    run=leasing.lease_blob,
)

RENEW_BLOB_LEASE: Final = Operation(
    name="Lease Blob (renew)",
    id="blob_renew_lease",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="lease",
    when=(When("x-ms-lease-action", "renew"),),
    permission=permissions.WRITE,
    rule=BLOB,
    input=leasing.RenewLease,
    accepts=(fields.HELD_ID,),
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, give.LEASE_ID),
    fails=(
        MISMATCH,
        errors.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED,
        errors.PENDING_COPY_OPERATION,
    ),
    run=leasing.lease_blob,
)

CHANGE_BLOB_LEASE: Final = Operation(
    name="Lease Blob (change)",
    id="blob_change_lease",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="lease",
    when=(When("x-ms-lease-action", "change"),),
    permission=permissions.WRITE,
    rule=BLOB,
    input=leasing.ChangeLease,
    accepts=(fields.HELD_ID, fields.NEW_ID),
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, give.LEASE_ID),
    fails=(
        MISMATCH,
        ABSENT,
        errors.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED,
        errors.PENDING_COPY_OPERATION,
    ),
    run=leasing.lease_blob,
)

RELEASE_BLOB_LEASE: Final = Operation(
    name="Lease Blob (release)",
    id="blob_release_lease",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="lease",
    when=(When("x-ms-lease-action", "release"),),
    permission=permissions.WRITE,
    rule=BLOB,
    input=leasing.ReleaseLease,
    accepts=(fields.HELD_ID,),
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED),
    fails=(
        MISMATCH,
        errors.PENDING_COPY_OPERATION,
    ),
    run=leasing.lease_blob,
)

BREAK_BLOB_LEASE: Final = Operation(
    name="Lease Blob (break)",
    id="blob_break_lease",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="lease",
    when=(When("x-ms-lease-action", "break"),),
    permission=permissions.BREAK_LEASE,
    rule=BLOB,
    input=leasing.BreakLease,
    accepts=(fields.BREAK_PERIOD,),
    success=202,
    returns=(LEASED_ETAG, LEASED_LAST_MODIFIED, give.LEASE_TIME),
    fails=(
        ABSENT,
        errors.PENDING_COPY_OPERATION,
    ),
    run=leasing.lease_blob,
)

OPERATIONS: Final = (
    ACQUIRE_CONTAINER_LEASE,
    RENEW_CONTAINER_LEASE,
    CHANGE_CONTAINER_LEASE,
    RELEASE_CONTAINER_LEASE,
    BREAK_CONTAINER_LEASE,
    ACQUIRE_BLOB_LEASE,
    RENEW_BLOB_LEASE,
    CHANGE_BLOB_LEASE,
    RELEASE_BLOB_LEASE,
    BREAK_BLOB_LEASE,
)
