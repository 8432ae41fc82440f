"""Declarations: operations on page blobs.

Source: "Operations on page blobs" of the REST reference; docs/operations/blob.md, table "Blobs".
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.operations.blob import documents
from strongroom.operations.blob.fields import (
    blob_fields,
    page_fields,
    protection_fields,
)
from strongroom.operations.blob.fields import returned as give
from strongroom.operations.core import copies, fields, permissions
from strongroom.operations.core.answers import XML
from strongroom.operations.core.spec import BodyKind, Operation, Resource, When
from strongroom.semantics.blob.snapshots import version_time
from strongroom.semantics.core.lease import LeaseUse
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.services.blob.copies import incremental
from strongroom.services.blob.types.pages import ranges, writing
from strongroom.services.core.calls import ConditionUse, Existence, Rule
from strongroom.values import BlobKind, Purpose

_READS: Final = Rule(LeaseUse.READ, ConditionUse.READ, kind=BlobKind.PAGE)
_WRITES: Final = Rule(LeaseUse.WRITE, ConditionUse.WRITE, kind=BlobKind.PAGE)
_CHANGES: Final = replace(_WRITES, names_scope=True)
_FREES: Final = replace(_CHANGES, purpose=Purpose.UPKEEP)
_NOT_NOW: Final = (
    copy_errors.PENDING_COPY_OPERATION,
    blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
    *protection_fields.PROTECTED,
)

PUT_PAGE_BLOB: Final = Operation(
    name="Put Blob (page)",
    id="pageblob_create",
    methods=("PUT",),
    resource=Resource.BLOB,
    when=(When("x-ms-blob-type", "PageBlob"),),
    permission=permissions.CREATE,
    rule=Rule(LeaseUse.WRITE, ConditionUse.WRITE, Existence.CREATES),
    input=writing.PutPageBlob,
    accepts=(
        blob_fields.SCOPE,
        page_fields.SIZE,
        page_fields.FIRST_NUMBER,
        blob_fields.BODY_PROPERTIES,
        fields.METADATA,
        page_fields.TIER,
        blob_fields.TAGS,
        protection_fields.PROTECTION,
    ),
    body=BodyKind(),
    success=201,
    returns=(give.ETAG, give.LAST_MODIFIED, give.ENCRYPTED, give.VERSION_ID),
    fails=(
        *_NOT_NOW,
        errors.MISSING_CONTENT_LENGTH_HEADER,
        blob_errors.BLOB_TIER_INADEQUATE_FOR_CONTENT_LENGTH,
        blob_errors.SNAPSHOTS_PRESENT,
        blob_errors.UNAUTHORIZED_BLOB_OVERWRITE,
        blob_errors.IMMUTABILITY_NOT_ENABLED,
    ),
    run=writing.put_page_blob,
)

_WRITTEN: Final = (
    give.ETAG,
    give.LAST_MODIFIED,
    give.BODY_MD5,
    give.BODY_CRC64,
    give.SEQUENCE_NUMBER,
    give.ENCRYPTED,
)
_PAGE_ERRORS: Final = (
    *_NOT_NOW,
    blob_errors.INVALID_PAGE_RANGE,
    blob_errors.SEQUENCE_NUMBER_CONDITION_NOT_MET,
    errors.MISSING_CONTENT_LENGTH_HEADER,
)

PUT_PAGE: Final = Operation(
    name="Put Page",
    id="pageblob_upload_pages",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="page",
    when=(When("x-ms-page-write", "update"),),
    permission=permissions.WRITE,
    rule=_CHANGES,
    input=writing.PutPage,
    accepts=(
        blob_fields.SCOPE,
        page_fields.PAGES,
        blob_fields.DIGESTS,
        page_fields.SEQUENCE_CONDITIONS,
    ),
    body=blob_fields.CONTENT,
    success=201,
    returns=_WRITTEN,
    request_dependent_headers=give.upload_framing,
    fails=(*_PAGE_ERRORS, errors.REQUEST_BODY_TOO_LARGE),
    run=writing.put_page,
)

CLEAR_PAGES: Final = Operation(
    name="Put Page (clear)",
    id="pageblob_clear_pages",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="page",
    when=(When("x-ms-page-write", "clear"),),
    permission=permissions.WRITE,
    rule=_FREES,
    input=writing.PutPage,
    accepts=(
        blob_fields.SCOPE,
        page_fields.PAGES,
        page_fields.NO_DIGESTS,
        page_fields.SEQUENCE_CONDITIONS,
    ),
    body=BodyKind(),
    success=201,
    returns=(give.ETAG, give.LAST_MODIFIED, give.SEQUENCE_NUMBER, give.ENCRYPTED),
    fails=_PAGE_ERRORS,
    run=writing.clear_pages,
)

_RANGE_ERRORS: Final = (
    errors.INVALID_RANGE,
    blob_errors.OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB,
)
_RANGE_FIELDS: Final = (page_fields.RANGE, page_fields.MARKER, page_fields.MAX_RESULTS)
_RANGE_HEADERS: Final = (XML, give.LISTED_ETAG, give.LISTED_LAST_MODIFIED, give.BLOB_LENGTH)


def _changed_ranges(mark: str) -> Operation:
    return Operation(
        name="Get Page Ranges (diff)",
        id="pageblob_get_page_ranges_diff",
        methods=("GET",),
        resource=Resource.BLOB,
        comp="pagelist",
        when=(When(mark),),
        permission=permissions.READ,
        rule=_READS,
        snapshots=snapshot_time,
        versions=version_time,
        input=ranges.GetPageRangesDiff,
        accepts=(*_RANGE_FIELDS, page_fields.PREVIOUS),
        returns=_RANGE_HEADERS,
        content=documents.page_list,
        fails=(
            *_RANGE_ERRORS,
            blob_errors.PREVIOUS_SNAPSHOT_NOT_FOUND,
            blob_errors.PREVIOUS_SNAPSHOT_CANNOT_BE_NEWER,
            blob_errors.BLOB_OVERWRITTEN,
        ),
        run=ranges.get_changed_ranges,
    )


GET_PAGE_RANGES: Final = Operation(
    name="Get Page Ranges",
    id="pageblob_get_page_ranges",
    methods=("GET",),
    resource=Resource.BLOB,
    comp="pagelist",
    permission=permissions.READ,
    rule=_READS,
    snapshots=snapshot_time,
    versions=version_time,
    input=ranges.GetPageRanges,
    accepts=_RANGE_FIELDS,
    returns=_RANGE_HEADERS,
    content=documents.page_list,
    fails=_RANGE_ERRORS,
    run=ranges.get_page_ranges,
)


def _set_properties(name: str, id: str, mark: str, rule: Rule) -> Operation:
    return Operation(
        name=name,
        id=id,
        methods=("PUT",),
        resource=Resource.BLOB,
        comp="properties",
        when=(When(mark),),
        permission=permissions.WRITE,
        rule=rule,
        input=writing.SetPageProperties,
        accepts=(
            blob_fields.NEW_PROPERTIES,
            page_fields.NEW_SIZE,
            page_fields.SEQUENCE,
            blob_fields.SCOPE,
        ),
        returns=(give.ETAG, give.LAST_MODIFIED, give.SEQUENCE_NUMBER),
        fails=(
            *_NOT_NOW,
            blob_errors.SEQUENCE_NUMBER_INCREMENT_TOO_LARGE,
            blob_errors.BLOB_TIER_INADEQUATE_FOR_CONTENT_LENGTH,
        ),
        run=writing.set_page_properties,
    )


COPY_INCREMENTALLY: Final = Operation(
    name="Incremental Copy Blob",
    id="pageblob_copy_incremental",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="incrementalcopy",
    permission=permissions.CREATE,
    rule=Rule(LeaseUse.WRITE, ConditionUse.WRITE, Existence.CREATES, kind=BlobKind.PAGE),
    input=incremental.CopyIncrementally,
    accepts=(copies.COPY_SOURCE,),
    success=202,
    returns=(give.ETAG, give.LAST_MODIFIED, give.COPY_ID, give.COPY_STATUS),
    fails=(
        copy_errors.PENDING_COPY_OPERATION,
        copy_errors.CANNOT_VERIFY_COPY_SOURCE,
        copy_errors.COPY_SOURCE_FORBIDDEN,
        copy_errors.COPY_SOURCE_UNAUTHENTICATED,
        blob_errors.INVALID_SOURCE_BLOB_URL,
        blob_errors.INVALID_SOURCE_BLOB_TYPE,
        blob_errors.INCREMENTAL_COPY_SOURCE_MUST_BE_SNAPSHOT,
        blob_errors.INCREMENTAL_COPY_BLOB_MISMATCH,
        blob_errors.INCREMENTAL_COPY_OF_ERALIER_VERSION_SNAPSHOT_NOT_ALLOWED,
        blob_errors.SNAPSHOTS_PRESENT,
    ),
    run=incremental.copy_incrementally,
)

OPERATIONS: Final = (
    COPY_INCREMENTALLY,
    PUT_PAGE,
    CLEAR_PAGES,
    _changed_ranges("?prevsnapshot"),
    _changed_ranges("x-ms-previous-snapshot-url"),
    GET_PAGE_RANGES,
    _set_properties(
        "Set Blob Properties (resize)", "pageblob_resize", page_fields.LENGTH_HEADER, _CHANGES
    ),
    _set_properties(
        "Set Blob Properties (sequence number)",
        "pageblob_update_sequence_number",
        page_fields.ACTION_HEADER,
        _WRITES,
    ),
)
