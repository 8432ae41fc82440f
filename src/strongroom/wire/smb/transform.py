"""The header of 52 bytes before an encrypted frame. Source: [MS-SMB2] section 2.2.41; smb.md
1.9."""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.framing import TRANSFORM_PROTOCOL_ID
from strongroom.wire.smb.structures import Layout, MalformedMessage

TRANSFORM_BYTES: Final = 52
NONCE_BYTES: Final = 16
# The associated data that the tag covers begins after the protocol id and the tag.
ASSOCIATED_DATA_AT: Final = 20
_IS_ENCRYPTED: Final = 1


class TransformHeader(msgspec.Struct, frozen=True):
    """`nonce` is padded with zeros to 16 bytes."""

    tag: bytes
    nonce: bytes
    plain_bytes: int
    flags: int
    session_id: int


_LAYOUT: Final = Layout(TransformHeader, "16s16sI2xHQ")


def read_transform(frame: memoryview) -> TransformHeader:
    """Some data must follow the header, as much as it says."""
    header = _LAYOUT.read(frame, len(TRANSFORM_PROTOCOL_ID))
    if header.flags != _IS_ENCRYPTED or len(frame) <= TRANSFORM_BYTES:
        raise MalformedMessage("the frame is not encrypted")
    if header.plain_bytes != len(frame) - TRANSFORM_BYTES:
        raise MalformedMessage(f"{header.plain_bytes} bytes in a frame of {len(frame)}")
    return header


def write_transform(nonce: bytes, plain_bytes: int, session_id: int) -> bytes:
    """The header of an encrypted frame, with zeros in place of the tag."""
    nonce = nonce.ljust(NONCE_BYTES, b"\0")
    header = TransformHeader(bytes(16), nonce, plain_bytes, _IS_ENCRYPTED, session_id)
    return TRANSFORM_PROTOCOL_ID + _LAYOUT.write(header)
