"""QUERY_DIRECTORY: the next names of a directory.

Lives here: from the request to the services and back. Source: [MS-SMB2] section 3.3.5.18; [MS-FSA]
section 2.1.5.6.3; smb.md 2.8.
"""

from __future__ import annotations

from strongroom.servers.smb.commands.nodes import entry_of
from strongroom.servers.smb.commands.targets import handle_of
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles.enumerating import enumerate_names
from strongroom.services.file.handles.model import RequestedEnumeration
from strongroom.wire.smb import statuses
from strongroom.wire.smb.information.directory_entries import (
    EntryBuffer,
    check_directory_class,
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
