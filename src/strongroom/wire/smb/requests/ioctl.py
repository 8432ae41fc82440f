"""IOCTL: control codes for files, pipes and the connection, and the inputs and outputs of the
served ones.

Sources: [MS-SMB2] sections 2.2.31, 2.2.32 and 3.3.5.15; [MS-FSCC] section 2.3; smb.md 2.7.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable
from typing import Final

import msgspec

from strongroom.errors import file as file_errors
from strongroom.wire.smb import statuses
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.refusals import SmbRefusal
from strongroom.wire.smb.requests.bodies import MessageBody, utf16_bytes
from strongroom.wire.smb.structures import Layout, MalformedMessage, variable_part


class Fsctl(enum.IntEnum):
    """The values of CtlCode that have a row of their own in smb.md 2.7."""

    DFS_GET_REFERRALS = 0x0006_0194
    DFS_GET_REFERRALS_EX = 0x0006_01B0
    GET_COMPRESSION = 0x0009_003C
    GET_NTFS_VOLUME_DATA = 0x0009_0064
    SET_REPARSE_POINT = 0x0009_00A4
    GET_REPARSE_POINT = 0x0009_00A8
    DELETE_REPARSE_POINT = 0x0009_00AC
    CREATE_OR_GET_OBJECT_ID = 0x0009_00C0
    SET_SPARSE = 0x0009_00C4
    QUERY_ALLOCATED_RANGES = 0x0009_40CF
    SET_ZERO_DATA = 0x0009_80C8
    FILE_LEVEL_TRIM = 0x0009_8208
    DUPLICATE_EXTENTS = 0x0009_8344
    SET_COMPRESSION = 0x0009_C040
    SET_INTEGRITY = 0x0009_C280
    PIPE_WAIT = 0x0011_0018
    PIPE_PEEK = 0x0011_400C
    PIPE_TRANSCEIVE = 0x0011_C017
    SRV_REQUEST_RESUME_KEY = 0x0014_0078
    LMR_REQUEST_RESILIENCY = 0x0014_01D4
    QUERY_NETWORK_INTERFACE_INFO = 0x0014_01FC
    VALIDATE_NEGOTIATE_INFO = 0x0014_0204
    SRV_ENUMERATE_SNAPSHOTS = 0x0014_4064
    SRV_COPYCHUNK = 0x0014_40F2
    SRV_READ_HASH = 0x0014_41BB
    SRV_COPYCHUNK_WRITE = 0x0014_80F2


class IoctlRequest(msgspec.Struct, frozen=True):
    """`output_bytes_max` is MaxOutputResponse."""

    code: int
    file_id: FileId
    data: memoryview
    output_bytes_max: int


class _Fixed(msgspec.Struct, frozen=True):
    code: int
    persistent: int
    volatile: int
    input_offset: int
    input_count: int
    output_bytes_max: int
    flags: int


class _Answer(msgspec.Struct, frozen=True):
    code: int
    persistent: int
    volatile: int
    input_offset: int
    input_count: int
    output_offset: int
    output_count: int


# No served code uses MaxInputResponse or an output within a request.
_REQUEST: Final = MessageBody(_Fixed, "2xIQQII12xII4x", 57)
_ANSWER: Final = MessageBody(_Answer, "2xIQQIIII8x", 49)
_IS_FSCTL: Final = 1


def read_ioctl(message: memoryview, size_max: int) -> IoctlRequest:
    """`size_max` is MaxTransactSize. Only an FSCTL is served."""
    fixed = _REQUEST.read(message)
    if fixed.flags != _IS_FSCTL:
        raise SmbRefusal(statuses.STATUS_NOT_SUPPORTED)
    if max(fixed.input_count, fixed.output_bytes_max) > size_max:
        raise MalformedMessage("the input or the output is too large")
    if fixed.input_count and fixed.input_offset % 8:
        raise MalformedMessage("the input begins at no multiple of 8")
    return IoctlRequest(
        fixed.code,
        FileId(fixed.persistent, fixed.volatile),
        variable_part(message, fixed.input_offset, fixed.input_count, after=_REQUEST.end),
        fixed.output_bytes_max,
    )


def write_ioctl_answer(request: IoctlRequest, data: bytes) -> bytes:
    """A response repeats code and FileId."""
    fixed = _Answer(
        request.code,
        request.file_id.persistent,
        request.file_id.volatile,
        input_offset=_ANSWER.end,
        input_count=0,
        output_offset=_ANSWER.end,
        output_count=len(data),
    )
    return _ANSWER.write(fixed) + (data or b"\0")


class ValidateNegotiate(msgspec.Struct, frozen=True):
    """The input of VALIDATE_NEGOTIATE_INFO: the client repeats its NEGOTIATE."""

    capabilities: int
    guid: bytes
    security_mode: int
    dialects: tuple[int, ...]


class _Validate(msgspec.Struct, frozen=True):
    capabilities: int
    guid: bytes
    security_mode: int
    count: int


_VALIDATE: Final = Layout(_Validate, "I16sHH")
VALIDATE_ANSWER_BYTES: Final = _VALIDATE.size


def read_validate_negotiate(data: memoryview) -> ValidateNegotiate:
    fixed = _VALIDATE.read(data)
    listed = data[_VALIDATE.size :]
    if len(listed) < 2 * fixed.count:
        raise MalformedMessage(f"{fixed.count} dialects are not in the input")
    dialects = struct.unpack_from(f"<{fixed.count}H", listed)
    return ValidateNegotiate(fixed.capabilities, fixed.guid, fixed.security_mode, dialects)


def write_validate_answer(
    capabilities: int, guid: bytes, security_mode: int, dialect: int
) -> bytes:
    """The output of VALIDATE_NEGOTIATE_INFO: the server's answer to NEGOTIATE, repeated."""
    return _VALIDATE.write(_Validate(capabilities, guid, security_mode, dialect))


