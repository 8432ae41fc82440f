"""How a slot of a shared record is taken: the core that semaphores and read-write locks share.

Lives here: steps over one `SlotRecord` under one key, for any store, without the store's lease
clock. A pure function of the recipe (`SlotRule`) says which slots block an entry. The steps here
find out which slots are alive, wait, and write. The write that takes a slot also drops the dead
ones.

Callers of one client wait in line inside the client (session/lines.py): one at a time asks the
store. If only holds of its own client are in its way, it waits for their end without a request. The
hold that ends first is handed to it. Its write then removes that slot and adds its own: one write
ends one hold and begins the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    Entry,
    Sleep,
    Steps,
    Unknown,
    cas,
    get,
)
from strongroom.coordination.errors import AlreadyHeld, CoordinationError, StoreUnavailable
from strongroom.coordination.recipes.slots.slot_records import (
    SLOTS_MAX,
    Slot,
    SlotRecord,
    decode_slots,
    encode_slots,
    is_own,
    slot_left_s,
    slot_name,
)
from strongroom.coordination.recipes.slots.slots_keeper import SlotKeeper
from strongroom.coordination.recipes.waiting import (
    Backoff,
    NotAcquired,
    WriteRetries,
    await_change,
    await_end_of_holds,
    await_turn,
)
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.places import ANYBODY, LineCaller, LinePlace

_WITHDRAW_TRIES: Final = 5
_LOST_RACES_MAX: Final = 3
_RACES_SPREAD: Final = 8
_SHOWN_MAX: Final = 3
_FULL_RECHECK_S: Final = 1.0


class SlotRule(Protocol):
    """A recipe's rule about who may enter; pure."""

    def blocking_slots(self, record: SlotRecord, own_nonce: str) -> tuple[Slot, ...]:
        """Return the slots whose end could let `own_nonce` in; none if `own_nonce` may enter now.

        Arguments:
            record: with the slots of living owners only.
            own_nonce: the nonce of the caller; its own slot may be among them, as an intent.
        """
        ...

    def fence(self, record: SlotRecord) -> int:
        """Return the fence of the next holder, not below the record's."""
        ...

    def check(self, record: SlotRecord) -> None:
        """Refuse a record that was made for other terms; it has the slots of living owners only."""
        ...


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """The parameters of one attempt to hold a slot.

    Attributes:
        kind, key, name: of the record, and of the lock or semaphore as messages name it.
        role: the slot's role while it is held.
        intent: the slot's role while its owner waits; "" to wait invisibly.
        rule: decides who may enter.
        limit: the limit to write into the record.
        ttl_s, wait_s, margin_s: as for locks.
        reentrant: whether a caller that has a slot may wait for another one.
    """

    kind: str
    key: str
    name: str
    role: str
    rule: SlotRule
    ttl_s: float
    wait_s: float | None
    intent: str = ""
    limit: int = 0
    margin_s: float = 0.0
    reentrant: bool = False


class _ObservedRecord(NamedTuple):
    entry: Entry | None
    record: SlotRecord
    since_s: float


class _Wait(NamedTuple):
    """A decision to wait for so many seconds.

    `for_own` are the nonces of this client's holds, if nothing else is in the way.
    """

    seconds: float
    for_own: tuple[str, ...] = ()


class _Write(NamedTuple):
    """A decision to write this record with this slot; without one, to remove what has ended."""

    record: SlotRecord
    slot: Slot | None


