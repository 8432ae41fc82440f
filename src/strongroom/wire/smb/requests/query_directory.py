"""QUERY_DIRECTORY: the next part of a listing, asked for and answered.

Lives here: the bodies. Must not live here: entries (information/directory_entries.py), patterns.
Sources: [MS-SMB2] sections 2.2.33, 2.2.34 and 3.3.5.18; smb.md 2.8.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.bodies import MessageBody, utf16, utf16_bytes
from strongroom.wire.smb.structures import part

RESTART: Final = 0x1
SINGLE: Final = 0x2
REOPEN: Final = 0x10


class QueryDirectoryRequest(msgspec.Struct, frozen=True):
    """QUERY_DIRECTORY; `pattern` may be empty."""

    information_class: int
    flags: int
    file_id: FileId
    pattern: str
    room: int

    @property
    def restarts(self) -> bool:
        """Whether the listing begins again, with the pattern of this request if it has one."""
        return bool(self.flags & (RESTART | REOPEN))

    @property
    def is_single(self) -> bool:
        """Whether one entry is wanted."""
        return bool(self.flags & SINGLE)


class _Fixed(msgspec.Struct, frozen=True):
    information_class: int
    flags: int
    persistent: int
    volatile: int
    name_offset: int
    name_length: int
    room: int


class Buffer(msgspec.Struct, frozen=True):
    """Where an answer's data lies, as a field of it says."""

    offset: int
    length: int


_REQUEST: Final = MessageBody(_Fixed, "BB4xQQHHI", 33)
BUFFER_ANSWER: Final = MessageBody(Buffer, "HI", 9)
"""QUERY_DIRECTORY, QUERY_INFO and CHANGE_NOTIFY are answered in the same form."""


def read_query_directory(message: memoryview, room_max: int) -> QueryDirectoryRequest:
    """A QUERY_DIRECTORY.

    A listing may always be answered in part. So an OutputBufferLength beyond MaxTransactSize is no
    error, which a server may also make of it; the answer is just not longer than that.

    Arguments:
        room_max: MaxTransactSize.

    Raises: MalformedMessage.
    """
    fixed = _REQUEST.read(message)
    pattern = part(message, fixed.name_offset, fixed.name_length, after=_REQUEST.end)
    return QueryDirectoryRequest(
        fixed.information_class,
        fixed.flags,
        FileId(fixed.persistent, fixed.volatile),
        utf16(pattern),
        min(fixed.room, room_max),
    )


def write_query_directory(request: QueryDirectoryRequest) -> bytes:
    """The body of a QUERY_DIRECTORY, for clients."""
    pattern = utf16_bytes(request.pattern)
    fixed = _Fixed(
        request.information_class,
        request.flags,
        request.file_id.persistent,
        request.file_id.volatile,
        name_offset=_REQUEST.end,
        name_length=len(pattern),
        room=request.room,
    )
    return _REQUEST.write(fixed) + (pattern or b"\0")


def write_buffer_answer(data: bytes) -> bytes:
    """The body of an answer that is one buffer."""
    offset = BUFFER_ANSWER.end if data else 0
    return BUFFER_ANSWER.write(Buffer(offset, len(data))) + (data or b"\0")


def read_buffer_answer(message: memoryview) -> memoryview:
    """The buffer of an answer, for clients. Raises: MalformedMessage."""
    fixed = BUFFER_ANSWER.read(message)
    return part(message, fixed.offset, fixed.length, after=BUFFER_ANSWER.end)
