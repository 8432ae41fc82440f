"""OPLOCK_BREAK: notifications to holders of oplocks and leases, acknowledgments, and responses.

Sources: [MS-SMB2] sections 2.2.23 to 2.2.25, 3.3.5.22.1 and 3.3.5.22.2; smb.md 2.12.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from strongroom.wire.smb.header import HEADER_BYTES, FileId
from strongroom.wire.smb.requests.bodies import MessageBody
from strongroom.wire.smb.structures import MalformedMessage

_ACK_REQUIRED: Final = 1


class OplockBreak(msgspec.Struct, frozen=True):
    """The break of an oplock: notification, acknowledgment and response have the same body."""

    file_id: FileId
    level: int


class LeaseBreakNotice(msgspec.Struct, frozen=True):
    """The notification of a lease break.

    Attributes:
        epoch: in version 2; 0 otherwise.
        must_acknowledge: whether the server waits for an acknowledgment.
    """

    key: bytes
    current: int
    new: int
    epoch: int
    must_acknowledge: bool


class LeaseBreakAck(msgspec.Struct, frozen=True):
    """The acknowledgment of a lease break; the response to it has the same body."""

    key: bytes
    state: int


class _Oplock(msgspec.Struct, frozen=True):
    level: int
    persistent: int
    volatile: int


class _Notice(msgspec.Struct, frozen=True):
    epoch: int
    flags: int
    key: bytes
    current: int
    new: int


_OPLOCK: Final = MessageBody(_Oplock, "B5xQQ", 24)
_NOTICE: Final = MessageBody(_Notice, "HI16sII12x", 44)
_LEASE_ACK: Final = MessageBody(LeaseBreakAck, "6x16sI8x", 36)


def read_acknowledgment(message: memoryview) -> OplockBreak | LeaseBreakAck:
    """The StructureSize of an acknowledgment shows whether it is for a lease."""
    if len(message) < HEADER_BYTES + 2:
        raise MalformedMessage("an acknowledgment has no body")
    (size,) = struct.unpack_from("<H", message, HEADER_BYTES)
    if size == _LEASE_ACK.structure_size:
        return _LEASE_ACK.read(message)
    fixed = _OPLOCK.read(message)
    return OplockBreak(FileId(fixed.persistent, fixed.volatile), fixed.level)


def write_oplock_break(message: OplockBreak) -> bytes:
    """The body of an oplock's notification, acknowledgment, or response."""
    file_id = message.file_id
    return _OPLOCK.write(_Oplock(message.level, file_id.persistent, file_id.volatile))


def write_lease_acknowledgment(message: LeaseBreakAck) -> bytes:
    """The body of a lease's acknowledgment, or of the response to it."""
    return _LEASE_ACK.write(message)


def write_lease_notice(notice: LeaseBreakNotice) -> bytes:
    flags = _ACK_REQUIRED if notice.must_acknowledge else 0
    return _NOTICE.write(_Notice(notice.epoch, flags, notice.key, notice.current, notice.new))
