"""Wrong rules for members; the simulator must kill every one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Applied, Conflict, Entry, Steps, Unknown, cas, get
from strongroom.coordination.effects import delete as delete_effect
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.recipes.members_core import (
    GroupObserver,
    Member,
    MemberKeeper,
    encode_member,
)
from strongroom.coordination.recipes.slots.slot_records import slot_name
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.simulation.members_scenario import FAULTS, run_members
from strongroom.coordination.simulation.report import Report
from strongroom.coordination.simulation.world import Faults
from tests.coordination.lock_mutants import ExactWait, FromRequest, FromResponse

EXACT = replace(FAULTS, rate=0.0)

_store = MemberKeeper._store
_prolong = MemberKeeper._prolong


@dataclass(frozen=True)
class Mutant:
    """One wrong rule, and the faults that expose it.

    `first_seed` is near the first seed that catches it, since a rule that rarely does harm would
    take long otherwise.
    """

    rules: ClockRules | None = None
    patches: tuple[tuple[type, str, Callable[..., Any]], ...] = ()
    faults: Faults = FAULTS
    first_seed: int = 0


def _bury_whatever_is_there(self: GroupObserver, key: str, entry: Entry) -> Steps[None]:
    """The dead are removed by their present version, not by the version that was seen."""
    try:
        now = yield from get(key, 1.5)
        if now is not None:
            yield from delete_effect(key, now.version, 1.5)
    except CoordinationError:
        return


def _bury_nobody(self: GroupObserver, key: str, entry: Entry) -> Steps[None]:
    """The dead are not listed, but their records stay."""
    yield from ()


def _first_sight_is_enough(self: GroupObserver, key: str, member: Member, since_s: float) -> float:
    """A member that was seen for long enough counts as dead, renewed or not."""
    context = self._context
    start_s = context.sightings.since_s(slot_name(key, member.nonce), member.nonce, since_s)
    return start_s + context.rules.observer_wait_s(member.ttl_s) - context.clock.monotonic_s()


def _others_are_dead(self: GroupObserver, key: str, member: Member, since_s: float) -> float:
    """Only the client's own memberships count as alive."""
    return 1.0 if member.nonce.startswith(f"{self._context.identity}-") else 0.0


def _late_write_is_fresh(self: MemberKeeper, hold: Hold, seq: int, sent_s: float) -> None:
    """A write that is found applied counts from the time of the discovery."""
    _prolong(self, hold, seq, self._context.clock.boot_s())


def _store_once(
    self: MemberKeeper,
    hold: Hold,
    wrong: Callable[[MemberKeeper, Hold, int, float], bool],
    of: type,
) -> Steps[bool]:
    """Write once, and apply the wrong rule if the outcome is of that kind."""
    context, seq = self._context, next(self._numbers)
    member = Member(self._nonce, self.data, context.label, self._since, seq, self._ttl_s)
    sent_s = self._sent[seq] = context.clock.boot_s()
    outcome = yield from cas(self.key, self._version, encode_member(member), self._timeout_s)
    if isinstance(outcome, Applied):
        self._version = outcome.version
        self._prolong(hold, seq, sent_s)
        return True
    if isinstance(outcome, of):
        return wrong(self, hold, seq, sent_s)
    return (yield from _store(self, hold))


def _believe(self: MemberKeeper, hold: Hold, seq: int, sent_s: float) -> bool:
    self._prolong(hold, seq, sent_s)
    return True


def _give_up(self: MemberKeeper, hold: Hold, seq: int, sent_s: float) -> bool:
    if self._joined:
        hold.lose("the renewal was refused")
    return False


def _unknown_is_success(self: MemberKeeper, hold: Hold) -> Steps[bool]:
    """A write without an answer counts as applied."""
    return (yield from _store_once(self, hold, _believe, Unknown))


def _conflict_is_loss(self: MemberKeeper, hold: Hold) -> Steps[bool]:
    """A renewal that conflicts counts as a loss."""
    return (yield from _store_once(self, hold, _give_up, Conflict))


MUTANTS: dict[str, Mutant] = {
    "holder counts from the response": Mutant(FromResponse(0.0), faults=EXACT, first_seed=2),
    "observer counts from the request": Mutant(FromRequest(0.0), faults=EXACT),
    "observer waits exactly the TTL": Mutant(ExactWait(0.3), first_seed=4),
    "the dead are removed whatever is there": Mutant(
        None, ((GroupObserver, "_delete_dead", _bury_whatever_is_there),)
    ),
    "nobody buries the dead": Mutant(None, ((GroupObserver, "_delete_dead", _bury_nobody),)),
    "seen for long enough, renewed or not": Mutant(
        None, ((GroupObserver, "_left_s", _first_sight_is_enough),)
    ),
    "others are dead": Mutant(None, ((GroupObserver, "_left_s", _others_are_dead),)),
    "a write found late counts as fresh": Mutant(
        None, ((MemberKeeper, "_prolong", _late_write_is_fresh),), EXACT, first_seed=2
    ),
    "unknown write is success": Mutant(None, ((MemberKeeper, "_store", _unknown_is_success),)),
    "conflict is a loss": Mutant(None, ((MemberKeeper, "_store", _conflict_is_loss),)),
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
            report = run_members(seed, mutant.rules, mutant.faults)
            if report.violations:
                return report
    return None
