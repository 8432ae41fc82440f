"""Values of ASN.1 in DER, as far as SPNEGO (spnego.py) needs them: tag, length, contents.

Source: ITU-T X.690 sections 8.1, 10.1.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.structures import MalformedMessage

OCTET_STRING: Final = 0x04
OID: Final = 0x06
ENUMERATED: Final = 0x0A
GENERAL_STRING: Final = 0x1B
SEQUENCE: Final = 0x30
APPLICATION: Final = 0x60
_TAG_OF_CONTEXT: Final = 0xA0
_SHORT_FORM_MAX: Final = 0x7F
_LENGTH_BYTES_MAX: Final = 3


def of_context(number: int) -> int:
    """The context-specific tag of a field with this number."""
    return _TAG_OF_CONTEXT + number


class DerValue(msgspec.Struct, frozen=True):
    """A value: its tag, its contents, and all its bytes as they were sent."""

    tag: int
    contents: bytes
    raw: bytes


def read_values(data: bytes) -> list[DerValue]:
    values: list[DerValue] = []
    at = 0
    while at < len(data):
        value = _read(data, at)
        values.append(value)
        at += len(value.raw)
    return values


def read_value(data: bytes, tag: int) -> DerValue:
    """The one value that fills `data`."""
    values = read_values(data)
    if len(values) != 1 or values[0].tag != tag:
        raise MalformedMessage(f"one value with the tag 0x{tag:02X} is expected")
    return values[0]


def write_value(tag: int, *contents: bytes) -> bytes:
    """The contents are written one after the other."""
    whole = b"".join(contents)
    return bytes((tag,)) + _write_length(len(whole)) + whole


def _read(data: bytes, at: int) -> DerValue:
    if len(data) - at < 2:
        raise MalformedMessage("a value of ASN.1 is cut off")
    first, start = data[at + 1], at + 2
    size = first
    if first > _SHORT_FORM_MAX:
        count = first & _SHORT_FORM_MAX
        start += count
        size = int.from_bytes(data[at + 2 : start], "big")
        # Each length has one valid form: indefinite and overlong forms are refused.
        if not 1 <= count <= _LENGTH_BYTES_MAX or _write_length(size) != data[at + 1 : start]:
            raise MalformedMessage("a length of ASN.1 is not in the form of DER")
    if len(data) - start < size:
        raise MalformedMessage("a value of ASN.1 is cut off")
    return DerValue(data[at], data[start : start + size], data[at : start + size])


def _write_length(size: int) -> bytes:
    if size <= _SHORT_FORM_MAX:
        return bytes((size,))
    raw = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((_SHORT_FORM_MAX + 1 + len(raw),)) + raw
