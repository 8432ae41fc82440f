"""The steps of a register: compare-and-swap on a value, with versions, TTLs and waiting.

Lives here: the steps. The record is JSON: {"kind": "register", "value", "ttl", "nonce", "before":
[nonces of the last writes]}. After a lost answer, the write's nonce is looked up in `before`. So
its outcome is known even if other clients have written since. A value with a TTL is absent once
this observer has seen the same write for long enough (clock_rules.py). Source of the interface:
Burns, Designing Distributed Systems, chapter 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    CasOutcome,
    Entry,
    Sleep,
    Steps,
    Unknown,
    cas,
    get,
)
from strongroom.coordination.errors import CorruptRecord, OutcomeUnknown, StoreUnavailable
from strongroom.coordination.options.arguments import delay, waiting_time
from strongroom.coordination.recipes.waiting import Backoff, await_change
from strongroom.coordination.schema.records import decode_document, encode_document
from strongroom.coordination.session.context import RecipeContext

KIND: Final = "register"
TIMEOUT_S: Final = 1.5
_BEFORE_MAX: Final = 16
_TRIES: Final = 12


class Versioned(NamedTuple):
    """A value, and the version of the write that it came from."""

    value: Any
    version: str


class Swap(NamedTuple):
    """The outcome of a swap.

    Attributes:
        swapped: whether this call wrote the value.
        version: of the write; None if another write replaced it before its outcome was known.
            Without a swap, the version of the current value; None if there is none.
    """

    swapped: bool
    version: str | None


@dataclass(frozen=True, slots=True)
class _RegisterState:
    entry: Entry | None
    document: dict[str, Any]
    left_s: float  # of the value's TTL; 0: absent or expired; inf: no TTL

    @property
    def version(self) -> str | None:
        return None if self.entry is None else self.entry.version

    @property
    def present(self) -> bool:
        return self.entry is not None and self.left_s > 0


def read_steps(context: RecipeContext, key: str) -> Steps[_RegisterState]:
    """Return the register's state, by one read."""
    sent_s = context.clock.monotonic_s()
    entry = yield from get(key, TIMEOUT_S)
    return _state_of(context, key, entry, sent_s)


def _state_of(
    context: RecipeContext, key: str, entry: Entry | None, sent_s: float
) -> _RegisterState:
    if entry is None:
        return _RegisterState(None, {}, 0.0)
    document = decode_document(key, entry.value, KIND)
    ttl_s = document.get("ttl")
    if "value" not in document or not isinstance(ttl_s, int | float | None):
        raise CorruptRecord(key, entry.value, "a register record")
    if ttl_s is None:
        return _RegisterState(entry, document, float("inf"))
    received_s = context.clock.monotonic_s()
    observed_s = context.rules.observer_start_s(sent_s, received_s)
    since_s = context.sightings.since_s(key, document.get("nonce"), observed_s)
    left_s = since_s + context.rules.observer_wait_s(ttl_s) - received_s
    return _RegisterState(entry, document, max(0.0, left_s))


def get_steps(context: RecipeContext, key: str) -> Steps[Versioned | None]:
    """Return the value and its version; None if it is absent or expired."""
    state = yield from read_steps(context, key)
    return _versioned(state)


