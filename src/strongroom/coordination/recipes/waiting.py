"""How recipes wait: by watching where the store can, else by reading with decorrelated jitter.

Lives here: one step of waiting for a change, and the pace of polls and of tries after trouble. Must
not live here: what is waited for. Nobody here ever waits by writing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strongroom.coordination.context import RecipeContext
from strongroom.coordination.effects import (
    UNCHANGED,
    CasOutcome,
    Sleep,
    Steps,
    Unchanged,
    Unknown,
    Watched,
    get,
    watch,
)
from strongroom.coordination.errors import StoreUnavailable

WATCH_MAX_S: Final = 10.0  # what a lost answer costs at most; 0.1 requests/s for an idle waiter
_TROUBLE_FIRST_S: Final = 0.05
_TROUBLE_MAX_S: Final = 2.0
# How long a hold is tried to be given back: a store may be choosing another leader, and who waits
# would else wait out the whole TTL.
_GIVING_S: Final = 6.0
_TIMEOUT_MIN_S: Final = 0.01  # of a request at the very end of that time
_RACES_MAX: Final = 64
_RACES_SPREAD: Final = 4
_NOTHING: Final = ""  # no version of any store's


class Refusal(NamedTuple):
    """A wait that ended without success: the holder, in words, and how long it took."""

    holder: str
    waited_s: float


class Pace:
    """How long to sleep between polls, and after trouble; one per waiting caller.

    Arguments:
        context: gives chance and the store's bounds.
    """

    def __init__(self, context: RecipeContext) -> None:
        self._context = context
        self._poll_s = context.promises.poll_min_s
        self._trouble_s = _TROUBLE_FIRST_S

    def poll_s(self) -> float:
        """Return the next decorrelated sleep between the store's bounds."""
        p = self._context.promises
        spread = max(0.0, self._poll_s * 3 - p.poll_min_s)
        self._poll_s = min(p.poll_max_s, p.poll_min_s + self._context.clock.random() * spread)
        return self._poll_s

    def trouble_s(self, error: StoreUnavailable | None = None) -> float:
        """Return how long to wait after a failed or lost try: full jitter under a doubling cap.

        Arguments:
            error: why the store did not answer, if the caller goes on waiting; see `Outage`.
        """
        if error is not None:
            self._context.outage.failed(error)
        cap = self._trouble_s
        self._trouble_s = min(_TROUBLE_MAX_S, cap * 2)
        return cap * self._context.clock.random()

    def reset(self) -> None:
        """Something went well: begin small again."""
        self._poll_s = self._context.promises.poll_min_s
        self._trouble_s = _TROUBLE_FIRST_S


class Races:
    """The tries of one write to a record that others write too.

    A lost race says nothing of the store: somebody else got on, so that many are allowed. What is
    counted against the write is trouble: no answer, or a conflict over what nobody has changed.

    Arguments:
        context: gives chance and the clock.
        troubles_max: so much trouble ends it.
    """

    def __init__(self, context: RecipeContext, troubles_max: int) -> None:
        self._clock, self._pace = context.clock, Pace(context)
        self._left, self._troubles_left = _RACES_MAX, troubles_max
        self._began_s = 0.0
        self._met: str | None = _NOTHING

    def go_on(self) -> bool:
        """Begin the next try; False if there have been enough of them."""
        self._began_s = self._clock.boot_s()
        self._left -= 1
        return self._left >= 0 and self._troubles_left > 0

    def lost(self, outcome: CasOutcome, version: str | None) -> Sleep:
        """End a try in vain; see `pause`.

        Arguments:
            outcome: what came of it.
            version: what it was to follow: the same as of the last try is no lost race.
        """
        met, self._met = self._met, version
        return self.pause(troubled=isinstance(outcome, Unknown) or version == met)

    def pause(self, *, troubled: bool) -> Sleep:
        """End a try in vain: jitter of a few round trips, since many may write at one moment."""
        if troubled:
            self._troubles_left -= 1
            return Sleep(self._pace.trouble_s())
        spread = min(_RACES_MAX - self._left, _RACES_SPREAD)
        return Sleep(self._clock.random() * spread * (self._clock.boot_s() - self._began_s))


class GivingBack(Races):
    """The tries to give a hold back: one rule for whatever is held.

    Whatever the store does, they are over six seconds after the first began, or after the TTL if
    that is less. What is left of the time bounds each request, too. The first try is made even if
    there is no time for it (the machine was suspended): it may be all that is needed.

    Arguments:
        context: gives chance, the clock and the rules.
        ttl_s: of the hold: it expires by itself then, and nobody needs it given back.
    """

    def __init__(self, context: RecipeContext, ttl_s: float) -> None:
        super().__init__(context, _RACES_MAX)  # trouble does not end it: the store may come back
        self._attempt_s = context.rules.attempt_timeout_s(ttl_s)
        self._until_s = self._clock.boot_s() + min(_GIVING_S, ttl_s)

    @property
    def timeout_s(self) -> float:
        """How long the next request may take."""
        return max(_TIMEOUT_MIN_S, min(self._attempt_s, self._left_s()))

    def go_on(self) -> bool:
        """Begin the next try; False if the time is over."""
        is_first = self._left == _RACES_MAX
        return super().go_on() and (is_first or self._left_s() > 0)

    def pause(self, *, troubled: bool) -> Sleep:
        """End a try in vain; see `Races.pause`. Nobody sleeps through the time of the last try."""
        wanted_s, left_s = super().pause(troubled=troubled).seconds, max(0.0, self._left_s())
        before_last_s = left_s - self._attempt_s
        return Sleep(min(wanted_s, before_last_s if before_last_s > 0 else left_s))

    def _left_s(self) -> float:
        return self._until_s - self._clock.boot_s()


def await_change(
    context: RecipeContext,
    key: str,
    version: str | None,
    seconds: float,
    pace: Pace,
    timeout_s: float,
) -> Steps[Watched]:
    """Wait until a key has changed, or for `seconds`, or for one poll.

    Arguments:
        context: the client's.
        key: what is watched.
        version: the version that is known; None if the key was absent.
        seconds: at most so long.
        pace: of this caller.
        timeout_s: for one read, where reads are needed.

    Returns:
        the entry (or None: absent) if there was a look at it, changed or not; `UNCHANGED` if a
        watch ended without one. A store that does not answer counts as `UNCHANGED`, after a pause.
    """
    seconds = max(0.0, seconds)
    outcome: Watched | Unchanged
    try:
        if context.promises.watch == "poll":
            yield Sleep(min(seconds, pace.poll_s()))
            outcome = yield from get(key, timeout_s)
        else:
            outcome = yield from watch(key, version, min(seconds, WATCH_MAX_S))
    except StoreUnavailable as error:
        yield Sleep(min(seconds, pace.trouble_s(error)))
        return UNCHANGED
    return outcome
