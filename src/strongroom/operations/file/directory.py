"""Declarations: operations on directories, in the order of the Azure reference.

Source: "Operations on directories" of the REST reference; docs/operations/file.md, table
"Directories".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import file as file_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML
from strongroom.operations.core.fields import METADATA
from strongroom.operations.core.listing_fields import MAX_RESULTS, PREFIX
from strongroom.operations.core.spec import Operation, Resource
from strongroom.operations.file import file_fields as fields
from strongroom.operations.file import file_returned as give
from strongroom.operations.file.share_fields import share_snapshot
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.rest import creating, files, listing
from strongroom.values import Purpose

PLAIN: Final = Rule(conditions=ConditionUse.IGNORED)
NAMES: Final = (
    file_errors.PARENT_NOT_FOUND,
    file_errors.INVALID_FILE_NAME,
    file_errors.DOT_NAME,
    file_errors.INVALID_FILE_OR_DIRECTORY_PATH_NAME,
)
"""The errors of an operation on any path."""
SMB_VALUES: Final = (
    file_errors.INVALID_FILE_ATTRIBUTES,
    file_errors.INVALID_FILE_TIME,
    file_errors.FILE_INVALID_PERMISSION_KEY,
)
"""The errors of SMB properties in a request."""
_SEEN: Final = (*NAMES, file_errors.SMB_DELETE_PENDING)
_CHANGED: Final = (give.NODE_ETAG, give.NODE_LAST_MODIFIED, give.ENCRYPTED)

CREATE_DIRECTORY: Final = Operation(
    name="Create Directory",
    id="directory_create",
    methods=("PUT",),
    resource=Resource.DIRECTORY,
    restype="directory",
    permission=permissions.FILE_CREATE,
    rule=PLAIN,
    input=creating.CreateDirectory,
    accepts=(METADATA, fields.SMB, fields.TRAILING_DOTS),
    success=201,
    returns=_CHANGED,
    extra_headers=give.smb_headers,
    fails=(*_SEEN, *SMB_VALUES, file_errors.FILE_ALREADY_EXISTS),
    run=creating.create_directory,
)

DELETE_DIRECTORY: Final = Operation(
    name="Delete Directory",
    id="directory_delete",
    methods=("DELETE",),
    resource=Resource.DIRECTORY,
    restype="directory",
    permission=permissions.FILE_DELETE,
    rule=Rule(conditions=ConditionUse.IGNORED, purpose=Purpose.FREEING),
    input=OnPath,
    accepts=(fields.TRAILING_DOTS,),
    success=202,
    fails=(
        *_SEEN,
        file_errors.DIRECTORY_NOT_EMPTY,
        file_errors.CANNOT_DELETE,
        file_errors.SHARING_VIOLATION,
    ),
    run=files.delete_directory,
)

GET_DIRECTORY_PROPERTIES: Final = Operation(
    name="Get Directory Properties",
    id="directory_get_properties",
    methods=("GET", "HEAD"),
    resource=Resource.DIRECTORY,
    restype="directory",
    snapshots=share_snapshot,
    permission=permissions.FILE_READ,
    rule=PLAIN,
    input=OnPath,
    accepts=(fields.TRAILING_DOTS,),
    returns=(give.NODE_ETAG, give.NODE_LAST_MODIFIED),
    extra_headers=give.directory_headers,
    fails=(*_SEEN, file_errors.SHARE_SNAPSHOT_NOT_FOUND),
    run=files.get_directory,
)

SET_DIRECTORY_PROPERTIES: Final = Operation(
    name="Set Directory Properties",
    id="directory_set_properties",
    methods=("PUT",),
    resource=Resource.DIRECTORY,
    restype="directory",
    comp="properties",
    permission=permissions.FILE_WRITE,
    rule=PLAIN,
    input=files.SetDirectoryProperties,
    accepts=(fields.SMB, fields.TRAILING_DOTS),
    returns=_CHANGED,
    extra_headers=give.smb_headers,
    fails=(*_SEEN, *SMB_VALUES),
    run=files.set_directory_properties,
)

GET_DIRECTORY_METADATA: Final = Operation(
    name="Get Directory Metadata",
    id="directory_get_metadata",
    methods=("GET", "HEAD"),
    resource=Resource.DIRECTORY,
    restype="directory",
    comp="metadata",
    snapshots=share_snapshot,
    permission=permissions.FILE_READ,
    rule=PLAIN,
    input=OnPath,
    accepts=(fields.TRAILING_DOTS,),
    returns=(give.NODE_ETAG, give.NODE_LAST_MODIFIED),
    extra_headers=give.metadata,
    fails=(*_SEEN, file_errors.SHARE_SNAPSHOT_NOT_FOUND),
    run=files.get_directory,
)

SET_DIRECTORY_METADATA: Final = Operation(
    name="Set Directory Metadata",
    id="directory_set_metadata",
    methods=("PUT",),
    resource=Resource.DIRECTORY,
    restype="directory",
    comp="metadata",
    permission=permissions.FILE_WRITE,
    rule=PLAIN,
    input=files.SetFileMetadata,
    accepts=(METADATA, fields.TRAILING_DOTS),
    returns=_CHANGED,
    fails=_SEEN,
    run=files.set_directory_metadata,
)

LIST_DIRECTORY: Final = Operation(
    name="List Directories and Files",
    id="directory_list_files_and_directories_segment",
    methods=("GET",),
    resource=Resource.DIRECTORY,
    restype="directory",
    comp="list",
    snapshots=share_snapshot,
    permission=permissions.FILE_LIST,
    rule=PLAIN,
    input=listing.ListDirectory,
    accepts=(
        PREFIX,
        fields.MARKER,
        MAX_RESULTS,
        fields.INCLUDE,
        fields.EXTENDED,
        fields.TRAILING_DOTS,
    ),
    returns=(XML,),
    content=give.directory,
    fails=(*NAMES, file_errors.SHARE_SNAPSHOT_NOT_FOUND),
    run=listing.list_directory,
)

OPERATIONS: Final = (
    CREATE_DIRECTORY,
    DELETE_DIRECTORY,
    GET_DIRECTORY_PROPERTIES,
    SET_DIRECTORY_PROPERTIES,
    GET_DIRECTORY_METADATA,
    SET_DIRECTORY_METADATA,
    LIST_DIRECTORY,
)
