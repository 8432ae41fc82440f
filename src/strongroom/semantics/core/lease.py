"""Leases: five states, five verbs, and the effect of a lease id on other operations.

The tables of transitions and of guards, and the pure functions that read them. `now` is in ticks;
every id argument is already in the lower-case D form. Sources: "Lease Blob" and "Lease Container"
of the Azure Storage REST reference; error codes from "Blob service error codes".
"""

from __future__ import annotations

import enum
from typing import Final

from strongroom import limits
from strongroom.enums import FastHashEnum
from strongroom.errors import core as errors
from strongroom.errors import leases as lease_errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.values import TICKS_PER_S, Lease

INFINITE: Final = -1


class LeaseState(FastHashEnum):
    """The state that x-ms-lease-state reports."""

    AVAILABLE = "available"
    LEASED = "leased"
    BREAKING = "breaking"
    BROKEN = "broken"
    EXPIRED = "expired"


class LeaseKind(enum.Enum):
    """The kind of a leased resource; the value is the noun of the messages."""

    BLOB = "blob"
    CONTAINER = "container"
    SHARE = "file share"
    FILE = "file"


class LeaseVerb(FastHashEnum):
    """The five values of x-ms-lease-action."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


class IdRelation(FastHashEnum):
    """The relation of a request's ids (for a break: of its period) to the lease."""

    NO_ID = "no id"
    CURRENT = "the lease's id"
    OTHER = "another id"
    BACK_TO_CURRENT = "change from another id to the lease's id"
    AT_ONCE = "break now"
    LATER = "break later"


class LeaseUse(FastHashEnum):
    """The lease condition of an operation other than Lease.

    NONE: the id is ignored. READ and the other READ members: no id is needed, but a given one must
    match. WRITE and the other WRITE members, and DELETE_CONTAINER: the id is needed while the lease
    is locked.
    """

    NONE = "none"
    READ = "read"
    WRITE = "write"
    READ_CONTAINER = "read container"
    DELETE_CONTAINER = "delete container"
    READ_SHARE = "read share"
    WRITE_SHARE = "write share"
    READ_FILE = "read file"
    WRITE_FILE = "write file"


_LOCKED: Final = (LeaseState.LEASED, LeaseState.BREAKING)
_A, _L, _G = LeaseState.AVAILABLE, LeaseState.LEASED, LeaseState.BREAKING
_B, _E = LeaseState.BROKEN, LeaseState.EXPIRED
_PRESENT = lease_errors.LEASE_ALREADY_PRESENT
_NOT_PRESENT = lease_errors.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION
_MISMATCH = lease_errors.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION
_BREAKING_NO_ACQUIRE = lease_errors.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED
_BREAKING_NO_CHANGE = lease_errors.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED
_BROKEN_NO_RENEW = lease_errors.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED

_COLUMNS: Final = (_A, _L, _G, _B, _E)

# Rows: a verb and the relation of its id to the lease. Columns: available, leased, breaking,
# broken, expired. A cell is the next state, or the error. The id of a broken or expired lease still
# counts as its id.
_ROWS: Final[dict[tuple[LeaseVerb, IdRelation], tuple[LeaseState | ErrorCode, ...]]] = {
    (LeaseVerb.ACQUIRE, IdRelation.NO_ID): (_L, _PRESENT, _PRESENT, _L, _L),
    (LeaseVerb.ACQUIRE, IdRelation.CURRENT): (_L, _L, _BREAKING_NO_ACQUIRE, _L, _L),
    (LeaseVerb.ACQUIRE, IdRelation.OTHER): (_L, _PRESENT, _PRESENT, _L, _L),
    (LeaseVerb.RENEW, IdRelation.CURRENT): (_MISMATCH, _L, _BROKEN_NO_RENEW, _BROKEN_NO_RENEW, _L),
    (LeaseVerb.RENEW, IdRelation.OTHER): (_MISMATCH,) * 5,
    (LeaseVerb.CHANGE, IdRelation.CURRENT): (
        *(_NOT_PRESENT, _L, _BREAKING_NO_CHANGE),
        *(_NOT_PRESENT, _NOT_PRESENT),
    ),
    (LeaseVerb.CHANGE, IdRelation.BACK_TO_CURRENT): (
        *(_NOT_PRESENT, _L, _BREAKING_NO_CHANGE),
        *(_NOT_PRESENT, _NOT_PRESENT),
    ),
    (LeaseVerb.CHANGE, IdRelation.OTHER): (
        *(_NOT_PRESENT, _MISMATCH, _MISMATCH),
        *(_NOT_PRESENT, _NOT_PRESENT),
    ),
    (LeaseVerb.RELEASE, IdRelation.CURRENT): (_MISMATCH, _A, _A, _A, _A),
    (LeaseVerb.RELEASE, IdRelation.OTHER): (_MISMATCH,) * 5,
    (LeaseVerb.BREAK, IdRelation.AT_ONCE): (_NOT_PRESENT, _B, _B, _B, _B),
    (LeaseVerb.BREAK, IdRelation.LATER): (_NOT_PRESENT, _G, _G, _B, _B),
}

