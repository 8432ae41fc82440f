"""Declarations: operations on append blobs.

Source: "Operations on append blobs" of the REST reference; docs/operations/blob.md, table "Blobs".
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.operations.blob.fields import append_fields, blob_fields, protection_fields
from strongroom.operations.blob.fields import returned as give
from strongroom.operations.core import fields, permissions
from strongroom.operations.core.spec import BodyKind, Operation, Resource, When
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.blob.types import appends
from strongroom.services.core.calls import ConditionUse, Existence, Rule
from strongroom.values import BlobKind

_SEALS: Final = Rule(LeaseUse.WRITE, ConditionUse.WRITE, kind=BlobKind.APPEND)
_APPENDS: Final = replace(_SEALS, names_scope=True)

PUT_APPEND_BLOB: Final = Operation(
    name="Put Blob (append)",
    id="appendblob_create",
    methods=("PUT",),
    resource=Resource.BLOB,
    when=(When("x-ms-blob-type", "AppendBlob"),),
    permission=permissions.CREATE,
    rule=Rule(LeaseUse.WRITE, ConditionUse.WRITE, Existence.CREATES),
    input=appends.CreateAppendBlob,
    accepts=(
        blob_fields.SCOPE,
        blob_fields.NO_PAGE_HEADERS,
        blob_fields.BODY_PROPERTIES,
        fields.METADATA,
        blob_fields.TAGS,
        blob_fields.TIER,
        protection_fields.PROTECTION,
    ),
    body=BodyKind(),
    success=201,
    returns=(give.ETAG, give.LAST_MODIFIED, give.ENCRYPTED, give.VERSION_ID),
    fails=(
        errors.MISSING_CONTENT_LENGTH_HEADER,
        blob_errors.FEATURE_VERSION_MISMATCH,
        blob_errors.ACCESS_TIER_NOT_SUPPORTED_FOR_BLOB_TYPE,
        blob_errors.UNAUTHORIZED_BLOB_OVERWRITE,
        blob_errors.SNAPSHOTS_PRESENT,
        copy_errors.PENDING_COPY_OPERATION,
        *protection_fields.REFUSALS,
    ),
    run=appends.create,
)

APPEND_BLOCK: Final = Operation(
    name="Append Block",
    id="appendblob_append_block",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="appendblock",
    permission=permissions.APPEND,
    rule=_APPENDS,
    input=appends.AppendBlock,
    accepts=(blob_fields.SCOPE, blob_fields.DIGESTS, append_fields.CONDITIONS),
    body=blob_fields.CONTENT,
    success=201,
    returns=(
        give.ETAG,
        give.LAST_MODIFIED,
        give.BODY_MD5,
        give.BODY_CRC64,
        give.APPEND_OFFSET,
        give.APPENDED_BLOCKS,
        give.ENCRYPTED,
    ),
    request_dependent_headers=give.upload_framing,
    fails=(
        errors.MISSING_CONTENT_LENGTH_HEADER,
        errors.REQUEST_BODY_TOO_LARGE,
        blob_errors.FEATURE_VERSION_MISMATCH,
        blob_errors.APPEND_POSITION_CONDITION_NOT_MET,
        blob_errors.MAX_BLOB_SIZE_CONDITION_NOT_MET,
        blob_errors.BLOCK_COUNT_EXCEEDS_LIMIT,
        blob_errors.BLOB_IS_SEALED,
        copy_errors.PENDING_COPY_OPERATION,
        *protection_fields.PROTECTED,
    ),
    run=appends.append_block,
)

SEAL_BLOB: Final = Operation(
    name="Append Blob Seal",
    id="appendblob_seal",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="seal",
    permission=permissions.APPEND,
    rule=_SEALS,
    input=appends.SealBlob,
    accepts=(append_fields.ONLY_POSITION,),
    returns=(give.ETAG, give.LAST_MODIFIED, give.SEALED),
    fails=(
        blob_errors.FEATURE_VERSION_MISMATCH,
        blob_errors.APPEND_POSITION_CONDITION_NOT_MET,
        copy_errors.PENDING_COPY_OPERATION,
    ),
    run=appends.seal,
)

OPERATIONS: Final = (PUT_APPEND_BLOB, APPEND_BLOCK, SEAL_BLOB)
