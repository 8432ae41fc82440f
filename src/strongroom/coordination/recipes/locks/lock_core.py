"""How a lock is taken: the core that locks and elections share.

Lives here: steps over one `LockRecord` under one key, for any store. A lock is free if its record
names no owner, or if the owner's time is over. The store's clock decides that where it keeps one.
Else this observer must have seen the same owner and sequence number for `rules.observer_wait_s`.
The compare-and-swap that takes the lock also writes fence + 1. A fair lock keeps a queue in the
record. Entering the queue and taking the lock are writes, waiting is none. A first waiter that does
not take the free lock is passed over after a while.

Callers of one client wait in line inside the client (session/lines.py). A hold that ends is handed
to the next caller of the line by that caller's own write. It names the version that the hold wrote
last, and it carries a new nonce and fence + 1. So one write ends one hold and begins the next. If
its answer is lost, the record is read, as after any other write. If another client has entered the
queue meanwhile, the write is a Conflict. The caller then ends the hold with the write that enters
the queue behind it. Must not live here: renewal and release (lock_keeper.py), threads, handles for
users (lock.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    Entry,
    LeaseAction,
    LeaseTerms,
    Sleep,
    Steps,
    Unknown,
    cas,
    get,
)
from strongroom.coordination.errors import CoordinationError, StoreUnavailable
from strongroom.coordination.recipes.locks.lock_keeper import LockKeeper
from strongroom.coordination.recipes.locks.lock_request import (
    AlreadyAcquired,
    HoldRequest,
    LockPause,
    LockWrite,
)
from strongroom.coordination.recipes.locks.lock_state import (
    ObservedRecord,
    ends_by_store_clock,
    observation_after_write,
    observed_record,
    only_holder_can_write,
    outlasts_its_ttl,
    time_until_free_s,
)
from strongroom.coordination.recipes.waiting import (
    Backoff,
    NotAcquired,
    WriteRetries,
    await_change,
    await_turn,
)
from strongroom.coordination.schema.records import LockRecord, Waiter, decode_lock, encode_lock
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.places import ANYBODY, LineCaller, LinePlace

_WITHDRAW_TRIES: Final = 5
_LOST_RACES_MAX: Final = 3
_RACES_SPREAD: Final = 4
_REACQUIRE_ROUND_TRIPS: Final = 6
_TURN_ROUND_TRIPS: Final = 3


class Acquisition:
    """One attempt to get one hold.

    Arguments:
        request: the lock and the terms of the hold.
        caller: who waits in line.
    """

    def __init__(
        self, context: RecipeContext, request: HoldRequest, caller: LineCaller = ANYBODY
    ) -> None:
        self._context, self._request = context, request
        self.nonce = context.nonce()
        self._place = LinePlace(request.key, self.nonce, caller)
        self._seq = 0
        self._sent: dict[int, float] = {}
        self._has_unknown_write = False  # a ACQUIRE of unknown outcome may still be applied ...
        self._unknown_write_version: str | None = None  # ... over this version
        self._queued = False
        self._holder = ""
        self._backoff = Backoff(context)
        self._timeout_s = context.rules.attempt_timeout_s(request.ttl_s)
        self._races = 0

    def steps(self) -> Steps[Hold | NotAcquired]:
        """Take the lock; return the hold, or a `NotAcquired` that names the holder.

        Raises:
            AlreadyHeld: the caller holds the lock, or waits for it already.
            ClientClosed: the client was closed, or the process forked, while the caller waited.
            StoreUnavailable: the store did not answer, and no time is left.
        """
        context, place = self._context, self._place
        start_s = context.clock.monotonic_s()
        context.lines.join(place)
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
                context.lines.leave(place)

    def _acquire_in_turn(self, start_s: float) -> Steps[Hold | None]:
        if self._place.signal is not None or self._place.streak_s:  # usually nobody is before it
            self._holder = self._context.label
            if not (yield from await_turn(self._context, self._place, self._left_s(start_s))):
                return None
            self._holder = ""
        hold = yield from self._acquire(start_s)
        if hold is not None:
            self._context.lines.note_hold(self._place)
        return hold

    def _acquire(self, start_s: float) -> Steps[Hold | None]:
        observed = self._handed_observation()
        if observed is None:
            observed = self._cached_observation()
        if observed is not None and self._request.fair and self._place.handed is None:
            # A client that has just released this lock lets other clients enter the queue first.
            # They need a read and a write; this client would need only a write.
            yield Sleep(
                self._context.clock.random() * _REACQUIRE_ROUND_TRIPS * self._context.round_trip_s
            )
            observed = None
        while True:
            if observed is None:
                observed = yield from self._read(start_s)
            step = self._decide(observed)
            if isinstance(step, LockPause):
                left_s = self._left_s(start_s)
                if left_s <= 0:
                    return None
                observed = yield from self._await(
                    observed, step._replace(seconds=min(step.seconds, left_s))
                )
                continue
            result: Hold | ObservedRecord | None
            if isinstance(step, AlreadyAcquired):
                assert observed.entry is not None
                result = self._hold(step.record, observed.entry.version)
            else:
                result = yield from self._write(observed, step)
            if isinstance(result, Hold):
                return result
            if self._request.wait_s is not None and self._left_s(start_s) <= 0:
                self._races += 1
                if self._races > _LOST_RACES_MAX:
                    return None
            observed = result

    def _left_s(self, start_s: float) -> float:
        if self._request.wait_s is None:
            return float("inf")
        return start_s + self._request.wait_s - self._context.clock.monotonic_s()

    # Reading

    def _cached_observation(self) -> ObservedRecord | None:
        cached = self._context.pop_cached_entry(self._request.key)
        return cached and ObservedRecord(*cached, self._context.clock.monotonic_s())

    def _handed_observation(self) -> ObservedRecord | None:
        handed = self._place.handed
        if handed is None:
            return None
        record = decode_lock(self._request.key, handed.entry.value)
        return ObservedRecord(handed.entry, record, self._context.clock.monotonic_s())

    def _read(self, start_s: float) -> Steps[ObservedRecord]:
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
            return observed_record(self._context, self._request.key, entry, sent_s)

    def _await(self, observed: ObservedRecord, wait: LockPause) -> Steps[ObservedRecord | None]:
        key, version = self._request.key, observed.entry.version if observed.entry else None
        delay_s = min(wait.seconds, self._queue_delay_s(wait.ahead))
        if delay_s > 0:
            yield Sleep(delay_s)
        sent_s = self._context.clock.monotonic_s()
        outcome = yield from await_change(
            self._context, key, version, wait.seconds - delay_s, self._backoff, self._timeout_s
        )
        if outcome is UNCHANGED:
            # The sighting stays valid. Only a new read shows what the store's own clock says.
            return None if ends_by_store_clock(self._context, observed) else observed
        if outcome is None or outcome.version != version:
            self._backoff.reset()
        return observed_record(self._context, key, outcome, sent_s)

    def _queue_delay_s(self, ahead: int) -> float:
        """Return how long not to read at all, because this waiter's turn cannot have come yet.

        The record changes with every turn of the waiters ahead, and each change would wake all
        watchers. A turn takes at least two round trips, and four if other clients enter the queue
        meanwhile. Three are waited for each turn. One read then shows all that has changed. A late
        read is always safe. The pauses must not depend on how long turns HAVE taken. Slow turns
        would make long pauses, and long pauses slow turns.
        """
        if self._context.promises.watch == "poll":
            return 0.0  # polls have delays of their own
        return min(self._timeout_s, ahead * _TURN_ROUND_TRIPS * self._context.round_trip_s)

    # Deciding

    def _decide(self, observed: ObservedRecord) -> LockPause | LockWrite | AlreadyAcquired:
        entry, record = observed.entry, observed.record
        handed, owner = self._place.handed, None if record is None else record.owner
        if handed is not None and owner not in (handed.nonce, self.nonce):
            self._place.handed = None  # it was over before it could be taken over
        if entry is None or record is None:
            return LockWrite(self._own_record(0, ()), True)
        if record.owner == self.nonce:
            if self._deadline_s(record) > self._context.clock.boot_s():
                return AlreadyAcquired(record)
            return LockWrite(self._own_record(record.fence, record.queue), True)
        busy_s = self._busy_s(observed, entry, record)
        if busy_s > 0 and not self._may_repeat_acquire(entry):
            self._holder = record.who if record.owner else ""
        if not self._request.fair or only_holder_can_write(self._context, entry):
            if busy_s > 0 and not self._may_repeat_acquire(entry):
                return LockPause(busy_s)
            return self._acquiring_write(record, record.queue)
        return self._decide_in_queue(entry, record, busy_s)

    def _ended(self, record: LockRecord) -> str | None:
        """Return the nonce of the hold that was handed to this caller, if the record shows it."""
        handed = self._place.handed
        return handed.nonce if handed is not None and handed.nonce == record.owner else None

    def _may_repeat_acquire(self, entry: Entry) -> bool:
        # Our ACQUIRE may have leased the key without writing the record. The same nonce may repeat
        # it.
        server_lease = self._context.promises.server_lease
        return (
            server_lease
            and self._has_unknown_write
            and entry.version == self._unknown_write_version
        )

    def _busy_s(self, observed: ObservedRecord, entry: Entry, record: LockRecord) -> float:
        if self._ended(record) is not None:
            return 0.0
        return time_until_free_s(
            self._context, self._request.key, observed, self._request.lock_delay_s
        )

    def _decide_in_queue(
        self, entry: Entry, record: LockRecord, busy_s: float
    ) -> LockPause | LockWrite:
        position = record.position(self.nonce)
        self._queued = position is not None
        queue = record.queue
        ahead = len(queue) if position is None else position
        if busy_s > 0 and not self._may_repeat_acquire(entry):
            if position is not None or self._request.wait_s == 0:
                return LockPause(busy_s, ahead)
            return self._enqueue(record)
        window_left_s = self._claim_window_left_s(record, ahead)
        if window_left_s <= 0:
            return self._acquiring_write(record, queue[ahead + (position is not None) :])
        if position is None and self._request.wait_s != 0:
            return self._enqueue(record)
        return LockPause(window_left_s, ahead)

    def _claim_window_left_s(self, record: LockRecord, ahead: int) -> float:
        """Return how long the waiters ahead may still take to claim the free lock."""
        if ahead == 0:
            return 0.0
        subject = f"{self._request.key}#free"
        observed_state = (record.fence, record.queue[0].nonce)
        now_s = self._context.clock.monotonic_s()
        since_s = self._context.sightings.since_s(subject, observed_state, now_s)
        window_s = 3 * self._timeout_s + 2 * self._context.promises.poll_max_s
        return since_s + ahead * window_s - now_s

    def _enqueue(self, record: LockRecord) -> LockWrite:
        waiter, ended = Waiter(self.nonce, self._context.label), self._ended(record)
        if ended is not None:
            record = record.tombstone(record.seq + 1)
        return LockWrite(replace(record, queue=(*record.queue, waiter)), False, ended)

    def _acquiring_write(self, record: LockRecord, queue: tuple[Waiter, ...]) -> LockWrite:
        return LockWrite(self._own_record(record.fence, queue), True, self._ended(record))

    def _own_record(self, fence: int, queue: tuple[Waiter, ...]) -> LockRecord:
        self._seq += 1
        context = self._context
        return LockRecord(
            owner=self.nonce,
            fence=fence + 1,
            ttl_s=self._request.ttl_s,
            seq=self._seq,
            who=context.label,
            since=context.clock.wall_text(),
            queue=tuple(waiter for waiter in queue if waiter.nonce != self.nonce),
            value=self._request.value,
        )

    # Writing

    def _write(
        self, observed: ObservedRecord, step: LockWrite
    ) -> Steps[Hold | ObservedRecord | None]:
        context, record = self._context, step.record
        expected = observed.entry.version if observed.entry else None
        lease = self._lease_terms(observed, step)
        sent_s = context.clock.boot_s()
        if step.acquires:
            self._sent[record.seq] = sent_s
        value = encode_lock(record)
        try:
            outcome = yield from cas(self._request.key, expected, value, self._timeout_s, lease)
        except StoreUnavailable:
            yield Sleep(self._backoff.retry_delay_s())
            return None
        except BaseException as error:
            if not isinstance(error, CoordinationError):
                # Interrupted: the answer is lost, and the write may still be applied.
                self._note_unknown_write(step, expected)
            raise
        if isinstance(outcome, Applied):
            self._backoff.reset()
            context.round_trip_s = context.clock.boot_s() - sent_s
            self._queued = not step.acquires
            if step.acquires:
                return self._hold(record, outcome.version)
            self._place.handed = None  # that write ended it
            return observation_after_write(context, Entry(value, outcome.version), record)
        if isinstance(outcome, Unknown):
            self._note_unknown_write(step, expected)
            yield Sleep(self._backoff.retry_delay_s())
            return None
        # Another client won the race. A pause of a few round trips spreads the competitors. It
        # must not grow much, or a client that loses often would wait longer than the others.
        self._races += 1
        round_trip_s = context.clock.boot_s() - sent_s
        yield Sleep(context.clock.random() * min(self._races, _RACES_SPREAD) * round_trip_s)
        return None

    def _lease_terms(self, observed: ObservedRecord, step: LockWrite) -> LeaseTerms | None:
        ttl_s = step.record.ttl_s
        if not self._context.promises.server_lease:
            return None
        if step.ends is not None and step.acquires:
            return LeaseTerms(LeaseAction.HAND_OVER, ttl_s, self.nonce, step.ends)
        if step.ends is not None:
            return LeaseTerms(LeaseAction.RELEASE, ttl_s, step.ends)
        if step.acquires:
            return LeaseTerms(self._lease_action(observed), ttl_s, self.nonce)
        return None

    def _lease_action(self, observed: ObservedRecord) -> LeaseAction:
        """Return ACQUIRE, or TAKE_OVER if the store's clock was set back.

        See `time_until_free_s`.
        """
        entry, record = observed.entry, observed.record
        if entry is None or record is None or not outlasts_its_ttl(entry, record):
            return LeaseAction.ACQUIRE
        return (
            LeaseAction.TAKE_OVER
            if self._busy_s(observed, entry, record) <= 0
            else LeaseAction.ACQUIRE
        )

    def _note_unknown_write(self, step: LockWrite, expected: str | None) -> None:
        self._queued = True
        if step.acquires:
            self._has_unknown_write, self._unknown_write_version = True, expected

    def _deadline_s(self, record: LockRecord) -> float:
        clock, rules = self._context.clock, self._context.rules
        sent_s = self._sent.get(record.seq, float("-inf"))
        server_clock = self._context.promises.server_lease
        return rules.holder_deadline_s(sent_s, clock.boot_s(), record.ttl_s, server_clock)

    def _hold(self, record: LockRecord, version: str) -> Hold | None:
        context, request, nonce = self._context, self._request, self.nonce
        deadline_s = self._deadline_s(record)
        if deadline_s - request.margin_s <= context.clock.boot_s():
            self._has_unknown_write = True  # expired before use: the next read takes the lock anew
            return None
        keeper = LockKeeper(context, self._place, record, version, request.fair)
        hold = Hold(
            context.clock,
            request.key,
            request.name,
            nonce,
            record.fence,
            request.ttl_s,
            deadline_s,
            keeper,
            request.margin_s,
        )
        hold.on_lost(keeper.leave_line)
        return hold

    # Withdrawing

    def _withdraw(self) -> Steps[None]:
        """Leave the queue, and release the lock if a write without an answer may have taken it.

        A hold that was handed to this caller, and not taken over, is released too.
        """
        if self._context.lines.give_up(self._place):
            return  # the turn never came
        if not (self._has_unknown_write or self._queued or self._place.handed is not None):
            return
        retries = WriteRetries(self._context, _WITHDRAW_TRIES)
        while retries.begin_attempt():
            try:
                entry = yield from get(self._request.key, self._timeout_s)
                version = None if entry is None else entry.version
                withdrawal = self._withdrawal(entry)
                if withdrawal is None:
                    return
                record, lease = withdrawal
                value = encode_lock(record)
                outcome = yield from cas(self._request.key, version, value, self._timeout_s, lease)
            except CoordinationError:
                return
            if isinstance(outcome, Applied):
                self._place.handed = None
                return
            yield retries.pause_after(outcome, version)

    def _withdrawal(self, entry: Entry | None) -> tuple[LockRecord, LeaseTerms | None] | None:
        """Return the record that undoes this attempt, late writes too; None if none is needed."""
        # After another write, a ACQUIRE that is still on its way can no longer be applied.
        may_still_apply = (
            self._has_unknown_write
            and (None if entry is None else entry.version) == self._unknown_write_version
        )
        if entry is None:
            free_record = LockRecord(owner=None, fence=0, ttl_s=self._request.ttl_s, seq=0)
            return (free_record, None) if may_still_apply else None
        record = decode_lock(self._request.key, entry.value)
        queue = tuple(waiter for waiter in record.queue if waiter.nonce != self.nonce)
        if record.owner is not None and record.owner in (self.nonce, self._ended(record)):
            server_lease = self._context.promises.server_lease
            lease = (
                LeaseTerms(LeaseAction.RELEASE, record.ttl_s, record.owner)
                if server_lease
                else None
            )
            return replace(record, queue=queue).tombstone(record.seq + 1), lease
        if record.owner is None and may_still_apply:
            return replace(record, queue=queue, seq=record.seq + 1), None
        if len(queue) != len(record.queue):
            return replace(record, queue=queue), None
        return None
