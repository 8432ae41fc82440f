"""How a slot of a shared record is taken: the core that semaphores and read-write locks share.

Lives here: steps over one `SlotRecord` under one key, for any store, without the store's lease
clock. A pure function of the recipe (`SlotRule`) says which slots block an entry. The steps here
find out which slots are alive, wait, and write. The write that takes a slot also drops the dead
ones. Must not live here: the rules of a recipe, handles for users.
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
from strongroom.coordination.recipes.waiting import Backoff, NotAcquired, WriteRetries, await_change
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold

_WITHDRAW_TRIES: Final = 5
_LOST_RACES_MAX: Final = 3
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
        reentrant: whether this client may wait for slots of its own, which its other threads
            release.
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
    seconds: float


class _Write(NamedTuple):
    record: SlotRecord
    slot: Slot


class SlotAcquisition:
    """One attempt to get one slot.

    Arguments:
        context: the client's.
        request: the slot and the terms of the hold.
    """

    def __init__(self, context: RecipeContext, request: SlotRequest) -> None:
        self._context, self._request = context, request
        self.nonce = context.nonce()
        self._slot_name = slot_name(request.key, self.nonce)
        self._seq = 0
        self._sent: dict[int, float] = {}
        self._may_have_slot = False  # a slot of ours may be in the record ...
        self._has_unknown_write = False  # ... or a write of it may still be applied ...
        self._unknown_write_version: str | None = None  # ... over this version
        self._holder = ""
        self._backoff = Backoff(context)
        self._timeout_s = context.rules.attempt_timeout_s(request.ttl_s)
        self._races = 0

    def steps(self) -> Steps[Hold | NotAcquired]:
        """Take the slot; return the hold, or a `NotAcquired` that names the holders.

        Raises:
            AlreadyHeld: this client has a slot that is in the way.
            StoreUnavailable: the store did not answer, and no time is left.
            StoreRefused, CorruptRecord: see errors.py.
            Any error of the rule's `check`.
        """
        context = self._context
        context.claim(self._slot_name, self.nonce)
        hold: Hold | None = None
        try:
            start_s = context.clock.monotonic_s()
            hold = yield from self._acquire(start_s)
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

    def _acquire(self, start_s: float) -> Steps[Hold | None]:
        observed: _ObservedRecord | None = None
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
                observed = yield from self._await(observed, min(step.seconds, left_s))
                continue
            hold = yield from self._write(observed, step)
            if hold is not None:
                return hold
            if left_s <= 0:
                self._races += 1
                if self._races > _LOST_RACES_MAX:
                    return None
            observed = None

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
        self._check_own(blocking)
        self._holder = _labels(blocking)
        seconds = min((left_by_owner_s[slot.owner] for slot in blocking), default=_FULL_RECHECK_S)
        if not request.intent or request.wait_s == 0 or is_full:
            return _Wait(seconds)
        return self._announce_or_wait(living, seconds)

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

    def _check_own(self, blocking: tuple[Slot, ...]) -> None:
        if self._request.reentrant:
            return
        if any(is_own(self._context, self._request.key, slot) for slot in blocking):
            raise AlreadyHeld(self._request.name)

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
        self._sent[step.slot.seq] = context.clock.boot_s()
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
            self._may_have_slot = True
            if step.slot.role == request.role:
                return self._hold(step.slot, step.record, outcome.version)
            return None
        if isinstance(outcome, Unknown):
            self._may_have_slot = self._has_unknown_write = True
            self._unknown_write_version = expected
            yield Sleep(self._backoff.retry_delay_s())
            return None
        self._races += 1
        if self._races > _LOST_RACES_MAX:
            yield Sleep(self._backoff.retry_delay_s())
        return None

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
        keeper = SlotKeeper(context, request.kind, request.key, slot, record, version)
        hold = Hold(
            clock, request.key, request.name, self.nonce, slot.fence, request.ttl_s, deadline_s,
            keeper, request.margin_s,
        )  # fmt: skip
        hold.on_end = keeper.unclaim_when_over
        return hold

    # Withdrawing

    def _withdraw(self) -> Steps[None]:
        """Remove this attempt's slot, and stop a write of it that may still be applied."""
        if not self._may_have_slot:
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
                if record.slot_of(self.nonce) is None and not may_still_apply:
                    return
                value = encode_slots(
                    request.kind, record.without(self.nonce), self._context.nonce()
                )
                outcome = yield from cas(request.key, version, value, self._timeout_s)
            except CoordinationError:
                return
            if isinstance(outcome, Applied):
                return
            yield retries.pause_after(outcome, version)


def _labels(slots: tuple[Slot, ...]) -> str:
    shown = ", ".join(slot.who for slot in slots[:_SHOWN_MAX])
    more = len(slots) - _SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown
