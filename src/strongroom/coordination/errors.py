"""The errors that a user of the coordination toolkit meets.

Lives here: the exceptions, and nothing that raises them. Must not live here: outcomes of a single
write (effects.py): a lost race is an answer, not an error.
"""

from __future__ import annotations


class CoordinationError(Exception):
    """Base of every error of this package."""


class CoordTimeout(CoordinationError, TimeoutError):
    """The waiting time ran out.

    Arguments:
        name: what was waited for.
        waited_s: for how long, in seconds; 0 if it was tried once.
        holder: who has it, in words for people; empty if nobody was seen.
    """

    def __init__(self, name: str, waited_s: float, holder: str = "") -> None:
        self.name, self.waited_s, self.holder = name, waited_s, holder
        seen = f"; held by {holder}" if holder else ""
        when = f"was not to be had within {waited_s:.3g} s" if waited_s > 0 else "is not free"
        super().__init__(f"{name!r} {when}{seen}")


class LockLost(CoordinationError):
    """The hold is lost, or may be: the caller must not touch the resource any more.

    Arguments:
        name: what was held.
        reason: why it is gone, in words for people.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"{name!r} is lost: {reason}")


class AlreadyHeld(CoordinationError):
    """This client holds the name already, or is waiting for it; nothing here is reentrant.

    Waiting would wait for oneself. Two threads that are to exclude each other are two clients:
    `client.sibling()` makes another one over the same store.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"this client already holds {name!r} or waits for it; a second participant needs"
            " a client of its own (client.sibling())"
        )


class StoreUnavailable(CoordinationError):
    """The store did not answer, or said that it cannot now; a later try may succeed.

    For a write, a store raises it only if the write was certainly not applied; where that is
    not certain the write answers `Unknown`.
    """


class OutcomeUnknown(CoordinationError):
    """A write may have been done, and nobody can tell any more: read, and decide anew."""


class StoreRefused(CoordinationError):
    """The store refuses and will refuse again: credentials, permissions, a bad request."""


class CorruptRecord(CoordinationError):
    """The value under a key was not written by this toolkit, or is damaged; the message quotes it.

    Arguments:
        key: the key.
        value: what was found.
        expected: what should be there, in words.
    """

    def __init__(self, key: str, value: bytes, expected: str) -> None:
        self.key, self.value = key, value
        quoted = value[:80].decode("utf-8", "replace")
        super().__init__(f"{key!r} should hold {expected} and holds {quoted!r}")


class BadName(CoordinationError, ValueError):
    """A name that cannot be used; the message says why."""


class Unsupported(CoordinationError, ValueError):
    """This store cannot do that, or not with that argument; the message names what can."""
