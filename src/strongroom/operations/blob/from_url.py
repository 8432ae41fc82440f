"""Declarations: the operations whose body is read from a URL.

Source: "Put Blob From URL", "Put Block From URL", "Append Block From URL" and "Put Page From URL"
of the REST reference; docs/operations/blob.md, table "Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.operations.blob import append, blob, block, page
from strongroom.operations.blob.fields import (
    append_fields,
    blob_fields,
    block_fields,
    copy_fields,
    page_fields,
    protection_fields,
)
from strongroom.operations.core import fields, permissions
from strongroom.operations.core.spec import BodyKind, Operation, Resource, When
from strongroom.services.blob.from_url import writes

COPIES: Final = When("x-ms-copy-source")
SOURCE_ERRORS: Final = (
    copy_errors.CANNOT_VERIFY_COPY_SOURCE,
    copy_errors.COPY_SOURCE_FORBIDDEN,
    copy_errors.COPY_SOURCE_UNAUTHENTICATED,
    copy_errors.COPY_SOURCE_NOT_MODIFIED,
    copy_errors.COPY_SOURCE_CONDITION_NOT_MET,
    copy_errors.BLOB_ARCHIVED,
    errors.INVALID_RANGE,
)
"""The errors that concern the source of a From URL operation."""

PUT_BLOB_FROM_URL: Final = Operation(
    name="Put Blob From URL",
    id="blockblob_put_blob_from_url",
    methods=("PUT",),
    resource=Resource.BLOB,
    when=(COPIES, When("x-ms-blob-type", "BlockBlob")),
    permission=permissions.CREATE,
    rule=blob.PUT_BLOB.rule,
    input=writes.PutBlobFromUrl,
    accepts=(
        blob_fields.SCOPE,
        copy_fields.WHOLE_SOURCE,
        blob_fields.NO_PAGE_HEADERS,
        blob_fields.GIVEN_PROPERTIES,
        copy_fields.COPIES_PROPERTIES,
        fields.METADATA,
        blob_fields.TIER,
        blob_fields.TAGS,
        protection_fields.PROTECTION,
    ),
    body=BodyKind(),
    success=201,
    returns=blob.PUT_BLOB.returns,
    fails=(*blob.PUT_BLOB.fails, *SOURCE_ERRORS),
    run=writes.put_blob_from_url,
)

PUT_BLOCK_FROM_URL: Final = Operation(
    name="Put Block From URL",
    id="blockblob_stage_block_from_url",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="block",
    when=(COPIES,),
    permission=permissions.CREATE_OF_BLOCKS,
    rule=block.PUT_BLOCK.rule,
    input=writes.PutBlockFromUrl,
    accepts=(blob_fields.SCOPE, block_fields.BLOCK_ID, copy_fields.SOURCE_RANGE),
    body=BodyKind(),
    success=201,
    returns=block.PUT_BLOCK.returns,
    fails=(*block.PUT_BLOCK.fails, *SOURCE_ERRORS),
    run=writes.put_block_from_url,
)

APPEND_BLOCK_FROM_URL: Final = Operation(
    name="Append Block From URL",
    id="appendblob_append_block_from_url",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="appendblock",
    when=(COPIES,),
    permission=permissions.APPEND,
    rule=append.APPEND_BLOCK.rule,
    input=writes.AppendBlockFromUrl,
    accepts=(blob_fields.SCOPE, copy_fields.SOURCE_RANGE, append_fields.CONDITIONS),
    body=BodyKind(),
    success=201,
    returns=append.APPEND_BLOCK.returns,
    fails=(*append.APPEND_BLOCK.fails, *SOURCE_ERRORS),
    run=writes.append_block_from_url,
)

PUT_PAGE_FROM_URL: Final = Operation(
    name="Put Page From URL",
    id="pageblob_upload_pages_from_url",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="page",
    when=(COPIES, *page.PUT_PAGE.when),
    permission=permissions.WRITE,
    rule=page.PUT_PAGE.rule,
    input=writes.PutPageFromUrl,
    accepts=(
        page_fields.PAGES,
        copy_fields.SOURCE_PAGES,
        page_fields.SEQUENCE_CONDITIONS,
        blob_fields.SCOPE,
    ),
    body=BodyKind(),
    success=201,
    returns=page.PUT_PAGE.returns,
    fails=(*page.PUT_PAGE.fails, *SOURCE_ERRORS),
    run=writes.put_page_from_url,
)

OPERATIONS: Final = (
    PUT_BLOB_FROM_URL,
    PUT_BLOCK_FROM_URL,
    APPEND_BLOCK_FROM_URL,
    PUT_PAGE_FROM_URL,
)
"""Matched before the operations on the same URL without a source, which require one header less."""
