"""CLOSE, FLUSH, READ and WRITE: their bodies, and the limits of their data.

Lives here: layouts, and refusals that depend on the bytes and the negotiated limits. Must not live
here: opens. Sources: [MS-SMB2] sections 2.2.15 to 2.2.22, 3.3.5.12 and 3.3.5.13; smb.md 2.5.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.header import HEADER_BYTES, FileId
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
    """A CLOSE request; `wants_attributes` is the flag POSTQUERY_ATTRIB."""

    file_id: FileId
    wants_attributes: bool


class ReadRequest(msgspec.Struct, frozen=True):
    """A READ request; a result of fewer bytes than `minimum` is an END_OF_FILE."""

    file_id: FileId
    offset: int
    length: int
    minimum: int
    is_unbuffered: bool


class WriteRequest(msgspec.Struct, frozen=True):
    """A WRITE request; the data is a part of the message."""

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
    """Parse a CLOSE request. Raises: MalformedMessage."""
    fixed = _CLOSE.read(message)
    return CloseRequest(FileId(fixed.persistent, fixed.volatile), bool(fixed.flags & 1))


def write_close(request: CloseRequest) -> bytes:
    """Return the body of a CLOSE, for clients."""
    file_id = request.file_id
    flags = int(request.wants_attributes)
    return _CLOSE.write(_OnFile(flags, file_id.persistent, file_id.volatile))


def write_close_answer(node: NetworkOpenInformation | None) -> bytes:
    """Return the body of the response to CLOSE: zeros unless the client requested attributes."""
    head = _CLOSE_HEAD.write(_CloseHead(_CLOSE_ANSWER_SIZE, 0 if node is None else 1))
    body = head if node is None else head + NETWORK_OPEN.write(node)
    return body[:_CLOSE_ANSWER_SIZE].ljust(_CLOSE_ANSWER_SIZE, b"\0")


def read_flush(message: memoryview) -> FileId:
    """Return the open that a FLUSH names. Raises: MalformedMessage."""
    fixed = _FLUSH.read(message)
    return FileId(fixed.persistent, fixed.volatile)


def write_flush(file_id: FileId) -> bytes:
    """Return the body of a FLUSH, for clients."""
    return _FLUSH.write(_OnFile(0, file_id.persistent, file_id.volatile))


def read_read(message: memoryview, length_max: int) -> ReadRequest:
    """Parse a READ request.

    Arguments:
        length_max: MaxReadSize.

    Raises: MalformedMessage, also for a length beyond the limit, an end beyond OFFSET_MAX, and a
        channel other than the connection itself.
    """
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


def write_read(request: ReadRequest) -> bytes:
    """Return the body of a READ, for clients; one byte stands for the empty channel information."""
    fixed = _Read(
        int(request.is_unbuffered),
        request.length,
        request.offset,
        persistent=request.file_id.persistent,
        volatile=request.file_id.volatile,
        minimum=request.minimum,
        channel=0,
    )
    return _READ.write(fixed) + b"\0"


def write_read_answer(length: int) -> bytes:
    """Return the fixed part of the response to READ; the data follows it.

    Without data one zero byte follows, as in every body with an odd StructureSize.
    """
    return _READ_ANSWER.write(_ReadAnswer(_READ_DATA_AT, length)) + (b"" if length else b"\0")


def read_read_answer(message: memoryview) -> memoryview:
    """Return the data in the response to READ, for clients. Raises: MalformedMessage."""
    fixed = _READ_ANSWER.read(message)
    return variable_part(message, fixed.data_offset, fixed.length, after=_READ_ANSWER.end)


def read_write(message: memoryview, length_max: int) -> WriteRequest:
    """Parse a WRITE request.

    Arguments:
        length_max: MaxWriteSize.

    Raises: MalformedMessage, also for data outside of the message or beyond offset 0x100, a length
        beyond the limit, an end beyond OFFSET_MAX, and a channel.
    """
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


def write_write(request: WriteRequest) -> bytes:
    """Return the body of a WRITE, for clients."""
    fixed = _Write(
        _WRITE.end,
        len(request.data),
        request.offset,
        persistent=request.file_id.persistent,
        volatile=request.file_id.volatile,
        channel=0,
        flags=request.is_write_through | request.is_unbuffered << 1,
    )
    return _WRITE.write(fixed) + bytes(request.data)


def write_write_answer(count: int) -> bytes:
    """Return the body of the response to WRITE, with the number of written bytes."""
    return _WRITE_ANSWER.write(_Count(count))


def read_write_answer(message: memoryview) -> int:
    """Return the number of written bytes in the response to WRITE, for clients. Raises:
    MalformedMessage."""
    return _WRITE_ANSWER.read(message).count


def read_close_answer(message: memoryview) -> NetworkOpenInformation | None:
    """Return the attributes in the response to CLOSE, for clients. Raises: MalformedMessage."""
    head = _CLOSE_HEAD.read(message, HEADER_BYTES)
    body = message[HEADER_BYTES + _CLOSE_HEAD.size :]
    if head.structure_size != _CLOSE_ANSWER_SIZE or len(body) < NETWORK_OPEN.size - 4:
        raise MalformedMessage("an answer to CLOSE has 60 bytes")
    if not head.flags & 1:
        return None
    return NETWORK_OPEN.read(bytes(body).ljust(NETWORK_OPEN.size, b"\0"))
