"""The errors that a user of the coordination toolkit meets.

Lives here: the exceptions, and nothing that raises them. Must not live here: outcomes of a single
write (effects.py). A lost race is an outcome of a write, not an error.
"""

from __future__ import annotations

from typing import Final


class CoordinationError(Exception):
    """The base class of every error of this package."""


class CoordTimeout(CoordinationError, TimeoutError):
    """The wait timed out before the name could be acquired.

    Arguments:
        name: the name that was waited for.
        waited_s: the length of the wait in seconds; 0 after a single attempt.
        holder: the current holder's label, for people; empty if no holder was seen.
        text: the message, where the name is not of something that is held.
    """

    def __init__(self, name: str, waited_s: float, holder: str = "", text: str = "") -> None:
        self.name, self.waited_s, self.holder = name, waited_s, holder
        seen = f"; held by {holder}" if holder else ""
        when = f"was not obtained within {waited_s:.3g} s" if waited_s > 0 else "is not free"
        super().__init__(text or f"{name!r} {when}{seen}")


def waited_in_vain(what: str, event: str, name: str, waited_s: float) -> CoordTimeout:
    """Return the error for an event that did not come in time.

    Arguments:
        what, name: a gate, say, and its name.
        event: what did not happen, such as "was not opened".
        waited_s: the length of the wait in seconds; 0 after a single look.
    """
    when = f" within {waited_s:.3g} s" if waited_s > 0 else ""
    return CoordTimeout(name, waited_s, text=f"the {what} {name!r} {event}{when}")


class LockLost(CoordinationError):
    """The hold is lost, or may be: the caller must not touch the resource any more.

    Arguments:
        name: the name that was held.
        reason: why the hold is lost, in words for people.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"{name!r} is lost: {reason}")


class AlreadyHeld(CoordinationError):
    """This thread or task already holds the name or waits for it; no recipe is reentrant.

    A second wait would wait for itself. Other threads and tasks of the client wait in line.

    Arguments:
        name: the name that is held.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"this thread or task already holds {name!r} or waits for it, and would wait for"
            " itself: release it first"
        )


class StoreUnavailable(CoordinationError):
    """The store did not answer, or is temporarily unable to; a retry may succeed.

    A store raises it for a write only if the write was certainly not applied. Otherwise the write's
    outcome is `Unknown`.
    """


class OutcomeUnknown(CoordinationError):
    """A write may or may not have been applied, and that cannot be found out: read, then decide."""


class StoreRefused(CoordinationError):
    """The store refuses the request, and a retry will not help: credentials, permissions, input."""


USED_AFTER_CLOSE: Final = "this client was closed; connect() gives another one"
"""The text of `ClientClosed` for a client that its program has closed."""


class ClientClosed(StoreRefused):
    """The client was closed, or its process was forked, while a caller used it."""


class ChangedSince(CoordinationError):
    """The record is no longer in the state that the caller saw. Nothing was written.

    Arguments:
        name: of the lock, gate, ...
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} has changed since you looked: look again")


class CorruptRecord(CoordinationError):
    """The value under a key is damaged, or not written by this toolkit; the message quotes it.

    Arguments:
        key: the key.
        value: the bytes that were found.
        expected: what the key should hold, in words.
    """

    def __init__(self, key: str, value: bytes, expected: str) -> None:
        self.key, self.value = key, value
        quoted = value[:80].decode("utf-8", "replace")
        super().__init__(f"{key!r} should hold {expected} and holds {quoted!r}")


class BadName(CoordinationError, ValueError):
    """The name cannot be used; the message says why."""


class Unsupported(CoordinationError, ValueError):
    """The store does not support the operation or the argument; the message says what would do."""
