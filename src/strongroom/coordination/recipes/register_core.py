"""The steps of a register: compare-and-swap on a value, with versions, TTLs and waiting.

Lives here: the steps. The record is JSON: {"kind": "register", "value", "ttl", "nonce", "before":
[nonces of the last writes]}. After a lost answer, the write's nonce is looked up in `before`. So
its outcome is known even if other clients have written since. A value with a TTL is absent once
this observer has seen the same write for long enough (clock_rules.py). Source of the interface:
Burns, Designing Distributed Systems, chapter 9. Must not live here: locks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from strongroom.coordination.arguments import delay, waiting_time
from strongroom.coordination.context import RecipeContext
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
from strongroom.coordination.recipes.waiting import Pace, await_change
from strongroom.coordination.records import decode_document, encode_document

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
class _Seen:
    entry: Entry | None
    document: dict[str, Any]
    left_s: float  # of the value's TTL; 0: absent or expired; inf: no TTL

    @property
    def version(self) -> str | None:
        return None if self.entry is None else self.entry.version

    @property
    def present(self) -> bool:
        return self.entry is not None and self.left_s > 0


def look_steps(context: RecipeContext, key: str) -> Steps[_Seen]:
    """Return the register's state, by one read."""
    sent_s = context.clock.monotonic_s()
    entry = yield from get(key, TIMEOUT_S)
    return _seen(context, key, entry, sent_s)


def _seen(context: RecipeContext, key: str, entry: Entry | None, sent_s: float) -> _Seen:
    if entry is None:
        return _Seen(None, {}, 0.0)
    document = decode_document(key, entry.value, KIND)
    ttl_s = document.get("ttl")
    if "value" not in document or not isinstance(ttl_s, int | float | None):
        raise CorruptRecord(key, entry.value, "a register record")
    if ttl_s is None:
        return _Seen(entry, document, float("inf"))
    received_s = context.clock.monotonic_s()
    begun_s = context.rules.observer_start_s(sent_s, received_s)
    since_s = context.sightings.since_s(key, document.get("nonce"), begun_s)
    left_s = since_s + context.rules.observer_wait_s(ttl_s) - received_s
    return _Seen(entry, document, max(0.0, left_s))


def get_steps(context: RecipeContext, key: str) -> Steps[Versioned | None]:
    """Return the value and its version; None if it is absent or expired."""
    seen = yield from look_steps(context, key)
    return _versioned(seen)


