"""Declarations: the copies.

Source: "Copy Blob", "Copy Blob From URL" and "Abort Copy Blob" of the REST reference;
docs/operations/blob.md, table "Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.operations.blob.fields import blob_fields, copy_fields, protection_fields
from strongroom.operations.blob.fields import returned as give
from strongroom.operations.core import copies, fields, permissions
from strongroom.operations.core.spec import Operation, Resource, When
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.blob.copies import copying
from strongroom.services.core.calls import ConditionUse, Existence, Rule
from strongroom.values import Purpose

_SOURCE_ERRORS: Final = (
    copy_errors.CANNOT_VERIFY_COPY_SOURCE,
    copy_errors.COPY_SOURCE_FORBIDDEN,
    copy_errors.COPY_SOURCE_UNAUTHENTICATED,
    copy_errors.SOURCE_CONDITION_NOT_MET,
    blob_errors.TARGET_CONDITION_NOT_MET,
    copy_errors.PENDING_COPY_OPERATION,
    copy_errors.BLOB_ARCHIVED,
    blob_errors.UNAUTHORIZED_BLOB_OVERWRITE,
    blob_errors.INVALID_BLOB_TYPE,
    blob_errors.SNAPSHOTS_PRESENT,
    blob_errors.ACCESS_TIER_NOT_SUPPORTED_FOR_BLOB_TYPE,
    blob_errors.INVALID_BLOB_TIER,
    blob_errors.BLOB_TIER_INADEQUATE_FOR_CONTENT_LENGTH,
    blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
    *protection_fields.REFUSALS,
)
_RULE: Final = Rule(
    LeaseUse.WRITE, ConditionUse.WRITE, Existence.CREATES, blob_errors.TARGET_CONDITION_NOT_MET
)
_ACCEPTS: Final = (
    copies.COPY_SOURCE,
    copy_fields.SOURCE_CONDITIONS,
    fields.METADATA,
    blob_fields.TAGS,
    copy_fields.TIER,
    copy_fields.SEAL,
    protection_fields.PROTECTION,
    blob_fields.SCOPE,
)
_RETURNS: Final = (
    give.ETAG,
    give.LAST_MODIFIED,
    give.COPY_ID,
    give.COPY_STATUS,
    give.VERSION_ID,
)

COPY_FROM_URL: Final = Operation(
    name="Copy Blob From URL",
    id="blob_copy_from_url",
    methods=("PUT",),
    resource=Resource.BLOB,
    when=(When("x-ms-requires-sync", "true"), When("x-ms-copy-source")),
    permission=permissions.CREATE,
    rule=_RULE,
    input=copying.CopyBlob,
    accepts=(
        *_ACCEPTS,
        copy_fields.SOURCE_MD5,
        copies.AUTHORIZATION,
        copy_fields.COPIES_TAGS,
    ),
    success=202,
    returns=(*_RETURNS, give.BODY_MD5, give.BODY_CRC64),
    fails=(
        *_SOURCE_ERRORS,
        errors.REQUEST_BODY_TOO_LARGE,
        blob_errors.INVALID_SOURCE_BLOB_TYPE,
        errors.MD5_MISMATCH,
        errors.INVALID_MD5,
        blob_errors.BOTH_TAGS_AND_SOURCE_TAGS,
    ),
    run=copying.copy_from_url,
)

COPY_BLOB: Final = Operation(
    name="Copy Blob",
    id="blob_start_copy_from_url",
    methods=("PUT",),
    resource=Resource.BLOB,
    when=(When("x-ms-copy-source"),),
    permission=permissions.CREATE,
    rule=_RULE,
    input=copying.CopyBlob,
    accepts=(
        *_ACCEPTS,
        blob_fields.REHYDRATE_PRIORITY,
        copies.COPY_WAIT,
        copy_fields.NOT_OF_PENDING_COPIES,
    ),
    success=202,
    returns=_RETURNS,
    fails=(
        *_SOURCE_ERRORS,
        errors.REQUEST_BODY_TOO_LARGE,
        blob_errors.INFINITE_LEASE_DURATION_REQUIRED,
    ),
    run=copying.copy_blob,
)

ABORT_COPY: Final = Operation(
    name="Abort Copy Blob",
    id="blob_abort_copy_from_url",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="copy",
    when=(When("x-ms-copy-action", "abort"),),
    permission=permissions.WRITE,
    rule=Rule(LeaseUse.WRITE, purpose=Purpose.UPKEEP),
    input=copying.AbortCopy,
    accepts=(copies.COPY_ID,),
    success=204,
    fails=(copy_errors.NO_PENDING_COPY_OPERATION, copy_errors.COPY_ID_MISMATCH),
    run=copying.abort_copy,
)

FIRST: Final = (COPY_FROM_URL,)
"""Matched before Put Blob From URL, which requires one header less."""
OPERATIONS: Final = (COPY_BLOB, ABORT_COPY)
