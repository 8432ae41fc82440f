"""The core of gates: the record in the store, and the steps that read, open and re-arm it.

    {"kind": "gate", "generation": 3, "open": true, "payload": ..., "nonce": "...",
     "who": "host:4711", "since": "2026-11-21T08:00:00.000Z"}

A generation begins closed, and stays open once it was opened. Re-arming begins the next generation,
closed. A waiter of a generation may pass when that generation is open or past. The opening of an
earlier generation never lets it pass. The record alone decides; a message beside it is only a hint
to read. Source: J. Twist, "Release the hounds": the exercise that combines a polled flag with a
message. Must not live here: waiting threads and tasks (gate.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from strongroom.coordination.effects import Applied, Entry, Sleep, Steps, Unknown, cas, get
from strongroom.coordination.errors import (
    ChangedSince,
    CorruptRecord,
    StoreUnavailable,
    waited_in_vain,
)
from strongroom.coordination.options.arguments import waiting_time
from strongroom.coordination.recipes.waiting import Backoff, await_change
from strongroom.coordination.schema.names import name_of
from strongroom.coordination.schema.records import decode_document, encode_document
from strongroom.coordination.session.context import RecipeContext

KIND: Final = "gate"
_ATTEMPT_S: Final = 1.5
_TRIES: Final = 25


@dataclass(frozen=True, slots=True)
class GateView:
    """The state of a gate at one read.

    Attributes:
        generation: counts from 1.
        is_open: whether this generation is open.
        payload: the value that it was opened with; None while it is closed.
        who: the label of the client that opened or re-armed it, for people.
        since: the time of that, by that client's clock, for people.
    """

    generation: int = 1
    is_open: bool = False
    payload: Any = None
    who: str = ""
    since: str = ""

    def lets_through(self, generation: int) -> bool:
        """Return whether the waiters of a generation may pass."""
        return self.generation > generation or (self.generation == generation and self.is_open)


CLOSED: Final = GateView()


def view_of(key: str, entry: Entry | None) -> GateView:
    """Return the gate of a record; without a record, the gate is closed. Raises: CorruptRecord."""
    if entry is None:
        return CLOSED
    found = decode_document(key, entry.value, KIND)
    generation, is_open = found.get("generation"), found.get("open")
    if type(generation) is not int or generation < 1 or type(is_open) is not bool:
        raise CorruptRecord(key, entry.value, "a gate record")
    who, since = str(found.get("who", "")), str(found.get("since", ""))
    return GateView(generation, is_open, found.get("payload"), who, since)


def read_steps(key: str) -> Steps[tuple[GateView, str | None]]:
    """Return the gate, and the version of its record (None without a record).

    Raises: StoreUnavailable, StoreRefused, CorruptRecord.
    """
    entry = yield from get(key, _ATTEMPT_S)
    return view_of(key, entry), None if entry is None else entry.version


def open_steps(
    context: RecipeContext, key: str, payload: Any, generation: int | None = None
) -> Steps[GateView]:
    """Open the current generation. A gate that is open already keeps its payload.

    Arguments:
        generation: the generation that the caller means; None = the current one.

    Raises: ChangedSince if another generation has begun; and as `Gate.open`.
    """
    return (yield from _change(context, key, True, payload, generation))


def rearm_steps(context: RecipeContext, key: str, generation: int | None = None) -> Steps[GateView]:
    """Begin the next generation, closed. A gate that is closed already stays as it is.

    Arguments, errors: as `open_steps`.
    """
    return (yield from _change(context, key, False, None, generation))


def _change(
    context: RecipeContext, key: str, is_open: bool, payload: Any, generation: int | None
) -> Steps[GateView]:
    backoff = Backoff(context)
    own_nonces: set[str] = set()
    last = StoreUnavailable("no try was made")
    for attempt in range(_TRIES):
        if attempt:
            yield Sleep(backoff.retry_delay_s())
        try:
            entry = yield from get(key, _ATTEMPT_S)
            current = view_of(key, entry)
            if _nonce(key, entry) in own_nonces:
                return current
            if generation not in (None, current.generation):
                raise ChangedSince(name_of(key))
            if current.is_open is is_open:
                return current
            nonce = context.nonce()
            who, since = context.label, context.clock.wall_text()
            next_generation = current.generation if is_open else current.generation + 1
            after = GateView(next_generation, is_open, payload, who, since)
            expected = None if entry is None else entry.version
            document = _encode(after, nonce)
            outcome = yield from cas(key, expected, document, _ATTEMPT_S)
        except StoreUnavailable as error:
            last = error
            continue
        if isinstance(outcome, Applied):
            return after
        if isinstance(outcome, Unknown):
            own_nonces.add(nonce)
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
    """Wait until the waiters of a generation may pass; return the gate.

    Arguments:
        timeout_s: the longest wait; None = for ever.
        generation: the one to wait for; None = the one that the first read finds.

    Raises: CoordTimeout, StoreRefused, CorruptRecord. The wait goes on while the store does not
    answer.
    """
    timeout_s = waiting_time("timeout", timeout_s)
    start_s = context.clock.monotonic_s()
    backoff = Backoff(context)
    entry: Entry | None = None
    is_read = False
    while True:
        elapsed_s = context.clock.monotonic_s() - start_s
        left_s = float("inf") if timeout_s is None else timeout_s - elapsed_s
        try:
            if not is_read:
                entry = yield from get(key, _ATTEMPT_S)
                is_read = True
            view = view_of(key, entry)
            if generation is None:
                generation = view.generation
            if view.lets_through(generation):
                return view
            if left_s <= 0:
                raise waited_in_vain("gate", "was not opened", name, elapsed_s)
            version = None if entry is None else entry.version
            outcome = yield from await_change(context, key, version, left_s, backoff, _ATTEMPT_S)
            if outcome is None or isinstance(outcome, Entry):
                entry = outcome
        except StoreUnavailable as error:
            if left_s <= 0:
                raise waited_in_vain("gate", "was not opened", name, elapsed_s) from None
            yield Sleep(min(left_s, backoff.retry_delay_s(error)))
