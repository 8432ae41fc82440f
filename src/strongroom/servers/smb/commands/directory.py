"""QUERY_DIRECTORY and CHANGE_NOTIFY: the next names of a directory, and what has changed in it.

Lives here: from the request to the services and back. Waiting requests and kept changes are in
services/file/opens/changes.py. Sources: [MS-SMB2] sections 3.3.5.18 and 3.3.5.19; [MS-FSA] section
2.1.5.6.3; smb.md 2.8 and 2.9.
"""

from __future__ import annotations

from strongroom.servers.smb.commands.nodes import entry_of
from strongroom.servers.smb.commands.targets import handle_of
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles.enumerating import enumerate_names
from strongroom.services.file.handles.model import RequestedEnumeration
from strongroom.services.file.handles.notifying import RequestedWatch, watch
from strongroom.wire.smb import statuses
from strongroom.wire.smb.information.directory_entries import (
    EntryBuffer,
    check_directory_class,
)
from strongroom.wire.smb.requests.change_notify import (
    ChangedName,
    read_change_notify,
    write_changes,
)
from strongroom.wire.smb.requests.query_directory import (
    REOPEN,
    RESTART,
    read_query_directory,
    write_buffer_answer,
)


async def query_directory(element: SmbElement) -> SmbAnswer:
    request = read_query_directory(element.message, element.connection.io_bytes_max)
    check_directory_class(request.information_class)
    buffer = EntryBuffer(request.information_class, request.output_bytes_max)
    enumeration = RequestedEnumeration(
        request.pattern,
        restarts=bool(request.flags & RESTART),
        reopens=bool(request.flags & REOPEN),
        is_single=request.is_single,
    )
    _, is_first = await enumerate_names(
        element.services, handle_of(element), enumeration, lambda row: buffer.add(entry_of(row))
    )
    if not buffer.count:
        raise SmbError(statuses.STATUS_NO_SUCH_FILE if is_first else statuses.STATUS_NO_MORE_FILES)
    return SmbAnswer(write_buffer_answer(buffer.data))


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
