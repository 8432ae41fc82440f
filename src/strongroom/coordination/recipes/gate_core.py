"""A gate that many nodes wait at: the flag in the store, and what may be done to it.

    {"kind": "gate", "generation": 3, "open": true, "payload": ..., "nonce": "...",
     "who": "host:4711", "since": "2026-11-21T08:00:00.000Z"}

A generation is closed, then open for good; re-arming begins the next one, closed. Who waits for a
generation is let through when it is open or past, and never by the opening of an earlier one. The
flag is the truth; whatever is multicast beside it is only a hint to look. Source: J. Twist,
"Release the hounds": the exercise that combines a polled flag with a message. Must not live here:
waiting threads and tasks (gate.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from strongroom.coordination.arguments import waiting_time
from strongroom.coordination.context import RecipeContext
from strongroom.coordination.effects import Applied, Entry, Sleep, Steps, Unknown, cas, get
from strongroom.coordination.errors import CoordTimeout, CorruptRecord, StoreUnavailable
from strongroom.coordination.recipes.waiting import Pace, await_change
from strongroom.coordination.records import decode_document, encode_document

KIND: Final = "gate"
_ATTEMPT_S: Final = 1.5
_TRIES: Final = 25


@dataclass(frozen=True, slots=True)
class GateView:
    """A gate as it was at one look.

    Attributes:
        generation: counts from 1.
        is_open: whether this generation is let through.
        payload: what was given when it was opened, None while it is closed.
        who: who opened or re-armed it, for people.
        since: when, by that one's clock, for people.
    """

    generation: int = 1
    is_open: bool = False
    payload: Any = None
    who: str = ""
    since: str = ""

    def lets_through(self, generation: int) -> bool:
        """Whether those who wait for a generation may go."""
        return self.generation > generation or (self.generation == generation and self.is_open)


CLOSED: Final = GateView()


def view_of(key: str, entry: Entry | None) -> GateView:
    """The gate under a key; one that nobody has touched is closed. Raises: CorruptRecord."""
    if entry is None:
        return CLOSED
    found = decode_document(key, entry.value, KIND)
    generation, is_open = found.get("generation"), found.get("open")
    if type(generation) is not int or generation < 1 or type(is_open) is not bool:
        raise CorruptRecord(key, entry.value, "a gate record")
    who, since = str(found.get("who", "")), str(found.get("since", ""))
    return GateView(generation, is_open, found.get("payload"), who, since)


def look_steps(key: str) -> Steps[tuple[GateView, str | None]]:
    """The gate, and the version of its record.

    Raises: StoreUnavailable, StoreRefused, CorruptRecord.
    """
    entry = yield from get(key, _ATTEMPT_S)
    return view_of(key, entry), None if entry is None else entry.version


def open_steps(context: RecipeContext, key: str, payload: Any) -> Steps[GateView]:
    """Open the generation that there is; one that is open stays as it was opened."""
    return (yield from _change(context, key, True, payload))


def rearm_steps(context: RecipeContext, key: str) -> Steps[GateView]:
    """Begin the next generation, closed; one that is closed stays as it is."""
    return (yield from _change(context, key, False, None))


def _change(context: RecipeContext, key: str, is_open: bool, payload: Any) -> Steps[GateView]:
    pace = Pace(context)
    mine: set[str] = set()
    last = StoreUnavailable("no try was made")
    for attempt in range(_TRIES):
        if attempt:
            yield Sleep(pace.trouble_s())
        try:
            entry = yield from get(key, _ATTEMPT_S)
            seen = view_of(key, entry)
            if seen.is_open is is_open or _nonce(key, entry) in mine:
                return seen
            nonce = context.nonce()
            generation = seen.generation if is_open else seen.generation + 1
            who, since = context.label, context.clock.wall_text()
            after = GateView(generation, is_open, payload, who, since)
            expected = None if entry is None else entry.version
            document = _encode(after, nonce)
            outcome = yield from cas(key, expected, document, _ATTEMPT_S)
        except StoreUnavailable as error:
            last = error
            continue
        if isinstance(outcome, Applied):
            return after
        if isinstance(outcome, Unknown):
            mine.add(nonce)
        last = StoreUnavailable(f"{key!r} could not be changed: others were faster each time")
    raise last


def _encode(view: GateView, nonce: str) -> bytes:
    return encode_document(
        {
            "kind": KIND,
            "generation": view.generation,
            "open": view.is_open,
            "payload": view.payload,
            "nonce": nonce,
            "who": view.who,
            "since": view.since,
        }
    )


def _nonce(key: str, entry: Entry | None) -> str:
    return "" if entry is None else str(decode_document(key, entry.value, KIND).get("nonce", ""))


def wait_steps(
    context: RecipeContext, name: str, key: str, timeout_s: float | None, generation: int | None
) -> Steps[GateView]:
    """Wait until a generation is let through.

    Arguments:
        timeout_s: at most so long; None = for ever.
        generation: for which one; None = the one that the first look finds.

    Raises: CoordTimeout, StoreRefused, CorruptRecord. A store that does not answer is waited for.
    """
    timeout_s = waiting_time("timeout", timeout_s)
    began = context.clock.monotonic_s()
    pace = Pace(context)
    entry: Entry | None = None
    known = False
    while True:
        passed_s = context.clock.monotonic_s() - began
        left_s = float("inf") if timeout_s is None else timeout_s - passed_s
        try:
            if not known:
                entry = yield from get(key, _ATTEMPT_S)
                known = True
            view = view_of(key, entry)
            if generation is None:
                generation = view.generation
            if view.lets_through(generation):
                return view
            if left_s <= 0:
                raise CoordTimeout(name, passed_s)
            version = None if entry is None else entry.version
            outcome = yield from await_change(context, key, version, left_s, pace, _ATTEMPT_S)
            if outcome is None or isinstance(outcome, Entry):
                entry = outcome
        except StoreUnavailable as error:
            if left_s <= 0:
                raise CoordTimeout(name, passed_s) from None
            yield Sleep(min(left_s, pace.trouble_s(error)))
