"""Random histories of one lease against a model that tracks its state independently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.lease import LeaseUse
from strongroom.values import TICKS_PER_S, Lease
from tests.effort import examples
from tests.refusals import outcome

START_S = 63_800_000_000
IDS = ("a", "b", "c")


@dataclass
class Model:
    """A lease as in the documentation: a state, an id, and the remaining seconds."""

    state: str = "available"
    id: str = ""
    duration_s: int = 0
    left_s: int | None = None

    def pass_second(self) -> None:
        if self.left_s is None:
            return
        self.left_s -= 1
        if self.left_s == 0:
            self.left_s = None
            self.state = "expired" if self.state == "leased" else "broken"

    def acquire(self, duration_s: int, proposed: str | None, fresh: str) -> str:
        if self.state == "breaking" and proposed == self.id:
            return "LeaseIsBreakingAndCannotBeAcquired"
        if self.state == "breaking" or (self.state == "leased" and proposed != self.id):
            return "LeaseAlreadyPresent"
        self.state, self.id, self.duration_s = "leased", proposed or fresh, duration_s
        self.left_s = None if duration_s == -1 else duration_s
        return ""

    def renew(self, given: str) -> str:
        if self.state == "available" or given != self.id:
            return "LeaseIdMismatchWithLeaseOperation"
        if self.state in ("breaking", "broken"):
            return "LeaseIsBrokenAndCannotBeRenewed"
        self.state = "leased"
        self.left_s = None if self.duration_s == -1 else self.duration_s
        return ""

    def change(self, given: str, proposed: str) -> str:
        if self.state in ("available", "broken", "expired"):
            return "LeaseNotPresentWithLeaseOperation"
        if self.id not in (given, proposed):
            return "LeaseIdMismatchWithLeaseOperation"
        if self.state == "breaking":
            return "LeaseIsBreakingAndCannotBeChanged"
        self.id = proposed
        return ""

    def release(self, given: str) -> str:
        if self.state == "available" or given != self.id:
            return "LeaseIdMismatchWithLeaseOperation"
        self.state, self.left_s = "available", None
        return ""

    def break_(self, period_s: int | None) -> str:
        if self.state == "available":
            return "LeaseNotPresentWithLeaseOperation"
        if self.state in ("leased", "breaking"):
            if self.left_s is None:
                wait_s = period_s or 0
            else:
                wait_s = self.left_s if period_s is None else min(period_s, self.left_s)
            self.state = "breaking" if wait_s else "broken"
            self.left_s = wait_s or None
        else:
            self.state = "broken"
        return ""

    def write(self, given: str | None) -> str:
        if given is None:
            if self.state in ("leased", "breaking"):
                return "LeaseIdMissing"
            self.state = "available"
            return ""
        if self.state == "available":
            return "LeaseNotPresentWithBlobOperation"
        if self.state in ("expired", "broken"):
            return "LeaseLost"
        return "" if given == self.id else "LeaseIdMismatchWithBlobOperation"


class LeaseMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.lease: Lease | None = None
        self.now_s = START_S

    @property
    def now(self) -> int:
        return self.now_s * TICKS_PER_S

    def both(self, expected: str, call: Callable[[], Lease | None]) -> None:
        def keep() -> None:
            self.lease = call()

        assert outcome(keep).rpartition(" ")[2] == (expected or "ok")

    @rule(seconds=st.integers(1, 20))
    def wait(self, seconds: int) -> None:
        self.now_s += seconds
        for _ in range(seconds):
            self.model.pass_second()

    @rule(duration_s=st.sampled_from([-1, 15, 30]), proposed=st.sampled_from([None, *IDS]))
    def acquire(self, duration_s: int, proposed: str | None) -> None:
        self.both(
            self.model.acquire(duration_s, proposed, "x"),
            lambda: leases.acquire(self.lease, duration_s, proposed, "x", self.now),
        )

    @rule(given=st.sampled_from([*IDS, "x"]))
    def renew(self, given: str) -> None:
        self.both(self.model.renew(given), lambda: leases.renew(self.lease, given, self.now))

    @rule(given=st.sampled_from([*IDS, "x"]), proposed=st.sampled_from(IDS))
    def change(self, given: str, proposed: str) -> None:
        self.both(
            self.model.change(given, proposed),
            lambda: leases.change(self.lease, given, proposed, self.now),
        )

    @rule(given=st.sampled_from([*IDS, "x"]))
    def release(self, given: str) -> None:
        def call() -> None:
            leases.release(self.lease, given, self.now)

        self.both(self.model.release(given), call)

    @rule(period_s=st.sampled_from([None, 0, 5, 25, 60]))
    def break_(self, period_s: int | None) -> None:
        def call() -> Lease:
            lease, lease_time_s = leases.break_(self.lease, period_s, self.now)
            assert lease_time_s == (self.model.left_s or 0)
            return lease

        self.both(self.model.break_(period_s), call)

    @rule(given=st.sampled_from([None, *IDS]))
    def write(self, given: str | None) -> None:
        def call() -> Lease | None:
            leases.guard(self.lease, given, LeaseUse.WRITE, self.now)
            return leases.after_write(self.lease, self.now)

        self.both(self.model.write(given), call)

    @invariant()
    def agrees(self) -> None:
        assert leases.state(self.lease, self.now).value == self.model.state
        if self.model.state != "available":
            assert self.lease is not None and self.lease.id == self.model.id
        change = leases.next_timed_change(self.lease, self.now)
        left_s = self.model.left_s
        assert change == (None if left_s is None else (self.now_s + left_s) * TICKS_PER_S)


LeaseMachine.TestCase.settings = examples(450, steps=40)
TestLeaseMachine = LeaseMachine.TestCase
