"""How a lock that is held is renewed, watched and released.

Lives here: the `Keeper` of locks and elections, one per hold. A write that conflicts, or whose
answer is lost, is not taken for a loss. The keeper then reads the record. The hold is lost if the
record is gone, has expired or has another owner. Must not live here: taking a lock
(locks/lock_core.py).
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    Entry,
    LeaseAction,
    LeaseTerms,
    Steps,
    cas,
    get,
)
from strongroom.coordination.errors import CoordinationError, StoreUnavailable
from strongroom.coordination.recipes.waiting import Backoff, ReleaseRetries, await_change
from strongroom.coordination.schema.records import LockRecord, decode_lock, encode_lock
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.places import LinePlace

_SET_TRIES: Final = 4
_ALERT_S: Final = 20.0


class ReleaseAttempt(Enum):
    """The outcome of one attempt to release."""

    DONE = "done"
    NOT_OURS = "not ours"
    RACED = "raced"
    UNKNOWN = "unknown"


class LockKeeper:
    """The keeper of one hold: renews, watches and releases it.

    Arguments:
        place: of the hold, in the client's line.
        record, version: as this client wrote them last.
        shows_waiters: whether the waiting clients of this lock are in the record (fair locks).
    """

    def __init__(
        self,
        context: RecipeContext,
        place: LinePlace,
        record: LockRecord,
        version: str,
        shows_waiters: bool,
    ) -> None:
        self._context, self._place, self._key, self._nonce = context, place, place.key, place.nonce
        # One attribute for both: renewal, proclamation and release may run in several threads.
        self._last_known = (record, version)
        self._ttl_s, self._shows_waiters = record.ttl_s, shows_waiters
        self._numbers = itertools.count(record.seq + 1)
        self._sent: dict[int, float] = {}
        self._timeout_s = context.rules.attempt_timeout_s(record.ttl_s)

    def leave_line(self, reason: str) -> None:
        """Let the next in line go to the store, once the hold is lost."""
        self._context.lines.leave(self._place)

    def renew(self, hold: Hold) -> Steps[bool]:
        record, version = self._last_known
        return (yield from self._store(hold, replace(record, seq=self._next_seq()), version))

    def set_value(self, hold: Hold, value: Any) -> Steps[bool]:
        """Return whether the value is known to be stored."""
        for _ in range(_SET_TRIES):
            record, version = self._last_known
            record = replace(record, seq=self._next_seq(), value=value)
            is_stored = yield from self._store(hold, record, version)
            if is_stored and self._last_known[0].value == value:
                return True
            if not hold.active:
                return False
        return False

    def _next_seq(self) -> int:
        return next(self._numbers)

    def _store(self, hold: Hold, record: LockRecord, version: str) -> Steps[bool]:
        """Write a record over the version that it was made from."""
        sent_s = self._sent[record.seq] = self._context.clock.boot_s()
        terms = self._terms(LeaseAction.RENEW)
        try:
            outcome = yield from cas(
                self._key, version, encode_lock(record), self._timeout_s, terms
            )
            if isinstance(outcome, Applied):
                self._last_known = (record, outcome.version)
                self._prolong(hold, record.seq, sent_s)
                return True
            entry = yield from get(self._key, self._timeout_s)
        except StoreUnavailable as error:
            hold.last_error = str(error) or "the store did not answer"
            return False
        return self._update_from_record(hold, entry, version)

    def _prolong(self, hold: Hold, seq: int, sent_s: float) -> None:
        self._sent = {number: at for number, at in list(self._sent.items()) if number > seq}
        received_s, server_clock = self._context.clock.boot_s(), self._context.promises.server_lease
        rules = self._context.rules
        hold.extend(rules.holder_deadline_s(sent_s, received_s, self._ttl_s, server_clock))

    def _update_from_record(self, hold: Hold, entry: Entry | None, version: str) -> bool:
        """Update the hold from the record, read after a write that did not clearly succeed.

        Arguments:
            entry: the record as it was read.
            version: the version that the write expected.

        Returns:
            whether a write of this keeper was applied after all, and the hold is still active.
        """
        if entry is None:
            hold.lose("its record was deleted")
            return False
        record = decode_lock(self._key, entry.value)
        if record.owner != self._nonce:
            hold.lose(_loss_reason(record, hold.fence))
            return False
        if entry.expires_in_s is not None and entry.expires_in_s <= 0:
            hold.lose("it expired by the store's clock")
            return False
        if entry.version == version:
            return False  # not applied, or not yet; the next try will tell
        self._last_known = (record, entry.version)
        sent_s = self._sent.get(record.seq)
        if sent_s is None:
            return False  # the record is from an older write: it prolongs nothing
        self._prolong(hold, record.seq, sent_s)
        return hold.active

    def _terms(self, action: LeaseAction) -> LeaseTerms | None:
        if not self._context.promises.server_lease:
            return None
        return LeaseTerms(action, self._ttl_s, self._nonce)

    def release(self, hold: Hold) -> Steps[bool]:
        """If another caller of this client is next, its write ends the hold instead, and nothing is
        sent here. If the release fails, the hold is left to expire."""
        if self._hand_over():
            return True
        retries = ReleaseRetries(self._context, self._ttl_s)
        try:
            while retries.begin_attempt():
                try:
                    released = yield from self._release_once(retries)
                except StoreUnavailable:
                    released = ReleaseAttempt.UNKNOWN
                if released is not ReleaseAttempt.RACED and released is not ReleaseAttempt.UNKNOWN:
                    return released is ReleaseAttempt.DONE
                if released is ReleaseAttempt.UNKNOWN:
                    yield retries.pause(is_failure=True)
            return False
        except CoordinationError:
            return False
        finally:
            self._context.lines.leave(self._place)

    def _hand_over(self) -> bool:
        record, version = self._last_known
        if record.queue:
            return False  # another client is first
        ttl_s = None if self._shows_waiters else self._ttl_s
        return self._context.lines.hand_over(
            self._place, lambda: Entry(encode_lock(record), version), ttl_s
        )

    def _release_once(self, retries: ReleaseRetries) -> Steps[ReleaseAttempt]:
        known, version = self._last_known
        tombstone = known.tombstone(self._next_seq())
        value = encode_lock(tombstone)
        outcome = yield from cas(
            self._key, version, value, retries.timeout_s, self._terms(LeaseAction.RELEASE)
        )
        if isinstance(outcome, Applied):
            self._context.cache_entry(self._key, Entry(value, outcome.version), tombstone)
            return ReleaseAttempt.DONE
        entry = yield from get(self._key, retries.timeout_s)
        if entry is None:
            return ReleaseAttempt.NOT_OURS
        record = decode_lock(self._key, entry.value)
        if record.owner != self._nonce:
            is_released = record.fence == known.fence and record.owner is None
            return ReleaseAttempt.DONE if is_released else ReleaseAttempt.NOT_OURS
        lost_race = entry.version != version  # a client entered the queue: try again at once
        self._last_known = (record, entry.version)
        return ReleaseAttempt.RACED if lost_race else ReleaseAttempt.UNKNOWN

    def watch_for_loss(self, hold: Hold) -> Steps[None]:
        backoff, version = Backoff(self._context), self._last_known[1]
        while hold.active:
            outcome = yield from await_change(
                self._context, self._key, version, _ALERT_S, backoff, self._timeout_s
            )
            if outcome is UNCHANGED or not hold.active:
                continue
            self.check_record(hold, outcome)
            version = outcome.version if outcome is not None else version

    def check_record(self, hold: Hold, entry: Entry | None) -> None:
        """End the hold if the record shows its end. The record was read after the hold began."""
        if entry is None:
            hold.lose("its record was deleted")
            return
        record = decode_lock(self._key, entry.value)
        if record.owner != self._nonce:
            hold.lose(_loss_reason(record, hold.fence))
        elif entry.expires_in_s is not None and entry.expires_in_s <= 0:
            hold.lose("it expired by the store's clock")


def _loss_reason(record: LockRecord, fence: int) -> str:
    """Return why a hold is over, as far as the record shows it.

    Arguments:
        record: the current record; its owner is another client, or nobody.
        fence: of the hold. Taking a lock raises the fence by one; so does breaking it.
    """
    if record.owner is not None:
        return f"{record.who or record.owner} took it with fence {record.fence}"
    if record.end and record.fence <= fence + 1:
        return f"it was ended by an administrator ({record.end})"
    if record.fence > fence:
        return (
            f"others have held it since: it is free now, with fence {record.fence}, and was held"
            f" here with {fence}; the record does not tell whether this hold expired or was broken"
        )
    return "its record says that nobody holds it, but not why"
