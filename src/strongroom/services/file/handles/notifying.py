"""CHANGE_NOTIFY: a request waits for changes below a directory.

Lives here: rights, the wait, and what fits into an answer. Must not live here: the recorded changes
(opens/changes.py). Sources: [MS-SMB2] section 3.3.5.19; smb.md 2.9.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, names
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import operating
from strongroom.services.file.handles.model import AsyncRequest, Handle
from strongroom.services.file.handles.operating import RequestWait
from strongroom.services.file.opens.changes import Aspect, DirectoryWatch, NodeAction, Watches

_ENTRY_BYTES: Final = 12
_ALIGNMENT: Final = 4


class RequestedWatch(msgspec.Struct, frozen=True):
    """CompletionFilter, SMB2_WATCH_TREE, and the room of the answer in bytes."""

    aspects: int
    is_tree: bool
    room_bytes: int


class NotifyResult(msgspec.Struct, frozen=True):
    """Result of a CHANGE_NOTIFY; paths are relative to the directory.

    Attributes:
        must_enumerate: whether there are more changes than the answer has room for:
            NOTIFY_ENUM_DIR.
        is_closed: whether the handle was closed during the wait: NOTIFY_CLEANUP.
    """

    changes: tuple[tuple[NodeAction, tuple[str, ...]], ...] = ()
    must_enumerate: bool = False
    is_closed: bool = False


async def watch(
    services: Services, handle: Handle, wanted: RequestedWatch, request: AsyncRequest
) -> NotifyResult:
    """Wait for changes of a directory, or of everything below it.

    The filter of the handle's first request stays, and changes are recorded from then on. No later
    answer has more room than that of the first request. Requests are answered in order of arrival,
    and each answer holds all changes recorded since the last one.

    Raises: StorageError INVALID_PARAMETER (no directory), DELETE_PENDING (the directory is to be
        deleted), INSUFFICIENT_RESOURCES (too many watches).
    """
    with handle.operating():
        if not handle.is_directory:
            raise StorageError(file_errors.INVALID_OPEN)
        operating.check_may(handle, accesses.READ_DATA)
        aspects = Aspect(wanted.aspects & int(~Aspect.NONE))
        watched = services.held.of(Watches).begin(
            handle, aspects, is_tree=wanted.is_tree, room_bytes=wanted.room_bytes
        )
        with watched.turn() as turn:
            try:
                # The client gets an interim answer, even if it can be answered at once.
                await RequestWait(request, handle.ending).until(turn)
            except StorageError as error:
                if error.row is file_errors.HANDLE_CLOSED:
                    return NotifyResult(is_closed=True)
                raise
            return _take_changes(watched, wanted.room_bytes)


def _take_changes(watched: DirectoryWatch, room_bytes: int) -> NotifyResult:
    changes, has_overflowed = watched.take()
    if watched.is_deleted and not changes:
        raise StorageError(file_errors.SMB_DELETE_PENDING)
    size = 0
    for _, path in changes:
        size = -(-size // _ALIGNMENT) * _ALIGNMENT
        size += _ENTRY_BYTES + 2 * names.utf16_units("\\".join(path))
    if has_overflowed or size > min(room_bytes, watched.room_bytes):
        return NotifyResult(must_enumerate=True)
    return NotifyResult(changes)
