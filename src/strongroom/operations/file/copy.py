"""Declarations: Copy File and Abort Copy File, and the fields that only they have.

Source: "Copy File", "Abort Copy File"; docs/operations/file.md, table "Files".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import invalid_header
from strongroom.operations.core import permissions
from strongroom.operations.core.copies import COPY_ID, COPY_SOURCE, COPY_WAIT
from strongroom.operations.core.fields import METADATA, filled, flag, header, one_of
from strongroom.operations.core.spec import Field, Operation, Resource, Returned, When
from strongroom.operations.file import file_fields as fields
from strongroom.operations.file import file_returned as give
from strongroom.operations.file.directory import SMB_VALUES
from strongroom.operations.file.file import CHANGES, WRITES
from strongroom.operations.file.rename import SOURCE_TRAILING_DOTS
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.services.file.copies import copying
from strongroom.services.file.copies.properties import PERMISSION_MODE, CopiedProperties
from strongroom.values import Purpose
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

_ARCHIVE: Final = "x-ms-file-copy-set-archive"
_SOURCE, _OVERRIDE = "source", "override"


def _copied(request: Request, query: Query) -> CopiedProperties:
    """The SMB properties of the copy. The mode must fit the permission that is sent."""
    properties = fields.smb(request, query)
    mode = filled(request, PERMISSION_MODE)
    if mode is not None:
        mode = one_of(_SOURCE, _OVERRIDE)(PERMISSION_MODE, mode)
        is_given = any(request.headers.get(name) is not None for name in fields.PERMISSION_HEADERS)
        if is_given != (mode == _OVERRIDE):
            text = "override needs a permission or its key, and source excludes both."
            raise invalid_header(PERMISSION_MODE, mode, text)
    archive = filled(request, _ARCHIVE)
    archives = None if archive is None else flag(_ARCHIVE, archive)
    return CopiedProperties(properties, mode == _SOURCE, archives)


SMB: Final = Field("smb", _copied, headers=(*fields.SMB.headers, PERMISSION_MODE, _ARCHIVE))
IGNORES_READ_ONLY: Final = header(
    "ignores_read_only", "x-ms-file-copy-ignore-readonly", flag, default=False
)

COPY_FILE: Final = Operation(
    name="Copy File",
    id="file_start_copy",
    methods=("PUT",),
    resource=Resource.FILE,
    when=(When("x-ms-copy-source"),),
    permission=permissions.FILE_CREATE,
    rule=WRITES,
    input=copying.CopyFile,
    accepts=(
        COPY_SOURCE,
        METADATA,
        SMB,
        IGNORES_READ_ONLY,
        COPY_WAIT,
        fields.TRAILING_DOTS,
        SOURCE_TRAILING_DOTS,
        fields.NO_BODY,
    ),
    success=202,
    returns=(
        give.NODE_ETAG,
        give.NODE_LAST_MODIFIED,
        Returned("x-ms-copy-id", lambda copied: copied.copy.id),
        Returned("x-ms-copy-status", lambda copied: copied.copy.status.value),
    ),
    fails=(
        *CHANGES,
        *SMB_VALUES,
        copy_errors.CANNOT_VERIFY_COPY_SOURCE,
        copy_errors.COPY_SOURCE_FORBIDDEN,
        copy_errors.COPY_SOURCE_UNAUTHENTICATED,
        copy_errors.BLOB_ARCHIVED,
        errors.RESOURCE_TYPE_MISMATCH,
        errors.REQUEST_BODY_TOO_LARGE,
        file_errors.SHARE_SIZE_LIMIT_REACHED,
    ),
    run=copying.copy_file,
)

ABORT_COPY_FILE: Final = Operation(
    name="Abort Copy File",
    id="file_abort_copy",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="copy",
    when=(When("x-ms-copy-action", "abort"),),
    permission=permissions.FILE_WRITE,
    rule=Rule(LeaseUse.WRITE_FILE, ConditionUse.IGNORED, purpose=Purpose.UPKEEP),
    input=copying.AbortCopyFile,
    accepts=(COPY_ID, fields.TRAILING_DOTS, fields.NO_BODY),
    success=204,
    fails=(
        *CHANGES,
        copy_errors.NO_PENDING_COPY_OPERATION,
        copy_errors.COPY_ID_MISMATCH,
    ),
    run=copying.abort_copy,
)

OPERATIONS: Final = (COPY_FILE, ABORT_COPY_FILE)
"""The operations of copying. They are tried before Create File, which may have the same headers but
one."""
