"""Declarations: operations on a blob as a whole, in the order of the Azure reference.

Source: "Operations on Blobs" of the REST reference; docs/operations/blob.md, table "Blobs".
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.operations.blob import documents
from strongroom.operations.blob.fields import blob_fields, protection_fields
from strongroom.operations.blob.fields import returned as give
from strongroom.operations.core import fields, permissions
from strongroom.operations.core.spec import Operation, Resource, When
from strongroom.semantics.blob.snapshots import (
    DELETE_TYPE,
    PERMANENT,
    VERSION_PARAMETER,
    version_time,
)
from strongroom.semantics.core.lease import LeaseUse
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.services.blob import attributes, blobs
from strongroom.services.blob.states import retention, snapshots
from strongroom.services.blob.tiers import tiering
from strongroom.services.core.calls import ConditionUse, Existence, Rule
from strongroom.values import Purpose

READS: Final = Rule(LeaseUse.READ, ConditionUse.READ)
WRITES: Final = Rule(LeaseUse.WRITE, ConditionUse.WRITE)
CREATES: Final = Rule(LeaseUse.WRITE, ConditionUse.WRITE, Existence.CREATES)

PUT_BLOB: Final = Operation(
    name="Put Blob",
    id="blockblob_upload",
    methods=("PUT",),
    resource=Resource.BLOB,
    when=(When("x-ms-blob-type", "BlockBlob"),),
    permission=permissions.CREATE,
    rule=CREATES,
    input=blobs.PutBlob,
    accepts=(
        blob_fields.SCOPE,
        blob_fields.NO_PAGE_HEADERS,
        blob_fields.BODY_PROPERTIES,
        fields.METADATA,
        blob_fields.BODY_DIGESTS,
        blob_fields.TIER,
        blob_fields.TAGS,
        protection_fields.PROTECTION,
    ),
    body=blob_fields.CONTENT,
    success=201,
    returns=(
        give.ETAG,
        give.LAST_MODIFIED,
        give.BODY_MD5,
        give.BODY_CRC64,
        give.ENCRYPTED,
        give.VERSION_ID,
    ),
    request_dependent_headers=give.upload_framing,
    fails=(
        errors.MISSING_CONTENT_LENGTH_HEADER,
        errors.REQUEST_BODY_TOO_LARGE,
        blob_errors.UNAUTHORIZED_BLOB_OVERWRITE,
        blob_errors.SNAPSHOTS_PRESENT,
        copy_errors.PENDING_COPY_OPERATION,
        blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
        *protection_fields.REFUSALS,
    ),
    run=blobs.put_blob,
)

GET_BLOB: Final = Operation(
    name="Get Blob",
    id="blob_download",
    methods=("GET",),
    resource=Resource.BLOB,
    permission=permissions.READ,
    rule=READS,
    snapshots=snapshot_time,
    versions=version_time,
    waits=True,
    input=blobs.GetBlob,
    accepts=(
        fields.RANGE,
        blob_fields.RANGE_MD5,
        blob_fields.RANGE_CRC64,
        blob_fields.STRUCTURED_ANSWER,
    ),
    success=documents.download_status,
    extra_headers=give.blob_headers,
    request_dependent_headers=give.download_framing,
    content=documents.download,
    fails=(
        errors.INVALID_RANGE,
        errors.BOTH_CRC64_AND_MD5_HEADER_PRESENT,
        copy_errors.BLOB_ARCHIVED,
        blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
    ),
    run=blobs.get_blob,
)

GET_BLOB_PROPERTIES: Final = Operation(
    name="Get Blob Properties",
    id="blob_get_properties",
    methods=("HEAD",),
    resource=Resource.BLOB,
    permission=permissions.READ,
    rule=READS,
    snapshots=snapshot_time,
    versions=version_time,
    waits=True,
    extra_headers=give.blob_headers,
    content=documents.head_only,
    run=blobs.get_properties,
)

GET_BLOB_METADATA: Final = Operation(
    name="Get Blob Metadata",
    id="blob_get_metadata",
    methods=("GET", "HEAD"),
    resource=Resource.BLOB,
    comp="metadata",
    permission=permissions.READ,
    rule=READS,
    snapshots=snapshot_time,
    versions=version_time,
    waits=True,
    returns=(give.BLOB_ETAG, give.BLOB_LAST_MODIFIED),
    extra_headers=give.blob_metadata,
    run=blobs.get_properties,
)

SET_BLOB_PROPERTIES: Final = Operation(
    name="Set Blob Properties",
    id="blob_set_http_headers",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="properties",
    permission=permissions.WRITE,
    rule=WRITES,
    input=attributes.SetProperties,
    accepts=(blob_fields.NEW_PROPERTIES,),
    returns=(give.ETAG, give.LAST_MODIFIED, give.SEQUENCE_NUMBER),
    fails=(
        copy_errors.PENDING_COPY_OPERATION,
        copy_errors.BLOB_ARCHIVED,
        blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
        *protection_fields.PROTECTED,
    ),
    run=attributes.set_properties,
)

SET_BLOB_METADATA: Final = Operation(
    name="Set Blob Metadata",
    id="blob_set_metadata",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="metadata",
    permission=permissions.WRITE,
    rule=replace(WRITES, names_scope=True),
    input=attributes.SetMetadata,
    accepts=(
        blob_fields.SCOPE,
        fields.METADATA,
    ),
    returns=(give.ETAG, give.LAST_MODIFIED, give.ENCRYPTED, give.VERSION_ID),
    fails=(
        copy_errors.PENDING_COPY_OPERATION,
        copy_errors.BLOB_ARCHIVED,
        blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
        *protection_fields.PROTECTED,
    ),
    run=attributes.set_metadata,
)

SNAPSHOT_BLOB: Final = Operation(
    name="Snapshot Blob",
    id="blob_create_snapshot",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="snapshot",
    permission=permissions.CREATE,
    rule=Rule(LeaseUse.READ, ConditionUse.WRITE, names_scope=True),
    input=snapshots.SnapshotBlob,
    accepts=(
        blob_fields.SCOPE,
        fields.METADATA,
    ),
    success=201,
    returns=(
        give.SNAPSHOT,
        give.ETAG,
        give.LAST_MODIFIED,
        give.ENCRYPTED,
        give.VERSION_ID,
    ),
    fails=(
        copy_errors.PENDING_COPY_OPERATION,
        copy_errors.BLOB_ARCHIVED,
        blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
        *protection_fields.PROTECTED,
    ),
    run=snapshots.snapshot_blob,
)

DELETE_BLOB: Final = Operation(
    name="Delete Blob",
    id="blob_delete",
    methods=("DELETE",),
    resource=Resource.BLOB,
    permission=permissions.DELETE,
    rule=Rule(LeaseUse.WRITE, ConditionUse.WRITE, purpose=Purpose.FREEING),
    snapshots=snapshot_time,
    input=snapshots.DeleteBlob,
    accepts=blob_fields.DELETION,
    success=202,
    returns=(give.PERMANENT,),
    fails=(
        blob_errors.SNAPSHOTS_PRESENT,
        copy_errors.PENDING_COPY_OPERATION,
        *protection_fields.PROTECTED,
    ),
    run=snapshots.delete_blob,
)

DELETE_VERSION: Final = Operation(
    name="Delete Blob (version)",
    id="blob_delete_version",
    methods=("DELETE",),
    resource=Resource.BLOB,
    when=(When(f"?{VERSION_PARAMETER}"),),
    permission=permissions.DELETE_VERSION,
    rule=Rule(LeaseUse.WRITE, ConditionUse.WRITE, purpose=Purpose.FREEING),
    snapshots=snapshot_time,
    versions=version_time,
    input=snapshots.DeleteBlob,
    accepts=blob_fields.DELETION,
    success=202,
    returns=(give.PERMANENT,),
    fails=(
        blob_errors.SNAPSHOTS_PRESENT,
        copy_errors.PENDING_COPY_OPERATION,
        blob_errors.OPERATION_NOT_ALLOWED_ON_ROOT_BLOB,
        *protection_fields.PROTECTED,
    ),
    run=snapshots.delete_blob,
)

DELETE_PERMANENTLY: Final = Operation(
    name="Delete Blob (permanent)",
    id="blob_delete_permanently",
    methods=("DELETE",),
    resource=Resource.BLOB,
    when=(When(f"?{DELETE_TYPE}", PERMANENT),),
    permission=permissions.DELETE_PERMANENTLY,
    rule=Rule(LeaseUse.WRITE, ConditionUse.WRITE, Existence.KEPT, purpose=Purpose.FREEING),
    snapshots=snapshot_time,
    versions=version_time,
    input=snapshots.DeleteBlob,
    accepts=blob_fields.DELETION,
    success=202,
    returns=(give.PERMANENT,),
    fails=(
        blob_errors.OPERATION_NOT_ALLOWED_ON_ROOT_BLOB,
        *protection_fields.PROTECTED,
    ),
    run=snapshots.delete_permanently,
)

UNDELETE_BLOB: Final = Operation(
    name="Undelete Blob",
    id="blob_undelete",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="undelete",
    permission=permissions.WRITE,
    rule=Rule(LeaseUse.NONE, ConditionUse.NONE, Existence.CREATES),
    fails=(blob_errors.BLOB_NOT_FOUND,),
    run=retention.undelete_blob,
)

SET_BLOB_TIER: Final = Operation(
    name="Set Blob Tier",
    id="blob_set_tier",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="tier",
    permission=permissions.WRITE,
    rule=Rule(LeaseUse.READ, ConditionUse.TAGS),
    snapshots=snapshot_time,
    versions=version_time,
    input=tiering.SetTier,
    accepts=(blob_fields.NEW_TIER, blob_fields.REHYDRATE_PRIORITY),
    success=give.tier_status,
    fails=(
        blob_errors.ACCESS_TIER_NOT_SUPPORTED_FOR_BLOB_TYPE,
        copy_errors.PENDING_COPY_OPERATION,
        blob_errors.INVALID_BLOB_TIER,
        blob_errors.CANNOT_CHANGE_TO_LOWER_TIER,
        blob_errors.BLOB_BEING_REHYDRATED,
        blob_errors.BLOB_TIER_INADEQUATE_FOR_CONTENT_LENGTH,
        blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
    ),
    run=tiering.set_tier,
)

OPERATIONS: Final = (
    PUT_BLOB,
    GET_BLOB,
    GET_BLOB_PROPERTIES,
    SET_BLOB_PROPERTIES,
    GET_BLOB_METADATA,
    SET_BLOB_METADATA,
    SNAPSHOT_BLOB,
    DELETE_PERMANENTLY,
    DELETE_VERSION,
    DELETE_BLOB,
    UNDELETE_BLOB,
    SET_BLOB_TIER,
)
