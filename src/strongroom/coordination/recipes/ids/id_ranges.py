"""RangeReservations a range of ids by one optimistic write: the core of `ids`.

The key holds the next id that nobody has reserved, as bare decimal text that people can read and
write. The nonce of the last write is stored with it as `note`. A range is [n, n + size). Gaps are
allowed, duplicates never: local state changes only when a write is known to have been applied.
Source: J. Twist, "Generating unique IDs in a distributed system". Two defects of the published
listing and its descendants are regression tests. One changed the local range before the write
succeeded; one read the version anew just before the write. Must not live here: handing out ids
(ids.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from strongroom.coordination.effects import Applied, Sleep, Steps, Unknown, cas, get
from strongroom.coordination.errors import CoordinationError, CorruptRecord, StoreUnavailable
from strongroom.coordination.recipes.waiting import Backoff
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.context import RecipeContext

KIND: Final = "ids"
ID_MAX: Final = 2**63 - 1
_ATTEMPT_S: Final = 1.5
_EXPECTED: Final = "the next free id as a decimal number"


class IdsUnavailable(CoordinationError):
    """No range could be reserved: too many lost races or unanswered requests, one after another.

    Arguments:
        name: of the ids.
        tries: how many were made.
        reason: why the last one failed.
    """

    def __init__(self, name: str, tries: int, reason: str) -> None:
        self.name, self.tries = name, tries
        super().__init__(f"no ids of {name!r} after {tries} tries; the last one: {reason}")


class IdsExhausted(CoordinationError):
    """There are no ids left below 2**63."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the ids of {name!r} are used up: the next one would be above {ID_MAX}")


@dataclass(slots=True)
class RangeReservations:
    """The state of one generator's reservations.

    Arguments:
        key: where the next free id is stored.
        name: for messages.
        first: the first id, if nothing is stored yet.
        max_retries: how many tries follow the first one.

    Attributes:
        highest: the highest next free id seen so far; a smaller one in the store is an error.
        unresolved: writes of unknown outcome, by nonce: the ranges that they reserve if they were
            applied.
    """

    key: str
    name: str
    first: int = 1
    max_retries: int = 25
    highest: int = 0
    unresolved: dict[str, range] = field(default_factory=dict)


def reserve_steps(context: RecipeContext, state: RangeReservations, count: int) -> Steps[range]:
    """Reserve `count` ids; return the range. No other generator ever gets any of it.

    Raises:
        IdsUnavailable: no try succeeded.
        IdsExhausted: the range would pass 2**63 - 1.
        CorruptRecord: the stored text is no number, or a smaller one than before.
    """
    backoff = Backoff(context)
    reason = ""
    for attempt in range(state.max_retries + 1):
        if attempt:
            yield Sleep(backoff.retry_delay_s())
        try:
            entry = yield from get(state.key, _ATTEMPT_S)
            note = "" if entry is None else entry.note
            if note in state.unresolved:
                # A write without an answer was applied, and no other write came after it.
                found = state.unresolved[note]
                state.unresolved.clear()
                state.highest = max(state.highest, found.stop)
                return found
            start = state.first if entry is None else _number(state, entry.value)
            nonce, found = context.nonce(), range(start, start + count)
            if found.stop - 1 > ID_MAX:
                raise IdsExhausted(state.name)
            expected = None if entry is None else entry.version
            text = b"%d" % found.stop
            outcome = yield from cas(state.key, expected, text, _ATTEMPT_S, note=nonce)
        except StoreUnavailable as error:
            reason = str(error)
            continue
        if isinstance(outcome, Applied):
            # Open writes expected this version or an older one: none can be applied any more.
            state.unresolved.clear()
            state.highest = found.stop
            return found
        reason = "another node was faster"
        if isinstance(outcome, Unknown):
            state.unresolved[nonce] = found
            reason = "the store did not say whether it wrote"
    raise IdsUnavailable(state.name, state.max_retries + 1, reason)


def next_id_steps(name: str) -> Steps[int | None]:
    """Return the next id that nobody has reserved, by one read; None if none was ever reserved.

    Raises: StoreUnavailable, StoreRefused, CorruptRecord, BadName.
    """
    key = key_of(KIND, name)
    entry = yield from get(key, _ATTEMPT_S)
    return None if entry is None else decode_next_id(key, entry.value)


def decode_next_id(key: str, value: bytes) -> int:
    """Return the number under a key of ids. Raises: CorruptRecord."""
    text = value.strip()
    if not text.isdigit() or len(text) > 19:
        raise CorruptRecord(key, value, _EXPECTED)
    return int(text)


def _number(state: RangeReservations, value: bytes) -> int:
    number = decode_next_id(state.key, value)
    if number < state.highest:
        expected = f"{_EXPECTED}, {state.highest} or more: it has been that already"
        raise CorruptRecord(state.key, value, expected)
    return number
