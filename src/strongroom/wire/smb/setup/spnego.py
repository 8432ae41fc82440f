"""SPNEGO: the tokens that wrap those of the negotiated mechanism, as a server reads and writes
them.

Sources: RFC 4178 section 4.2; [MS-SPNG] section 2.2.1; smb.md 2.2. A server accepts one mechanism,
NTLMSSP (ntlm.py).
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.setup.der import (
    APPLICATION,
    ENUMERATED,
    OCTET_STRING,
    OID,
    SEQUENCE,
    DerValue,
    of_context,
    read_value,
    read_values,
    write_value,
)
from strongroom.wire.smb.structures import MalformedMessage

ACCEPT_COMPLETED: Final = 0
ACCEPT_INCOMPLETE: Final = 1
REQUEST_MIC: Final = 3

_SPNEGO: Final = write_value(OID, bytes.fromhex("2b0601050502"))
NTLMSSP: Final = write_value(OID, bytes.fromhex("2b06010401823702020a"))


class FirstToken(msgspec.Struct, frozen=True):
    """A client's first token.

    Attributes:
        raw_mechanisms: the list of mechanisms exactly as it was sent, which its MIC covers.
        mechanisms: the list, each an OID in DER; `token` belongs to the first one.
        token: the mechanism's token; None = none yet.
    """

    raw_mechanisms: bytes
    mechanisms: tuple[bytes, ...]
    token: bytes | None


class NextToken(msgspec.Struct, frozen=True):
    """A client's next token; `mic` covers the list of mechanisms."""

    token: bytes | None
    mic: bytes | None


def read_first(data: bytes) -> FirstToken:
    """Parse a client's NegTokenInit."""
    outer = read_values(read_value(data, APPLICATION).contents)
    if len(outer) != 2 or outer[0].raw != _SPNEGO or outer[1].tag != of_context(0):
        raise MalformedMessage("the token is not of SPNEGO")
    fields = _fields(outer[1])
    if 0 not in fields:
        raise MalformedMessage("the token names no mechanism")
    listed = read_value(fields[0], SEQUENCE)
    mechanisms = read_values(listed.contents)
    if not mechanisms or any(one.tag != OID for one in mechanisms):
        raise MalformedMessage("the token names no mechanism")
    return FirstToken(listed.raw, tuple(one.raw for one in mechanisms), _octets(fields, 2))


def read_next(data: bytes) -> NextToken:
    """Parse a client's NegTokenResp."""
    fields = _fields(read_value(data, of_context(1)))
    return NextToken(_octets(fields, 2), _octets(fields, 3))


def write_offer() -> bytes:
    """The server's first token, a NegTokenInit2 in its response to NEGOTIATE."""
    mechanisms = write_value(of_context(0), write_value(SEQUENCE, NTLMSSP))
    inner = write_value(of_context(0), write_value(SEQUENCE, mechanisms))
    return write_value(APPLICATION, _SPNEGO, inner)


def write_response(
    state: int,
    *,
    names_mechanism: bool = False,
    token: bytes | None = None,
    mic: bytes | None = None,
) -> bytes:
    """A server's NegTokenResp. The first one names the chosen mechanism."""
    fields = [write_value(of_context(0), write_value(ENUMERATED, bytes((state,))))]
    if names_mechanism:
        fields.append(write_value(of_context(1), NTLMSSP))
    if token is not None:
        fields.append(write_value(of_context(2), write_value(OCTET_STRING, token)))
    if mic is not None:
        fields.append(write_value(of_context(3), write_value(OCTET_STRING, mic)))
    return write_value(of_context(1), write_value(SEQUENCE, *fields))


def _fields(outer: DerValue) -> dict[int, bytes]:
    """The fields of the sequence in a value, by their numbers, which must ascend."""
    fields: dict[int, bytes] = {}
    for value in read_values(read_value(outer.contents, SEQUENCE).contents):
        number = value.tag - of_context(0)
        if not 0 <= number <= 4 or (fields and number <= max(fields)):
            raise MalformedMessage("a token has a field that is not in its place")
        fields[number] = value.contents
    return fields


def _octets(fields: dict[int, bytes], number: int) -> bytes | None:
    if number not in fields:
        return None
    return read_value(fields[number], OCTET_STRING).contents
