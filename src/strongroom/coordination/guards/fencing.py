"""The token, and the error for an old one, which all guards share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from strongroom.coordination.errors import CoordinationError


class Fenced(Protocol):
    """A name with the fencing token of one of its holders; every handle is one."""

    @property
    def name(self) -> str:
        """The name that is held."""
        ...

    @property
    def fence(self) -> int:
        """The fencing token; it rises with every holder of the name."""
        ...

    def check(self) -> None:
        """Raise LockLost if the hold is known to be lost."""
        ...


@dataclass(frozen=True, slots=True)
class Token:
    """A name and a fence from another process; only the resource can tell whether they are old."""

    name: str
    fence: int

    def check(self) -> None:
        """Do nothing: this process does not know the hold."""


class FencedOut(CoordinationError):
    """The resource has seen a later holder: the hold is over, and nothing was written.

    Arguments:
        name: of the hold.
        fence: the token that was refused.
        seen: the later token that the resource has seen; None if that is unknown.
        where: the resource.
    """

    def __init__(self, name: str, fence: int, seen: int | None, where: str) -> None:
        self.name, self.fence, self.seen, self.where = name, fence, seen, where
        later = "a later one" if seen is None else f"fence {seen}"
        super().__init__(f"{where} refuses fence {fence} of {name!r}: it has seen {later}")
