"""CLOSE, FLUSH, READ and WRITE: their bodies, and the limits of their data.

Layouts, and refusals that depend on the bytes and the negotiated limits. Sources: [MS-SMB2]
sections 2.2.15 to 2.2.22, 3.3.5.12 and 3.3.5.13; smb.md 2.5.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.information.file_information import (
    NETWORK_OPEN,
    NetworkOpenInformation,
)
from strongroom.wire.smb.requests.bodies import MessageBody
from strongroom.wire.smb.structures import Layout, MalformedMessage, variable_part

OFFSET_MAX: Final = (1 << 63) - 1
"""The greatest end of a transfer. Offsets are passed on as signed 64-bit numbers."""
_DATA_OFFSET_MAX: Final = 0x100
_READ_DATA_AT: Final = 80


class CloseRequest(msgspec.Struct, frozen=True):
    """`wants_attributes` is the flag POSTQUERY_ATTRIB."""

    file_id: FileId
    wants_attributes: bool


class ReadRequest(msgspec.Struct, frozen=True):
    """A result of fewer bytes than `minimum` is an END_OF_FILE."""

    file_id: FileId
    offset: int
    length: int
    minimum: int
    is_unbuffered: bool


class WriteRequest(msgspec.Struct, frozen=True):
    """The data is a part of the message."""

    file_id: FileId
    offset: int
    data: memoryview
    is_write_through: bool
    is_unbuffered: bool


class _OnFile(msgspec.Struct, frozen=True):
    flags: int
    persistent: int
    volatile: int


class _Read(msgspec.Struct, frozen=True):
    flags: int
    length: int
    offset: int
    persistent: int
    volatile: int
    minimum: int
    channel: int


class _Write(msgspec.Struct, frozen=True):
    data_offset: int
    length: int
    offset: int
    persistent: int
    volatile: int
    channel: int
    flags: int


class _ReadAnswer(msgspec.Struct, frozen=True):
    data_offset: int
    length: int


class _Count(msgspec.Struct, frozen=True):
    count: int


class _CloseHead(msgspec.Struct, frozen=True):
    structure_size: int
    flags: int


_CLOSE: Final = MessageBody(_OnFile, "H4xQQ", 24)
_FLUSH: Final = MessageBody(_OnFile, "H4xQQ", 24)
# Channel information and RemainingBytes of READ are used by RDMA only.
_READ: Final = MessageBody(_Read, "xBIQQQII8x", 49)
_WRITE: Final = MessageBody(_Write, "HIQQQI8xI", 49)
_READ_ANSWER: Final = MessageBody(_ReadAnswer, "BxI8x", 17)
_WRITE_ANSWER: Final = MessageBody(_Count, "2xI8x", 17)
_CLOSE_HEAD: Final = Layout(_CloseHead, "HH4x")
_CLOSE_ANSWER_SIZE: Final = 60
FLUSH_ANSWER: Final = bytes((4, 0, 0, 0))


def read_close(message: memoryview) -> CloseRequest:
    fixed = _CLOSE.read(message)
    return CloseRequest(FileId(fixed.persistent, fixed.volatile), bool(fixed.flags & 1))


def write_close_answer(node: NetworkOpenInformation | None) -> bytes:
    """The body of the response to CLOSE: zeros unless the client requested attributes."""
    head = _CLOSE_HEAD.write(_CloseHead(_CLOSE_ANSWER_SIZE, 0 if node is None else 1))
    body = head if node is None else head + NETWORK_OPEN.write(node)
    return body[:_CLOSE_ANSWER_SIZE].ljust(_CLOSE_ANSWER_SIZE, b"\0")


def read_flush(message: memoryview) -> FileId:
    fixed = _FLUSH.read(message)
    return FileId(fixed.persistent, fixed.volatile)


def read_read(message: memoryview, length_max: int) -> ReadRequest:
    """`length_max` is MaxReadSize. The only channel is the connection itself."""
    fixed = _READ.read(message)
    if fixed.length > length_max or fixed.offset + fixed.length > OFFSET_MAX or fixed.channel:
        raise MalformedMessage(f"READ of {fixed.length} bytes at {fixed.offset} is not served")
    return ReadRequest(
        FileId(fixed.persistent, fixed.volatile),
        fixed.offset,
        fixed.length,
        fixed.minimum,
        is_unbuffered=bool(fixed.flags & 1),
    )


def write_read_answer(length: int) -> bytes:
    """The fixed part of the response to READ; the data follows it.

    Without data one zero byte follows, as in every body with an odd StructureSize.
    """
    return _READ_ANSWER.write(_ReadAnswer(_READ_DATA_AT, length)) + (b"" if length else b"\0")


def read_write(message: memoryview, length_max: int) -> WriteRequest:
    """`length_max` is MaxWriteSize. The only channel is the connection itself."""
    fixed = _WRITE.read(message)
    end = fixed.offset + fixed.length
    too_far = fixed.length > 0 and fixed.data_offset > _DATA_OFFSET_MAX
    if fixed.length > length_max or end > OFFSET_MAX or fixed.channel or too_far:
        raise MalformedMessage(f"WRITE of {fixed.length} bytes at {fixed.offset} is not served")
    return WriteRequest(
        FileId(fixed.persistent, fixed.volatile),
        fixed.offset,
        variable_part(message, fixed.data_offset, fixed.length, after=_WRITE.end),
        is_write_through=bool(fixed.flags & 1),
        is_unbuffered=bool(fixed.flags & 2),
    )


def write_write_answer(count: int) -> bytes:
    return _WRITE_ANSWER.write(_Count(count))
