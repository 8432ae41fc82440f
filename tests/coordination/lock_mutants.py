"""Wrong rules for locks, each taken from a shipped program; the simulator must catch every one.

A mutant is the shipped code with one rule replaced. `MUTANTS` names, for each, the variant of the
simulation in which it must be caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Applied, Entry, LeaseAction, Steps, Unknown, cas, get
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_keeper import LockKeeper
from strongroom.coordination.recipes.locks.lock_state import ObservedRecord, outlasts_its_ttl
from strongroom.coordination.schema.records import LockRecord, Waiter, encode_lock
from strongroom.coordination.session.handles import HELD, Hold
from strongroom.coordination.simulation.lock_scenario import (
    VARIANTS,
    LockReport,
    LockVariant,
    run_locks,
)

BY_NAME = {variant.name: variant for variant in VARIANTS}


class FromResponse(ClockRules):
    """The holder counts its TTL from the answer."""

    def holder_deadline_s(
        self, sent_s: float, received_s: float, ttl_s: float, server_clock: bool
    ) -> float:
        return ClockRules.holder_deadline_s(self, received_s, received_s, ttl_s, server_clock)


class FromRequest(ClockRules):
    """The observer counts from its request."""

    def observer_start_s(self, sent_s: float, received_s: float) -> float:
        return sent_s


class ExactWait(ClockRules):
    """The observer waits exactly the TTL, without a margin."""

    def observer_wait_s(self, ttl_s: float) -> float:
        return ttl_s


class FullServerTtl(ClockRules):
    """The holder counts the whole TTL although the store's clock may be faster."""

    def holder_deadline_s(
        self, sent_s: float, received_s: float, ttl_s: float, server_clock: bool
    ) -> float:
        return sent_s + ttl_s


def _others_wall_clock(self: Acquisition, observed: Any, entry: Entry, record: LockRecord) -> float:
    """The expiry is a time of the holder's wall clock, compared with the observer's wall clock."""
    if record.owner is None:
        return 0.0
    return float(record.since) + record.ttl_s - float(self._context.clock.wall_text())


def _keep_with_wall_clock(self: LockKeeper, hold: Hold) -> Steps[bool]:
    now, (record, version) = self._context.clock.wall_text(), self._last_known
    record = replace(record, seq=self._next_seq(), since=now)
    return (yield from self._store(hold, record, version))


def _same_fence(self: Acquisition, fence: int, queue: tuple[Waiter, ...]) -> LockRecord:
    """A takeover does not raise the fence."""
    return replace(_own_record(self, fence, queue), fence=max(1, fence))


def _unknown_is_success(
    self: Acquisition, observed: Any, step: Any
) -> Steps[Hold | ObservedRecord | None]:
    """A write whose answer was lost counts as applied."""
    hold = yield from _write(self, observed, step)
    if hold is None and step.acquires and self._has_unknown_write:
        return self._hold(step.record, "")
    return hold


def _blind_give(self: LockKeeper, hold: Hold) -> Steps[bool]:
    """The release overwrites any record, without a check of version or owner."""
    try:
        while True:
            entry = yield from get(self._key, self._timeout_s)
            version = entry.version if entry else None
            value = encode_lock(self._last_known[0].tombstone(self._next_seq()))
            outcome = yield from cas(self._key, version, value, self._timeout_s)
            if isinstance(outcome, Applied):
                return True
    except StoreUnavailable:
        return False
    finally:
        self._context.lines.leave(self._place)


def _forget_fence(self: LockRecord, seq: int) -> LockRecord:
    """The release deletes the fence counter, like a DELETE of the record."""
    return replace(self, owner=None, seq=seq, fence=0)


def _conflict_is_loss(self: LockKeeper, hold: Hold, entry: Entry | None, version: str) -> bool:
    """A renewal that conflicts, or has no answer, counts as a loss."""
    hold.lose("the renewal was refused")
    return False


def _revive(self: Hold, deadline_s: float) -> None:
    """A late renewal revives a hold that was over."""
    self.deadline_s = max(self.deadline_s, deadline_s)
    self.state = HELD


def _renewal_unknown_is_success(
    self: LockKeeper, hold: Hold, record: LockRecord, version: str
) -> Steps[bool]:
    """A renewal whose answer was lost counts as applied."""
    sent_s = self._context.clock.boot_s()
    self._sent[record.seq] = sent_s
    try:
        value = encode_lock(record)
        terms = self._terms(LeaseAction.RENEW)
        outcome = yield from cas(self._key, version, value, self._timeout_s, terms)
        if isinstance(outcome, Applied | Unknown):
            if isinstance(outcome, Applied):
                self._last_known = (record, outcome.version)
            hold.extend(sent_s + record.ttl_s)
            return True
        entry = yield from get(self._key, self._timeout_s)
    except StoreUnavailable:
        return False
    return self._update_from_record(hold, entry, version)


def _old_version(self: LockKeeper, hold: Hold, record: LockRecord, version: str) -> Steps[bool]:
    """A renewal forgets the version that it wrote, and does not read it again."""
    sent_s = self._context.clock.boot_s()
    try:
        outcome = yield from cas(self._key, version, encode_lock(record), self._timeout_s)
    except StoreUnavailable:
        return False
    if isinstance(outcome, Applied):
        hold.extend(sent_s + record.ttl_s)
        return True
    return False


