"""Declarations: immutability policies and legal holds of blobs.

Source: "Set Blob Immutability Policy", "Delete Blob Immutability Policy" and "Set Blob Legal Hold"
of the REST reference; docs/operations/blob.md, table "Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import blob as blob_errors
from strongroom.operations.blob.fields import protection_fields
from strongroom.operations.core import permissions
from strongroom.operations.core.spec import Operation, Resource
from strongroom.semantics.blob.snapshots import version_time
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.services.blob.states import immutability
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.values import Purpose

SET_POLICY: Final = Operation(
    name="Set Blob Immutability Policy",
    id="blob_set_immutability_policy",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="immutabilitypolicies",
    permission=permissions.PROTECT,
    rule=Rule(conditions=ConditionUse.UNMODIFIED_SINCE),
    snapshots=snapshot_time,
    versions=version_time,
    input=immutability.SetPolicy,
    accepts=(protection_fields.POLICY,),
    extra_headers=protection_fields.policy_headers,
    fails=(blob_errors.BLOB_IMMUTABLE_DUE_TO_POLICY, blob_errors.IMMUTABILITY_NOT_ENABLED),
    run=immutability.set_policy,
)

DELETE_POLICY: Final = Operation(
    name="Delete Blob Immutability Policy",
    id="blob_delete_immutability_policy",
    methods=("DELETE",),
    resource=Resource.BLOB,
    comp="immutabilitypolicies",
    permission=permissions.PROTECT,
    rule=Rule(purpose=Purpose.FREEING),
    snapshots=snapshot_time,
    versions=version_time,
    fails=(blob_errors.BLOB_IMMUTABLE_DUE_TO_POLICY,),
    run=immutability.delete_policy,
)

SET_HOLD: Final = Operation(
    name="Set Blob Legal Hold",
    id="blob_set_legal_hold",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="legalhold",
    permission=permissions.PROTECT,
    rule=Rule(purpose=Purpose.UPKEEP),
    snapshots=snapshot_time,
    versions=version_time,
    input=immutability.SetHold,
    accepts=(protection_fields.HOLD,),
    returns=(protection_fields.HELD,),
    fails=(blob_errors.IMMUTABILITY_NOT_ENABLED,),
    run=immutability.set_hold,
)

OPERATIONS: Final = (SET_POLICY, DELETE_POLICY, SET_HOLD)
