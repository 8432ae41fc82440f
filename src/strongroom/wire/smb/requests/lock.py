"""LOCK: byte ranges to lock or to unlock, in one request.

Also which flags select which kind of request. Sources: [MS-SMB2] sections 2.2.26, 2.2.27 and
3.3.5.14; smb.md 2.6.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.bodies import MessageBody
from strongroom.wire.smb.structures import Layout, MalformedMessage

ELEMENTS_MAX: Final = 64
SHARED: Final = 1
EXCLUSIVE: Final = 2
UNLOCK: Final = 4
FAIL_IMMEDIATELY: Final = 0x10
_LOCKING: Final = frozenset(
    (SHARED, EXCLUSIVE, SHARED | FAIL_IMMEDIATELY, EXCLUSIVE | FAIL_IMMEDIATELY)
)
LOCK_ANSWER: Final = struct.pack("<HH", 4, 0)


class LockElement(msgspec.Struct, frozen=True):
    offset: int
    length: int
    flags: int

    @property
    def is_exclusive(self) -> bool:
        return bool(self.flags & EXCLUSIVE)

    @property
    def is_unlock(self) -> bool:
        """Whether it is an unlock, without any other flag."""
        return self.flags == UNLOCK


class LockRequest(msgspec.Struct, frozen=True):
    """A LOCK request.

    Attributes:
        sequence_number: the number of this use of the bucket, which detects repeated requests.
        sequence_index: the bucket's index; 0 = none.
    """

    file_id: FileId
    elements: tuple[LockElement, ...]
    sequence_number: int = 0
    sequence_index: int = 0

    @property
    def is_unlock(self) -> bool:
        """Whether the first element is an unlock, so that all others must be."""
        return bool(self.elements[0].flags & UNLOCK)

    @property
    def fails_immediately(self) -> bool:
        """Whether a conflict is answered at once."""
        return bool(self.elements[0].flags & FAIL_IMMEDIATELY)


_ELEMENT: Final = Layout(LockElement, "QQI4x")


class _Whole(msgspec.Struct, frozen=True):
    count: int
    sequence: int
    persistent: int
    volatile: int
    offset: int
    length: int
    flags: int


# The StructureSize includes the first element, however many there are.
_BODY: Final = MessageBody(_Whole, "HIQQQQI4x", 48)


def read_lock(message: memoryview) -> LockRequest:
    fixed = _BODY.read(message)
    if not 1 <= fixed.count <= ELEMENTS_MAX:
        raise MalformedMessage(f"LOCK of {fixed.count} ranges")
    start = _BODY.end - _ELEMENT.size
    elements = tuple(
        _ELEMENT.read(message, start + index * _ELEMENT.size) for index in range(fixed.count)
    )
    request = LockRequest(
        FileId(fixed.persistent, fixed.volatile),
        elements,
        fixed.sequence & 0xF,
        fixed.sequence >> 4,
    )
    if not request.is_unlock:
        _check_locks(elements)
    return request


def _check_locks(elements: tuple[LockElement, ...]) -> None:
    """Check all locks before the first is taken; unlocks are checked one by one as they are
    done."""
    for element in elements:
        if element.flags not in _LOCKING:
            raise MalformedMessage(f"a lock cannot have the flags {element.flags:#x}")
        if len(elements) > 1 and not element.flags & FAIL_IMMEDIATELY:
            raise MalformedMessage("a series of locks cannot wait")
