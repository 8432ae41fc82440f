"""The five lease actions for any leased resource, and the queue of requests that wait for a lease.

Lives here: the inputs and the result, how an action changes a lease, and waiting for a lease that
is held. Source: "Lease Blob", "Lease Container", "Lease Share", "Lease File"; the waiting is ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from strongroom.clock import guid
from strongroom.engines.base import Record, Ref
from strongroom.errors import core as errors
from strongroom.errors import leases as lease_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.lease import LeaseKind, LeaseState
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import UNDECODED, Reads
from strongroom.services.core.runner import Services
from strongroom.services.core.turns import Turn
from strongroom.services.core.waiters import FirstWaiter
from strongroom.services.core.waiting import MustWait
from strongroom.values import Etag, Lease


class AcquireLease(msgspec.Struct, frozen=True):
    """`duration_s` is -1 (infinite) or 15 to 60 seconds."""

    duration_s: int
    proposed_id: str | None = None


class RenewLease(msgspec.Struct, frozen=True):
    """The lease's id is the call's `lease_id`."""


class ChangeLease(msgspec.Struct, frozen=True):
    """The lease's id is the call's `lease_id`."""

    proposed_id: str


class ReleaseLease(msgspec.Struct, frozen=True):
    """The lease's id is the call's `lease_id`."""


class BreakLease(msgspec.Struct, frozen=True):
    """`period_s`, the break period, is 0 to 60 seconds; None = the rest of the lease."""

    period_s: int | None = None


LeaseAction = AcquireLease | RenewLease | ChangeLease | ReleaseLease | BreakLease


class LeaseResult(msgspec.Struct, frozen=True):
    """Result: ETag, and Last-Modified as a stamp, unchanged; 0 for a blob that has none yet.

    `lease_id` is set after acquire, renew and change. `time_s`, the seconds left, is set after
    break.
    """

    etag: Etag
    modified: int
    lease_id: str | None = None
    time_s: int | None = None


# The errors that may go away while a request waits; every other refusal is final.
_WAITABLE_ERRORS: Final = (
    lease_errors.LEASE_ALREADY_PRESENT,
    lease_errors.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED,
)


def apply_action(
    action: LeaseAction,
    given_id: str | None,
    lease: Lease | None,
    fresh_id: str | None,
    now: int,
    kind: LeaseKind,
) -> tuple[Lease | None, int | None]:
    """Return the lease after an action, and the seconds left of one that was broken.

    Arguments:
        given_id: x-ms-lease-id.
        fresh_id: the id of a new lease for which none was proposed, None where none is needed.
    """
    if isinstance(action, BreakLease):
        return leases.break_(lease, action.period_s, now, kind)
    if isinstance(action, AcquireLease):
        return leases.acquire(
            lease, action.duration_s, action.proposed_id, fresh_id, now, kind
        ), None
    if given_id is None:
        raise errors.missing_header("x-ms-lease-id")
    if isinstance(action, RenewLease):
        return leases.renew(lease, given_id, now, kind), None
    if isinstance(action, ChangeLease):
        return leases.change(lease, given_id, action.proposed_id, now, kind), None
    leases.release(lease, given_id, now, kind)
    return None, None


def fresh_id(services: Services, action: LeaseAction) -> str | None:
    if isinstance(action, AcquireLease) and action.proposed_id is None:
        return guid(services.clock)
    return None


def apply_or_wait(
    call: Call[LeaseAction], lease: Lease | None, fresh_id: str | None, now: int, kind: LeaseKind
) -> tuple[Lease | None, int | None]:
    """Raises: MustWait, if the call waits for a held lease."""
    try:
        return apply_action(call.input, call.terms.lease_id, lease, fresh_id, now, kind)
    except StorageError as error:
        if not call.terms.wait_s or error.row not in _WAITABLE_ERRORS:
            raise
        raise MustWait(error, (), now, leases.next_timed_change(lease, now)) from None


def result_of(
    action: LeaseAction, etag: Etag, modified: int, lease: Lease | None, time_s: int | None
) -> LeaseResult:
    """`lease` and `time_s` are those after the action."""
    named = not isinstance(action, BreakLease | ReleaseLease) and lease is not None
    return LeaseResult(etag, modified, lease.id if named and lease is not None else None, time_s)


def waits_for_lease(call: Call[LeaseAction]) -> bool:
    return bool(call.terms.wait_s) and isinstance(call.input, AcquireLease)


def with_turn(call: Call[LeaseAction], turn: Turn | None) -> Call[LeaseAction]:
    return call if turn is None else msgspec.structs.replace(call, turn=turn)


async def acquire_in_turn(
    services: Services,
    call: Call[LeaseAction],
    refs: Sequence[Ref],
    attempt: Callable[[Turn | None], Awaitable[LeaseResult]],
    lease_of: Callable[[Record | None], Lease | None],
) -> LeaseResult:
    """Acquire a lease for a request that waits, in order of arrival with the other waiters. `refs`
    begins with the record that holds the lease; a change of the others triggers a new attempt too.
    """
    assert isinstance(call.input, AcquireLease)
    if await holds(services, call.input, refs[0], lease_of):
        try:
            return await attempt(None)
        except MustWait:
            # The lease was lost between the check and the decision: now the caller waits like the
            # others.
            pass
    return await _in_turn(services, call, refs, attempt)


async def holds(
    services: Services,
    action: AcquireLease,
    ref: Ref,
    lease_of: Callable[[Record | None], Lease | None],
) -> bool:
    """Return whether the caller's proposed id is the one that holds the lease.

    A holder that prolongs its lease must not queue behind those who wait for its end.
    """
    if action.proposed_id is None:
        return False
    # Reading the time may take a while, in which the lease may be renewed. So the time is read
    # first, then the record, which must not be judged at a time before its own commit.
    now = await services.store.now()
    (record,) = await services.store.read([ref])
    lease = lease_of(record)
    if record is None or lease is None or lease.id != action.proposed_id:
        return False
    return leases.state(lease, max(now, record.version)) is LeaseState.LEASED


async def _in_turn(
    services: Services,
    call: Call[Any],
    refs: Sequence[Ref],
    attempt: Callable[[Turn | None], Awaitable[LeaseResult]],
) -> LeaseResult:
    async def look(first: FirstWaiter | None) -> LeaseResult:
        # The records are read before the decision, so that any change after the decision wakes the
        # waiter.
        reads = Reads()
        watched = [reads.add(ref, UNDECODED) for ref in refs]
        if first is not None:
            first.read(reads)
        found = await services.read(reads)
        try:
            return await attempt(None if first is None else await first.turn(found))
        except MustWait as must_wait:
            seen = [(one.ref, found.version(one)) for one in watched]
            raise MustWait(must_wait.error, seen, must_wait.now, must_wait.until) from None

    late = StorageError(lease_errors.LEASE_ALREADY_PRESENT)
    try:
        return await services.waiting.in_turn(refs[0], call.terms.wait_s, late, look, call.client)
    except StorageError as error:
        if error is late:
            # A waiter is authorized again before it is answered.
            await services.check_place(call)
        raise
