"""Shared by every guard: the token, and the error for an old one.

Must not live here: any resource.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from strongroom.coordination.errors import CoordinationError


class Fenced(Protocol):
    """A proof that somebody holds, or held, a name: every handle is one."""

    @property
    def name(self) -> str:
        """The name that is held."""
        ...

    @property
    def fence(self) -> int:
        """Rises with every holder of the name."""
        ...

    def check(self) -> None:
        """Raise LockLost if it is known to be lost."""
        ...


@dataclass(frozen=True, slots=True)
class Token:
    """A name and a fence that came from elsewhere; only the resource can tell if it is old."""

    name: str
    fence: int

    def check(self) -> None:
        """Nothing is known here."""


class FencedOut(CoordinationError):
    """The resource has seen a later holder: the hold is over, and nothing was written.

    Arguments:
        name: what was held.
        fence: the token that was refused.
        seen: the token that the resource has seen; None if it does not tell.
        where: the resource.
    """

    def __init__(self, name: str, fence: int, seen: int | None, where: str) -> None:
        self.name, self.fence, self.seen, self.where = name, fence, seen, where
        later = "a later one" if seen is None else f"fence {seen}"
        super().__init__(f"{where} refuses fence {fence} of {name!r}: it has seen {later}")