TABLE: Final[dict[tuple[LeaseState, LeaseVerb, IdRelation], LeaseState | ErrorCode]] = {
    (state, verb, given): cell
    for (verb, given), cells in _ROWS.items()
    for state, cell in zip(_COLUMNS, cells, strict=True)
}

_LOST = lease_errors.LEASE_LOST
_BLOB_ABSENT = lease_errors.LEASE_NOT_PRESENT_WITH_BLOB_OPERATION
_BLOB_OTHER = lease_errors.LEASE_ID_MISMATCH_WITH_BLOB_OPERATION
_CONTAINER_ABSENT = lease_errors.LEASE_NOT_PRESENT_WITH_CONTAINER_OPERATION
_CONTAINER_OTHER = lease_errors.LEASE_ID_MISMATCH_WITH_CONTAINER_OPERATION
_SHARE_ABSENT = lease_errors.LEASE_NOT_PRESENT_WITH_SHARE_OPERATION
_SHARE_OTHER = lease_errors.LEASE_ID_MISMATCH_WITH_SHARE_OPERATION
_FILE_ABSENT = lease_errors.LEASE_NOT_PRESENT_WITH_FILE_OPERATION
_FILE_OTHER = lease_errors.LEASE_ID_MISMATCH_WITH_FILE_OPERATION
_MISSING = lease_errors.LEASE_ID_MISSING

# The same columns; a cell is None (allowed) or the error.
_GUARD_ROWS: Final[dict[tuple[LeaseUse, IdRelation], tuple[ErrorCode | None, ...]]] = {
    (LeaseUse.NONE, IdRelation.NO_ID): (None,) * 5,
    (LeaseUse.NONE, IdRelation.CURRENT): (None,) * 5,
    (LeaseUse.NONE, IdRelation.OTHER): (None,) * 5,
    (LeaseUse.READ, IdRelation.NO_ID): (None,) * 5,
    (LeaseUse.READ, IdRelation.CURRENT): (_BLOB_ABSENT, None, None, _LOST, _LOST),
    (LeaseUse.READ, IdRelation.OTHER): (_BLOB_ABSENT, _BLOB_OTHER, _BLOB_OTHER, _LOST, _LOST),
    (LeaseUse.WRITE, IdRelation.NO_ID): (None, _MISSING, _MISSING, None, None),
    (LeaseUse.WRITE, IdRelation.CURRENT): (_BLOB_ABSENT, None, None, _LOST, _LOST),
    (LeaseUse.WRITE, IdRelation.OTHER): (_BLOB_ABSENT, _BLOB_OTHER, _BLOB_OTHER, _LOST, _LOST),
    (LeaseUse.READ_CONTAINER, IdRelation.NO_ID): (None,) * 5,
    (LeaseUse.READ_CONTAINER, IdRelation.CURRENT): (_CONTAINER_ABSENT, None, None, _LOST, _LOST),
    (LeaseUse.READ_CONTAINER, IdRelation.OTHER): (
        *(_CONTAINER_ABSENT, _CONTAINER_OTHER, _CONTAINER_OTHER),
        *(_LOST, _LOST),
    ),
    (LeaseUse.DELETE_CONTAINER, IdRelation.NO_ID): (None, _MISSING, _MISSING, None, None),
    (LeaseUse.DELETE_CONTAINER, IdRelation.CURRENT): (_CONTAINER_ABSENT, None, None, _LOST, _LOST),
    (LeaseUse.DELETE_CONTAINER, IdRelation.OTHER): (
        *(_CONTAINER_ABSENT, _CONTAINER_OTHER, _CONTAINER_OTHER),
        *(_LOST, _LOST),
    ),
    (LeaseUse.READ_SHARE, IdRelation.NO_ID): (None,) * 5,
    (LeaseUse.READ_SHARE, IdRelation.CURRENT): (_SHARE_ABSENT, None, None, _LOST, _LOST),
    (LeaseUse.READ_SHARE, IdRelation.OTHER): (
        *(_SHARE_ABSENT, _SHARE_OTHER, _SHARE_OTHER),
        *(_LOST, _LOST),
    ),
    (LeaseUse.WRITE_SHARE, IdRelation.NO_ID): (None, _MISSING, _MISSING, None, None),
    (LeaseUse.WRITE_SHARE, IdRelation.CURRENT): (_SHARE_ABSENT, None, None, _LOST, _LOST),
    (LeaseUse.WRITE_SHARE, IdRelation.OTHER): (
        *(_SHARE_ABSENT, _SHARE_OTHER, _SHARE_OTHER),
        *(_LOST, _LOST),
    ),
    (LeaseUse.READ_FILE, IdRelation.NO_ID): (None,) * 5,
    (LeaseUse.READ_FILE, IdRelation.CURRENT): (_FILE_ABSENT, None, None, _LOST, _LOST),
    (LeaseUse.READ_FILE, IdRelation.OTHER): (_FILE_ABSENT, _FILE_OTHER, _FILE_OTHER, _LOST, _LOST),
    (LeaseUse.WRITE_FILE, IdRelation.NO_ID): (None, _MISSING, _MISSING, None, None),
    (LeaseUse.WRITE_FILE, IdRelation.CURRENT): (_FILE_ABSENT, None, None, _LOST, _LOST),
    (LeaseUse.WRITE_FILE, IdRelation.OTHER): (_FILE_ABSENT, _FILE_OTHER, _FILE_OTHER, _LOST, _LOST),
}

