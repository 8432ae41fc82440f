"""How a slot that is held is renewed, watched and released.

Lives here: the `Keeper` of every hold that is a slot of a shared record. Other clients write the
same record, so a Conflict is usual. The keeper then reads the record and writes its own slot again.
Only a record without the slot is a loss. Must not live here: taking a slot (slots/slots_core.py).
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Final

from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    CasOutcome,
    Entry,
    Steps,
    Unknown,
    cas,
    get,
)
from strongroom.coordination.errors import CoordinationError, StoreUnavailable
from strongroom.coordination.recipes.slots.slot_records import (
    Slot,
    SlotRecord,
    decode_slots,
    encode_slots,
    slot_name,
)
from strongroom.coordination.recipes.waiting import (
    Backoff,
    ReleaseRetries,
    WriteRetries,
    await_change,
)
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.places import LinePlace

_RENEW_TRIES: Final = 6
_ALERT_S: Final = 20.0
_SLOT_REMOVED: Final = "its slot was dropped from the record"


class SlotKeeper:
    """The keeper of one slot: renews, watches and releases it.

    Arguments:
        kind: of the record.
        place: of the hold, in the client's line.
        slot: the slot that is held.
        record, version: as they were written with the slot.
    """

    def __init__(
        self,
        context: RecipeContext,
        kind: str,
        place: LinePlace,
        slot: Slot,
        record: SlotRecord,
        version: str,
    ) -> None:
        self._context, self._kind, self._place, self._key = context, kind, place, place.key
        self._nonce, self._ttl_s = slot.owner, slot.ttl_s
        # One attribute for both: renewal and release may run in two threads.
        self._last_known = (record, version)
        self._numbers = itertools.count(slot.seq + 1)
        self._sent: dict[int, float] = {}
        self._timeout_s = context.rules.attempt_timeout_s(slot.ttl_s)

    def unclaim_when_over(self) -> None:
        """Drop the claim on the slot, when the hold is lost or about to be released."""
        self._context.unclaim(slot_name(self._key, self._nonce), self._nonce)

    def leave_line(self, reason: str) -> None:
        """Let the next in line go to the store, once the hold is lost."""
        self._context.lines.leave(self._place)

    def renew(self, hold: Hold) -> Steps[bool]:
        retries = WriteRetries(self._context, _RENEW_TRIES)
        try:
            while retries.begin_attempt() and hold.active:
                renewed = yield from self._renew_once(hold)
                if renewed is not None:
                    return renewed
                yield retries.pause(is_failure=False)
        except StoreUnavailable as error:
            hold.last_error = str(error) or "the store did not answer"
        return False

    def _renew_once(self, hold: Hold) -> Steps[bool | None]:
        """Write the slot once; return whether it was prolonged, or None after a lost race."""
        record, version = self._last_known
        slot = record.slot_of(self._nonce)
        assert slot is not None, "a known record has the slot"
        slot = replace(slot, seq=next(self._numbers))
        after = record.with_slot(slot)
        self._sent[slot.seq] = self._context.clock.boot_s()
        outcome = yield from self._write(version, after, self._timeout_s)
        if isinstance(outcome, Applied):
            self._last_known = (after, outcome.version)
            self._prolong(hold, slot.seq)
            return True
        entry = yield from get(self._key, self._timeout_s)
        found = self._check_record(hold, entry)
        if found is None:
            return False
        if entry is not None and entry.version == version:
            return False  # not applied, or not yet; the next try will tell
        if found.seq in self._sent:
            self._prolong(hold, found.seq)
            return hold.active
        return None

    def _write(self, version: str, record: SlotRecord, timeout_s: float) -> Steps[CasOutcome]:
        value = encode_slots(self._kind, record, self._context.nonce())
        return (yield from cas(self._key, version, value, timeout_s))

    def _check_record(self, hold: Hold, entry: Entry | None) -> Slot | None:
        """Return the slot that the record shows now; if there is none, end the hold."""
        if entry is None:
            hold.lose("its record was deleted")
            return None
        record = decode_slots(self._kind, self._key, entry.value)
        slot = record.slot_of(self._nonce)
        if slot is None:
            hold.lose(_SLOT_REMOVED)
            return None
        self._last_known = (record, entry.version)
        return slot

    def _prolong(self, hold: Hold, seq: int) -> None:
        clock, rules = self._context.clock, self._context.rules
        sent_s = self._sent[seq]
        self._sent = {number: at for number, at in self._sent.items() if number > seq}
        hold.extend(rules.holder_deadline_s(sent_s, clock.boot_s(), self._ttl_s, False))

    def release(self, hold: Hold) -> Steps[bool]:
        """Remove the slot; see `handles.Keeper.release`. If that fails, the slot expires.

        If a caller of this client waits for it, its write removes the slot, and nothing is sent
        here. A caller that asks the store meanwhile may remove it too, since the hold has ended.
        That is no loss.
        """
        if self._hand_over():
            return True
        try:
            return (yield from self._remove_slot(hold))
        finally:
            self._context.lines.leave(self._place)
            self._context.pop_dropped(self._nonce)

    def _hand_over(self) -> bool:
        record, version = self._last_known
        if not all(self._context.is_own(slot.owner) for slot in record.slots):
            return False  # another client holds, or has announced that it waits
        return self._context.lines.hand_over(
            self._place, lambda: Entry(encode_slots(self._kind, record, ""), version), self._ttl_s
        )

    def _remove_slot(self, hold: Hold) -> Steps[bool]:
        outcome_unknown, retries = False, ReleaseRetries(self._context, self._ttl_s)
        while retries.begin_attempt():
            record, version = self._last_known
            try:
                after = record.without(self._nonce)
                outcome = yield from self._write(version, after, retries.timeout_s)
                if isinstance(outcome, Applied):
                    return True
                outcome_unknown = outcome_unknown or isinstance(outcome, Unknown)
                entry = yield from get(self._key, retries.timeout_s)
                if entry is None or self._check_record(hold, entry) is None:
                    return outcome_unknown or self._context.pop_dropped(self._nonce)
                is_failure = isinstance(outcome, Unknown) or entry.version == version
            except StoreUnavailable:
                is_failure = True
            except CoordinationError:
                return False
            yield retries.pause(is_failure=is_failure)
        return False

    def watch_for_loss(self, hold: Hold) -> Steps[None]:
        backoff = Backoff(self._context)
        version = self._last_known[1]
        while hold.active:
            outcome = yield from await_change(
                self._context, self._key, version, _ALERT_S, backoff, self._timeout_s
            )
            if outcome is UNCHANGED or not hold.active:
                continue
            if outcome is None:
                hold.lose("its record was deleted")
            elif decode_slots(self._kind, self._key, outcome.value).slot_of(self._nonce) is None:
                hold.lose(_SLOT_REMOVED)
            else:
                version = outcome.version
