"""The SMB properties that a request gives a directory or file: attributes, times, permission.

Lives here: the changes of a record that they cause. Must not live here: the rules of single values
(semantics/file/attributes.py). Source: reference file.md 3.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.semantics.file import attributes as rules
from strongroom.semantics.file.attributes import Attribute, FileTimes, Touch
from strongroom.services.file.names.permissions import NO_PERMISSION, PermissionGiven
from strongroom.store.file.file_records import FileRecord

_PRESERVE: Final = "preserve"


class SmbProperties(msgspec.Struct, frozen=True):
    """As given, as text; None = not given."""

    attributes: str | None = None
    creation: str | None = None
    last_write: str | None = None
    change: str | None = None
    permission: PermissionGiven = NO_PERMISSION


NOTHING_GIVEN: Final = SmbProperties()


def of_new(given: SmbProperties, now: int, *, is_directory: bool) -> dict[str, Any]:
    """Return the attributes and times of a new file or directory."""
    bits = Attribute.NONE
    if given.attributes is not None:
        bits = rules.parse(given.attributes, is_directory=is_directory)
    return {
        "attributes": rules.created(bits, is_directory=is_directory),
        "creation": rules.rest_time(given.creation, now, None),
        "access": now,
        "write": rules.rest_time(given.last_write, now, None),
        "change": rules.rest_time(given.change, now, None),
    }


def of_changed(given: SmbProperties, record: FileRecord, touch: Touch, now: int) -> dict[str, Any]:
    """Return the attributes and times of an existing file or directory after an operation. A time
    that the request sets takes precedence over one that the operation updates."""
    bits = rules.archived(record.attributes, touch)
    if given.attributes is not None and given.attributes.lower() != _PRESERVE:
        bits = rules.parse(given.attributes, is_directory=record.is_directory)
    before = FileTimes(record.creation, record.access, record.write, record.change)
    times = rules.touched(before, touch, now)
    write = record.write if (given.last_write or "").lower() == _PRESERVE else times.write
    return {
        "attributes": int(bits),
        "creation": rules.rest_time(given.creation, now, record.creation),
        "access": times.access,
        "write": rules.rest_time(given.last_write, now, write),
        "change": rules.rest_time(given.change, now, times.change),
    }


def clears_read_only(given: SmbProperties) -> bool:
    if given.attributes is None or given.attributes.lower() == _PRESERVE:
        return False
    return not rules.parse(given.attributes, is_directory=False) & Attribute.READ_ONLY