# The noun in the messages.
_KINDS: Final = {
    LeaseUse.READ_CONTAINER: LeaseKind.CONTAINER,
    LeaseUse.DELETE_CONTAINER: LeaseKind.CONTAINER,
    LeaseUse.READ_SHARE: LeaseKind.SHARE,
    LeaseUse.WRITE_SHARE: LeaseKind.SHARE,
    LeaseUse.READ_FILE: LeaseKind.FILE,
    LeaseUse.WRITE_FILE: LeaseKind.FILE,
}

GUARDS: Final[dict[tuple[LeaseState, LeaseUse, IdRelation], ErrorCode | None]] = {
    (state, use, given): cell
    for (use, given), cells in _GUARD_ROWS.items()
    for state, cell in zip(_COLUMNS, cells, strict=True)
}


def state(lease: Lease | None, now: int) -> LeaseState:
    """A timer that ends at `now` has ended."""
    if lease is None:
        return LeaseState.AVAILABLE
    if lease.breaks:
        return LeaseState.BROKEN if now >= lease.breaks else LeaseState.BREAKING
    if lease.expires and now >= lease.expires:
        return LeaseState.EXPIRED
    return LeaseState.LEASED


def status(lease: Lease | None, now: int) -> str:
    """x-ms-lease-status: `locked` while leased or breaking, otherwise `unlocked`."""
    return "locked" if state(lease, now) in _LOCKED else "unlocked"


def reported_duration(lease: Lease | None, now: int) -> str | None:
    """x-ms-lease-duration: `infinite` or `fixed` while leased, None in every other state."""
    if lease is None or state(lease, now) is not LeaseState.LEASED:
        return None
    return "infinite" if lease.duration_s == INFINITE else "fixed"


def next_timed_change(lease: Lease | None, now: int) -> int | None:
    """The tick at which the state next changes by time alone; None when it never does."""
    current = state(lease, now)
    if lease is None or current not in _LOCKED:
        return None
    return lease.breaks if current is LeaseState.BREAKING else lease.expires or None


def after_write(lease: Lease | None, now: int) -> Lease | None:
    """The lease of a blob after a permitted write: an expired or broken lease is cleared.

    After that the old id matches no lease, so its holder cannot renew and overlook the change.
    Writes do not clear a container's lease.
    """
    return lease if state(lease, now) in _LOCKED else None


def require_duration(duration_s: int) -> int:
    """Check x-ms-lease-duration: -1 (infinite) or 15 to 60 seconds."""
    least, most = limits.LEASE_DURATION_S
    if duration_s != INFINITE and not least <= duration_s <= most:
        raise errors.invalid_header("x-ms-lease-duration", str(duration_s))
    return duration_s


