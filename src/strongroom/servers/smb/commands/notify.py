"""CHANGE_NOTIFY: what has changed in a directory.

Lives here: from the request to the services and back. Must not live here: waiting requests, kept
changes (services/file/opens/changes.py). Source: [MS-SMB2] section 3.3.5.19; smb.md 2.9.
"""

from __future__ import annotations

from strongroom.servers.smb.commands.targets import handle_of
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles.notifying import RequestedWatch, watch
from strongroom.wire.smb import statuses
from strongroom.wire.smb.requests.change_notify import (
    ChangedName,
    read_change_notify,
    write_changes,
)
from strongroom.wire.smb.requests.query_directory import write_buffer_answer


async def change_notify(element: SmbElement) -> SmbAnswer:
    request = read_change_notify(element.message, element.connection.io_bytes_max)
    requested = RequestedWatch(
        request.completion_filter, request.watches_tree, request.output_bytes_max
    )
    seen = await watch(element.services, handle_of(element), requested, element)
    if seen.is_closed:
        return SmbAnswer(write_buffer_answer(b""), statuses.STATUS_NOTIFY_CLEANUP)
    changes = [ChangedName(int(action), "\\".join(path)) for action, path in seen.changes]
    data = write_changes(changes, request.output_bytes_max)
    if seen.must_enumerate or (changes and not data):
        return SmbAnswer(write_buffer_answer(b""), statuses.STATUS_NOTIFY_ENUM_DIR)
    return SmbAnswer(write_buffer_answer(data))
