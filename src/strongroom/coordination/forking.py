"""The effect of a fork on participants: the child holds nothing.

Lives here: the list of drivers and the hook. Must not live here: what a driver does about it.
"""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol


class Forkable(Protocol):
    """Something that must know that it woke up in a forked child."""

    def after_fork(self) -> None:
        """In a forked child: forget what the parent holds, and what only its threads could use."""
        ...


_all: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()


def watch_forks(one: Forkable) -> None:
    """Have `one.after_fork()` called in every forked child, for as long as it lives."""
    _all.add(one)


def _in_child() -> None:
    for one in list(_all):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
