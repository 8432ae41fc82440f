"""Declarations: operations on files, in the order of the Azure reference.

Source: "Operations on files" of the REST reference; docs/operations/file.md, table "Files".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML
from strongroom.operations.core.fields import METADATA, RANGE
from strongroom.operations.core.leases import ACTIONS, PROPOSED_ID, LeasedKind, declared
from strongroom.operations.core.spec import BodyKind, Operation, Resource, When
from strongroom.operations.file import file_fields as fields
from strongroom.operations.file import file_returned as give
from strongroom.operations.file.directory import NAMES, SMB_VALUES
from strongroom.operations.file.share_fields import share_snapshot
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.rest import creating, files, leasing, ranges, reading
from strongroom.values import Purpose

READS: Final = Rule(LeaseUse.READ_FILE, ConditionUse.IGNORED)
WRITES: Final = Rule(LeaseUse.WRITE_FILE, ConditionUse.IGNORED)
_SHARED: Final = (
    *NAMES,
    file_errors.SMB_DELETE_PENDING,
    file_errors.SHARING_VIOLATION,
    file_errors.FILE_LOCK_CONFLICT,
    file_errors.CLIENT_CACHE_FLUSH_DELAY,
)
_SEEN: Final = (*_SHARED, file_errors.SHARE_SNAPSHOT_NOT_FOUND)
CHANGES: Final = (
    *_SHARED,
    file_errors.READ_ONLY_ATTRIBUTE,
    copy_errors.PENDING_COPY_OPERATION,
)
"""The errors of any change of a file."""
_CHANGED: Final = (give.NODE_ETAG, give.NODE_LAST_MODIFIED, give.ENCRYPTED)

CREATE_FILE: Final = Operation(
    name="Create File",
    id="file_create",
    methods=("PUT",),
    resource=Resource.FILE,
    when=(When("x-ms-type", "file"),),
    permission=permissions.FILE_CREATE,
    rule=WRITES,
    input=creating.CreateFile,
    accepts=(
        fields.SIZE,
        METADATA,
        fields.PROPERTIES,
        fields.SMB,
        fields.TRAILING_DOTS,
        fields.NO_BODY,
    ),
    success=201,
    returns=_CHANGED,
    extra_headers=give.smb_headers,
    fails=(
        *CHANGES,
        *SMB_VALUES,
        errors.RESOURCE_TYPE_MISMATCH,
        errors.INVALID_MD5,
        file_errors.SHARE_SIZE_LIMIT_REACHED,
    ),
    run=creating.create_file,
)

GET_FILE: Final = Operation(
    name="Get File",
    id="file_download",
    methods=("GET",),
    resource=Resource.FILE,
    snapshots=share_snapshot,
    permission=permissions.FILE_READ,
    rule=READS,
    input=reading.GetFile,
    accepts=(RANGE, fields.RANGE_MD5, fields.TRAILING_DOTS),
    success=give.download_status,
    extra_headers=give.file_headers,
    content=give.download,
    fails=(*_SEEN, errors.INVALID_RANGE),
    run=reading.get_file,
)

GET_FILE_PROPERTIES: Final = Operation(
    name="Get File Properties",
    id="file_get_properties",
    methods=("HEAD",),
    resource=Resource.FILE,
    snapshots=share_snapshot,
    permission=permissions.FILE_READ,
    rule=READS,
    input=OnPath,
    accepts=(fields.TRAILING_DOTS,),
    extra_headers=give.file_headers,
    content=give.head_only,
    fails=_SEEN,
    run=files.get_properties,
)

SET_FILE_PROPERTIES: Final = Operation(
    name="Set File Properties",
    id="file_set_http_headers",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="properties",
    permission=permissions.FILE_WRITE,
    rule=WRITES,
    input=files.SetFileProperties,
    accepts=(fields.NEW_PROPERTIES, fields.NEW_SIZE, fields.SMB, fields.TRAILING_DOTS),
    returns=_CHANGED,
    extra_headers=give.smb_headers,
    fails=(*CHANGES, *SMB_VALUES, errors.INVALID_MD5, file_errors.SHARE_SIZE_LIMIT_REACHED),
    run=files.set_file_properties,
)

GET_FILE_METADATA: Final = Operation(
    name="Get File Metadata",
    id="file_get_metadata",
    methods=("GET", "HEAD"),
    resource=Resource.FILE,
    comp="metadata",
    snapshots=share_snapshot,
    permission=permissions.FILE_READ,
    rule=READS,
    input=OnPath,
    accepts=(fields.TRAILING_DOTS,),
    returns=(give.NODE_ETAG, give.NODE_LAST_MODIFIED),
    extra_headers=give.metadata,
    fails=_SEEN,
    run=files.get_metadata,
)

SET_FILE_METADATA: Final = Operation(
    name="Set File Metadata",
    id="file_set_metadata",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="metadata",
    permission=permissions.FILE_WRITE,
    rule=WRITES,
    input=files.SetFileMetadata,
    accepts=(METADATA, fields.TRAILING_DOTS),
    returns=_CHANGED,
    fails=CHANGES,
    run=files.set_file_metadata,
)

DELETE_FILE: Final = Operation(
    name="Delete File",
    id="file_delete",
    methods=("DELETE",),
    resource=Resource.FILE,
    permission=permissions.FILE_DELETE,
    rule=Rule(LeaseUse.WRITE_FILE, ConditionUse.IGNORED, purpose=Purpose.FREEING),
    input=OnPath,
    accepts=(fields.TRAILING_DOTS,),
    success=202,
    fails=CHANGES,
    run=files.delete_file,
)

PUT_RANGE: Final = Operation(
    name="Put Range",
    id="file_upload_range",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="range",
    when=(When("x-ms-write", "update"),),
    permission=permissions.FILE_WRITE,
    rule=WRITES,
    input=ranges.PutRange,
    accepts=(fields.SPAN, fields.BODY_MD5, fields.LAST_WRITE, fields.TRAILING_DOTS),
    body=BodyKind(),
    success=201,
    returns=(*_CHANGED, give.BODY_MD5, give.LAST_WRITE),
    fails=(
        *CHANGES,
        file_errors.INVALID_FILE_TIME,
        errors.INVALID_RANGE,
        errors.REQUEST_BODY_TOO_LARGE,
        errors.MISSING_CONTENT_LENGTH_HEADER,
    ),
    run=ranges.put_range,
)

CLEAR_RANGE: Final = Operation(
    name="Put Range (clear)",
    id="file_clear_range",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="range",
    when=(When("x-ms-write", "clear"),),
    permission=permissions.FILE_WRITE,
    rule=Rule(LeaseUse.WRITE_FILE, ConditionUse.IGNORED, purpose=Purpose.UPKEEP),
    input=ranges.PutRange,
    accepts=(fields.SPAN, fields.NO_MD5, fields.LAST_WRITE, fields.TRAILING_DOTS),
    body=BodyKind(),
    success=201,
    returns=(*_CHANGED, give.LAST_WRITE),
    fails=(
        *CHANGES,
        file_errors.INVALID_FILE_TIME,
        errors.INVALID_RANGE,
        errors.MISSING_CONTENT_LENGTH_HEADER,
    ),
    run=ranges.clear_range,
)

LIST_RANGES: Final = Operation(
    name="List Ranges",
    id="file_get_range_list",
    methods=("GET",),
    resource=Resource.FILE,
    comp="rangelist",
    snapshots=share_snapshot,
    permission=permissions.FILE_READ,
    rule=READS,
    input=ranges.ListRanges,
    accepts=(
        fields.LISTED_RANGE,
        fields.PREVIOUS,
        fields.FOLLOWS_RENAMES,
        fields.RANGE_MARKER,
        fields.RANGE_COUNT,
        fields.TRAILING_DOTS,
    ),
    returns=(give.LIST_ETAG, give.LIST_LAST_MODIFIED, give.FILE_LENGTH, XML),
    content=give.ranges,
    fails=(*_SEEN, errors.INVALID_RANGE, file_errors.FILE_GENERATION_MISMATCH),
    run=ranges.list_ranges,
)

_LEASED: Final = LeasedKind(
    "File",
    Resource.FILE,
    None,
    permission=permissions.FILE_WRITE,
    breaks=permissions.FILE_BREAK,
    rule=Rule(conditions=ConditionUse.IGNORED, purpose=Purpose.UPKEEP),
    run=leasing.lease_file,
    fails=_SHARED,
)
# The lease of a file is infinite: it has no other duration, no renewal and no time to break.
_ACCEPTS: Final = {"acquire": (fields.INFINITE, PROPOSED_ID), "break": ()}
_ACTIONS: Final = tuple(
    msgspec.structs.replace(
        action,
        accepts=(*_ACCEPTS.get(action.word, action.accepts), fields.NO_TRAILING_DOTS),
        waits=False,
    )
    for action in ACTIONS
    if action.word != "renew"
)

OPERATIONS: Final = (
    CREATE_FILE,
    GET_FILE,
    GET_FILE_PROPERTIES,
    SET_FILE_PROPERTIES,
    GET_FILE_METADATA,
    SET_FILE_METADATA,
    DELETE_FILE,
    PUT_RANGE,
    CLEAR_RANGE,
    LIST_RANGES,
    *(declared(_LEASED, action) for action in _ACTIONS),
)
