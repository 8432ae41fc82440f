"""QUERY_INFO and SET_INFO: the selected information, and the data of a change.

The information itself: information/. Sources: [MS-SMB2] sections 2.2.37 to 2.2.40, 3.3.5.20 and
3.3.5.21; smb.md 2.10 and 2.11.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

import msgspec

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.bodies import MessageBody
from strongroom.wire.smb.structures import MalformedMessage, variable_part


class InfoType(enum.IntEnum):
    """The object of the information: a file, its volume, its security descriptor, or quotas."""

    FILE = 1
    FILESYSTEM = 2
    SECURITY = 3
    QUOTA = 4


class QueryInfoRequest(msgspec.Struct, frozen=True):
    """A QUERY_INFO request.

    Attributes:
        output_bytes_max: OutputBufferLength.
        additional: for SECURITY, the requested parts of the descriptor.
    """

    info_type: int
    information_class: int
    file_id: FileId
    output_bytes_max: int
    additional: int = 0
    data: bytes = b""


class SetInfoRequest(msgspec.Struct, frozen=True):
    info_type: int
    information_class: int
    file_id: FileId
    data: memoryview
    additional: int = 0


class _Query(msgspec.Struct, frozen=True):
    info_type: int
    information_class: int
    output_bytes_max: int
    input_offset: int
    input_length: int
    additional: int
    persistent: int
    volatile: int


class _Set(msgspec.Struct, frozen=True):
    info_type: int
    information_class: int
    length: int
    offset: int
    additional: int
    persistent: int
    volatile: int


_QUERY: Final = MessageBody(_Query, "BBIH2xII4xQQ", 41)
_SET: Final = MessageBody(_Set, "BBIH2xIQQ", 33)
SET_INFO_ANSWER: Final = struct.pack("<H", 2)


def read_query_info(message: memoryview, room_max: int) -> QueryInfoRequest:
    """`room_max` is MaxTransactSize."""
    fixed = _QUERY.read(message)
    if fixed.output_bytes_max > room_max or fixed.input_length > room_max:
        raise MalformedMessage(f"an answer of {fixed.output_bytes_max} bytes is too large")
    _check_type(fixed.info_type)
    data = variable_part(message, fixed.input_offset, fixed.input_length, after=_QUERY.end)
    return QueryInfoRequest(
        fixed.info_type,
        fixed.information_class,
        FileId(fixed.persistent, fixed.volatile),
        fixed.output_bytes_max,
        additional=fixed.additional,
        data=bytes(data),
    )


def _check_type(info_type: int) -> None:
    if not InfoType.FILE <= info_type <= InfoType.QUOTA:
        raise MalformedMessage(f"there is no InfoType {info_type}")


def read_set_info(message: memoryview, length_max: int) -> SetInfoRequest:
    """`length_max` is MaxTransactSize."""
    fixed = _SET.read(message)
    if not 0 < fixed.length <= length_max:
        raise MalformedMessage(f"SET_INFO of {fixed.length} bytes")
    _check_type(fixed.info_type)
    return SetInfoRequest(
        fixed.info_type,
        fixed.information_class,
        FileId(fixed.persistent, fixed.volatile),
        variable_part(message, fixed.offset, fixed.length, after=_SET.end),
        fixed.additional,
    )
