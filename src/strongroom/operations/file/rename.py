"""Declarations: Rename File and Rename Directory, and the fields that only they have.

Source: "Rename File", "Rename Directory"; docs/operations/file.md, tables "Directories" and
"Files".
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors import leases as lease_errors
from strongroom.errors.core import StorageError, invalid_header, missing_header
from strongroom.operations.core import permissions
from strongroom.operations.core.fields import METADATA, filled, flag, header
from strongroom.operations.core.spec import Field, Operation, Resource
from strongroom.operations.file import file_fields as fields
from strongroom.operations.file import file_returned as give
from strongroom.operations.file.directory import NAMES, SMB_VALUES
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.services.file.rest import renaming
from strongroom.services.file.rest.renaming import SOURCE_HEADER, RenameSource
from strongroom.wire.core import headers as wire
from strongroom.wire.core import path
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

_PLAIN: Final = Rule(conditions=ConditionUse.IGNORED)
_CHARS_MAX: Final = 8 * 1024


def _source(request: Request, query: Query) -> RenameSource:
    url = filled(request, SOURCE_HEADER)
    if url is None:
        raise missing_header(SOURCE_HEADER)
    if len(url) > _CHARS_MAX:
        raise invalid_header(SOURCE_HEADER, url[:256], "It is too long.")
    if (query.get("sr") or "").lower() == "f":
        reason = "A token for one file does not reach the source. Use one for the share."
        raise StorageError(
            errors.AUTHORIZATION_FAILURE, f"{errors.AUTHORIZATION_FAILURE.message} {reason}"
        )
    try:
        parts = urlsplit(url)
    except ValueError:
        raise invalid_header(SOURCE_HEADER, url) from None
    if parts.netloc.lower() != request.host.lower():
        raise invalid_header(SOURCE_HEADER, url, "The source must be on the same host.")
    try:
        named = path.decode(parts.path)
    except StorageError:
        raise invalid_header(SOURCE_HEADER, url, "It is not percent-encoded UTF-8.") from None
    return RenameSource(url, named, path.decode(request.path))


def _guid(name: str, value: str) -> str:
    return wire.guid(name, value)


SOURCE: Final = Field("source", _source, headers=(SOURCE_HEADER,))
REPLACES: Final = header("replaces", "x-ms-file-rename-replace-if-exists", flag, default=False)
IGNORES_READ_ONLY: Final = header(
    "ignores_read_only", "x-ms-file-rename-ignore-readonly", flag, default=False
)
SOURCE_LEASE: Final = header("source_lease_id", "x-ms-source-lease-id", _guid, may_be_empty=True)
DESTINATION_LEASE: Final = header(
    "destination_lease_id", "x-ms-destination-lease-id", _guid, may_be_empty=True
)
SOURCE_DOTS_HEADER: Final = "x-ms-source-allow-trailing-dot"
SOURCE_TRAILING_DOTS: Final = header(
    "source_trailing_dots", SOURCE_DOTS_HEADER, flag, default=False
)
CONTENT_TYPE: Final = header("content_type", "x-ms-content-type", may_be_empty=True)

_ACCEPTS: Final = (
    SOURCE,
    REPLACES,
    IGNORES_READ_ONLY,
    SOURCE_LEASE,
    DESTINATION_LEASE,
    METADATA,
    fields.SMB,
    fields.TRAILING_DOTS,
    SOURCE_TRAILING_DOTS,
)
_FAILS: Final = (
    *NAMES,
    *SMB_VALUES,
    file_errors.FILE_ALREADY_EXISTS,
    file_errors.TARGET_IS_DIRECTORY,
    file_errors.READ_ONLY_ATTRIBUTE,
    file_errors.CANNOT_DELETE,
    file_errors.SHARING_VIOLATION,
    file_errors.SMB_DELETE_PENDING,
    file_errors.FILE_LOCK_CONFLICT,
    file_errors.CLIENT_CACHE_FLUSH_DELAY,
    copy_errors.PENDING_COPY_OPERATION,
    lease_errors.LEASE_ID_MISSING,
    lease_errors.LEASE_LOST,
    lease_errors.LEASE_ID_MISMATCH_WITH_FILE_OPERATION,
    lease_errors.LEASE_NOT_PRESENT_WITH_FILE_OPERATION,
)

RENAME_FILE: Final = Operation(
    name="Rename File",
    id="file_rename",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="rename",
    permission=permissions.FILE_WRITE,
    rule=_PLAIN,
    input=renaming.RenameNode,
    accepts=(*_ACCEPTS, CONTENT_TYPE),
    returns=(give.NODE_ETAG, give.NODE_LAST_MODIFIED, give.ENCRYPTED),
    extra_headers=give.smb_headers,
    fails=_FAILS,
    run=renaming.rename_file,
)

RENAME_DIRECTORY: Final = Operation(
    name="Rename Directory",
    id="directory_rename",
    methods=("PUT",),
    resource=Resource.DIRECTORY,
    restype="directory",
    comp="rename",
    permission=permissions.FILE_WRITE,
    rule=_PLAIN,
    input=renaming.RenameNode,
    accepts=_ACCEPTS,
    returns=(give.NODE_ETAG, give.NODE_LAST_MODIFIED, give.ENCRYPTED),
    extra_headers=give.smb_headers,
    fails=_FAILS,
    run=renaming.rename_directory,
)

OPERATIONS: Final = (RENAME_FILE, RENAME_DIRECTORY)
