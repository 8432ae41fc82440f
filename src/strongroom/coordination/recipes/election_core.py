"""The steps that observe an election, without a write.

Lives here: `LeaderView`, and `LeaderWatch`, which returns one view per change. A leader that does
not renew is reported as gone after the same wait that lets another candidate take over. Must not
live here: campaigning, which is taking a lock (locks/lock_core.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strongroom.coordination.effects import UNCHANGED, Sleep, Steps, get
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.options.arguments import waiting_time
from strongroom.coordination.recipes.locks.lock_state import (
    ObservedRecord,
    ends_by_store_clock,
    observed_record,
    time_until_free_s,
)
from strongroom.coordination.recipes.waiting import Backoff, await_change
from strongroom.coordination.session.context import RecipeContext

_READ_TIMEOUT_S = 1.5


@dataclass(frozen=True, slots=True)
class LeaderView:
    """The leader, as far as this observer can tell.

    Attributes:
        leader: the value that the leader proclaimed; None if nobody leads (or it is null).
        leading: whether there is a leader.
        who: the leader's label.
        fence: of the leader, or of the last one; 0 if there never was one.
        nonce: of the leader's term; empty if nobody leads.
    """

    leader: Any
    leading: bool
    who: str
    fence: int
    nonce: str


NOBODY = LeaderView(None, False, "", 0, "")


class LeaderWatch:
    """One observer of one election.

    Arguments:
        key: of the election's record.
    """

    def __init__(self, context: RecipeContext, key: str) -> None:
        self._context, self._key = context, key
        self._backoff = Backoff(context)
        self._observation: ObservedRecord | None = None
        self._last: LeaderView | None = None

    def current(self) -> Steps[LeaderView]:
        """By one read."""
        yield from self._read()
        return self._view()[0]

    def changed(self, seconds: float | None) -> Steps[LeaderView | None]:
        """Return the next view that differs from the last one; the first call returns at once.

        Arguments:
            seconds: the longest wait, after which None is returned; None: for ever. The wait goes
                on while the store does not answer.
        """
        clock, seconds = self._context.clock, waiting_time("timeout", seconds)
        start_s = clock.monotonic_s()
        while True:
            left_s = float("inf") if seconds is None else start_s + seconds - clock.monotonic_s()
            if self._observation is None:
                try:
                    yield from self._read()
                except StoreUnavailable as error:
                    if left_s <= 0:
                        return None
                    yield Sleep(min(left_s, self._backoff.retry_delay_s(error)))
                    continue
            view, recheck_after_s = self._view()
            if view != self._last:
                self._last = view
                return view
            if left_s <= 0:
                return None
            yield from self._wait(min(left_s, recheck_after_s))

    def _read(self) -> Steps[None]:
        sent_s = self._context.clock.monotonic_s()
        entry = yield from get(self._key, _READ_TIMEOUT_S)
        self._observation = observed_record(self._context, self._key, entry, sent_s)

    def _wait(self, seconds: float) -> Steps[None]:
        observed = self._observation
        version = (
            observed.entry.version if observed is not None and observed.entry is not None else None
        )
        sent_s = self._context.clock.monotonic_s()
        outcome = yield from await_change(
            self._context, self._key, version, seconds, self._backoff, _READ_TIMEOUT_S
        )
        if outcome is not UNCHANGED:
            self._observation = observed_record(self._context, self._key, outcome, sent_s)
        elif observed is None or ends_by_store_clock(self._context, observed):
            self._observation = None  # only a new read shows what the store's own clock says
        elif self._view()[0] != self._last:
            # The leader may have renewed while the store did not answer this observer. Only a new
            # read shows that it is gone.
            self._observation = None

    def _view(self) -> tuple[LeaderView, float]:
        """Return who leads, and for how many seconds that need not be judged again."""
        observed = self._observation
        if observed is None or observed.record is None or observed.record.owner is None:
            fence = (
                observed.record.fence if observed is not None and observed.record is not None else 0
            )
            return LeaderView(None, False, "", fence, ""), float("inf")
        record = observed.record
        assert record.owner is not None
        is_own = self._context.holds(self._key, record.owner)
        alive_s = record.ttl_s if is_own else time_until_free_s(self._context, self._key, observed)
        if alive_s <= 0:
            return LeaderView(None, False, "", record.fence, ""), float("inf")
        view = LeaderView(record.value, True, record.who, record.fence, record.owner)
        return view, max(alive_s, 0.01)
