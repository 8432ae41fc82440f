"""Permissions in binary form: a self-relative security descriptor in base64.

Which form a request asks for, and both directions between it and SDDL, the form in which
permissions are stored. Source: "Create Permission", "Get Permission"; [MS-DTYP] 2.4.6.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError, invalid_header, not_served
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query
from strongroom.wire.smb.information.sddl import parse_sddl, sddl
from strongroom.wire.smb.information.security_descriptors import (
    DACL_PRESENT,
    read_descriptor,
    write_descriptor,
)
from strongroom.wire.smb.structures import MalformedMessage

HEADER: Final = "x-ms-file-permission-format"
BINARY: Final = "binary"
_SDDL: Final = "sddl"
_SINCE: Final = "2024-11-04"
_DESCRIPTOR_BYTES_MAX: Final = 64 * 1024
"""The binary form is at most as long as the text may be."""


def read_format(request: Request, query: Query) -> str:
    """The form that a request asks for, as it names it; "" = none. Before its version the header
    has no effect."""
    value = request.headers.get(HEADER)
    version = request.headers.get("x-ms-version") or query.get("api-version") or query.get("sv")
    if not value or (version or "") < _SINCE:
        return ""
    if value.lower() not in (BINARY, _SDDL):
        raise invalid_header(HEADER, value, "It must be sddl or binary.")
    return value


def is_binary(form: str) -> bool:
    """In any case of letters."""
    return form.lower() == BINARY


def text_of(encoded: str) -> str:
    """The SDDL of a binary permission."""
    try:
        data = base64.b64decode(encoded, validate=True)
        if len(data) > _DESCRIPTOR_BYTES_MAX:
            raise StorageError(file_errors.FILE_INVALID_PERMISSION)
        descriptor = read_descriptor(memoryview(data))
    except (binascii.Error, ValueError, MalformedMessage):
        raise StorageError(file_errors.FILE_INVALID_PERMISSION) from None
    if (
        descriptor.owner is None
        or descriptor.group is None
        or not descriptor.control & DACL_PRESENT
    ):
        raise StorageError(file_errors.FILE_INVALID_PERMISSION)
    return sddl(descriptor, owner=descriptor.owner, group=descriptor.group)


def binary_of(text: str) -> str:
    """The binary form of a stored permission. NotImplemented if it has entries that only text can
    express here."""
    descriptor = parse_sddl(text)
    count = sum(len(acl) for acl in (descriptor.dacl, descriptor.sacl) if acl is not None)
    if descriptor.owner is None or descriptor.group is None or count != _entry_count(text):
        raise not_served("The binary form of a permission with conditions or unknown names")
    return base64.b64encode(write_descriptor(descriptor)).decode()


def _entry_count(text: str) -> int:
    """How many entries a text has; conditions have parentheses of their own."""
    count = depth = 0
    for character in text:
        if character == "(":
            count += not depth
            depth += 1
        elif character == ")":
            depth -= 1
    return count
