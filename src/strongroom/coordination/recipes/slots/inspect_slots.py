"""Inspecting semaphores, read-write locks and barriers from outside, and breaking holds.

Lives here: `show` and `break` as steps, and their results. Must not live here: anything that waits
or holds; locks and elections (locks/inspect_locks.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from strongroom.coordination.effects import Applied, Conflict, Entry, Steps, cas, get
from strongroom.coordination.errors import ChangedSince, StoreUnavailable
from strongroom.coordination.recipes.slots import barrier_core
from strongroom.coordination.recipes.slots.barrier_core import decode_barrier
from strongroom.coordination.recipes.slots.slot_records import (
    Slot,
    SlotRecord,
    decode_slots,
    encode_slots,
    slot_left_s,
)
from strongroom.coordination.recipes.waiting import WriteRetries
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.context import RecipeContext

_TIMEOUT_S: Final = 5.0
_TRIES: Final = 8
_INTENT: Final = "wants-"


@dataclass(frozen=True, slots=True)
class SlotView:
    """One holder, arrived party or waiter, as others see it.

    Attributes:
        who, since: its label, and the time in its slot, by its own clock, for people.
        role: what it holds, or wants, in the recipe's own words.
        fence: its token; for a waiter, the record's fence.
        ttl_s: how long its slot lasts without renewal.
        left_s: in how many seconds this observer could drop it at the earliest, without a renewal.
        writes: how often it has written its slot: once for the beginning, then once per renewal.
    """

    who: str
    since: str
    role: str
    fence: int
    ttl_s: float
    left_s: float
    writes: int


@dataclass(frozen=True, slots=True)
class SlotsView:
    """A semaphore or a read-write lock as others see it.

    Attributes:
        name: of it.
        fence: the highest fence that was ever given.
        limit: the number of permits that its holders give; 0 where there is no such number.
        holders: the current holders, in order of arrival.
        waiting: the waiters with a slot of their own (writers have one), in order of arrival.
    """

    name: str
    fence: int
    limit: int
    holders: tuple[SlotView, ...]
    waiting: tuple[SlotView, ...]


@dataclass(frozen=True, slots=True)
class BarrierView:
    """A barrier as others see it.

    Attributes:
        name: of it.
        generation: the one that is being waited for, from 1.
        parties: the number of parties that the waiting ones give.
        arrived: the parties that are there, in order of arrival.
    """

    name: str
    generation: int
    parties: int
    arrived: tuple[SlotView, ...]


def show_slots_steps(context: RecipeContext, kind: str, name: str) -> Steps[SlotsView | None]:
    """Return the view of a semaphore or read-write lock, by one read; None if there never was one.

    Raises: StoreUnavailable, StoreRefused, CorruptRecord.
    """
    key = key_of(kind, name)
    entry, since_s = yield from _read(context, key)
    if entry is None:
        return None
    return _view_of(context, name, key, decode_slots(kind, key, entry.value), since_s)


def _view_of(
    context: RecipeContext, name: str, key: str, record: SlotRecord, since_s: float
) -> SlotsView:
    views = _views_of_living(context, key, record.slots, since_s)
    return SlotsView(
        name=name,
        fence=record.fence,
        limit=record.limit,
        holders=tuple(view for view in views if not view.role.startswith(_INTENT)),
        waiting=tuple(view for view in views if view.role.startswith(_INTENT)),
    )


def show_barrier_steps(context: RecipeContext, name: str) -> Steps[BarrierView | None]:
    """Return a barrier's view, by one read; None if no party ever came.

    Raises: as `show_slots_steps`.
    """
    key = key_of(barrier_core.KIND, name)
    entry, since_s = yield from _read(context, key)
    if entry is None:
        return None
    record = decode_barrier(key, entry.value)
    arrived = _views_of_living(context, key, record.slots, since_s)
    return BarrierView(name, record.generation, record.parties, arrived)


def break_slots_steps(
    context: RecipeContext, kind: str, name: str, fence: int | None = None
) -> Steps[SlotsView | None]:
    """End all holds of a semaphore or a read-write lock.

    Arguments:
        fence: the highest fence that the caller has seen (`SlotsView.fence`); None = any.

    The fence counts up. Waiting clients keep waiting. Holders learn of it at their next renewal, or
    at once if they watch.

    Returns: the slots as they were before; None if nobody held one.

    Raises:
        ChangedSince: a higher fence was given since; nothing was written.
        StoreUnavailable: the store did not answer, or the outcome of the write is unknown.
    """
    key = key_of(kind, name)
    retries = WriteRetries(context, _TRIES)
    while retries.begin_attempt():
        entry, since_s = yield from _read(context, key)
        if entry is None:
            return None
        record = decode_slots(kind, key, entry.value)
        view = _view_of(context, name, key, record, since_s)
        if fence is not None and view.fence != fence:
            raise ChangedSince(name)
        if not view.holders:
            return None
        value = encode_slots(kind, _emptied(record), context.nonce())
        outcome = yield from cas(key, entry.version, value, _TIMEOUT_S)
        if isinstance(outcome, Applied):
            return view
        if not isinstance(outcome, Conflict):
            raise StoreUnavailable(f"it is not known whether {name!r} was broken; look again")
        yield retries.pause_after(outcome, entry.version)
    raise StoreUnavailable(f"{name!r} was written to all the time; it was not broken")


def _emptied(record: SlotRecord) -> SlotRecord:
    waiting = tuple(slot for slot in record.slots if slot.role.startswith(_INTENT))
    return replace(record, fence=record.fence + 1, slots=waiting)


def _read(context: RecipeContext, key: str) -> Steps[tuple[Entry | None, float]]:
    sent_s = context.clock.monotonic_s()
    entry = yield from get(key, _TIMEOUT_S)
    return entry, context.rules.observer_start_s(sent_s, context.clock.monotonic_s())


def _views_of_living(
    context: RecipeContext, key: str, slots: tuple[Slot, ...], since_s: float
) -> tuple[SlotView, ...]:
    left_by_slot_s = [(slot, slot_left_s(context, key, slot, since_s)) for slot in slots]
    return tuple(
        SlotView(
            who=slot.who,
            since=slot.since,
            role=slot.role,
            fence=slot.fence,
            ttl_s=slot.ttl_s,
            left_s=left_s,
            writes=slot.seq,
        )
        for slot, left_s in left_by_slot_s
        if left_s > 0
    )
