"""The state that a process keeps beside its store: one object of each type, made when it is first
asked for.

Lives here: how such an object is found. Must not live here: what the objects are; each wing keeps
its own, so the wings need not know each other.
"""

from __future__ import annotations

from typing import TypeVar, cast

T = TypeVar("T")


class ProcessState:
    """Objects of one server, by their types."""

    def __init__(self) -> None:
        self._objects: dict[type, object] = {}

    def of(self, kind: type[T]) -> T:
        """The one object of this type. Its constructor takes no arguments."""
        found = self._objects.get(kind)
        if found is None:
            found = self._objects[kind] = kind()
        return cast("T", found)

    def clear(self) -> None:
        """Throw all of it away."""
        self._objects.clear()
