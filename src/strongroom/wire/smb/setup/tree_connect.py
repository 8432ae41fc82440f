"""TREE_CONNECT: the path of a share, and the server's description of the share.

Source: [MS-SMB2] sections 2.2.9, 2.2.10; smb.md 2.3.
"""

from __future__ import annotations

import re
import struct
from typing import Final

import msgspec

from strongroom.wire.smb.header import HEADER_BYTES
from strongroom.wire.smb.structures import Layout, MalformedMessage, variable_part

REQUEST_SIZE: Final = 9
SHARE_CHARS_MAX: Final = 80

DISK: Final = 1
PIPE: Final = 2
# ShareFlags: no offline caching; everything except TREE_CONNECT must be encrypted.
NO_CACHING: Final = 0x30
ENCRYPT_DATA: Final = 0x8000

_PATH: Final = re.compile(r"\\\\([^\\]+)\\([^\\]+)")


class _Request(msgspec.Struct, frozen=True):
    structure_size: int
    flags: int
    path_offset: int
    path_length: int


class SharePath(msgspec.Struct, frozen=True):
    r"""The share that a client connects to: `\\server\share`."""

    server: str
    share: str


class TreeConnected(msgspec.Struct, frozen=True):
    """The server's description of a share.

    Attributes:
        kind: DISK or PIPE.
        access: the maximal access of the caller.
    """

    kind: int
    flags: int
    access: int


_REQUEST: Final = Layout(_Request, "HHHH")
_RESPONSE: Final = struct.Struct("<HBxIII")
_RESPONSE_SIZE: Final = 16


def read_tree_connect(message: memoryview) -> SharePath:
    """`message` begins with its header. Its path must name one share of one server."""
    fixed = _REQUEST.read(message, HEADER_BYTES)
    after = HEADER_BYTES + _REQUEST.size
    raw = variable_part(message, fixed.path_offset, fixed.path_length, after=after)
    try:
        path = bytes(raw).decode("utf-16-le")
    except UnicodeDecodeError:
        raise MalformedMessage("the path of TREE_CONNECT is no UTF-16") from None
    match = _PATH.fullmatch(path)
    if match is None or "\0" in path:
        raise MalformedMessage("the path of TREE_CONNECT names no share of a server")
    return SharePath(match[1], match[2])


def write_tree_connected(answer: TreeConnected) -> bytes:
    """The share has no capabilities."""
    return _RESPONSE.pack(_RESPONSE_SIZE, answer.kind, answer.flags, 0, answer.access)
