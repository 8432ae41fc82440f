"""The in-memory state that a process keeps beside its store: one object of each type.

Lives here: the lookup of such an object, which is made at its first use. Must not live here: the
objects. Each wing has its own, so the wings need not know each other.
"""

from __future__ import annotations

from typing import TypeVar, cast

T = TypeVar("T")


class ProcessState:
    """The state objects of one server, by type."""

    def __init__(self) -> None:
        self._objects: dict[type, object] = {}

    def of(self, kind: type[T]) -> T:
        """Return the one object of this type. Its constructor takes no arguments."""
        found = self._objects.get(kind)
        if found is None:
            found = self._objects[kind] = kind()
        return cast("T", found)

    def clear(self) -> None:
        """Discard all objects."""
        self._objects.clear()
