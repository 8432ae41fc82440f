"""Bodies of SMB commands as a client writes them, and of answers as it reads them.

The layouts are written out here, apart from those of the server (wire/smb/requests/), so that each
side checks the other. Sources: [MS-SMB2] sections 2.2.13 to 2.2.40; [MS-FSCC] sections 2.3 and 2.4.
"""

from __future__ import annotations

import struct
from typing import Any

from strongroom.wire.smb.header import HEADER_BYTES, FileId
from strongroom.wire.smb.information.file_information import (
    BasicInformation,
    NetworkOpenInformation,
    RenameChange,
)
from strongroom.wire.smb.requests.change_notify import ChangeNotifyRequest
from strongroom.wire.smb.requests.create import CreateAnswer, CreateRequest
from strongroom.wire.smb.requests.ioctl import CopyChunks, IoctlRequest
from strongroom.wire.smb.requests.lock import LockRequest
from strongroom.wire.smb.requests.oplock_break import LeaseBreakNotice
from strongroom.wire.smb.requests.query_directory import QueryDirectoryRequest
from strongroom.wire.smb.requests.query_info import QueryInfoRequest, SetInfoRequest
from strongroom.wire.smb.requests.transfers import CloseRequest, ReadRequest, WriteRequest

# A body whose StructureSize is odd has at least one byte after its fixed part.
_NOTHING = b"\0"


def _ids(file_id: FileId) -> tuple[int, int]:
    return file_id.persistent, file_id.volatile


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _fixed(message: memoryview, form: str, structure_size: int) -> tuple[Any, ...]:
    """Return the fields after the StructureSize of the body behind a header."""
    size, *fields = struct.unpack_from(form, message, HEADER_BYTES)
    assert size == structure_size, f"StructureSize {size} instead of {structure_size}"
    return tuple(fields)


def _part(message: memoryview, offset: int, length: int) -> memoryview:
    assert not length or offset + length <= len(message), "a part lies outside of its message"
    return message[offset : offset + length]


def write_create(request: CreateRequest, contexts: bytes = b"") -> bytes:
    """Return a CREATE with an encoded chain; the request's own contexts are ignored."""
    end, name = HEADER_BYTES + 56, _utf16(request.name)
    variable = name + bytes(-len(name) % 8) or bytes(8)
    fixed = struct.pack(
        "<HxBI16xIIIIIHHII",
        57,
        request.oplock_level,
        request.impersonation,
        request.access,
        request.attributes,
        request.share,
        request.disposition,
        request.options,
        end,
        len(name),
        end + len(variable) if contexts else 0,
        len(contexts),
    )
    return fixed + variable + contexts


def read_create_answer(message: memoryview) -> CreateAnswer:
    level, action, *node, persistent, volatile, offset, length = _fixed(
        message, "<HBxIQQQQQQI4xQQII", 89
    )
    return CreateAnswer(
        oplock_level=level,
        action=action,
        node=NetworkOpenInformation(*node),
        file_id=FileId(persistent, volatile),
        contexts=bytes(_part(message, offset, length)),
    )


def write_close(request: CloseRequest) -> bytes:
    return struct.pack("<HH4xQQ", 24, request.wants_attributes, *_ids(request.file_id))


def read_close_answer(message: memoryview) -> NetworkOpenInformation | None:
    """Return the attributes; None if the client has not asked for them."""
    flags, *node = _fixed(message, "<HH4xQQQQQQI", 60)
    return NetworkOpenInformation(*node) if flags & 1 else None


def write_flush(file_id: FileId) -> bytes:
    return struct.pack("<H6xQQ", 24, *_ids(file_id))


def write_read(request: ReadRequest) -> bytes:
    fixed = struct.pack(
        "<HxBIQQQI12x",
        49,
        request.is_unbuffered,
        request.length,
        request.offset,
        *_ids(request.file_id),
        request.minimum,
    )
    return fixed + _NOTHING


def read_read_answer(message: memoryview) -> memoryview:
    return _part(message, *_fixed(message, "<HBxI8x", 17))


