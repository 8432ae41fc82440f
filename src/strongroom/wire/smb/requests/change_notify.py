"""CHANGE_NOTIFY: a watch for changes of a directory, and the report of changes.

Sources: [MS-SMB2] sections 2.2.35, 2.2.36 and 3.3.5.19; [MS-FSCC] section 2.7.1; smb.md 2.9.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable
from typing import Final

import msgspec

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.bodies import MessageBody, padded, utf16_bytes
from strongroom.wire.smb.structures import MalformedMessage

WATCH_TREE: Final = 0x1


class NotifyAction(enum.IntEnum):
    ADDED = 1
    REMOVED = 2
    MODIFIED = 3
    RENAMED_OLD_NAME = 4
    RENAMED_NEW_NAME = 5


class ChangeNotifyRequest(msgspec.Struct, frozen=True):
    file_id: FileId
    output_bytes_max: int
    completion_filter: int
    watches_tree: bool


class ChangedName(msgspec.Struct, frozen=True):
    """One change of a name; the path is relative to the directory, with backslashes."""

    action: int
    path: str


class _Fixed(msgspec.Struct, frozen=True):
    flags: int
    output_bytes_max: int
    persistent: int
    volatile: int
    completion_filter: int


_REQUEST: Final = MessageBody(_Fixed, "HIQQI4x", 32)
_ALIGNMENT: Final = 4


def read_change_notify(message: memoryview, room_max: int) -> ChangeNotifyRequest:
    """`room_max` is MaxTransactSize; OutputBufferLength may not be larger."""
    fixed = _REQUEST.read(message)
    if fixed.output_bytes_max > room_max:
        raise MalformedMessage(f"an answer of {fixed.output_bytes_max} bytes is too large")
    return ChangeNotifyRequest(
        FileId(fixed.persistent, fixed.volatile),
        fixed.output_bytes_max,
        fixed.completion_filter,
        watches_tree=bool(fixed.flags & WATCH_TREE),
    )


def write_changes(changes: Iterable[ChangedName], room: int) -> bytes:
    """The entries of a response; b"" when they do not all fit (NOTIFY_ENUM_DIR)."""
    entries = []
    for change in changes:
        name = utf16_bytes(change.path)
        entries.append(struct.pack("<III", 0, change.action, len(name)) + name)
    for index, entry in enumerate(entries[:-1]):
        whole = padded(entry, _ALIGNMENT)
        entries[index] = struct.pack("<I", len(whole)) + whole[4:]
    data = b"".join(entries)
    return data if len(data) <= room else b""