class RegisterWrite:
    """One write to a register, conditional (`swap`) or not (`put`).

    Arguments:
        new: JSON.
        ttl_s: the value expires after so long unless it is written again; None: never.
    """

    def __init__(self, context: RecipeContext, key: str, new: Any, ttl_s: float | None) -> None:
        self._context, self._key = context, key
        self._new, self._ttl_s = new, None if ttl_s is None else delay("ttl", ttl_s)
        self._nonce = context.nonce()
        self._backoff = Backoff(context)

    def swap(self, expected: Any, absent: bool, version: str | None) -> Steps[Swap]:
        """Write the value if the current value is the expected one. Raises: as `compare_and_swap`.

        Arguments:
            expected: JSON, compared as JSON.
            absent: expect no value instead (or one whose TTL is over).
            version: if given, the version that must be there too.
        """

        def condition(state: _RegisterState) -> bool:
            if version is not None and state.version != version:
                return False
            if absent:
                return not state.present
            return state.present and bool(state.document["value"] == expected)

        return (yield from self._write_if(condition))

    def put(self) -> Steps[Swap]:
        """Write the value without a condition: the last writer wins."""
        return (yield from self._write_if(lambda _: True))

    def _write_if(self, condition: Callable[[_RegisterState], bool]) -> Steps[Swap]:
        state = yield from read_steps(self._context, self._key)
        while True:
            if not condition(state):
                return Swap(False, state.version if state.present else None)
            outcome = yield from self._write(state)
            if outcome.swapped:
                return outcome
            state = yield from self._read_after_conflict()
            applied = self._applied(state)
            if applied is not None:
                return applied

    def _read_after_conflict(self) -> Steps[_RegisterState]:
        # A proxy that repeats a request gets a Conflict with its own write: read to find out.
        try:
            return (yield from read_steps(self._context, self._key))
        except StoreUnavailable as error:
            message = f"a write of {self._key!r} was refused, and a look at it failed"
            raise OutcomeUnknown(message) from error

    def _applied(self, state: _RegisterState) -> Swap | None:
        """Return success if the record shows this swap's write as its last or an earlier one."""
        if state.document.get("nonce") == self._nonce:
            return Swap(True, state.version)
        return Swap(True, None) if self._nonce in state.document.get("before", []) else None

    def _write(self, state: _RegisterState) -> Steps[Swap]:
        """Write over the version that was read; not swapped if another version is there now."""
        before = [*state.document.get("before", []), state.document.get("nonce", "")]
        document = {
            "kind": KIND,
            "value": self._new,
            "ttl": self._ttl_s,
            "nonce": self._nonce,
            "before": before[-_BEFORE_MAX:],
        }
        value = encode_document(document)
        none_applied = True  # no earlier try of this very write may have been applied
        for _ in range(_TRIES):
            outcome: CasOutcome
            try:
                outcome = yield from cas(self._key, state.version, value, TIMEOUT_S)
            except StoreUnavailable:
                if none_applied:
                    raise
                outcome = Unknown("not tried")
            if isinstance(outcome, Applied):
                return Swap(True, outcome.version)
            if none_applied and not isinstance(outcome, Unknown):
                return Swap(False, None)
            none_applied = False
            resolved = yield from self._resolve_outcome(state)
            if resolved is not None:
                return resolved
            yield Sleep(self._backoff.retry_delay_s())
        raise OutcomeUnknown(f"it is not known whether {self._key!r} was written")

    def _resolve_outcome(self, state: _RegisterState) -> Steps[Swap | None]:
        """Return the outcome of the write, by a read; None if it may still be applied.

        Raises:
            OutcomeUnknown: too many writes came after it.
        """
        try:
            current = yield from read_steps(self._context, self._key)
        except StoreUnavailable:
            return None
        applied = self._applied(current)
        if applied is not None or current.version == state.version:
            return applied
        if state.document.get("nonce", "") in current.document.get("before", []):
            return Swap(False, None)
        raise OutcomeUnknown(f"{self._key!r} was written too often since to know")


def wait_steps(
    context: RecipeContext, key: str, version: str | None, seconds: float | None
) -> Steps[tuple[bool, Versioned | None]]:
    """Wait until the version has changed, or the value has expired.

    Arguments:
        version: the last known version; None: absent.
        seconds: the longest wait; None: for ever. The wait goes on while the store does not answer.

    Returns:
        whether it changed, and the current value (None: absent or expired).
    """
    clock, backoff, seconds = context.clock, Backoff(context), waiting_time("timeout", seconds)
    start_s = clock.monotonic_s()
    state: _RegisterState | None = None
    while True:
        left_s = float("inf") if seconds is None else start_s + seconds - clock.monotonic_s()
        try:
            if state is None:
                state = yield from read_steps(context, key)
            else:
                state = yield from _next_state(context, key, state, left_s, backoff)
        except StoreUnavailable as error:
            yield Sleep(min(max(0.0, left_s), backoff.retry_delay_s(error)))
        if state is not None:
            present = state.version if state.present else None
            if present != version:
                return True, _versioned(state)
            if left_s <= 0:
                return False, _versioned(state)
        elif left_s <= 0:
            return False, None


def _next_state(
    context: RecipeContext, key: str, state: _RegisterState, left_s: float, backoff: Backoff
) -> Steps[_RegisterState]:
    """Return the state after a change, or after a part of the wait.

    Raises:
        StoreUnavailable: the TTL seems to be over, and the store does not say whether it is. The
            value may have been written again while the store did not answer.
    """
    sent_s = context.clock.monotonic_s()
    known = _state_of(context, key, state.entry, sent_s)
    if state.present and not known.present:
        return (yield from read_steps(context, key))
    wait_s = min(left_s, known.left_s) if known.present else left_s
    outcome = yield from await_change(context, key, state.version, wait_s, backoff, TIMEOUT_S)
    return known if outcome is UNCHANGED else _state_of(context, key, outcome, sent_s)


def _versioned(state: _RegisterState) -> Versioned | None:
    if not state.present or state.entry is None:
        return None
    return Versioned(state.document["value"], state.entry.version)