def write_write(request: WriteRequest) -> bytes:
    fixed = struct.pack(
        "<HHIQQQ12xI",
        49,
        HEADER_BYTES + 48,
        len(request.data),
        request.offset,
        *_ids(request.file_id),
        request.is_write_through | request.is_unbuffered << 1,
    )
    return fixed + bytes(request.data)


def read_write_answer(message: memoryview) -> int:
    """Return how many bytes were written."""
    (count,) = _fixed(message, "<H2xI8x", 17)
    return int(count)


def write_lock(request: LockRequest) -> bytes:
    sequence = request.sequence_index << 4 | request.sequence_number
    head = struct.pack("<HHIQQ", 48, len(request.elements), sequence, *_ids(request.file_id))
    elements = (
        struct.pack("<QQI4x", one.offset, one.length, one.flags) for one in request.elements
    )
    return head + b"".join(elements)


def read_lease_notice(message: memoryview) -> LeaseBreakNotice:
    epoch, flags, key, current, new = _fixed(message, "<HHI16sII12x", 44)
    return LeaseBreakNotice(key, current, new, epoch, must_acknowledge=bool(flags & 1))


def write_query_directory(request: QueryDirectoryRequest) -> bytes:
    pattern = _utf16(request.pattern)
    fixed = struct.pack(
        "<HBB4xQQHHI",
        33,
        request.information_class,
        request.flags,
        *_ids(request.file_id),
        HEADER_BYTES + 32,
        len(pattern),
        request.output_bytes_max,
    )
    return fixed + (pattern or _NOTHING)


def read_buffer_answer(message: memoryview) -> memoryview:
    """Return the data of an answer to QUERY_DIRECTORY, QUERY_INFO or CHANGE_NOTIFY."""
    return _part(message, *_fixed(message, "<HHI", 9))


def write_query_info(request: QueryInfoRequest) -> bytes:
    fixed = struct.pack(
        "<HBBIH2xII4xQQ",
        41,
        request.info_type,
        request.information_class,
        request.output_bytes_max,
        HEADER_BYTES + 40 if request.data else 0,
        len(request.data),
        request.additional,
        *_ids(request.file_id),
    )
    return fixed + (request.data or _NOTHING)


def write_set_info(request: SetInfoRequest) -> bytes:
    fixed = struct.pack(
        "<HBBIH2xIQQ",
        33,
        request.info_type,
        request.information_class,
        len(request.data),
        HEADER_BYTES + 32,
        request.additional,
        *_ids(request.file_id),
    )
    return fixed + bytes(request.data)


def write_rename(change: RenameChange) -> bytes:
    """Return the data of class 10 of SET_INFO."""
    name = _utf16(change.path)
    return struct.pack("<B7xQI", change.replace_if_exists, 0, len(name)) + name


def write_basic_change(change: BasicInformation) -> bytes:
    """Return the data of class 4 of SET_INFO, with signed times."""
    times = (change.creation, change.last_access, change.last_write, change.change)
    return struct.pack("<qqqqI4x", *times, change.attributes)


def write_change_notify(request: ChangeNotifyRequest) -> bytes:
    return struct.pack(
        "<HHIQQI4x",
        32,
        request.watches_tree,
        request.output_bytes_max,
        *_ids(request.file_id),
        request.completion_filter,
    )


def write_ioctl(request: IoctlRequest) -> bytes:
    fixed = struct.pack(
        "<H2xIQQII12xII4x",
        57,
        request.code,
        *_ids(request.file_id),
        HEADER_BYTES + 56,
        len(request.data),
        request.output_bytes_max,
        1,
    )
    return fixed + (bytes(request.data) or _NOTHING)


def read_ioctl_answer(message: memoryview) -> memoryview:
    *_, offset, length = _fixed(message, "<H2xIQQIIII8x", 49)
    return _part(message, offset, length)


def write_copy_chunks(chunks: CopyChunks) -> bytes:
    """Return the input of SRV_COPYCHUNK."""
    rows = (
        struct.pack("<QQI4x", one.source_offset, one.target_offset, one.length)
        for one in chunks.chunks
    )
    return struct.pack("<24sI4x", chunks.source_key, len(chunks.chunks)) + b"".join(rows)
