"""Resets participants in a forked child, which holds nothing.

Lives here: the list of drivers, and the hook that runs after a fork.
"""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol


class Forkable(Protocol):
    """An object that must be reset in a forked child."""

    def after_fork(self) -> None:
        """Forget, in a forked child, the parent's holds and whatever only its threads could use."""
        ...


_registered: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()


def register_for_forks(one: Forkable) -> None:
    """Have `one.after_fork()` called in every forked child, for as long as `one` exists."""
    _registered.add(one)


def _in_child() -> None:
    for one in list(_registered):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
