"""A recipe's effects and their outcomes: the interface between recipes and drivers.

A recipe is a generator that yields effects and is sent their outcomes. It does no IO, so the sync
driver, the asyncio driver and the simulator all run the same code. A failed read raises
`StoreUnavailable` or `StoreRefused` at the `yield`. A write returns its outcome. Lives here:
effects, outcomes, and the typed functions that yield one effect each.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
ABSENT: Final = None
"""The expected version of a key that must not exist yet."""


class Entry(NamedTuple):
    """The value under a key.

    Attributes:
        value: the bytes that were written.
        version: the identity of the last write; no version of a key is ever reused.
        expires_in_s: the seconds left of the hold by the STORE's clock. It is None if the store
            keeps no clock for this entry. It is positive for a live hold, and math.inf if the store
            does not say how long. It is 0 or less for an expired hold, whose entry and version stay
            usable.
        note: the short text that was written beside the value (blob metadata).
    """

    value: bytes
    version: str
    expires_in_s: float | None = None
    note: str = ""


class LeaseAction(Enum):
    """What a write does to a hold that the store's own clock guards."""

    ACQUIRE = "acquire"  # begin a hold; Conflict while a hold of ANOTHER nonce is alive
    TAKE_OVER = "take_over"  # begin a hold, even if the store's clock says that another is alive
    HAND_OVER = "hand_over"  # end the client's own hold `previous`, and begin one, in one write
    RENEW = "renew"  # renew the hold; Conflict if it has expired by the store's clock
    RELEASE = "release"  # end the hold now, and write the tombstone
    BREAK = "break"  # an administrator ends another's hold now, and writes the tombstone


class LeaseTerms(NamedTuple):
    """Tells a store with a lease clock what a write does to the hold; other stores get none.

    A plain write (`lease=None`) leaves a running hold as it is. TAKE_OVER replaces a hold that
    began before the store's clock was set back. The `Entry.expires_in_s` of such a hold is finite
    and greater than the TTL. A client sends TAKE_OVER once it has seen that version unrenewed for
    `rules.observer_wait_s` by its own clock. The store then compares only the version. A store
    whose entries never look like that may treat TAKE_OVER as ACQUIRE. HAND_OVER is an ACQUIRE for
    which the hold `previous` counts as ended: the client that holds it has ended it.

    Attributes:
        action: see `LeaseAction`.
        ttl_s: for ACQUIRE, TAKE_OVER, HAND_OVER and RENEW: the hold ends that long after the write,
            by the store's clock.
        nonce: 16 hex digits and a counter, unique per hold; the same in ACQUIRE, RENEW and RELEASE.
        previous: for HAND_OVER: the nonce of the hold that ends; else empty.
    """

    action: LeaseAction
    ttl_s: float
    nonce: str
    previous: str = ""


class Applied(NamedTuple):
    """The write took effect and is as durable as promised; `version` is the new version."""

    version: str


class Conflict(NamedTuple):
    """The write certainly did not take effect: the version differed, or a hold is alive."""


class Unknown(NamedTuple):
    """The write may have taken effect, may still do so, or never will: read to find out."""

    reason: str = ""


CasOutcome = Applied | Conflict | Unknown
CONFLICT: Final = Conflict()


class Unchanged(Enum):
    """The outcome of a watch that timed out."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Watched = Entry | None | Unchanged


class Get(NamedTuple):
    """Read one key; outcome: `Entry | None`, where None means that the key does not exist."""

    key: str
    timeout_s: float


class Cas(NamedTuple):
    """Write if the version is the expected one; outcome: `CasOutcome`."""

    key: str
    expected: str | None
    value: bytes
    timeout_s: float
    lease: LeaseTerms | None = None
    note: str = ""


class Delete(NamedTuple):
    """Delete if the version is the expected one; outcome: `CasOutcome`. Never used for fences."""

    key: str
    expected: str
    timeout_s: float


class ListKeys(NamedTuple):
    """List the keys that begin with `prefix`; outcome: sorted `list[str]`."""

    prefix: str
    timeout_s: float


class Watch(NamedTuple):
    """Wait until a key's version differs from `version` (None: absent), at most `timeout_s`.

    Outcome: `Watched`. Only for stores that promise to watch. It may end early.
    """

    key: str
    version: str | None
    timeout_s: float


class Sleep(NamedTuple):
    """Pause for `seconds`; outcome: None."""

    seconds: float


class Settable(Protocol):
    """Is set at most once, by any thread."""

    def call_when_set(self, callback: Callable[[], None]) -> None:
        """Call `callback` once it is set, on any thread; at once if it is set already."""
        ...


class AwaitSignal(NamedTuple):
    """Wait inside the client, without a request, until the signal is set; outcome: None.

    `timeout_s` is the longest wait; None: for ever.
    """

    signal: Settable
    timeout_s: float | None


class SleepUntil(NamedTuple):
    """Sleep until the boot clock reaches `until_s`, or until an earlier entry joins the timetable.

    If `until_s` is None, sleep until any entry joins. Only for background tasks; outcome: None.
    """

    until_s: float | None


Effect = Get | Cas | Delete | ListKeys | Watch | Sleep | AwaitSignal | SleepUntil
Steps = Generator[Effect, Any, T]


def get(key: str, timeout_s: float) -> Steps[Entry | None]:
    """Yield a `Get` and return its outcome, typed."""
    outcome: Entry | None = yield Get(key, timeout_s)
    return outcome


def cas(
    key: str,
    expected: str | None,
    value: bytes,
    timeout_s: float,
    lease: LeaseTerms | None = None,
    note: str = "",
) -> Steps[CasOutcome]:
    """Yield a `Cas` and return its outcome, typed."""
    outcome: CasOutcome = yield Cas(key, expected, value, timeout_s, lease, note)
    return outcome


def delete(key: str, expected: str, timeout_s: float) -> Steps[CasOutcome]:
    """Yield a `Delete` and return its outcome, typed."""
    outcome: CasOutcome = yield Delete(key, expected, timeout_s)
    return outcome


def list_keys(prefix: str, timeout_s: float) -> Steps[list[str]]:
    """Yield a `ListKeys` and return its outcome, typed."""
    outcome: list[str] = yield ListKeys(prefix, timeout_s)
    return outcome


def watch(key: str, version: str | None, timeout_s: float) -> Steps[Watched]:
    """Yield a `Watch` and return its outcome, typed."""
    outcome: Watched = yield Watch(key, version, timeout_s)
    return outcome
