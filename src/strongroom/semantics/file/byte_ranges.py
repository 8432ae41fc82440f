"""Byte-range locks of one file: which opens may lock, read and write which bytes, and which wait.

A lock's owner is the id of an open (opens.py). Sources: [MS-FSA] sections 2.1.4.10, 2.1.5.8 and
2.1.5.9; [MS-SMB2] section 3.3.5.14; "Managing file locks" of the Azure Storage REST reference;
smb.md 2.6, 3.5 and 4.4.

Locks may lie beyond the end of the file, and they do not move when it is truncated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from strongroom.enums import FastHashEnum
from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode
from strongroom.semantics.file.accesses import FileOperation

OFFSETS: Final = 1 << 64
LOCKS_MAX: Final = 4096
"""The limit of one file's locks and waiting requests together. Each check goes through all of
them."""


class RangeLock(msgspec.Struct, frozen=True):
    """A lock that an open holds or requests.

    A lock of length 0 lies between two bytes. It conflicts with locks that cover both of them. At
    offset 0 it conflicts with nothing (smb.md 3.5).
    """

    offset: int
    length: int
    is_exclusive: bool
    owner: int

    @property
    def last(self) -> int:
        """The last byte; for a lock of length 0, one before `offset`."""
        return self.offset + self.length - 1

    def overlaps(self, other: RangeLock) -> bool:
        """Whether both locks cover a common byte, or one lies between two bytes of the other."""
        return self.offset <= other.last and self.last >= other.offset


class LockWait(msgspec.Struct, frozen=True):
    """A blocking lock request that waits. `id` is the number by which the caller identifies it."""

    id: int
    lock: RangeLock


class LockTable(msgspec.Struct, frozen=True):
    """The locks of a file in the order of their granting, and the waiting requests in the order of
    arrival."""

    locks: tuple[RangeLock, ...] = ()
    waiting: tuple[LockWait, ...] = ()


NO_LOCKS: Final = LockTable()


class LockUse(FastHashEnum):
    LOCK_SHARED = "lock it, shared"
    LOCK_EXCLUSIVE = "lock it exclusively"
    READ = "read it"
    WRITE = "write it"


# smb.md 3.5. Rows: the requested use. Columns: the kind and owner of an overlapping lock, which are
# shared own, shared foreign, exclusive own, exclusive foreign. True = conflict.
_COLUMNS: Final = ((False, True), (False, False), (True, True), (True, False))
_ROWS: Final[dict[LockUse, tuple[bool, bool, bool, bool]]] = {
    LockUse.LOCK_SHARED: (False, False, False, True),
    LockUse.LOCK_EXCLUSIVE: (True, True, True, True),
    LockUse.READ: (False, False, False, True),
    LockUse.WRITE: (True, True, False, True),
}
CONFLICTS: Final[dict[tuple[LockUse, bool, bool], bool]] = {
    (use, is_exclusive, is_own): cell
    for use, cells in _ROWS.items()
    for (is_exclusive, is_own), cell in zip(_COLUMNS, cells, strict=True)
}

# The use that a REST operation makes of its bytes; it owns no lock. Inferred from
# "FileLockConflict": metadata and the list of ranges concern no bytes; a replacement concerns all.
REST_LOCK_USES: Final[dict[FileOperation, LockUse]] = {
    FileOperation.GET_FILE: LockUse.READ,
    FileOperation.COPY_SOURCE: LockUse.READ,
    FileOperation.PUT_RANGE: LockUse.WRITE,
    FileOperation.CREATE_FILE: LockUse.WRITE,
    FileOperation.COPY_DESTINATION: LockUse.WRITE,
    FileOperation.RENAME_TARGET: LockUse.WRITE,
}
WHOLE_FILE: Final = (0, OFFSETS)
"""The (offset, length) of an operation that replaces everything."""
REST_OWNER: Final = 0
"""The owner of REST operations. It owns no lock, and no open has this id."""


class LocksGranted(msgspec.Struct, frozen=True):
    """`table` has all locks of the request."""

    table: LockTable


class LocksRefused(msgspec.Struct, frozen=True):
    """None of the request's locks was taken, and the table is unchanged."""

    row: ErrorCode


class LockQueued(msgspec.Struct, frozen=True):
    table: LockTable


class LocksFreed(msgspec.Struct, frozen=True):
    """The table after locks were freed.

    Attributes:
        granted: the ids of the waiting requests that now hold their lock, in the order of granting.
        row: the error of an unlock in a series; the unlocks before it stay done. None = no error.
    """

    table: LockTable
    granted: tuple[int, ...] = ()
    row: ErrorCode | None = None


