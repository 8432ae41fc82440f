"""Declarations: List Handles and Force Close Handles, of files and directories alike.

Source: "List Handles", "Force Close Handles"; docs/operations/file.md, table "Files".
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.errors import file as file_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML, long_document
from strongroom.operations.core.fields import flag, header, parameter
from strongroom.operations.core.listing_fields import max_results
from strongroom.operations.core.spec import Content, Operation, Origin, Resource, Returned
from strongroom.operations.file import file_fields as fields
from strongroom.operations.file.directory import NAMES
from strongroom.operations.file.share_fields import share_snapshot
from strongroom.semantics.core import listing
from strongroom.services.core.calls import Call, ConditionUse, Rule
from strongroom.services.file.handles import listing as handles
from strongroom.services.file.handles.listing import HandlePage
from strongroom.values import Purpose
from strongroom.wire.core import headers as wire
from strongroom.wire.file.list_directory import ListedHandle, write_handles

_HANDLE: Final = "x-ms-handle-id"
_HANDLES_MAX: Final = 2**63 - 1
_PAGE_MAX: Final = 5000


def _handle(name: str, value: str) -> int | None:
    return None if value == "*" else wire.integer(name, value, 0, _HANDLES_MAX)


def _handles(result: HandlePage, call: Call[Any], origin: Origin) -> Content:
    rows = [ListedHandle(*msgspec.structs.astuple(row)) for row in result.rows]
    return long_document(write_handles(rows, listing.encode_marker(result.marker)))


_MARKER: Final = parameter(
    "start", "marker", lambda name, value: listing.decode_marker(value), default=listing.START
)
# All handles are closed at once, so there is never a next page.
_UNUSED_MARKER: Final = parameter("", "marker", lambda name, value: listing.decode_marker(value))
_MAX_RESULTS: Final = max_results(_PAGE_MAX, _PAGE_MAX)
RECURSIVE: Final = header("is_recursive", "x-ms-recursive", flag, default=False)
HANDLE: Final = header("handle", _HANDLE, _handle, required=True)

LIST_HANDLES: Final = Operation(
    name="List Handles",
    id="file_list_handles",
    methods=("GET",),
    resource=Resource.FILE,
    comp="listhandles",
    snapshots=share_snapshot,
    permission=permissions.FILE_READ,
    rule=Rule(conditions=ConditionUse.IGNORED),
    input=handles.ListHandles,
    accepts=(_MARKER, _MAX_RESULTS, RECURSIVE, fields.TRAILING_DOTS),
    returns=(XML,),
    content=_handles,
    fails=(*NAMES, file_errors.SHARE_SNAPSHOT_NOT_FOUND),
    run=handles.list_handles,
)

FORCE_CLOSE_HANDLES: Final = Operation(
    name="Force Close Handles",
    id="file_force_close_handles",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="forceclosehandles",
    snapshots=share_snapshot,
    permission=permissions.FILE_WRITE,
    rule=Rule(conditions=ConditionUse.IGNORED, purpose=Purpose.UPKEEP),
    input=handles.CloseHandles,
    accepts=(_UNUSED_MARKER, HANDLE, RECURSIVE, fields.TRAILING_DOTS),
    returns=(
        Returned("x-ms-number-of-handles-closed", lambda closed: str(closed.count)),
        Returned("x-ms-number-of-handles-failed", lambda closed: str(closed.failed)),
    ),
    fails=(*NAMES, file_errors.SHARE_SNAPSHOT_NOT_FOUND),
    run=handles.close_handles,
)

OPERATIONS: Final = (LIST_HANDLES, FORCE_CLOSE_HANDLES)
