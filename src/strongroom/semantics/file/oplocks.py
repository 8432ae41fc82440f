"""The caching rights of SMB clients: leases and oplocks as one table of breaks.

Which cause breaks which state to which, notices and their answers; a time-out is an event. What an
open is granted: grants.py. Sources: [MS-SMB2] sections 2.2.13.2.8, 3.3.4.6, 3.3.4.7 and 3.3.5.22;
[MS-FSA] section 2.1.5.18; "Managing file locks" of the Azure Storage REST reference; smb.md 3.6 and
4.5.

An oplock is a lease whose key is the open itself: level II caches reads, exclusive reads and
writes, batch everything. The table differs by kind only where the documents differ.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec
from msgspec.structs import replace

from strongroom.enums import FastHashEnum
from strongroom.errors import file as file_errors
from strongroom.semantics.file.accesses import FileOperation

SMB_BREAK_LIMIT_S: Final = 35
"""The time that a holder has to answer a notice. Without an answer it holds nothing (smb.md
3.6)."""
REST_WAIT_LIMIT_S: Final = 30
"""The longest wait of a REST operation before it fails with ClientCacheFlushDelay (smb.md 4.5)."""


class Caching(enum.IntFlag):
    """The bits of LeaseState on the wire."""

    NONE = 0
    READ = 1
    HANDLE = 2
    WRITE = 4


class CachingKind(FastHashEnum):
    LEASE_V1 = "lease, version 1"
    LEASE_V2 = "lease, version 2"
    OPLOCK = "oplock"


class OplockLevel(enum.IntEnum):
    """The values are its numbers on the wire."""

    NONE = 0
    II = 1
    EXCLUSIVE = 8
    BATCH = 9
    LEASE = 0xFF


class Cause(FastHashEnum):
    """The kinds of operations that break others' caches."""

    OPEN = "an open that is neither for attributes only nor overwrites"
    OVERWRITE = "an open that overwrites or supersedes"
    SHARE_CONFLICT = "an open, or a REST operation, that the holder's handle does not share"
    NAME_CHANGE = "a rename, of an ancestor too; a disposition; new security"
    UNLINK = "REST's Delete File"
    READ = "a read or a flush"
    WRITE = "a write, a lock, a new size, zeroed ranges"


CachingKey = tuple[bytes, bytes] | int
"""The key of a lease is its ClientGuid and LeaseKey, and that of an oplock is the id of its
open."""

N: Final = Caching.NONE
R: Final = Caching.READ
RH: Final = Caching.READ | Caching.HANDLE
RW: Final = Caching.READ | Caching.WRITE
RWH: Final = Caching.READ | Caching.WRITE | Caching.HANDLE
LEASE_STATES: Final = (N, R, RH, RW, RWH)
# The states of oplocks, which have no RH.
LEVELS: Final = {
    OplockLevel.NONE: N,
    OplockLevel.II: R,
    OplockLevel.EXCLUSIVE: RW,
    OplockLevel.BATCH: RWH,
}


class Broken(msgspec.Struct, frozen=True):
    """The outcome of a break.

    Attributes:
        to: the caching that the holder keeps.
        waits: the operation waits until the holder has acknowledged the break.
    """

    to: Caching
    waits: bool


def _wait(to: Caching) -> Broken:
    return Broken(to, waits=True)


def _no_wait(to: Caching) -> Broken:
    return Broken(to, waits=False)


