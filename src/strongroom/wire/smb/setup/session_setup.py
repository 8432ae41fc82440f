"""SESSION_SETUP: the messages that contain the tokens of an authentication (spnego.py, ntlm.py).

Source: [MS-SMB2] sections 2.2.5, 2.2.6; smb.md 2.2.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from strongroom.wire.smb.header import HEADER_BYTES
from strongroom.wire.smb.structures import Layout, variable_part

REQUEST_SIZE: Final = 25
BINDING: Final = 1
SIGNING_REQUIRED: Final = 2
ENCRYPT_DATA: Final = 4

_RESPONSE: Final = struct.Struct("<HHHH")
_RESPONSE_SIZE: Final = 9


class _Request(msgspec.Struct, frozen=True):
    structure_size: int
    flags: int
    security_mode: int
    capabilities: int
    channel: int
    token_offset: int
    token_length: int
    previous_session_id: int


class SessionSetup(msgspec.Struct, frozen=True):
    """A request: its token, and whether it binds a session of another connection."""

    is_binding: bool
    requires_signing: bool
    previous_session_id: int
    token: bytes


_REQUEST: Final = Layout(_Request, "HBBIIHHQ")


def read_session_setup(message: memoryview) -> SessionSetup:
    """Parse a request, given from its header on."""
    fixed = _REQUEST.read(message, HEADER_BYTES)
    after = HEADER_BYTES + _REQUEST.size
    token = variable_part(message, fixed.token_offset, fixed.token_length, after=after)
    return SessionSetup(
        is_binding=bool(fixed.flags & BINDING),
        requires_signing=bool(fixed.security_mode & SIGNING_REQUIRED),
        previous_session_id=fixed.previous_session_id,
        token=bytes(token),
    )


def write_session_setup(token: bytes, flags: int = 0) -> bytes:
    """`flags` is ENCRYPT_DATA or 0."""
    offset = HEADER_BYTES + _RESPONSE.size
    return _RESPONSE.pack(_RESPONSE_SIZE, flags, offset, len(token)) + token
