"""One write ends one hold and begins the next: step by step, without threads."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.coordination.clock import ManualClocks
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.drivers.threads import run_steps
from strongroom.coordination.effects import CONFLICT, AwaitSignal, Cas, Effect, Get, Sleep, Unknown
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_request import HoldRequest
from strongroom.coordination.recipes.locks.rwlock import KIND, WRITE, WriteRule
from strongroom.coordination.recipes.slots.slot_records import SlotRecord, encode_slots
from strongroom.coordination.recipes.slots.slots_core import SlotAcquisition, SlotRequest
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.stores.memory import MemoryStore
from strongroom.coordination.stores.registers import Registers

TTL_S = 15.0
ANSWER_S = 3.0


class SlowStore:
    """Performs effects; each answer to a write takes three seconds, and the first may be lost."""

    def __init__(self) -> None:
        self.clock, self.registers = ManualClocks(), Registers()
        self.sent: list[tuple[str, float]] = []
        self.loses_answer = False

    def perform(self, effect: Effect) -> Any:
        assert isinstance(effect, Get | Cas | Sleep | AwaitSignal)
        now_s = self.clock.boot_s()
        if isinstance(effect, Sleep | AwaitSignal):
            return None
        self.sent.append((type(effect).__name__, now_s))
        if isinstance(effect, Get):
            return self.registers.get(effect.key, now_s)
        outcome = self.registers.cas(effect.key, effect.expected, effect.value, None, "", now_s)
        self.clock.advance(ANSWER_S)
        loses_answer, self.loses_answer = self.loses_answer, False
        return Unknown("no answer") if loses_answer else outcome


@pytest.mark.parametrize("is_answered", [True, False])
def test_the_ttl_of_a_hand_over_counts_from_the_sending_of_its_write(is_answered: bool) -> None:
    store = SlowStore()
    clock, promises = store.clock, MemoryStore().promises()
    context = RecipeContext(clock, ClockRules(), promises, "one")
    request = HoldRequest("lock/a", "a", TTL_S, None)
    first = run_steps(Acquisition(context, request).steps(), store.perform)
    assert isinstance(first, Hold)
    heir = Acquisition(context, request).steps()
    assert isinstance(heir.send(None), AwaitSignal)
    store.sent.clear()
    clock.advance(5.0)
    assert first.end()
    assert run_steps(first.keeper.release(first), store.perform) is True
    assert store.sent == []  # whoever is next writes
    clock.advance(1.0)
    sent_s, store.loses_answer = clock.boot_s(), not is_answered
    hold = run_steps(heir, store.perform)
    assert isinstance(hold, Hold)
    assert (hold.fence, hold.nonce != first.nonce) == (first.fence + 1, True)
    assert hold.deadline_s == sent_s + TTL_S and hold.remaining_s() == TTL_S - ANSWER_S
    # A lost answer is resolved by reading: the nonce in the record is the heir's.
    assert store.sent == [("Cas", sent_s), *([] if is_answered else [("Get", sent_s + ANSWER_S)])]
    assert not first.active and not first.reason


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_release_that_its_own_client_has_overtaken_is_no_loss(is_broken: bool) -> None:
    """A slot whose hold has ended does not count for its client, which may write over it before
    the release is sent. A slot that somebody else has removed was lost."""
    store = SlowStore()
    context = RecipeContext(store.clock, ClockRules(), MemoryStore().promises(), "one")
    other = RecipeContext(store.clock, ClockRules(), MemoryStore().promises(), "other")
    request = SlotRequest(KIND, "rwlock/a", "a", WRITE, WriteRule(), TTL_S, wait_s=0.0)
    first = run_steps(SlotAcquisition(context, request).steps(), store.perform)
    assert isinstance(first, Hold)
    if is_broken:
        found = store.registers.get("rwlock/a", 0.0)
        assert found is not None
        emptied = encode_slots(KIND, SlotRecord(first.fence), "")
        store.registers.cas("rwlock/a", found.version, emptied, None, "", 0.0)
    assert first.end()
    second = run_steps(
        SlotAcquisition(other if is_broken else context, request).steps(), store.perform
    )
    assert isinstance(second, Hold) and second.fence == first.fence + 1
    assert run_steps(first.keeper.release(first), store.perform) is not is_broken
    assert run_steps(second.keeper.release(second), store.perform) is True


def test_a_writer_that_has_lost_many_races_pauses_no_longer_than_after_a_few() -> None:
    """Else it would starve beside readers that take turns without a pause."""
    store, pauses, lost = SlowStore(), list[float](), 0
    context = RecipeContext(store.clock, ClockRules(), MemoryStore().promises(), "one")
    request = SlotRequest(KIND, "rwlock/a", "a", WRITE, WriteRule(), TTL_S, None, "wants-write")

    def perform(effect: Effect) -> Any:
        nonlocal lost
        if isinstance(effect, Sleep):
            pauses.append(effect.seconds)
        if isinstance(effect, Cas) and lost < 40:
            lost += 1
            store.clock.advance(0.01)
            return CONFLICT
        return store.perform(effect)

    assert isinstance(run_steps(SlotAcquisition(context, request).steps(), perform), Hold)
    assert len(pauses) > 30 and max(pauses) < 0.1
