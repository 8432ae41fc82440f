"""The steps that observe an election, without a write.

Lives here: `LeaderView`, and `LeaderWatch`, which returns one view per change. A leader that does
not renew is reported as gone after the same wait that lets another candidate take over. Must not
live here: campaigning, which is taking a lock (locks/lock_core.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strongroom.coordination.arguments import waiting_time
from strongroom.coordination.context import RecipeContext
from strongroom.coordination.effects import UNCHANGED, Sleep, Steps, get
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.recipes.locks.lock_state import Look, busy_s, is_told, seen
from strongroom.coordination.recipes.waiting import Pace, await_change

_LOOK_TIMEOUT_S = 1.5


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
        context: the client's.
        key: of the election's record.
    """

    def __init__(self, context: RecipeContext, key: str) -> None:
        self._context, self._key = context, key
        self._pace = Pace(context)
        self._look: Look | None = None
        self._last: LeaderView | None = None

    def now(self) -> Steps[LeaderView]:
        """Return who leads, by one read.

        Raises:
            StoreUnavailable: the store did not answer.
        """
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
            if self._look is None:
                try:
                    yield from self._read()
                except StoreUnavailable as error:
                    if left_s <= 0:
                        return None
                    yield Sleep(min(left_s, self._pace.trouble_s(error)))
                    continue
            view, look_again_s = self._view()
            if view != self._last:
                self._last = view
                return view
            if left_s <= 0:
                return None
            yield from self._wait(min(left_s, look_again_s))

    def _read(self) -> Steps[None]:
        sent_s = self._context.clock.monotonic_s()
        entry = yield from get(self._key, _LOOK_TIMEOUT_S)
        self._look = seen(self._context, self._key, entry, sent_s)

    def _wait(self, seconds: float) -> Steps[None]:
        look = self._look
        version = look.entry.version if look is not None and look.entry is not None else None
        sent_s = self._context.clock.monotonic_s()
        outcome = yield from await_change(
            self._context, self._key, version, seconds, self._pace, _LOOK_TIMEOUT_S
        )
        if outcome is not UNCHANGED:
            self._look = seen(self._context, self._key, outcome, sent_s)
        elif look is None or is_told(self._context, look):
            self._look = None  # only a new read shows what the store's own clock says

    def _view(self) -> tuple[LeaderView, float]:
        """Return who leads, and for how many seconds that need not be judged again."""
        look = self._look
        if look is None or look.record is None or look.record.owner is None:
            fence = look.record.fence if look is not None and look.record is not None else 0
            return LeaderView(None, False, "", fence, ""), float("inf")
        record = look.record
        assert record.owner is not None
        mine = self._context.holds(self._key, record.owner)
        alive_s = record.ttl_s if mine else busy_s(self._context, self._key, look)
        if alive_s <= 0:
            return LeaderView(None, False, "", record.fence, ""), float("inf")
        view = LeaderView(record.value, True, record.who, record.fence, record.owner)
        return view, max(alive_s, 0.01)
