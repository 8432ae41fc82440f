"""QUERY_DIRECTORY: the request for the next part of a listing, and its response.

Entries: information/directory_entries.py. Sources: [MS-SMB2] sections 2.2.33, 2.2.34 and 3.3.5.18;
smb.md 2.8.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.bodies import MessageBody, utf16
from strongroom.wire.smb.structures import variable_part

RESTART: Final = 0x1
SINGLE: Final = 0x2
REOPEN: Final = 0x10


class QueryDirectoryRequest(msgspec.Struct, frozen=True):
    """`pattern` may be empty."""

    information_class: int
    flags: int
    file_id: FileId
    pattern: str
    output_bytes_max: int

    @property
    def restarts(self) -> bool:
        """Whether the listing starts again, with the pattern of this request if it has one."""
        return bool(self.flags & (RESTART | REOPEN))

    @property
    def is_single(self) -> bool:
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
    offset: int
    length: int


_REQUEST: Final = MessageBody(_Fixed, "BB4xQQHHI", 33)
BUFFER_ANSWER: Final = MessageBody(Buffer, "HI", 9)
"""The body of the answers to QUERY_DIRECTORY, QUERY_INFO and CHANGE_NOTIFY."""


def read_query_directory(message: memoryview, room_max: int) -> QueryDirectoryRequest:
    """Parse a QUERY_DIRECTORY request. `room_max` is MaxTransactSize.

    A listing may always be answered in part. So an OutputBufferLength beyond MaxTransactSize is
    accepted, and only limits the response. The specification would allow an error too.
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


def write_buffer_answer(data: bytes) -> bytes:
    """The body of a response that is a single buffer."""
    offset = BUFFER_ANSWER.end if data else 0
    return BUFFER_ANSWER.write(Buffer(offset, len(data))) + (data or b"\0")
