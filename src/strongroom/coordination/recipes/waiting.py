"""How recipes wait: by watching where the store can, else by reading with decorrelated jitter.

Lives here: one step of waiting for a change, the delays of polls, and those of retries. Nothing
here writes while it waits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strongroom.coordination.effects import (
    UNCHANGED,
    AwaitSignal,
    CasOutcome,
    Sleep,
    Steps,
    Unchanged,
    Unknown,
    Watched,
    get,
    watch,
)
from strongroom.coordination.errors import ClientClosed, StoreUnavailable
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.lines import HAND_OVERS_MAX
from strongroom.coordination.session.places import LinePlace

WATCH_MAX_S: Final = 10.0  # bounds the delay after a lost answer; an idle waiter: 0.1 requests/s
_RETRY_FIRST_S: Final = 0.05
_RETRY_MAX_S: Final = 2.0
# For how long a release is retried. A store may be electing another leader. Without the release,
# waiters would have to wait for the whole TTL.
_RELEASE_RETRIES_S: Final = 6.0
_TIMEOUT_MIN_S: Final = 0.01  # the shortest timeout of a request, at the end of that time
_RACES_MAX: Final = 64
_RACES_SPREAD: Final = 4
_REST_TRIPS_MIN: Final = 3
_REST_TRIPS_MAX: Final = 6
_NO_VERSION: Final = ""  # equals no version of any store


class NotAcquired(NamedTuple):
    """The result of a wait that ended without success.

    Attributes:
        holder: the labels of the current holders, for messages.
        waited_s: how long the caller waited.
    """

    holder: str
    waited_s: float


class Backoff:
    """The sleeps of one waiting caller, between polls and after failed attempts.

    Arguments:
        context: gives the random numbers and the store's bounds for polls.
    """

    def __init__(self, context: RecipeContext) -> None:
        self._context = context
        self._poll_s = context.promises.poll_min_s
        self._retry_s = _RETRY_FIRST_S

    def poll_delay_s(self) -> float:
        """Return how long to sleep until the next poll: decorrelated jitter within bounds."""
        p = self._context.promises
        spread = max(0.0, self._poll_s * 3 - p.poll_min_s)
        self._poll_s = min(p.poll_max_s, p.poll_min_s + self._context.clock.random() * spread)
        return self._poll_s

    def retry_delay_s(self, error: StoreUnavailable | None = None) -> float:
        """Return how long to sleep after a failed attempt: full jitter under a cap that doubles.

        Arguments:
            error: the store's error if the caller goes on waiting; it is reported to `Outage`. None
                if there is nothing to report.
        """
        if error is not None:
            self._context.outage.note_failure(error)
        cap = self._retry_s
        self._retry_s = min(_RETRY_MAX_S, cap * 2)
        return cap * self._context.clock.random()

    def reset(self) -> None:
        """Begin again with the shortest sleeps, after a success."""
        self._poll_s = self._context.promises.poll_min_s
        self._retry_s = _RETRY_FIRST_S


class WriteRetries:
    """The bounded retries of one write to a record that other clients write too.

    A lost race means that another client made progress, so many are allowed. Failures have a
    limit of their own. A failure is a request without an answer, or a conflict over a version that
    has not changed.

    Arguments:
        context: gives the random numbers and the clock.
        failures_max: after so many failures there are no more attempts.
    """

    def __init__(self, context: RecipeContext, failures_max: int) -> None:
        self._clock, self._backoff = context.clock, Backoff(context)
        self._left, self._failures_left = _RACES_MAX, failures_max
        self._began_s = 0.0
        self._last_expected: str | None = _NO_VERSION

    def begin_attempt(self) -> bool:
        """Begin the next attempt; return False if none is left."""
        self._began_s = self._clock.boot_s()
        self._left -= 1
        return self._left >= 0 and self._failures_left > 0

    def pause_after(self, outcome: CasOutcome, version: str | None) -> Sleep:
        """Return the pause after an attempt that did not write; see `pause`.

        Arguments:
            outcome: the outcome of the write.
            version: the version that the write expected. The same one as in the previous attempt
                counts as a failure, since no other client has written.
        """
        last_expected, self._last_expected = self._last_expected, version
        return self.pause(is_failure=isinstance(outcome, Unknown) or version == last_expected)

    def pause(self, *, is_failure: bool) -> Sleep:
        """Return the pause after an attempt that did not write.

        After a failure it grows with each attempt (`Backoff.retry_delay_s`). Otherwise it is a
        random time of at most four times the attempt's duration, as many clients may write at once.
        """
        if is_failure:
            self._failures_left -= 1
            return Sleep(self._backoff.retry_delay_s())
        spread = min(_RACES_MAX - self._left, _RACES_SPREAD)
        return Sleep(self._clock.random() * spread * (self._clock.boot_s() - self._began_s))


class ReleaseRetries(WriteRetries):
    """The retries of a release: one rule for every kind of hold.

    They end six seconds after the first one began, or after the TTL if that is shorter. The time
    left also bounds each request. The first attempt is made even if no time is left, for example
    after the machine was suspended. It may be enough.

    Arguments:
        context: gives the random numbers, the clock and the rules.
        ttl_s: the hold's TTL. After it the hold has expired and needs no release.
    """

    def __init__(self, context: RecipeContext, ttl_s: float) -> None:
        super().__init__(context, _RACES_MAX)  # failures do not end it: the store may recover
        self._attempt_s = context.rules.attempt_timeout_s(ttl_s)
        self._until_s = self._clock.boot_s() + min(_RELEASE_RETRIES_S, ttl_s)

    @property
    def timeout_s(self) -> float:
        """The timeout of the next request, in seconds."""
        return max(_TIMEOUT_MIN_S, min(self._attempt_s, self._left_s()))

    def begin_attempt(self) -> bool:
        """Begin the next attempt; return False if the time is over."""
        is_first = self._left == _RACES_MAX
        return super().begin_attempt() and (is_first or self._left_s() > 0)

    def pause(self, *, is_failure: bool) -> Sleep:
        """Return the pause after a failed attempt; see `WriteRetries.pause`.

        It ends early enough to leave time for a last attempt.
        """
        pause_s, left_s = super().pause(is_failure=is_failure).seconds, max(0.0, self._left_s())
        before_last_s = left_s - self._attempt_s
        return Sleep(min(pause_s, before_last_s if before_last_s > 0 else left_s))

    def _left_s(self) -> float:
        return self._until_s - self._clock.boot_s()


def await_turn(context: RecipeContext, place: LinePlace, left_s: float) -> Steps[bool]:
    """Wait in line inside the client, without a request; return False if the time is over.

    After this client has given the key back, its next caller lets other clients go first.

    Arguments:
        place: the caller's, which has joined its line.
        left_s: the longest wait; infinite: for ever.

    Raises:
        ClientClosed: the place was dropped.
    """
    if not place.may_ask and place.signal is not None:
        yield AwaitSignal(place.signal, None if left_s == float("inf") else max(0.0, left_s))
    if place.dropped:
        raise ClientClosed(place.dropped)
    if context.lines.give_up(place):
        return False
    yield from let_others_go_first(context, place, left_s)
    context.lines.begin(place)
    return True


def await_end_of_holds(
    context: RecipeContext, place: LinePlace, holders: tuple[str, ...], left_s: float
) -> Steps[bool]:
    """Wait inside the client, without a request, until one of these holds has ended.

    Arguments:
        place: the caller's, which has the turn.
        holders: nonces of this client's holds, which alone are in the caller's way.
        left_s: the longest wait; infinite: for ever.

    Returns:
        False, without a wait, if one of the holds has ended already.

    Raises:
        ClientClosed: the place was dropped.
    """
    if not context.lines.park(place, holders):
        return False
    assert place.signal is not None
    try:
        yield AwaitSignal(place.signal, None if left_s == float("inf") else max(0.0, left_s))
    finally:
        context.lines.unpark(place)
    if place.dropped:
        raise ClientClosed(place.dropped)
    yield from let_others_go_first(context, place, left_s)
    return True


def let_others_go_first(context: RecipeContext, place: LinePlace, left_s: float) -> Steps[None]:
    """Pause for a while if this client has just given the key back after a row of its own holds."""
    streak_s, place.streak_s = place.streak_s, 0.0
    if streak_s > 0:
        yield Sleep(max(0.0, min(left_s, _rest_s(context, streak_s))))


def _rest_s(context: RecipeContext, streak_s: float) -> float:
    """Return how long other clients may go first.

    It is the average time of one hold of the streak. So at most a ninth of the time is lost where
    nobody else waits. A client that watches needs some round trips. A client that polls
    has polled once after the longest pause of polls.
    """
    trip_s, promises = context.round_trip_s, context.promises
    longest_s = promises.poll_max_s if promises.watch == "poll" else _REST_TRIPS_MAX * trip_s
    return max(_REST_TRIPS_MIN * trip_s, min(longest_s, streak_s / HAND_OVERS_MAX))


def await_change(
    context: RecipeContext,
    key: str,
    version: str | None,
    seconds: float,
    backoff: Backoff,
    timeout_s: float,
) -> Steps[Watched]:
    """Wait until a key has changed, or for `seconds`, or for one poll.

    Arguments:
        key: what is watched.
        version: the version that is known; None if the key was absent.
        seconds: the longest wait.
        backoff: of this caller.
        timeout_s: for one read, where the store has to be polled.

    Returns:
        the current entry, or None if the key is absent, whether it has changed or not. `UNCHANGED`
        if a watch ended by its timeout, or after a pause if the store did not answer.
    """
    seconds = max(0.0, seconds)
    outcome: Watched | Unchanged
    try:
        if context.promises.watch == "poll":
            yield Sleep(min(seconds, backoff.poll_delay_s()))
            outcome = yield from get(key, timeout_s)
        else:
            outcome = yield from watch(key, version, min(seconds, WATCH_MAX_S))
    except StoreUnavailable as error:
        yield Sleep(min(seconds, backoff.retry_delay_s(error)))
        return UNCHANGED
    return outcome
