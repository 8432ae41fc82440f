"""QUERY_DIRECTORY: the request for the next part of a listing, and its response.

Lives here: the bodies. Must not live here: entries (information/directory_entries.py), patterns.
Sources: [MS-SMB2] sections 2.2.33, 2.2.34 and 3.3.5.18; smb.md 2.8.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.bodies import MessageBody, utf16, utf16_bytes
from strongroom.wire.smb.structures import variable_part

RESTART: Final = 0x1
SINGLE: Final = 0x2
REOPEN: Final = 0x10


class QueryDirectoryRequest(msgspec.Struct, frozen=True):
    """A QUERY_DIRECTORY request; `pattern` may be empty."""

    information_class: int
    flags: int
    file_id: FileId
    pattern: str
    output_bytes_max: int

    @property
    def restarts(self) -> bool:
        """Return whether the listing starts again, with the pattern of this request if it has
        one."""
        return bool(self.flags & (RESTART | REOPEN))

    @property
    def is_single(self) -> bool:
        """Return whether the client wants a single entry."""
        return bool(self.flags & SINGLE)


class _Fixed(msgspec.Struct, frozen=True):
    information_class: int
    flags: int
    persistent: int
    volatile: int
    name_offset: int
    name_length: int
    output_bytes_max: int


class Buffer(msgspec.Struct, frozen=True):
    """The offset and length of a response's data."""

    offset: int
    length: int


_REQUEST: Final = MessageBody(_Fixed, "BB4xQQHHI", 33)
BUFFER_ANSWER: Final = MessageBody(Buffer, "HI", 9)
"""The body of the answers to QUERY_DIRECTORY, QUERY_INFO and CHANGE_NOTIFY."""


def read_query_directory(message: memoryview, room_max: int) -> QueryDirectoryRequest:
    """Parse a QUERY_DIRECTORY request.

    A listing may always be answered in part. So an OutputBufferLength beyond MaxTransactSize is
    accepted, and only limits the response. The specification would allow an error too.

    Arguments:
        room_max: MaxTransactSize.

    Raises: MalformedMessage.
    """
    fixed = _REQUEST.read(message)
    pattern = variable_part(message, fixed.name_offset, fixed.name_length, after=_REQUEST.end)
    return QueryDirectoryRequest(
        fixed.information_class,
        fixed.flags,
        FileId(fixed.persistent, fixed.volatile),
        utf16(pattern),
        min(fixed.output_bytes_max, room_max),
    )


def write_query_directory(request: QueryDirectoryRequest) -> bytes:
    """Return the body of a QUERY_DIRECTORY, for clients."""
    pattern = utf16_bytes(request.pattern)
    fixed = _Fixed(
        request.information_class,
        request.flags,
        request.file_id.persistent,
        request.file_id.volatile,
        name_offset=_REQUEST.end,
        name_length=len(pattern),
        output_bytes_max=request.output_bytes_max,
    )
    return _REQUEST.write(fixed) + (pattern or b"\0")


def write_buffer_answer(data: bytes) -> bytes:
    """Return the body of a response that is a single buffer."""
    offset = BUFFER_ANSWER.end if data else 0
    return BUFFER_ANSWER.write(Buffer(offset, len(data))) + (data or b"\0")


def read_buffer_answer(message: memoryview) -> memoryview:
    """Return the buffer in a response, for clients. Raises: MalformedMessage."""
    fixed = BUFFER_ANSWER.read(message)
    return variable_part(message, fixed.offset, fixed.length, after=BUFFER_ANSWER.end)
