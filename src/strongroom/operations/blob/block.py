"""Declarations: operations on the blocks of a block blob.

Source: "Operations on block blobs" of the REST reference; docs/operations/blob.md, table "Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.operations.blob import documents
from strongroom.operations.blob.fields import blob_fields, block_fields, protection_fields
from strongroom.operations.blob.fields import returned as give
from strongroom.operations.core import fields, permissions
from strongroom.operations.core.answers import XML
from strongroom.operations.core.spec import BodyKind, Operation, Resource
from strongroom.semantics.blob.snapshots import version_time
from strongroom.semantics.core.lease import LeaseUse
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.services.blob.bodies import intake
from strongroom.services.blob.types import blocks
from strongroom.services.core.calls import ConditionUse, Existence, Rule
from strongroom.values import BlobKind
from strongroom.wire.blob.block_list import read_block_list

PUT_BLOCK: Final = Operation(
    name="Put Block",
    id="blockblob_stage_block",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="block",
    permission=permissions.CREATE_OF_BLOCKS,
    rule=Rule(LeaseUse.WRITE, ConditionUse.NONE, Existence.CREATES, kind=BlobKind.BLOCK),
    input=blocks.PutBlock,
    accepts=(blob_fields.SCOPE, block_fields.BLOCK_ID, blob_fields.DIGESTS),
    body=blob_fields.CONTENT,
    success=201,
    returns=(give.BODY_MD5, give.BLOCK_CRC64, give.ENCRYPTED),
    request_dependent_headers=give.upload_framing,
    fails=(
        blob_errors.INVALID_BLOB_OR_BLOCK,
        blob_errors.BLOCK_COUNT_EXCEEDS_LIMIT,
        errors.REQUEST_BODY_TOO_LARGE,
        errors.MISSING_CONTENT_LENGTH_HEADER,
        copy_errors.PENDING_COPY_OPERATION,
        copy_errors.BLOB_ARCHIVED,
        blob_errors.UNAUTHORIZED_BLOB_OVERWRITE,
    ),
    run=blocks.put_block,
)

PUT_BLOCK_LIST: Final = Operation(
    name="Put Block List",
    id="blockblob_commit_block_list",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="blocklist",
    permission=permissions.CREATE_OF_BLOCKS,
    rule=Rule(
        LeaseUse.WRITE,
        ConditionUse.WRITE,
        Existence.CREATES,
        kind=BlobKind.BLOCK,
        names_scope=True,
    ),
    input=blocks.PutBlockList,
    accepts=(
        blob_fields.SCOPE,
        blob_fields.OWN_PROPERTIES,
        fields.METADATA,
        blob_fields.DIGESTS,
        blob_fields.TIER,
        blob_fields.TAGS,
        protection_fields.PROTECTION,
    ),
    body=BodyKind(
        "blocks", read_block_list, limits.BLOCK_LIST_BODY_BYTES_MAX, receipt=intake.document_receipt
    ),
    success=201,
    returns=(
        give.ETAG,
        give.LAST_MODIFIED,
        give.BODY_MD5,
        give.BODY_CRC64,
        give.ENCRYPTED,
        give.VERSION_ID,
    ),
    fails=(
        blob_errors.INVALID_BLOCK_LIST,
        blob_errors.BLOCK_LIST_TOO_LONG,
        copy_errors.PENDING_COPY_OPERATION,
        copy_errors.BLOB_ARCHIVED,
        blob_errors.UNAUTHORIZED_BLOB_OVERWRITE,
        blob_errors.SNAPSHOTS_PRESENT,
        *protection_fields.REFUSALS,
    ),
    run=blocks.put_block_list,
)

GET_BLOCK_LIST: Final = Operation(
    name="Get Block List",
    id="blockblob_get_block_list",
    methods=("GET",),
    resource=Resource.BLOB,
    comp="blocklist",
    permission=permissions.READ,
    rule=Rule(LeaseUse.READ, ConditionUse.TAGS, Existence.ANY, kind=BlobKind.BLOCK),
    snapshots=snapshot_time,
    versions=version_time,
    input=blocks.GetBlockList,
    accepts=(block_fields.BLOCK_LIST_COMMITTED, block_fields.BLOCK_LIST_UNCOMMITTED),
    returns=(XML, give.COMMITTED_ETAG, give.COMMITTED_LAST_MODIFIED, give.BLOB_LENGTH),
    content=documents.block_list,
    fails=(copy_errors.BLOB_ARCHIVED,),
    run=blocks.get_block_list,
)

OPERATIONS: Final = (PUT_BLOCK, PUT_BLOCK_LIST, GET_BLOCK_LIST)