_LEASE_COLUMNS: Final = (R, RH, RW, RWH)
_LEASE_ROWS: Final[dict[Cause, tuple[Broken | None, ...]]] = {
    Cause.OPEN: (None, None, _wait(R), _wait(RH)),
    Cause.OVERWRITE: (_no_wait(N), _no_wait(N), _wait(N), _wait(N)),
    Cause.SHARE_CONFLICT: (None, _wait(R), None, _wait(RW)),
    Cause.NAME_CHANGE: (None, _wait(R), None, _wait(RW)),
    Cause.UNLINK: (None, _wait(R), None, _wait(RW)),
    Cause.READ: (None, None, _wait(R), _wait(RH)),
    Cause.WRITE: (_no_wait(N), _no_wait(N), _wait(N), _wait(N)),
}
_OPLOCK_COLUMNS: Final = (R, RW, RWH)
# A batch holder may answer by closing a handle that its user has closed before. So causes that its
# handle could prevent (an open, a share conflict, a deletion) break it first; a rename does not.
_OPLOCK_ROWS: Final[dict[Cause, tuple[Broken | None, ...]]] = {
    Cause.OPEN: (None, _wait(R), _wait(R)),
    Cause.OVERWRITE: (_no_wait(N), _wait(N), _wait(N)),
    Cause.SHARE_CONFLICT: (None, None, _wait(R)),
    Cause.NAME_CHANGE: (None, None, None),
    Cause.UNLINK: (None, None, _wait(R)),
    Cause.READ: (None, _wait(R), _wait(R)),
    Cause.WRITE: (_no_wait(N), _wait(N), _wait(N)),
}

_LEASES: Final = {
    (cause, state): cell
    for cause, row in _LEASE_ROWS.items()
    for state, cell in zip(_LEASE_COLUMNS, row, strict=True)
}
_OPLOCKS: Final = {
    (cause, state): cell
    for cause, row in _OPLOCK_ROWS.items()
    for state, cell in zip(_OPLOCK_COLUMNS, row, strict=True)
}

# The cause that each REST operation is for caches (smb.md 4.5). Not in the documents, so inferred:
# - Create File and the destination of a copy replace everything, as an overwriting open does.
# - Lease File reads and changes nothing, but its holder relies on the stored bytes: as Get File.
# - The source of a rename gets another name.
REST_CAUSES: Final[dict[FileOperation, Cause | None]] = {
    FileOperation.LIST_FILES: None,
    FileOperation.GET_PROPERTIES: Cause.READ,
    FileOperation.GET_METADATA: Cause.READ,
    FileOperation.GET_FILE: Cause.READ,
    FileOperation.LIST_RANGES: Cause.READ,
    FileOperation.PUT_RANGE: Cause.WRITE,
    FileOperation.SET_PROPERTIES: Cause.WRITE,
    FileOperation.SET_METADATA: Cause.WRITE,
    FileOperation.CREATE_FILE: Cause.OVERWRITE,
    FileOperation.LEASE_FILE: Cause.READ,
    FileOperation.DELETE_FILE: Cause.UNLINK,
    FileOperation.COPY_SOURCE: Cause.READ,
    FileOperation.COPY_DESTINATION: Cause.OVERWRITE,
    FileOperation.ABORT_COPY: None,
    FileOperation.RENAME_SOURCE: Cause.NAME_CHANGE,
    FileOperation.RENAME_TARGET: Cause.OVERWRITE,
}


class CachingHolder(msgspec.Struct, frozen=True):
    """A lease or an oplock of one file.

    Attributes:
        held: the rights that it has; while it is being broken, those before the break.
        break_to: the rights that the unanswered notice leaves; None = no notice is unanswered.
        target: the rights that remain after all breaks: less than `break_to` if another cause came
            since the notice.
        epoch: of leases of version 2: it counts each change of state (smb.md 3.6).
    """

    key: CachingKey
    kind: CachingKind
    held: Caching
    break_to: Caching | None = None
    target: Caching | None = None
    epoch: int = 0

    @property
    def is_breaking(self) -> bool:
        """Whether a notice waits for its answer."""
        return self.break_to is not None


class BreakNotice(msgspec.Struct, frozen=True):
    """An OPLOCK_BREAK notification to send.

    Attributes:
        needs_answer: the holder must acknowledge; if not, the state has changed already.
        epoch: NewEpoch; 0 for all but leases of version 2.
    """

    key: CachingKey
    kind: CachingKind
    current: Caching
    to: Caching
    needs_answer: bool
    epoch: int


def effect(holder: CachingHolder, cause: Cause) -> Broken | None:
    """The effect that a cause by another key has on a holder; None = it has none."""
    table = _OPLOCKS if holder.kind is CachingKind.OPLOCK else _LEASES
    return table.get((cause, holder.held))


