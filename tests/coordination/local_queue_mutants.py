"""Wrong rules for callers of one client that wait in line; the simulator must catch every one.

A mutant is the shipped code with one rule replaced. `MUTANTS` names, for each, the variant of the
scenario in which it must be caught.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from strongroom.coordination.effects import Entry, Steps
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_keeper import LockKeeper
from strongroom.coordination.schema.records import LockRecord, Waiter, decode_lock, encode_lock
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.lines import Lines
from strongroom.coordination.simulation.local_queue_scenario import VARIANTS, run_local_queue
from strongroom.coordination.simulation.report import Report

BY_NAME = {variant.name: variant for variant in VARIANTS}
_LOST = "lost"
_own_record = Acquisition._own_record
_acquire = Acquisition._acquire
_busy_s = Acquisition._busy_s


def _same_fence(self: Acquisition, fence: int, queue: tuple[Waiter, ...]) -> LockRecord:
    """A hand-over does not raise the fence."""
    record = _own_record(self, fence, queue)
    return record if self._place.handed is None else replace(record, fence=fence)


def _deadline_from_answer(self: Acquisition, record: LockRecord) -> float:
    """The next holder counts its TTL from the answer, not from the sending of its write."""
    clock = self._context.clock
    return clock.boot_s() + record.ttl_s


def _hand_on(self: LockKeeper, reason: str) -> None:
    """A hold that was lost is handed to the next in line."""
    record, version = self._last_known
    entry = Entry(encode_lock(record), version, note=_LOST)
    if not self._context.lines.hand_over(self._place, lambda: entry, None):
        self._context.lines.leave(self._place)


def _take_what_was_lost(self: Acquisition, start_s: float) -> Steps[Hold | None]:
    """A lost hold that was handed on counts as held."""
    handed = self._place.handed
    if handed is None or handed.entry.note != _LOST:
        return (yield from _acquire(self, start_s))
    return (yield from _take_without_write(self, start_s))


def _take_without_write(self: Acquisition, start_s: float) -> Steps[Hold | None]:
    """What was handed over counts as held; the renewals write it later."""
    handed = self._place.handed
    if handed is None:
        return (yield from _acquire(self, start_s))
    found = decode_lock(self._request.key, handed.entry.value)
    record = _own_record(self, found.fence, found.queue)
    self._sent[record.seq] = self._context.clock.boot_s()
    return self._hold(record, handed.entry.version)


def _always(self: Lines, line: Any, ttl_s: float | None) -> bool:
    """The lock is never given back while somebody of this client waits."""
    return True


def _ignore_queue(self: Acquisition, entry: Entry, record: LockRecord, busy_s: float) -> Any:
    """What was handed over is taken, although another client waits in the record."""
    if self._ended(record) is not None:
        return self._acquiring_write(record, record.queue)
    return _decide_in_queue(self, entry, record, busy_s)


def _keep_owner(self: Acquisition, record: LockRecord) -> Any:
    """Entering the queue leaves the ended hold in the record."""
    step = _enqueue(self, record)
    return step._replace(record=replace(step.record, owner=record.owner), ends=None)


def _hand_over_whatever(self: LockKeeper) -> bool:
    """The holder hands over although its record shows another client in the queue."""
    record, version = self._last_known
    entry = Entry(encode_lock(record), version)
    return self._context.lines.hand_over(self._place, lambda: entry, None)


_decide_in_queue = Acquisition._decide_in_queue
_enqueue = Acquisition._enqueue


@dataclass(frozen=True)
class Mutant:
    """The wrong rule of a mutant: attributes of shipped classes, and where it must be caught."""

    variant: str
    patches: tuple[tuple[type, str, Callable[..., Any]], ...]


MUTANTS: dict[str, Mutant] = {
    "same fence": Mutant("local-queue-calm", ((Acquisition, "_own_record", _same_fence),)),
    "a lost hold handed on": Mutant(
        "local-queue",
        (
            (LockKeeper, "leave_line", _hand_on),
            (Acquisition, "_acquire", _take_what_was_lost),
        ),
    ),
    "handed over without a write": Mutant(
        "local-queue-calm", ((Acquisition, "_acquire", _take_without_write),)
    ),
    "never given back": Mutant("local-queue", ((Lines, "_may_hand_over", _always),)),
    "never given back to the queue": Mutant(
        "local-queue-fair",
        (
            (LockKeeper, "_hand_over", _hand_over_whatever),
            (Acquisition, "_decide_in_queue", _ignore_queue),
        ),
    ),
    "counted from the answer": Mutant(
        "local-queue", ((Acquisition, "_deadline_s", _deadline_from_answer),)
    ),
    "the ended hold stays in the record": Mutant(
        "local-queue-fair", ((Acquisition, "_enqueue", _keep_owner),)
    ),
}


def first_kill(mutant: Mutant, seeds: int) -> Report | None:
    """Return the first run that catches the mutant; None if no seed does."""
    with ExitStack() as stack:
        for owner, name, wrong in mutant.patches:
            stack.enter_context(patch.object(owner, name, wrong))
        for seed in range(seeds):
            report = run_local_queue(seed, BY_NAME[mutant.variant])
            if report.violations:
                return report
    return None
