"""The header of 64 bytes that begins every message of SMB 2 and 3, and the id of an open.

Source: [MS-SMB2] sections 2.2.1, 2.2.14.1; smb.md 1.2.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.structures import Layout, MalformedMessage

HEADER_BYTES: Final = 64
ALL_ONES: Final = 0xFFFF_FFFF_FFFF_FFFF

SERVER_TO_REDIR: Final = 0x1
ASYNC_COMMAND: Final = 0x2
RELATED_OPERATIONS: Final = 0x4
SIGNED: Final = 0x8
PRIORITY_MASK: Final = 0x70
DFS_OPERATIONS: Final = 0x1000_0000
REPLAY_OPERATION: Final = 0x2000_0000
# The flags that a response copies from its request.
COPIED_FLAGS: Final = RELATED_OPERATIONS | PRIORITY_MASK | DFS_OPERATIONS | REPLAY_OPERATION

_START: Final = b"\xfeSMB\x40\0"


class FileId(msgspec.Struct, frozen=True):
    """The id of an open on the wire. All ones stands for the open of the previous message in the
    chain."""

    persistent: int
    volatile: int

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for the open of the previous message."""
        return self.persistent == self.volatile == ALL_ONES


FILE_ID: Final = Layout(FileId, "QQ")
PLACEHOLDER: Final = FileId(ALL_ONES, ALL_ONES)


class Header(msgspec.Struct, frozen=True):
    """In a request, `status` contains the ChannelSequence in its low 16 bits.

    `process_id` and `tree_id` together are the AsyncId when the flag ASYNC_COMMAND is set.
    """

    credit_charge: int = 0
    status: int = 0
    command: int = 0
    credits: int = 0
    flags: int = 0
    next_command: int = 0
    message_id: int = 0
    process_id: int = 0
    tree_id: int = 0
    session_id: int = 0
    signature: bytes = bytes(16)

    @property
    def channel_sequence(self) -> int:
        """Of a request of SMB 3."""
        return self.status & 0xFFFF

    @property
    def async_id(self) -> int:
        """Valid only with the flag ASYNC_COMMAND."""
        return self.process_id | self.tree_id << 32

    @property
    def is_related(self) -> bool:
        """Whether the message takes its ids from the previous one in the chain."""
        return bool(self.flags & RELATED_OPERATIONS)


_LAYOUT: Final = Layout(Header, "HIHHIIQIIQ16s")


def read_header(data: bytes | memoryview, at: int = 0) -> Header:
    """The command may be an undefined number."""
    if len(data) - at < HEADER_BYTES or bytes(data[at : at + 6]) != _START:
        raise MalformedMessage("no header of SMB 2")
    return _LAYOUT.read(data, at + len(_START))


def write_header(header: Header) -> bytes:
    return _START + _LAYOUT.write(header)