def effect_on_own(holder: CachingHolder, cause: Cause) -> Broken | None:
    """The effect of a cause on the cache of its own key: level II ends with the holder's own
    writes.

    Source: smb.md 3.6: requests with its own key break no lease, but level II oplocks.
    """
    is_level_ii = holder.kind is CachingKind.OPLOCK and holder.held == R
    return effect(holder, cause) if is_level_ii and cause is Cause.WRITE else None


def broken(holder: CachingHolder, broken_to: Caching) -> tuple[CachingHolder, BreakNotice | None]:
    """The holder when it may keep `broken_to` at most, and the notice to send, if any.

    While a notice waits for its answer no second one is sent. Further breaks lower `target`, and
    the next notice follows the answer (smb.md 3.6).
    """
    target = (holder.held if holder.target is None else holder.target) & broken_to
    if holder.is_breaking:
        return replace(holder, target=target), None
    if target == holder.held:
        return holder, None
    epoch = (holder.epoch + 1) & 0xFFFF if holder.kind is CachingKind.LEASE_V2 else 0
    return _notified(replace(holder, epoch=epoch), target, target)


def _notified(
    holder: CachingHolder, to: Caching, target: Caching
) -> tuple[CachingHolder, BreakNotice]:
    # A holder that caches reads only has nothing to flush or close: its state changes at once.
    needs_answer = holder.held != R
    notice = BreakNotice(holder.key, holder.kind, holder.held, to, needs_answer, holder.epoch)
    if needs_answer:
        return replace(holder, break_to=to, target=target), notice
    return replace(holder, held=to, break_to=None, target=None), notice


def lease_acknowledged(
    holder: CachingHolder, state: int
) -> tuple[CachingHolder, BreakNotice | None] | int:
    """The holder after a lease's acknowledgement and the next notice, or the NTSTATUS of a refusal.

    A client may give up more than it was asked to. Without Read it can keep nothing else.
    """
    if holder.break_to is None:
        return file_errors.STATUS_UNSUCCESSFUL
    # Compare as integers: inverting a flag drops unknown bits, which a client may still send.
    if state & ~int(holder.break_to):
        return file_errors.STATUS_REQUEST_NOT_ACCEPTED
    return _answered(holder, Caching(state) if state & R else N)


def oplock_acknowledged(
    holder: CachingHolder, level: int
) -> tuple[CachingHolder, BreakNotice | None, int | None]:
    """The holder after an oplock's acknowledgement, the next notice, and the NTSTATUS of a refusal.

    A wrong answer to a break is refused, and it leaves no oplock. The answer Exclusive keeps
    nothing: after a break another open exists (smb.md 2.12).
    """
    if not holder.is_breaking:
        # A break from level II to none needs no answer. Windows refuses one by another status.
        is_late = holder.held == N
        protocol, state = (
            file_errors.STATUS_INVALID_OPLOCK_PROTOCOL,
            (file_errors.STATUS_INVALID_DEVICE_STATE),
        )
        return holder, None, protocol if is_late else state
    if level == OplockLevel.LEASE:
        return timed_out(holder), None, file_errors.STATUS_INVALID_PARAMETER
    allowed = [OplockLevel.NONE, OplockLevel.II]
    if holder.held == RWH:
        allowed.append(OplockLevel.EXCLUSIVE)
    if level not in allowed:
        return timed_out(holder), None, file_errors.STATUS_INVALID_OPLOCK_PROTOCOL
    kept = R if level == OplockLevel.II else N
    return (*_answered(holder, kept), None)


def _answered(holder: CachingHolder, kept: Caching) -> tuple[CachingHolder, BreakNotice | None]:
    """The holder with the rights that it keeps for now. A break that continues takes another step
    in the same epoch.

    A step leaves Read while more than Read is held (smbtorture, lease.breaking3).
    """
    target = kept & (N if holder.target is None else holder.target)
    settled = replace(holder, held=kept, break_to=None, target=None)
    if target == kept:
        return settled, None
    return _notified(settled, target if kept == R else target | R, target)


def timed_out(holder: CachingHolder) -> CachingHolder:
    """After SMB_BREAK_LIMIT_S without an answer a holder holds nothing."""
    return replace(holder, held=N, break_to=None, target=None)