def _no_withdrawal(self: Acquisition) -> Steps[None]:
    """A client that gives up leaves its records behind."""
    yield from ()


def _believe_what_is_there(self: Acquisition, record: LockRecord) -> float:
    """A write that is found applied counts as sent just now."""
    return self._context.clock.boot_s() + record.ttl_s


def _give_and_go_on(self: Hold) -> bool:
    """The holder still counts as holding while its release is in progress."""
    return self.state == HELD


def _first_sight_is_enough(
    self: Acquisition, observed: Any, entry: Entry, record: LockRecord
) -> float:
    """The age of a record is counted across renewals: only its owner identifies it."""
    context = self._context
    if record.owner is None:
        return 0.0
    since_s = context.sightings.since_s(self._request.key, record.owner, observed.since_s)
    return since_s + context.rules.observer_wait_s(record.ttl_s) - context.clock.monotonic_s()


def _shortcut(self: Acquisition, observed: Any, entry: Entry, record: LockRecord) -> float:
    """A hold whose end lies further ahead than its TTL counts as over: the store's clock was set
    back."""
    return 0.0 if outlasts_its_ttl(entry, record) else _busy_s(self, observed, entry, record)


def _only_the_stores_clock(
    self: Acquisition, observed: Any, entry: Entry, record: LockRecord
) -> float:
    """A hold ends by the store's clock only, however far that was set back."""
    return entry.expires_in_s or 0.0


def _renew_in_background_never(self: LockKeeper, hold: Hold) -> Steps[bool]:
    """No background renewal takes place."""
    yield from ()
    return False


_own_record = Acquisition._own_record
_write = Acquisition._write
_busy_s = Acquisition._busy_s


@dataclass(frozen=True)
class Mutant:
    """The wrong rule of a mutant: clock rules, or attributes of shipped classes.

    `first_seed` is near the first seed that catches it, since a rule that rarely does harm would
    take long otherwise.
    """

    variant: str
    rules: ClockRules | None = None
    patches: tuple[tuple[type, str, Callable[..., Any]], ...] = ()
    first_seed: int = 0


MUTANTS: dict[str, Mutant] = {
    "holder counts from the response": Mutant("watched", FromResponse(0.3), first_seed=20),
    "observer counts from the request": Mutant("polled", FromRequest(0.3)),
    "observer waits exactly the TTL": Mutant("watched", ExactWait(0.3), first_seed=6),
    "holder counts the full TTL of the store's clock": Mutant("server-lease", FullServerTtl(0.3)),
    "the store's clock was set back: free at first sight": Mutant(
        "set-back", None, ((Acquisition, "_busy_s", _shortcut),)
    ),
    "the store's clock was set back: held until it catches up": Mutant(
        "set-back", None, ((Acquisition, "_busy_s", _only_the_stores_clock),)
    ),
    "expiry by another node's wall clock": Mutant(
        "watched",
        None,
        (
            (Acquisition, "_busy_s", _others_wall_clock),
            (LockKeeper, "renew", _keep_with_wall_clock),
        ),
    ),
    "owner seen for long enough, renewed or not": Mutant(
        "watched", None, ((Acquisition, "_busy_s", _first_sight_is_enough),)
    ),
    "takeover without a new fence": Mutant(
        "calm", None, ((Acquisition, "_own_record", _same_fence),)
    ),
    "release forgets the fence": Mutant("calm", None, ((LockRecord, "tombstone", _forget_fence),)),
    "unknown acquisition is success": Mutant(
        "watched", None, ((Acquisition, "_write", _unknown_is_success),)
    ),
    "unknown renewal is success": Mutant(
        "watched", None, ((LockKeeper, "_store", _renewal_unknown_is_success),)
    ),
    "late answer adopted as fresh": Mutant(
        "watched", None, ((Acquisition, "_deadline_s", _believe_what_is_there),), first_seed=20
    ),
    "conflict of a renewal is a loss": Mutant(
        "fair", None, ((LockKeeper, "_update_from_record", _conflict_is_loss),)
    ),
    "release without version": Mutant("watched", None, ((LockKeeper, "release", _blind_give),)),
    "renewal forgets its version": Mutant("calm", None, ((LockKeeper, "_store", _old_version),)),
    "a lost hold is revived": Mutant("watched", None, ((Hold, "extend", _revive),)),
    "believes while releasing": Mutant("watched", None, ((Hold, "end", _give_and_go_on),)),
    "nobody renews": Mutant("calm", None, ((LockKeeper, "renew", _renew_in_background_never),)),
    "giving up leaves the queue standing": Mutant(
        "no-crashes", None, ((Acquisition, "_withdraw", _no_withdrawal),), first_seed=6
    ),
}


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Run the block with the wrong rule in force."""
    patchers = [patch.object(owner, name, wrong) for owner, name, wrong in mutant.patches]
    for patcher in patchers:
        patcher.start()
    try:
        yield
    finally:
        for patcher in patchers:
            patcher.stop()


def first_kill(mutant: Mutant, seeds: int) -> LockReport | None:
    """Return the first run that catches the mutant; None if no seed does."""
    variant: LockVariant = BY_NAME[mutant.variant]
    with applied(mutant):
        for seed in range(mutant.first_seed, mutant.first_seed + seeds):
            report = run_locks(seed, variant, mutant.rules)
            if report.violations:
                return report
    return None
