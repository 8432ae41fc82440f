"""The three messages of NTLM.

The verification of the password proof: auth/ntlm.py. Source: [MS-NLMP] sections 2.2.1, 2.2.2;
smb.md 2.2.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from strongroom.wire.smb.structures import Layout, MalformedMessage

SIGNATURE: Final = b"NTLMSSP\0"
NEGOTIATE: Final = 1
CHALLENGE: Final = 2
AUTHENTICATE: Final = 3

UNICODE: Final = 0x1
REQUEST_TARGET: Final = 0x4
SIGN: Final = 0x10
SEAL: Final = 0x20
NTLM: Final = 0x200
ALWAYS_SIGN: Final = 0x8000
TARGET_TYPE_SERVER: Final = 0x2_0000
EXTENDED_SESSION_SECURITY: Final = 0x8_0000
TARGET_INFO: Final = 0x80_0000
VERSION: Final = 0x200_0000
KEY_128: Final = 0x2000_0000
KEY_EXCHANGE: Final = 0x4000_0000
KEY_56: Final = 0x8000_0000

REQUIRED: Final = UNICODE | EXTENDED_SESSION_SECURITY | KEY_128
_NEGOTIABLE: Final = (
    REQUIRED | SIGN | SEAL | KEY_EXCHANGE | KEY_56 | VERSION | REQUEST_TARGET | ALWAYS_SIGN
)
_ALWAYS: Final = REQUEST_TARGET | NTLM | ALWAYS_SIGN | TARGET_INFO | TARGET_TYPE_SERVER

_AV_END: Final = 0
_AV_COMPUTER: Final = 1
_AV_DOMAIN: Final = 2
_AV_DNS_COMPUTER: Final = 3
_AV_DNS_DOMAIN: Final = 4
_AV_TIME: Final = 7

# Windows 6.1, build 7601; revision 15 of NTLM. Clients check the revision only.
_SERVER_VERSION: Final = bytes.fromhex("0601b11d0000000f")
_MIC_AT: Final = 72
_MIC_BYTES: Final = 16
_WITH_MIC_BYTES: Final = _MIC_AT + _MIC_BYTES


class _Field(msgspec.Struct, frozen=True):
    length: int
    offset: int


_FIELD: Final = Layout(_Field, "H2xI")
_FLAGS: Final = struct.Struct("<I")


class Authenticate(msgspec.Struct, frozen=True):
    """The AUTHENTICATE_MESSAGE of NTLM.

    Attributes:
        nt_response: the proof, and the raw bytes that it covers.
        mic: the bytes of the MIC, if the message has space for them. `nt_response` shows whether
            the client has computed them.
        without_mic: the message with zeros in place of the MIC.
    """

    nt_response: bytes
    domain: str
    user: str
    workstation: str
    encrypted_key: bytes
    flags: int
    mic: bytes | None
    without_mic: bytes

    def __repr__(self) -> str:
        return f"Authenticate(user={self.user!r})"


def message_type(token: bytes) -> int:
    """The type of the message in a token."""
    if len(token) < 12 or token[:8] != SIGNATURE:
        raise MalformedMessage("the token is not of NTLMSSP")
    return int.from_bytes(token[8:12], "little")


def read_negotiate_flags(token: bytes) -> int:
    """The flags of a NEGOTIATE_MESSAGE."""
    if len(token) < 16:
        raise MalformedMessage("the message of NTLM is cut off")
    return int(_FLAGS.unpack_from(token, 12)[0])


def write_challenge(flags: int, challenge: bytes, name: str, time: int) -> bytes:
    """A CHALLENGE_MESSAGE.

    Arguments:
        flags: those of the client's NEGOTIATE_MESSAGE.
        challenge: 8 random bytes.
        name: the server's name.
        time: a FILETIME. Its presence makes clients send a MIC.
    """
    netbios = name.upper()[:15].encode("utf-16-le")
    dns = name.lower().encode("utf-16-le")
    pairs = (
        (_AV_DOMAIN, netbios),
        (_AV_COMPUTER, netbios),
        (_AV_DNS_DOMAIN, b""),
        (_AV_DNS_COMPUTER, dns),
        (_AV_TIME, struct.pack("<Q", time)),
        (_AV_END, b""),
    )
    info = b"".join(struct.pack("<HH", number, len(value)) + value for number, value in pairs)
    at = 56
    return b"".join(
        (
            SIGNATURE,
            _FLAGS.pack(CHALLENGE),
            struct.pack("<HHI", len(netbios), len(netbios), at),
            _FLAGS.pack((flags & _NEGOTIABLE) | _ALWAYS),
            challenge,
            bytes(8),
            struct.pack("<HHI", len(info), len(info), at + len(netbios)),
            _SERVER_VERSION,
            netbios,
            info,
        )
    )


def read_authenticate(token: bytes) -> Authenticate:
    if len(token) < 64:
        raise MalformedMessage("the message of NTLM is cut off")
    fields = [_FIELD.read(token, at) for at in range(12, 60, 8)]
    (flags,) = _FLAGS.unpack_from(token, 60)
    _, nt_response, domain, user, workstation, key = (_contents(token, one) for one in fields)
    payload_at = min((one.offset for one in fields if one.length), default=len(token))
    has_room = payload_at >= _WITH_MIC_BYTES and len(token) >= _WITH_MIC_BYTES
    without = token[:_MIC_AT] + bytes(_MIC_BYTES) + token[_WITH_MIC_BYTES:]
    return Authenticate(
        nt_response=nt_response,
        domain=_text(domain, flags),
        user=_text(user, flags),
        workstation=_text(workstation, flags),
        encrypted_key=key,
        flags=flags,
        mic=token[_MIC_AT:_WITH_MIC_BYTES] if has_room else None,
        without_mic=without if has_room else token,
    )


def _contents(token: bytes, field: _Field) -> bytes:
    if field.length and field.offset + field.length > len(token):
        raise MalformedMessage("a field of NTLM is not within its message")
    return token[field.offset : field.offset + field.length]


def _text(raw: bytes, flags: int) -> str:
    try:
        return raw.decode("utf-16-le" if flags & UNICODE else "ascii")
    except UnicodeDecodeError:
        raise MalformedMessage("a name of NTLM cannot be decoded") from None
