"""A recipe's effects and their outcomes: the vocabulary between core and drivers.

A recipe is a generator that yields effects and is sent their outcomes. It does no IO. So the sync
driver, the asyncio driver and the simulator run the same shipped code. Reads that fail raise
`StoreUnavailable` or `StoreRefused` at the yield. Writes answer. Lives here: effects, outcomes, and
the typed one-liners that yield them. Must not live here: anything that performs one.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")
ABSENT: Final = None
"""The expected version of a key that must not exist yet."""


class Entry(NamedTuple):
    """The value under a key.

    Attributes:
        value: the bytes that were written.
        version: names this very write; no version of a key ever comes again.
        expires_in_s: None where the store keeps no clock for this entry. Otherwise what is left of
            the hold by the STORE's clock. A hold has more than 0, or math.inf if the store does not
            say for how long. An expired one has 0 or less; the entry stays readable, and its
            version usable.
        note: the short text that was written beside the value (blob metadata).
    """

    value: bytes
    version: str
    expires_in_s: float | None = None
    note: str = ""


class Act(Enum):
    """The meaning of a write for a hold that the store's own clock guards."""

    TAKE = "take"  # begin: refused (Conflict) while a hold of ANOTHER nonce is alive
    TAKE_OVER = "take_over"  # begin, although the store's clock says that another's is alive
    KEEP = "keep"  # prolong: Conflict if the hold is over by the store's clock
    GIVE = "give"  # end it now, and write the tombstone
    BREAK = "break"  # an administrator ends somebody's hold now, and writes the tombstone


class LeaseTerms(NamedTuple):
    """Tells a store with a lease clock what a write means; other stores never see one.

    A plain write (`lease=None`) leaves a running hold as it is. TAKE_OVER is for a hold from before
    the store's clock was set back: its `Entry.expires_in_s` is finite and greater than the TTL. A
    client sends it after it has seen that version unrenewed for `rules.observer_wait_s` by its own
    clock. Only the version is compared. A store whose entries never look so may treat it as TAKE.

    Attributes:
        act: see `Act`.
        ttl_s: for TAKE, TAKE_OVER and KEEP: the hold ends that long after the write, by the
            store's clock.
        nonce: 16 hex digits and a counter, unique per hold; the same in TAKE, KEEP and GIVE.
    """

    act: Act
    ttl_s: float
    nonce: str


class Applied(NamedTuple):
    """The write took effect and is durable as promised; this is the entry's version now."""

    version: str


class Conflict(NamedTuple):
    """The write certainly did not take effect: the version was another one, or a hold is alive."""


class Unknown(NamedTuple):
    """The write may have taken effect, may do so later, or never: read again to find out."""

    reason: str = ""


CasOutcome = Applied | Conflict | Unknown
CONFLICT: Final = Conflict()


class Unchanged(Enum):
    """A watch ended by its timeout."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Watched = Entry | None | Unchanged


class Get(NamedTuple):
    """Read one key; outcome: `Entry | None`, None only for a definite absence."""

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
    """Delete if the version is the expected one; outcome: `CasOutcome`. Never for a fence."""

    key: str
    expected: str
    timeout_s: float


class ListKeys(NamedTuple):
    """List the keys that begin with `prefix`; outcome: sorted `list[str]`."""

    prefix: str
    timeout_s: float


class Watch(NamedTuple):
    """Wait until a key's version is not `version` (None: absent), or for `timeout_s`.

    Outcome: `Watched`. Only for stores that promise to watch; an early wake is allowed.
    """

    key: str
    version: str | None
    timeout_s: float


class Sleep(NamedTuple):
    """Do nothing for so long; outcome: None."""

    seconds: float


class Park(NamedTuple):
    """Sleep until the boot clock shows `until_s`, or the timetable has something earlier.

    None: until there is anything at all. Only for background tasks; outcome: None.
    """

    until_s: float | None


Effect = Get | Cas | Delete | ListKeys | Watch | Sleep | Park
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