def check_range(offset: int, length: int) -> ErrorCode | None:
    """INVALID_LOCK_RANGE for a range that ends beyond 2^64 bytes; None = the range is valid."""
    is_legal = 0 <= offset < OFFSETS and length >= 0 and (not length or offset + length <= OFFSETS)
    return None if is_legal else file_errors.INVALID_LOCK_RANGE


def lock(
    table: LockTable, wanted: Sequence[RangeLock], wait_id: int | None = None
) -> LocksGranted | LocksRefused | LockQueued:
    """Take all locks, or none. Each is checked against those before it in the series too.

    Arguments:
        wanted: at least one; only a single one may wait (smb.md 2.6).
        wait_id: the id under which the request waits; None = FAIL_IMMEDIATELY.
    """
    assert wait_id is None or len(wanted) == 1, "a series does not wait"
    refused = next(filter(None, (check_range(one.offset, one.length) for one in wanted)), None)
    if refused is not None:
        return LocksRefused(refused)
    if len(table.locks) + len(table.waiting) + len(wanted) > LOCKS_MAX:
        return LocksRefused(file_errors.TOO_MANY_LOCKS)
    locks = table.locks
    for one in wanted:
        if _is_blocked(locks, one):
            if wait_id is None:
                return LocksRefused(file_errors.LOCK_NOT_GRANTED)
            return LockQueued(replace(table, waiting=(*table.waiting, LockWait(wait_id, one))))
        locks = (*locks, one)
    return LocksGranted(replace(table, locks=locks))


def unlock(table: LockTable, owner: int, ranges: Sequence[tuple[int, int]]) -> LocksFreed:
    """Free one lock for each (offset, length), which must be exactly that of a lock of the owner.

    Stacked locks need one unlock each. If several locks match, an exclusive one is freed first,
    then the newest. A range that matches none ends the series with RANGE_NOT_LOCKED.
    """
    locks = list(table.locks)
    row = None
    for offset, length in ranges:
        index = _matching_lock(locks, owner, offset, length)
        if index is None:
            row = file_errors.RANGE_NOT_LOCKED
            break
        del locks[index]
    return replace(_grant_waiting(replace(table, locks=tuple(locks))), row=row)


def cancelled(table: LockTable, wait_id: int) -> LockTable:
    """The caller answers the waiting request with CANCELLED."""
    return replace(table, waiting=tuple(one for one in table.waiting if one.id != wait_id))


def released(table: LockTable, owner: int) -> LocksFreed:
    """The table after the owner's handle was closed, without its locks and waiting requests.

    The caller answers those requests with RANGE_NOT_LOCKED (smb.md 1.7).
    """
    locks = tuple(one for one in table.locks if one.owner != owner)
    waiting = tuple(one for one in table.waiting if one.lock.owner != owner)
    return _grant_waiting(LockTable(locks, waiting))


def conflict(
    table: LockTable, use: LockUse, offset: int, length: int, owner: int = REST_OWNER
) -> ErrorCode | None:
    """FileLockConflict if a lock prevents the owner's read or write. A range of 0 bytes never
    conflicts."""
    request = RangeLock(offset, length, is_exclusive=False, owner=owner)
    is_stopped = length > 0 and any(_conflicts(use, request, lock) for lock in table.locks)
    return file_errors.FILE_LOCK_CONFLICT if is_stopped else None


def _conflicts(use: LockUse, request: RangeLock, lock: RangeLock) -> bool:
    is_own = request.owner == lock.owner
    return CONFLICTS[use, lock.is_exclusive, is_own] and request.overlaps(lock)


def _is_blocked(locks: Sequence[RangeLock], request: RangeLock) -> bool:
    use = LockUse.LOCK_EXCLUSIVE if request.is_exclusive else LockUse.LOCK_SHARED
    return any(_conflicts(use, request, lock) for lock in locks)


def _matching_lock(locks: Sequence[RangeLock], owner: int, offset: int, length: int) -> int | None:
    matching = [
        (lock.is_exclusive, index)
        for index, lock in enumerate(locks)
        if (lock.owner, lock.offset, lock.length) == (owner, offset, length)
    ]
    return max(matching)[1] if matching else None


def _grant_waiting(table: LockTable) -> LocksFreed:
    """Grant the waiting requests whose locks are free now, in order of arrival. A request that must
    keep waiting does not delay later ones."""
    locks, waiting, granted = table.locks, [], []
    for one in table.waiting:
        if _is_blocked(locks, one.lock):
            waiting.append(one)
        else:
            locks = (*locks, one.lock)
            granted.append(one.id)
    return LocksFreed(LockTable(locks, tuple(waiting)), tuple(granted))
