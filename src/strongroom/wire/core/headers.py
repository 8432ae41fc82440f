"""Header values: one typed codec for each kind of value in headers.

Rules about the values are in semantics/. Sources: RFC 9110; "Specifying the range header for Blob
service operations", "Setting and retrieving properties and metadata", "Lease Blob" (forms of lease
ids).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.times import parse_rfc1123
from strongroom.values import ByteRange, md5_text

METADATA_PREFIX: Final = "x-ms-meta-"
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
# 20 digits hold the largest number of 64 bits, which some clients send for "to the end".
_RANGE: Final = re.compile(r"bytes=([0-9]{1,20})-([0-9]{1,20})?")
_ETAG: Final = re.compile(r'\s*(?:((?:W/)?"[^"]*")|([^\s",]+))\s*(?:,|$)')
_HEX: Final = "[0-9A-Fa-f]"
_D_FORM: Final = "-".join(f"{_HEX}{{{digits}}}" for digits in (8, 4, 4, 4, 12))
_USUAL_GUID: Final = re.compile(_D_FORM.replace("A-F", ""))
_GUID: Final = re.compile(rf"{_D_FORM}|{_HEX}{{32}}|\{{{_D_FORM}\}}|\({_D_FORM}\)")
_GUID_MARKS: Final = str.maketrans("", "", "{}()-")


def boolean(name: str, value: str) -> bool:
    """`true` or `false`, in any case."""
    lower = value.lower()
    if lower not in ("true", "false"):
        raise invalid_header(name, value)
    return lower == "true"


def integer(name: str, value: str, minimum: int, maximum: int) -> int:
    """A decimal number within [minimum, maximum]."""
    if _INTEGER.fullmatch(value) is None or not minimum <= int(value) <= maximum:
        raise invalid_header(name, value)
    return int(value)


def date(name: str, value: str) -> int:
    """The ticks of an RFC 1123 date."""
    ticks = parse_rfc1123(value)
    if ticks is None:
        raise invalid_header(name, value)
    return ticks


def md5(value: str) -> bytes:
    """The 16 bytes of a base64 MD5."""
    digest = _base64(value)
    if digest is None or len(digest) != 16:
        raise StorageError(errors.INVALID_MD5)
    return digest


def unchecked_md5(value: str) -> tuple[bytes | None, str | None]:
    """Parse an MD5 without refusing other text.

    Returns: (its 16 bytes, None) if `value` is exactly their base64, else (None, `value`).
    """
    digest = _base64(value)
    if digest is not None and len(digest) == 16 and md5_text(digest) == value:
        return digest, None
    return None, value


def crc64(name: str, value: str) -> int:
    """Base64 of eight bytes, least significant first."""
    checksum = _base64(value)
    if checksum is None or len(checksum) != 8:
        raise invalid_header(name, value)
    return int.from_bytes(checksum, "little")


def byte_range(value: str | None) -> ByteRange | None:
    """Parse `bytes=a-` or `bytes=a-b`; None for every other form, which the service ignores."""
    match = _RANGE.fullmatch(value.strip()) if value else None
    if match is None:
        return None
    first = int(match[1])
    last = None if match[2] is None else int(match[2])
    return None if last is not None and last < first else ByteRange(first, last)


def etags(name: str, value: str) -> tuple[str, ...]:
    """The ETags of a list in quoted form, or `("*",)`. Quotes are optional on the wire."""
    text = value.strip()
    if text == "*":
        return ("*",)
    tags: list[str] = []
    at = 0
    while at < len(text):
        one = _ETAG.match(text, at)
        # An asterisk in a longer list is meaningless, so it is refused.
        if one is None or one[2] == "*":
            raise invalid_header(name, value)
        tags.append(one[1] or f'"{one[2]}"')
        at = one.end()
    if not tags or text.endswith(","):
        raise invalid_header(name, value)
    return tuple(tags)


def guid(name: str, value: str) -> str:
    """Parse a GUID in form N, D, B or P, and return its lower-case D form."""
    if _USUAL_GUID.fullmatch(value) is not None:
        return value
    if _GUID.fullmatch(value) is None:
        raise invalid_header(name, value)
    digits = value.translate(_GUID_MARKS).lower()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def metadata(fields: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The `x-ms-meta-*` fields without their prefix, with order and case as sent.

    They are not checked yet: semantics.names.check_metadata does that.
    """
    start = len(METADATA_PREFIX)
    return tuple(
        (name[start:], value) for name, value in fields if name[:start].lower() == METADATA_PREFIX
    )


def comma_list(value: str) -> tuple[str, ...]:
    """The elements of a comma-separated list, trimmed, without the empty ones."""
    return tuple(part for part in (piece.strip() for piece in value.split(",")) if part)


def one_of(name: str, value: str, allowed: Iterable[str]) -> str:
    """The element of `allowed` that equals `value`, ignoring case."""
    lower = value.lower()
    for word in allowed:
        if word.lower() == lower:
            return word
    raise invalid_header(name, value)


def _base64(value: str) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        return None