def acquire(
    lease: Lease | None,
    duration_s: int,
    proposed_id: str | None,
    fresh_id: str | None,
    now: int,
    kind: LeaseKind = LeaseKind.BLOB,
) -> Lease:
    """Acquire the lease, or give the held lease a new duration.

    Arguments:
        duration_s: -1 or 15 to 60 (see `require_duration`).
        proposed_id: the id that the caller wants, or None.
        fresh_id: the id to use without a proposed one; may be None otherwise.
    """
    _transition(lease, LeaseVerb.ACQUIRE, _relation(lease, proposed_id), now, kind)
    lease_id = proposed_id or fresh_id
    assert lease_id, "a lease has an id"
    return _running(lease_id, duration_s, now)


def renew(lease: Lease | None, given_id: str, now: int, kind: LeaseKind = LeaseKind.BLOB) -> Lease:
    """Restart the lease with its own duration; an expired lease becomes active again."""
    _transition(lease, LeaseVerb.RENEW, _relation(lease, given_id), now, kind)
    assert lease is not None
    return _running(lease.id, lease.duration_s, now)


def change(
    lease: Lease | None,
    given_id: str,
    proposed_id: str,
    now: int,
    kind: LeaseKind = LeaseKind.BLOB,
) -> Lease:
    """Give the lease another id; its expiry stays. A repeated request with the same ids
    succeeds."""
    relation = _relation(lease, given_id)
    if relation is IdRelation.OTHER and _relation(lease, proposed_id) is IdRelation.CURRENT:
        relation = IdRelation.BACK_TO_CURRENT
    _transition(lease, LeaseVerb.CHANGE, relation, now, kind)
    assert lease is not None
    return Lease(proposed_id, lease.duration_s, lease.expires)


def release(lease: Lease | None, given_id: str, now: int, kind: LeaseKind = LeaseKind.BLOB) -> None:
    """Check that the lease may be released; after that there is no lease."""
    _transition(lease, LeaseVerb.RELEASE, _relation(lease, given_id), now, kind)


def break_(
    lease: Lease | None,
    period_s: int | None,
    now: int,
    kind: LeaseKind = LeaseKind.BLOB,
) -> tuple[Lease, int]:
    """Break the lease without its id. Return the lease and x-ms-lease-time, the seconds until it
    ends.

    Arguments:
        period_s: how long it may still run. None means the rest of a fixed lease, 0 for an infinite
            one. It never prolongs the rest of a fixed lease or of an earlier break.
    """
    current = state(lease, now)
    breaks = now if lease is None else _breaks_at(lease, current, period_s, now)
    relation = IdRelation.LATER if breaks > now else IdRelation.AT_ONCE
    _transition(lease, LeaseVerb.BREAK, relation, now, kind)
    assert lease is not None
    if current is LeaseState.BROKEN:
        return lease, 0
    # Rounded up, so that the lease is broken after a wait of that length.
    lease_time_s = (breaks - now + TICKS_PER_S - 1) // TICKS_PER_S
    return Lease(lease.id, lease.duration_s, lease.expires, breaks), lease_time_s


def guard(lease: Lease | None, given_id: str | None, use: LeaseUse, now: int) -> None:
    if lease is None and given_id is None:
        return
    row = GUARDS[state(lease, now), use, _relation(lease, given_id)]
    if row is not None:
        raise _refusal(row, _KINDS.get(use, LeaseKind.BLOB))


def _relation(lease: Lease | None, given_id: str | None) -> IdRelation:
    if given_id is None:
        return IdRelation.NO_ID
    # Without a lease no id can match; the table's cells are the same for both.
    return IdRelation.CURRENT if lease is not None and lease.id == given_id else IdRelation.OTHER


def _running(lease_id: str, duration_s: int, now: int) -> Lease:
    expires = 0 if duration_s == INFINITE else now + duration_s * TICKS_PER_S
    return Lease(lease_id, duration_s, expires)


def _breaks_at(lease: Lease, current: LeaseState, period_s: int | None, now: int) -> int:
    if current not in _LOCKED:
        return now
    end = next_timed_change(lease, now)
    if period_s is None:
        return now if end is None else end
    requested = now + period_s * TICKS_PER_S
    return requested if end is None else min(requested, end)


def _transition(
    lease: Lease | None, verb: LeaseVerb, relation: IdRelation, now: int, kind: LeaseKind
) -> LeaseState:
    cell = TABLE[state(lease, now), verb, relation]
    if isinstance(cell, ErrorCode):
        raise _refusal(cell, kind)
    return cell


def _refusal(row: ErrorCode, kind: LeaseKind) -> StorageError:
    return StorageError(row, row.message.replace("blob/container", kind.value))