RESUME_KEY_BYTES: Final = 24
RESUME_KEY_ANSWER_BYTES: Final = 32


def write_resume_key(key: bytes) -> bytes:
    """The output of SRV_REQUEST_RESUME_KEY: the key, and an empty context."""
    return key.ljust(RESUME_KEY_ANSWER_BYTES, b"\0")


OBJECT_ID_BYTES: Final = 64
_GUID: Final = struct.Struct("<QQ")


def write_object_id(volume_id: int, file_id: int) -> bytes:
    """The output of CREATE_OR_GET_OBJECT_ID ([MS-FSCC] 2.1.3.1).

    It contains the id of the file, the birth volume and birth id, and no domain.
    """
    file = _GUID.pack(file_id, volume_id)
    return file + _GUID.pack(volume_id, 0) + file + _GUID.pack(0, 0)


class CopyChunk(msgspec.Struct, frozen=True):
    source_offset: int
    target_offset: int
    length: int


class CopyChunks(msgspec.Struct, frozen=True):
    """The input of SRV_COPYCHUNK."""

    source_key: bytes
    chunks: tuple[CopyChunk, ...]


class _Chunks(msgspec.Struct, frozen=True):
    key: bytes
    count: int


_CHUNKS: Final = Layout(_Chunks, "24sI4x")
_CHUNK: Final = Layout(CopyChunk, "QQI4x")
CHUNKS_MAX: Final = 256
CHUNK_BYTES_MAX: Final = 1 << 20
COPY_BYTES_MAX: Final = 16 << 20
_OFFSET_MAX: Final = (1 << 63) - 1
COPY_ANSWER_BYTES: Final = 12


def write_copy_answer(chunks: int, total_bytes: int) -> bytes:
    """The output of SRV_COPYCHUNK: the number of chunks and bytes that were copied."""
    return struct.pack("<III", chunks, 0, total_bytes)


COPY_LIMITS: Final = struct.pack("<III", CHUNKS_MAX, CHUNK_BYTES_MAX, COPY_BYTES_MAX)
"""The data of the answer to a copy beyond the limits. Its status is INVALID_PARAMETER."""


def read_copy_chunks(data: memoryview) -> CopyChunks | None:
    """None for a copy beyond the limits, which are then returned."""
    fixed = _CHUNKS.read(data)
    if fixed.count > CHUNKS_MAX:
        return None
    if len(data) < _CHUNKS.size + fixed.count * _CHUNK.size:
        raise MalformedMessage(f"{fixed.count} chunks are not in the input")
    chunks = tuple(
        _CHUNK.read(data, _CHUNKS.size + index * _CHUNK.size) for index in range(fixed.count)
    )
    if any(not 0 < chunk.length <= CHUNK_BYTES_MAX for chunk in chunks):
        return None
    if sum(chunk.length for chunk in chunks) > COPY_BYTES_MAX:
        return None
    for chunk in chunks:
        if max(chunk.source_offset, chunk.target_offset) + chunk.length > _OFFSET_MAX:
            raise MalformedMessage("a chunk ends beyond the last byte of any file")
    return CopyChunks(fixed.key, chunks)


class FileSpan(msgspec.Struct, frozen=True):
    """Two numbers: offset and end in SET_ZERO_DATA, offset and length in QUERY_ALLOCATED_RANGES."""

    first: int
    second: int


_SPAN: Final = Layout(FileSpan, "qq")


def read_zero_data(data: memoryview) -> FileSpan:
    """Offset and end. They may not be negative, nor the end before the offset."""
    span = _SPAN.read(data)
    if span.first < 0 or span.second < span.first:
        raise MalformedMessage("no range of a file")
    return span


def read_allocated_ranges(data: memoryview) -> FileSpan:
    """Offset and length. They may not be negative, nor the end beyond the largest file."""
    span = _SPAN.read(data)
    if min(span.first, span.second) < 0 or span.first + span.second > _OFFSET_MAX:
        raise MalformedMessage("no range of a file")
    return span


def write_allocated_ranges(ranges: Iterable[tuple[int, int]], room: int) -> tuple[int, bytes]:
    """The status and the output: offsets and lengths, as many as fit."""
    written = b"".join(_SPAN.write(FileSpan(offset, length)) for offset, length in ranges)
    if len(written) <= room:
        return statuses.STATUS_SUCCESS, written
    if room < _SPAN.size:
        raise SmbRefusal(statuses.STATUS_BUFFER_TOO_SMALL)
    return statuses.STATUS_BUFFER_OVERFLOW, written[: room - room % _SPAN.size]


_SNAPSHOT_HEAD_BYTES: Final = 12
SNAPSHOT_ROOM_MIN: Final = 16


def check_snapshot_room(room: int) -> None:
    """Check that the output buffer fits the header of SRV_ENUMERATE_SNAPSHOTS and an empty name."""
    if room < SNAPSHOT_ROOM_MIN:
        raise SmbRefusal(file_errors.STATUS_INVALID_PARAMETER)


def write_snapshots(tokens: list[str], room: int) -> bytes:
    """The output of SRV_ENUMERATE_SNAPSHOTS: all `@GMT-` tokens, or none if they do not fit.

    In both cases it contains their number, and how many bytes they need.
    """
    check_snapshot_room(room)
    names = utf16_bytes("".join(token + "\0" for token in tokens) + "\0")
    if _SNAPSHOT_HEAD_BYTES + len(names) > room:
        return struct.pack("<III", len(tokens), 0, len(names)).ljust(SNAPSHOT_ROOM_MIN, b"\0")
    return struct.pack("<III", len(tokens), len(tokens), len(names)) + names