class Swapping:
    """One write to a register, conditional (`swap`) or not (`put`).

    Arguments:
        context: the client's.
        key: of the register.
        new: JSON.
        ttl_s: the value expires after so long unless it is written again; None: never.
    """

    def __init__(self, context: RecipeContext, key: str, new: Any, ttl_s: float | None) -> None:
        self._context, self._key = context, key
        self._new, self._ttl_s = new, None if ttl_s is None else delay("ttl", ttl_s)
        self._nonce = context.nonce()
        self._pace = Pace(context)

    def swap(self, expected: Any, absent: bool, version: str | None) -> Steps[Swap]:
        """Write the value if the current value is the expected one.

        Arguments:
            expected: JSON, compared as JSON.
            absent: expect no value instead (or one whose TTL is over).
            version: if given, the version that must be there too.

        Raises:
            StoreUnavailable: the value was certainly not written.
            OutcomeUnknown: the value may have been written.
        """

        def fits(seen: _Seen) -> bool:
            if version is not None and seen.version != version:
                return False
            if absent:
                return not seen.present
            return seen.present and bool(seen.document["value"] == expected)

        return (yield from self._write_if(fits))

    def put(self) -> Steps[Swap]:
        """Write the value without a condition: the last writer wins."""
        return (yield from self._write_if(lambda _: True))

    def _write_if(self, fits: Callable[[_Seen], bool]) -> Steps[Swap]:
        seen = yield from look_steps(self._context, self._key)
        while True:
            if not fits(seen):
                return Swap(False, seen.version if seen.present else None)
            outcome = yield from self._write(seen)
            if outcome.swapped:
                return outcome
            seen = yield from self._look_again()
            done = self._found(seen)
            if done is not None:
                return done

    def _look_again(self) -> Steps[_Seen]:
        # A proxy that repeats a request gets a Conflict with its own write: read to find out.
        try:
            return (yield from look_steps(self._context, self._key))
        except StoreUnavailable as error:
            message = f"a write of {self._key!r} was refused, and a look at it failed"
            raise OutcomeUnknown(message) from error

    def _found(self, seen: _Seen) -> Swap | None:
        """Return success if the record shows this swap's write as its last or an earlier one."""
        if seen.document.get("nonce") == self._nonce:
            return Swap(True, seen.version)
        return Swap(True, None) if self._nonce in seen.document.get("before", []) else None

    def _write(self, seen: _Seen) -> Steps[Swap]:
        """Write over the version that was read; not swapped if another version is there now."""
        before = [*seen.document.get("before", []), seen.document.get("nonce", "")]
        document = {
            "kind": KIND,
            "value": self._new,
            "ttl": self._ttl_s,
            "nonce": self._nonce,
            "before": before[-_BEFORE_MAX:],
        }
        value = encode_document(document)
        sure = True  # no earlier try of this very write may have been applied
        for _ in range(_TRIES):
            outcome: CasOutcome
            try:
                outcome = yield from cas(self._key, seen.version, value, TIMEOUT_S)
            except StoreUnavailable:
                if sure:
                    raise
                outcome = Unknown("not tried")
            if isinstance(outcome, Applied):
                return Swap(True, outcome.version)
            if sure and not isinstance(outcome, Unknown):
                return Swap(False, None)
            sure = False
            fate = yield from self._fate(seen)
            if fate is not None:
                return fate
            yield Sleep(self._pace.trouble_s())
        raise OutcomeUnknown(f"it is not known whether {self._key!r} was written")

    def _fate(self, seen: _Seen) -> Steps[Swap | None]:
        """Return the outcome of the write, by a read; None if it may still be applied.

        Raises:
            OutcomeUnknown: too many writes came after it.
        """
        try:
            now = yield from look_steps(self._context, self._key)
        except StoreUnavailable:
            return None
        done = self._found(now)
        if done is not None or now.version == seen.version:
            return done
        if seen.document.get("nonce", "") in now.document.get("before", []):
            return Swap(False, None)
        raise OutcomeUnknown(f"{self._key!r} was written too often since to know")


def wait_steps(
    context: RecipeContext, key: str, version: str | None, seconds: float | None
) -> Steps[tuple[bool, Versioned | None]]:
    """Wait until the version has changed, or the value has expired.

    Arguments:
        context: the client's.
        key: of the register.
        version: the last known version; None: absent.
        seconds: the longest wait; None: for ever. The wait goes on while the store does not answer.

    Returns:
        whether it changed, and the current value (None: absent or expired).
    """
    clock, pace, seconds = context.clock, Pace(context), waiting_time("timeout", seconds)
    start_s = clock.monotonic_s()
    seen: _Seen | None = None
    while True:
        left_s = float("inf") if seconds is None else start_s + seconds - clock.monotonic_s()
        try:
            if seen is None:
                seen = yield from look_steps(context, key)
            else:
                sent_s = clock.monotonic_s()
                wait_s = min(left_s, seen.left_s) if seen.present else left_s
                outcome = yield from await_change(
                    context, key, seen.version, wait_s, pace, TIMEOUT_S
                )
                entry = seen.entry if outcome is UNCHANGED else outcome
                seen = _seen(context, key, entry, sent_s)
        except StoreUnavailable as error:
            yield Sleep(min(max(0.0, left_s), pace.trouble_s(error)))
        if seen is not None:
            present = seen.version if seen.present else None
            if present != version:
                return True, _versioned(seen)
            if left_s <= 0:
                return False, _versioned(seen)
        elif left_s <= 0:
            return False, None


def _versioned(seen: _Seen) -> Versioned | None:
    if not seen.present or seen.entry is None:
        return None
    return Versioned(seen.document["value"], seen.entry.version)
