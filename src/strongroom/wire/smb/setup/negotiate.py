"""NEGOTIATE: the dialects, capabilities and contexts of both sides.

Also the SMB 1 message that may come first. The server's choice:
servers/smb/messages/negotiation.py. Source: [MS-SMB2] sections 2.2.3, 2.2.4, 3.3.5.3; [MS-CIFS]
2.2.4.52; smb.md 2.1.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

import msgspec

from strongroom.wire.smb.header import HEADER_BYTES
from strongroom.wire.smb.setup.negotiate_contexts import (
    NegotiateContext,
    read_contexts,
    write_contexts,
)
from strongroom.wire.smb.structures import Layout, MalformedMessage

REQUEST_SIZE: Final = 36
DIALECT_202: Final = 0x0202
DIALECT_210: Final = 0x0210
DIALECT_300: Final = 0x0300
DIALECT_302: Final = 0x0302
DIALECT_311: Final = 0x0311
WILDCARD: Final = 0x02FF

SIGNING_ENABLED: Final = 1
SIGNING_REQUIRED: Final = 2

CAN_LEASE: Final = 0x02
CAN_USE_LARGE_MTU: Final = 0x04
CAN_ENCRYPT: Final = 0x40

_RESPONSE_SIZE: Final = 65
_SMB1_HEADER_BYTES: Final = 32
_SMB1_NEGOTIATE: Final = 0x72
_SMB1_WILDCARD: Final = b"SMB 2.???"
_SMB1_202: Final = b"SMB 2.002"


class _Request(msgspec.Struct, frozen=True):
    structure_size: int
    dialect_count: int
    security_mode: int
    capabilities: int
    client_guid: bytes
    context_offset: int
    context_count: int


class NegotiateRequest(msgspec.Struct, frozen=True):
    """A client's offer. `contexts` is None unless it offers dialect 3.1.1."""

    security_mode: int
    capabilities: int
    client_guid: bytes
    dialects: tuple[int, ...]
    contexts: tuple[NegotiateContext, ...] | None


class NegotiateResponse(msgspec.Struct, frozen=True):
    """The body of the NEGOTIATE answer: the server's choice from the client's offer.

    Attributes:
        system_time: the server's time as a FILETIME.
        token: the SPNEGO token that names the mechanisms which the server accepts.
    """

    security_mode: int
    dialect: int
    server_guid: bytes
    capabilities: int
    io_bytes_max: int
    system_time: int
    token: bytes
    contexts: tuple[NegotiateContext, ...] = ()

    def with_contexts(self, contexts: tuple[NegotiateContext, ...]) -> NegotiateResponse:
        return msgspec.structs.replace(self, contexts=contexts)


_REQUEST: Final = Layout(_Request, "HHH2xI16sIH2x")
# The response's fixed part consists of these, with the server's GUID after the first.
_CHOICE: Final = struct.Struct("<HHHH")
_SIZES: Final = struct.Struct("<IIII")
_TIMES: Final = struct.Struct("<QQ")
_TOKEN: Final = struct.Struct("<HHI")
_RESPONSE_BYTES: Final = 64


def read_negotiate(message: memoryview) -> NegotiateRequest:
    """`message` begins with its header."""
    fixed = _REQUEST.read(message, HEADER_BYTES)
    at = HEADER_BYTES + _REQUEST.size
    if not fixed.dialect_count or len(message) - at < 2 * fixed.dialect_count:
        raise MalformedMessage(f"NEGOTIATE has no room for {fixed.dialect_count} dialects")
    dialects = struct.unpack_from(f"<{fixed.dialect_count}H", message, at)
    contexts = None
    if DIALECT_311 in dialects:
        end = at + 2 * fixed.dialect_count
        contexts = read_contexts(message, fixed.context_offset, fixed.context_count, after=end)
    return NegotiateRequest(
        fixed.security_mode, fixed.capabilities, fixed.client_guid, dialects, contexts
    )


def write_negotiate(answer: NegotiateResponse) -> bytes:
    token_offset = HEADER_BYTES + _RESPONSE_BYTES
    token = answer.token
    context_offset = 0
    if answer.contexts:
        token += bytes(-(token_offset + len(token)) % 8)
        context_offset = token_offset + len(token)
    sizes = (answer.io_bytes_max,) * 3
    fixed = (
        _CHOICE.pack(_RESPONSE_SIZE, answer.security_mode, answer.dialect, len(answer.contexts))
        + answer.server_guid
        + _SIZES.pack(answer.capabilities, *sizes)
        + _TIMES.pack(answer.system_time, 0)
        + _TOKEN.pack(token_offset, len(answer.token), context_offset)
    )
    return fixed + token + write_contexts(answer.contexts)


class Smb1Offer(enum.Enum):
    """What an SMB 1 NEGOTIATE offers at most."""

    SMB1 = "SMB 1"
    SMB_202 = "SMB 2.0.2"
    LATER = "SMB 2.1 or later"


def smb1_offer(message: memoryview) -> Smb1Offer:
    """The greatest offer of an SMB 1 NEGOTIATE. Any other message is malformed."""
    data = bytes(message)
    at = _SMB1_HEADER_BYTES
    if len(data) < at + 3 or data[4] != _SMB1_NEGOTIATE or data[at] != 0:
        raise MalformedMessage("no NEGOTIATE of SMB 1")
    if int.from_bytes(data[at + 1 : at + 3], "little") != len(data) - at - 3:
        raise MalformedMessage("the dialects of SMB 1 do not fill the message")
    names = data[at + 3 :].split(b"\0")
    if b"\2" + _SMB1_WILDCARD in names:
        return Smb1Offer.LATER
    return Smb1Offer.SMB_202 if b"\2" + _SMB1_202 in names else Smb1Offer.SMB1