class SlotAcquisition:
    """One attempt to get one slot.

    Arguments:
        request: the slot and the terms of the hold.
        caller: who waits in line.
    """

    def __init__(
        self, context: RecipeContext, request: SlotRequest, caller: LineCaller = ANYBODY
    ) -> None:
        self._context, self._request = context, request
        self.nonce = context.nonce()
        self._place = LinePlace(request.key, self.nonce, caller)
        self._slot_name = slot_name(request.key, self.nonce)
        self._seq = 0
        self._sent: dict[int, float] = {}
        self._may_have_slot = False  # a slot of ours may be in the record ...
        self._has_unknown_write = False  # ... or a write of it may still be applied ...
        self._unknown_write_version: str | None = None  # ... over this version
        self._holder = ""
        self._written: tuple[SlotRecord, str] | None = None  # the record with the slot
        self._backoff = Backoff(context)
        self._timeout_s = context.rules.attempt_timeout_s(request.ttl_s)
        self._races = 0

    def steps(self) -> Steps[Hold | NotAcquired]:
        """Take the slot; return the hold, or a `NotAcquired` that names the holders.

        Raises:
            AlreadyHeld: the caller has a slot already, and would have to wait for this one.
            ClientClosed: the client was closed, or the process forked, while the caller waited.
            StoreUnavailable: the store did not answer, and no time is left.
            Any error of the rule's `check`.
        """
        context, request, place = self._context, self._request, self._place
        is_try = request.wait_s == 0
        if is_try and context.lines.is_blocked(request.key):
            return NotAcquired(context.label, 0.0)  # another caller of this client is first
        start_s = context.clock.monotonic_s()
        context.lines.join(place, shared=True, beside=is_try or self._is_holder())
        context.claim(self._slot_name, self.nonce)
        hold: Hold | None = None
        try:
            hold = yield from self._acquire_in_turn(start_s)
            if hold is None:
                yield from self._withdraw()
                return NotAcquired(self._holder, context.clock.monotonic_s() - start_s)
            return hold
        except GeneratorExit:
            raise
        except BaseException:
            yield from self._withdraw()
            raise
        finally:
            if hold is None:
                context.unclaim(self._slot_name, self.nonce)
                context.lines.leave(place)

    def _is_holder(self) -> bool:
        """Return whether the caller has a slot, and must not wait for another one."""
        request, lines = self._request, self._context.lines
        return not request.reentrant and lines.has_hold_of(request.key, self._place.caller)

    def _acquire_in_turn(self, start_s: float) -> Steps[Hold | None]:
        self._holder = self._context.label  # whoever is before this caller in line
        if not (yield from await_turn(self._context, self._place, self._left_s(start_s))):
            return None
        self._holder = ""
        hold = yield from self._acquire(start_s)
        if hold is not None:
            self._context.lines.note_hold(self._place, self._written_entry)
        return hold

    def _written_entry(self) -> Entry | None:
        if self._written is None:
            return None
        record, version = self._written
        return Entry(encode_slots(self._request.kind, record, ""), version)

    def _acquire(self, start_s: float) -> Steps[Hold | None]:
        observed = self._handed_observation()
        while True:
            if observed is None:
                observed = yield from self._read(start_s)
            hold = self._adopted(observed)
            if hold is not None:
                return hold
            step = self._decide(observed)
            left_s = self._left_s(start_s)
            if isinstance(step, _Wait):
                if left_s <= 0:
                    return None
                observed = yield from self._wait(observed, step, left_s)
                continue
            hold = yield from self._write(observed, step)
            if hold is not None:
                return hold
            if left_s <= 0:
                self._races += 1
                if self._races > _LOST_RACES_MAX:
                    return None
            observed = None

    def _wait(
        self, observed: _ObservedRecord, step: _Wait, left_s: float
    ) -> Steps[_ObservedRecord | None]:
        context, place = self._context, self._place
        place.blocked = True
        if step.for_own and (yield from await_end_of_holds(context, place, step.for_own, left_s)):
            return self._handed_observation()
        return (yield from self._await(observed, min(step.seconds, left_s)))

    def _handed_observation(self) -> _ObservedRecord | None:
        handed, seen = self._place.handed, self._place.seen
        self._place.seen = None
        entry = seen if handed is None else handed.entry
        return None if entry is None else self._observed(entry, self._context.clock.monotonic_s())

    def _left_s(self, start_s: float) -> float:
        if self._request.wait_s is None:
            return float("inf")
        return start_s + self._request.wait_s - self._context.clock.monotonic_s()

    # Reading

    def _read(self, start_s: float) -> Steps[_ObservedRecord]:
        clock = self._context.clock
        while True:
            sent_s = clock.monotonic_s()
            try:
                entry = yield from get(self._request.key, self._timeout_s)
            except StoreUnavailable as error:
                left_s = self._left_s(start_s)
                if left_s <= 0:
                    raise
                yield Sleep(min(left_s, self._backoff.retry_delay_s(error)))
                continue
            return self._observed(entry, sent_s)

    def _observed(self, entry: Entry | None, sent_s: float) -> _ObservedRecord:
        context = self._context
        since_s = context.rules.observer_start_s(sent_s, context.clock.monotonic_s())
        return _ObservedRecord(entry, self._decode(entry), since_s)

    def _decode(self, entry: Entry | None) -> SlotRecord:
        if entry is None:
            return SlotRecord()
        return decode_slots(self._request.kind, self._request.key, entry.value)

    def _await(self, observed: _ObservedRecord, seconds: float) -> Steps[_ObservedRecord]:
        key, version = self._request.key, observed.entry.version if observed.entry else None
        sent_s = self._context.clock.monotonic_s()
        outcome = yield from await_change(
            self._context, key, version, seconds, self._backoff, self._timeout_s
        )
        if outcome is UNCHANGED:
            return observed
        if outcome is None or outcome.version != version:
            self._backoff.reset()
        return self._observed(outcome, sent_s)

    # Deciding

    def _decide(self, observed: _ObservedRecord) -> _Wait | _Write:
        request = self._request
        left_by_owner_s = self._time_left_by_owner_s(observed)
        living = replace(
            observed.record,
            slots=tuple(s for s in observed.record.slots if s.owner in left_by_owner_s),
        )
        others = living.without(self.nonce)
        request.rule.check(others)
        blocking = request.rule.blocking_slots(living, self.nonce)
        is_full = living.slot_of(self.nonce) is None and len(living.slots) >= SLOTS_MAX
        if not blocking and not is_full:
            return self._holding_write(living)
        if self._is_holder():
            raise AlreadyHeld(request.name)
        self._holder = _labels(blocking)
        seconds = min((left_by_owner_s[slot.owner] for slot in blocking), default=_FULL_RECHECK_S)
        for_own = self._own_blocking(living, blocking)
        if request.intent and request.wait_s != 0 and not is_full and not for_own:
            return self._announce_or_wait(living, seconds)
        if self._shows_handed(observed.record):
            return _Write(living, None)
        return _Wait(seconds, for_own)

    def _own_blocking(self, living: SlotRecord, blocking: tuple[Slot, ...]) -> tuple[str, ...]:
        """Return the nonces of the blocking holds if only this client can end them.

        An intent must be announced, and renewed, where other clients could enter meanwhile.
        """
        context, request = self._context, self._request
        if not all(is_own(context, request.key, slot) for slot in blocking):
            return ()
        if request.intent and not all(slot.role == request.role for slot in living.slots):
            return ()
        return tuple(slot.owner for slot in blocking)

    def _shows_handed(self, record: SlotRecord) -> bool:
        """Return whether the record shows the ended hold that was handed to this caller."""
        handed = self._place.handed
        return handed is not None and record.slot_of(handed.nonce) is not None

    def _time_left_by_owner_s(self, observed: _ObservedRecord) -> dict[str, float]:
        """Return how long each slot stands, by owner, without those that may be dropped."""
        context, key = self._context, self._request.key
        found = {
            slot.owner: slot_left_s(context, key, slot, observed.since_s)
            for slot in observed.record.slots
            if slot.owner != self.nonce
        }
        living = {owner: left_s for owner, left_s in found.items() if left_s > 0}
        return {**living, self.nonce: 0.0}

    def _holding_write(self, living: SlotRecord) -> _Write:
        fence = self._request.rule.fence(living)
        return self._slot_write(living, self._request.role, fence)

    def _announce_or_wait(self, living: SlotRecord, seconds: float) -> _Wait | _Write:
        """Return a write that announces or renews the intent, or the wait until that is due."""
        context, own_slot = self._context, living.slot_of(self.nonce)
        if own_slot is not None:
            sent_s = self._sent.get(own_slot.seq, float("-inf"))
            due_s = (
                sent_s + context.rules.renew_after_s(own_slot.ttl_s, 0.5) - context.clock.boot_s()
            )
            if due_s > 0:
                return _Wait(min(seconds, due_s))
        return self._slot_write(living, self._request.intent, living.fence)

    def _slot_write(self, living: SlotRecord, role: str, fence: int) -> _Write:
        self._seq += 1
        context, request, own_slot = self._context, self._request, living.slot_of(self.nonce)
        # A renewed intent keeps the time at which the waiter announced it.
        renewed = own_slot if own_slot is not None and own_slot.role == role else None
        slot = Slot(
            owner=self.nonce,
            role=role,
            fence=fence,
            seq=self._seq,
            ttl_s=request.ttl_s,
            who=context.label,
            since=context.clock.wall_text() if renewed is None else renewed.since,
        )
        record = replace(living, fence=max(living.fence, fence), limit=request.limit)
        return _Write(record.with_slot(slot), slot)

    # Writing

    def _write(self, observed: _ObservedRecord, step: _Write) -> Steps[Hold | None]:
        context, request = self._context, self._request
        expected = observed.entry.version if observed.entry else None
        value = encode_slots(request.kind, step.record, context.nonce())
        sent_s = context.clock.boot_s()
        if step.slot is not None:
            self._sent[step.slot.seq] = sent_s
        self._note_dropped(observed.record, step.record)
        try:
            outcome = yield from cas(request.key, expected, value, self._timeout_s)
        except StoreUnavailable:
            yield Sleep(self._backoff.retry_delay_s())
            return None
        except BaseException as error:
            if not isinstance(error, CoordinationError):
                # Interrupted: the answer is lost, and the write may still be applied.
                self._may_have_slot, self._has_unknown_write, self._unknown_write_version = (
                    True,
                    True,
                    expected,
                )
            raise
        if isinstance(outcome, Applied):
            self._backoff.reset()
            self._may_have_slot = self._may_have_slot or step.slot is not None
            if step.slot is not None and step.slot.role == request.role:
                return self._hold(step.slot, step.record, outcome.version)
            self._place.handed = None  # that write ended it
            return None
        if isinstance(outcome, Unknown):
            self._may_have_slot = self._has_unknown_write = True
            self._unknown_write_version = expected
            yield Sleep(self._backoff.retry_delay_s())
            return None
        # A caller that loses often must not wait longer than others: a writer that cannot announce
        # itself would starve beside readers that take turns without a pause.
        self._races += 1
        if self._races > _LOST_RACES_MAX:
            spread = min(self._races, _RACES_SPREAD)
            yield Sleep(context.clock.random() * spread * (context.clock.boot_s() - sent_s))
        return None

    def _note_dropped(self, before: SlotRecord, after: SlotRecord) -> None:
        """Note the slots of this client that a write drops: their holds may be being released."""
        handed, kept = self._place.handed, {slot.owner for slot in after.slots}
        for slot in before.slots:
            is_handed = handed is not None and slot.owner == handed.nonce  # released already
            if slot.owner not in kept and not is_handed and self._context.is_own(slot.owner):
                self._context.note_dropped(slot.owner)

    def _adopted(self, observed: _ObservedRecord) -> Hold | None:
        """Return the hold if the slot is in the record already: an answer was lost."""
        slot = observed.record.slot_of(self.nonce)
        if slot is None or observed.entry is None or slot.role != self._request.role:
            return None
        return self._hold(slot, observed.record, observed.entry.version)

    def _hold(self, slot: Slot, record: SlotRecord, version: str) -> Hold | None:
        context, request = self._context, self._request
        clock, sent_s = context.clock, self._sent.get(slot.seq, float("-inf"))
        deadline_s = context.rules.holder_deadline_s(sent_s, clock.boot_s(), slot.ttl_s, False)
        if deadline_s - request.margin_s <= clock.boot_s():
            return None  # expired before use: it is written anew, if the rule still allows that
        self._written = record, version
        keeper = SlotKeeper(context, request.kind, self._place, slot, record, version)
        hold = Hold(
            clock, request.key, request.name, self.nonce, slot.fence, request.ttl_s, deadline_s,
            keeper, request.margin_s,
        )  # fmt: skip
        hold.on_end = keeper.unclaim_when_over
        hold.on_lost(keeper.leave_line)
        return hold

    # Withdrawing

    def _withdraw(self) -> Steps[None]:
        """Remove this attempt's slot, and stop a write of it that may still be applied.

        A hold that was handed to this caller, and not taken over, is removed too.
        """
        place = self._place
        if self._context.lines.give_up(place) or not (self._may_have_slot or place.handed):
            return
        request = self._request
        retries = WriteRetries(self._context, _WITHDRAW_TRIES)
        while retries.begin_attempt():
            try:
                entry = yield from get(request.key, self._timeout_s)
                version = None if entry is None else entry.version
                record = self._decode(entry)
                # After another write, a write that is still on its way can no longer be applied.
                may_still_apply = self._has_unknown_write and version == self._unknown_write_version
                after = record.without(self.nonce)
                if self._shows_handed(record) and place.handed is not None:
                    after = after.without(place.handed.nonce)
                if after == record and not may_still_apply:
                    return
                value = encode_slots(request.kind, after, self._context.nonce())
                outcome = yield from cas(request.key, version, value, self._timeout_s)
            except CoordinationError:
                return
            if isinstance(outcome, Applied):
                place.handed = None
                return
            yield retries.pause_after(outcome, version)


def _labels(slots: tuple[Slot, ...]) -> str:
    shown = ", ".join(slot.who for slot in slots[:_SHOWN_MAX])
    more = len(slots) - _SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown
