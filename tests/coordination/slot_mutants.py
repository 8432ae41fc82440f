"""Wrong rules for slots of a shared record; the simulator must catch every one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Applied, Steps, cas, get
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.recipes.locks.rwlock import READ, WANTS_WRITE, ReadRule, WriteRule
from strongroom.coordination.recipes.slots import slots_core
from strongroom.coordination.recipes.slots.semaphore import SemaphoreRule
from strongroom.coordination.recipes.slots.slot_records import (
    Slot,
    SlotRecord,
    decode_slots,
    encode_slots,
    slot_left_s,
    slot_name,
)
from strongroom.coordination.recipes.slots.slots_core import SlotAcquisition
from strongroom.coordination.recipes.slots.slots_keeper import SlotKeeper
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.lines import Lines
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.slots_scenario import VARIANTS, run_slots
from tests.coordination.lock_mutants import ExactWait, FromRequest, FromResponse

BY_NAME = {variant.name: variant for variant in VARIANTS}
_hold = SlotAcquisition._hold
_decide = SlotAcquisition._decide


@dataclass(frozen=True)
class Mutant:
    """One wrong rule, and the variant that must catch it.

    `first_seed` is near the first seed that catches it, since a rule that rarely does harm would
    take long otherwise.
    """

    variant: str
    rules: ClockRules | None = None
    patches: tuple[tuple[object, str, Callable[..., Any]], ...] = ()
    first_seed: int = 0


def _drop_at_once(context: RecipeContext, key: str, slot: Slot, since_s: float) -> float:
    """Every other client counts as dead."""
    is_released = slot.owner.startswith(f"{context.identity}-")
    return slot_left_s(context, key, slot, since_s) if is_released else 0.0


def _first_sight_is_enough(context: RecipeContext, key: str, slot: Slot, since_s: float) -> float:
    """A slot that was seen for long enough counts as over, renewed or not."""
    place = slot_name(key, slot.owner)
    start_s = context.sightings.since_s(place, slot.owner, since_s)
    return start_s + context.rules.observer_wait_s(slot.ttl_s) - context.clock.monotonic_s()


def _ttl_of_the_observer(context: RecipeContext, key: str, slot: Slot, since_s: float) -> float:
    """The observer uses a TTL of its own instead of the slot's."""
    return slot_left_s(context, key, replace(slot, ttl_s=slot.ttl_s / 2), since_s)


def _one_too_many(self: SemaphoreRule, record: SlotRecord, own_nonce: str) -> tuple[Slot, ...]:
    others = record.without(own_nonce).slots
    return others if len(others) > self.permits else ()


def _same_fence(self: SemaphoreRule, record: SlotRecord) -> int:
    return max(1, record.fence)


def _fence_of_the_living(self: SemaphoreRule, record: SlotRecord) -> int:
    """The next fence is computed from the present holders, and forgotten with them."""
    return 1 + max((slot.fence for slot in record.slots), default=0)


def _reader_waits_for_intents_only(
    self: ReadRule, record: SlotRecord, own_nonce: str
) -> tuple[Slot, ...]:
    return tuple(slot for slot in record.slots if slot.role == WANTS_WRITE)


def _writer_waits_for_writers_only(
    self: WriteRule, record: SlotRecord, own_nonce: str
) -> tuple[Slot, ...]:
    return tuple(slot for slot in record.without(own_nonce).slots if slot.role != READ)


def _answer_is_fresh(
    self: SlotAcquisition, slot: Slot, record: SlotRecord, version: str
) -> Hold | None:
    """A write that is found applied counts from now."""
    self._sent[slot.seq] = self._context.clock.boot_s()
    return _hold(self, slot, record, version)


def _unknown_renewal_is_success(self: SlotKeeper, hold: Hold) -> Steps[bool]:
    record, version = self._last_known
    slot = record.slot_of(self._nonce)
    assert slot is not None
    slot = replace(slot, seq=next(self._numbers))
    self._sent[slot.seq] = self._context.clock.boot_s()
    try:
        outcome = yield from self._write(version, record.with_slot(slot), self._timeout_s)
    except StoreUnavailable:
        return False
    if isinstance(outcome, Applied):
        self._last_known = (record.with_slot(slot), outcome.version)
    self._prolong(hold, slot.seq)
    return True


def _renewal_puts_back_the_old_record(self: SlotKeeper, hold: Hold) -> Steps[bool]:
    """The version is fetched again, but the record is the cached one."""
    record, _ = self._last_known
    slot = record.slot_of(self._nonce)
    assert slot is not None
    slot = replace(slot, seq=next(self._numbers))
    self._sent[slot.seq] = self._context.clock.boot_s()
    try:
        entry = yield from get(self._key, self._timeout_s)
        assert entry is not None
        after = record.with_slot(slot)
        outcome = yield from self._write(entry.version, after, self._timeout_s)
    except StoreUnavailable:
        return False
    if isinstance(outcome, Applied):
        self._last_known = (record.with_slot(slot), outcome.version)
        self._prolong(hold, slot.seq)
        return True
    return False


def _conflict_of_a_renewal_is_a_loss(self: SlotKeeper, hold: Hold) -> Steps[bool | None]:
    record, version = self._last_known
    slot = record.slot_of(self._nonce)
    assert slot is not None
    after = record.with_slot(replace(slot, seq=next(self._numbers)))
    outcome = yield from self._write(version, after, self._timeout_s)
    if not isinstance(outcome, Applied):
        hold.lose("somebody else wrote the record")
        return False
    self._last_known = (after, outcome.version)
    return True


def _give_clears_everything(self: SlotKeeper, hold: Hold) -> Steps[bool]:
    """A holder that releases treats itself as the only holder."""
    try:
        entry = yield from get(self._key, self._timeout_s)
        assert entry is not None
        record = decode_slots(self._kind, self._key, entry.value)
        value = encode_slots(self._kind, replace(record, slots=()), self._context.nonce())
        yield from cas(self._key, entry.version, value, self._timeout_s)
    except StoreUnavailable:
        return False
    finally:
        self._context.lines.leave(self._place)
    return True


def _always(self: Lines, line: Any, ttl_s: float | None) -> bool:
    """Permits are never given back while somebody of this client waits."""
    return True


def _takes_beside(self: SlotAcquisition, observed: Any) -> Any:
    """The next in line adds its slot, and leaves the ended one in the record."""
    step = _decide(self, observed)
    handed = self._place.handed
    if handed is None or not isinstance(step, slots_core._Write) or step.slot is None:
        return step
    ended = observed.record.slot_of(handed.nonce)
    return step if ended is None else step._replace(record=step.record.with_slot(ended))


def _no_withdrawal(self: SlotAcquisition) -> Steps[None]:
    yield from ()


MUTANTS: dict[str, Mutant] = {
    "holder counts from the response": Mutant("rwlock", FromResponse(0.3)),
    "observer counts from the request": Mutant("rwlock-polled", FromRequest(0.3), first_seed=4),
    "observer waits exactly the TTL": Mutant("rwlock", ExactWait(0.3), first_seed=3),
    "slots of others are dropped at once": Mutant(
        "semaphore", None, ((slots_core, "slot_left_s", _drop_at_once),)
    ),
    "seen for long enough, renewed or not": Mutant(
        "semaphore", None, ((slots_core, "slot_left_s", _first_sight_is_enough),)
    ),
    "the observer's own TTL counts": Mutant(
        "rwlock", None, ((slots_core, "slot_left_s", _ttl_of_the_observer),), first_seed=12
    ),
    "one too many": Mutant("semaphore", None, ((SemaphoreRule, "blocking_slots", _one_too_many),)),
    "a holder without a new fence": Mutant(
        "semaphore", None, ((SemaphoreRule, "fence", _same_fence),)
    ),
    "the fence is forgotten with the holders": Mutant(
        "semaphore", None, ((SemaphoreRule, "fence", _fence_of_the_living),)
    ),
    "readers do not wait for a writer inside": Mutant(
        "rwlock", None, ((ReadRule, "blocking_slots", _reader_waits_for_intents_only),)
    ),
    "writers do not wait for readers": Mutant(
        "rwlock", None, ((WriteRule, "blocking_slots", _writer_waits_for_writers_only),)
    ),
    "late answer adopted as fresh": Mutant(
        "rwlock", None, ((SlotAcquisition, "_hold", _answer_is_fresh),)
    ),
    "unknown renewal is success": Mutant(
        "rwlock", None, ((SlotKeeper, "renew", _unknown_renewal_is_success),)
    ),
    "renewal puts back the old record": Mutant(
        "semaphore", None, ((SlotKeeper, "renew", _renewal_puts_back_the_old_record),)
    ),
    "conflict of a renewal is a loss": Mutant(
        "semaphore", None, ((SlotKeeper, "_renew_once", _conflict_of_a_renewal_is_a_loss),)
    ),
    "release clears everything": Mutant(
        "rwlock", None, ((SlotKeeper, "release", _give_clears_everything),)
    ),
    "never given back": Mutant(
        "semaphore-local-queue", None, ((Lines, "_may_hand_over", _always),), first_seed=36
    ),
    "the ended slot stays in the record": Mutant(
        "semaphore-local-queue", None, ((SlotAcquisition, "_decide", _takes_beside),)
    ),
    "giving up leaves the slot standing": Mutant(
        "rwlock-no-crashes", None, ((SlotAcquisition, "_withdraw", _no_withdrawal),), first_seed=68
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


def first_kill(mutant: Mutant, seeds: int) -> Report | None:
    """Return the first report with a violation; None if the mutant survives them all."""
    with applied(mutant):
        for seed in range(mutant.first_seed, mutant.first_seed + seeds):
            report = run_slots(seed, BY_NAME[mutant.variant], mutant.rules)
            if report.violations:
                return report
    return None
