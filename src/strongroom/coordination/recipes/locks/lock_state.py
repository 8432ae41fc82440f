"""An observer's reading of a lock's record: whether it is held, and for how long at least.

Lives here: the judgement that the steps of taking, of observing elections and of inspection share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from strongroom.coordination.effects import Entry
from strongroom.coordination.schema.records import LockRecord, decode_lock
from strongroom.coordination.session.context import RecipeContext

_UNKNOWN_S: Final = 1e9
_RECHECK_MIN_S: Final = 0.01


class ObservedRecord(NamedTuple):
    """One read of a record, and the time from which it counts (`rules.observer_start_s`)."""

    entry: Entry | None
    record: LockRecord | None
    since_s: float


@dataclass(frozen=True, slots=True)
class LockView:
    """A lock or an election as others see it.

    Attributes:
        name: of the lock.
        held: whether a client holds it, as far as this observer can tell.
        who, since, value: of the holder, or of the last one.
        nonce: of the hold; empty if nobody holds it.
        fence: of the holder, or of the last one.
        ttl_s: the holder's.
        left_s: in how many seconds this observer could take it at the earliest, without a renewal.
        waiting: the labels of the clients in the queue.
        writes: how often the hold has written the record: once when it was taken, then once per
            renewal, where renewals are writes.
        renewed_s: how many seconds ago it was renewed, if the store's own clock shows that; else
            None.
        end: how the last hold ended, in words, as far as the record shows it; empty while held.
    """

    name: str
    held: bool
    who: str
    since: str
    value: object
    nonce: str
    fence: int
    ttl_s: float
    left_s: float
    waiting: tuple[str, ...]
    writes: int = 0
    renewed_s: float | None = None
    end: str = ""


def ends_by_store_clock(context: RecipeContext, observed: ObservedRecord) -> bool:
    """Return whether the store's own clock ends this hold. Only a new read shows the end then."""
    has_store_end = observed.entry is not None and observed.entry.expires_in_s is not None
    return has_store_end or context.promises.server_lease


def outlasts_its_ttl(entry: Entry, record: LockRecord) -> bool:
    """Return whether a hold ends later, by the store's clock, than its TTL allows.

    The store's clock was ahead when the hold was written, and has been set back since. The hold's
    end then does not show whether the holder is alive.
    """
    left_s = entry.expires_in_s
    return left_s is not None and record.ttl_s < left_s < _UNKNOWN_S


def observed_record(
    context: RecipeContext, key: str, entry: Entry | None, sent_s: float
) -> ObservedRecord:
    """Return a `ObservedRecord` from an entry that was just read. Raises: CorruptRecord.

    Arguments:
        sent_s: when the read was sent, by the monotonic clock.
    """
    received_s = context.clock.monotonic_s()
    since_s = context.rules.observer_start_s(sent_s, received_s)
    record = None if entry is None else decode_lock(key, entry.value)
    return ObservedRecord(entry, record, since_s)


def only_holder_can_write(context: RecipeContext, entry: Entry) -> bool:
    """Return whether only the holder can write, so that no other client can join the queue.

    This is a hold in Azure's lease mode, seen by a client in ETag mode. The service refuses every
    write that does not name the lease.
    """
    is_held = entry.expires_in_s is not None and entry.expires_in_s > 0
    return is_held and not context.promises.server_lease


def observation_after_write(
    context: RecipeContext, entry: Entry, record: LockRecord
) -> ObservedRecord | None:
    """Return what a read would show just after this write of the client's own.

    None if only the store's clock can tell.
    """
    if context.promises.server_lease:
        return None
    # The record that was read was still current when the write took effect. That is as good as a
    # read whose answer came now.
    now_s = context.clock.monotonic_s()
    return ObservedRecord(entry, record, context.rules.observer_start_s(now_s, now_s))


def time_until_free_s(
    context: RecipeContext, key: str, observed: ObservedRecord, lock_delay_s: float = 0.0
) -> float:
    """Return for how many seconds at least the lock cannot be taken; 0 or less if it is free.

    If the store's clock has been set back (`outlasts_its_ttl`), the observer's own clock decides,
    as on a store without a clock. Such a hold must not be taken at first sight. Its holder counts
    on it for up to a TTL after its last renewal. Its next renewal corrects the end.

    Arguments:
        observed: the last read; it may be older than now if a watch saw no change since.
        lock_delay_s: added after a hold that expired.
    """
    entry, record = observed.entry, observed.record
    if entry is None or record is None:
        return 0.0
    now_s = context.clock.monotonic_s()
    outlasts = outlasts_its_ttl(entry, record)
    if entry.expires_in_s is not None and not outlasts:
        if entry.expires_in_s > 0:
            known_s = entry.expires_in_s if entry.expires_in_s < _UNKNOWN_S else record.ttl_s
            return min(max(_RECHECK_MIN_S, known_s), max(1.0, record.ttl_s))
        if record.owner is None or not lock_delay_s:
            return 0.0
        since_s = context.sightings.since_s(key, ("over", record.fence), observed.since_s)
        return since_s + lock_delay_s - now_s
    # A client has at most one active hold of a key, and the caller does not have it. So a hold of
    # this client in the record is one that was lost.
    is_own = record.owner is not None and context.is_own(record.owner)
    if not outlasts and (record.owner is None or is_own):
        return 0.0
    observed_state = (record.owner, record.seq)
    since_s = context.sightings.since_s(key, observed_state, observed.since_s)
    return since_s + context.rules.observer_wait_s(record.ttl_s) + lock_delay_s - now_s


def view_of(
    context: RecipeContext, name: str, key: str, observed: ObservedRecord
) -> LockView | None:
    """Return a lock's view for people; None if there never was such a lock."""
    record = observed.record
    if record is None:
        return None
    is_own = record.owner is not None and context.holds(key, record.owner)
    left_s = record.ttl_s if is_own else max(0.0, time_until_free_s(context, key, observed))
    held = record.owner is not None and left_s > 0
    expires_in_s = observed.entry.expires_in_s if observed.entry else None
    by_store_clock = held and expires_in_s is not None and expires_in_s < _UNKNOWN_S
    return LockView(
        name=name,
        held=held,
        who=record.who,
        since=record.since,
        value=record.value,
        nonce=record.owner if held and record.owner else "",
        fence=record.fence,
        ttl_s=record.ttl_s,
        left_s=left_s if held else 0.0,
        waiting=tuple(waiter.who for waiter in record.queue),
        writes=record.seq,
        renewed_s=max(0.0, record.ttl_s - (expires_in_s or 0.0)) if by_store_clock else None,
        end="" if held else _end(record),
    )


def _end(record: LockRecord) -> str:
    if record.owner is None:
        return record.end or "released"
    return f"not renewed within its {record.ttl_s:g} s"
