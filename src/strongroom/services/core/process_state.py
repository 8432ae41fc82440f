"""The in-memory state that a process keeps beside its store: one object of each type.

Each wing has its own objects, so the wings need not know each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

T = TypeVar("T")


class ProcessState:
    """The state objects of one server, by type. `given` are those that the program was composed
    with; others are made at their first use."""

    def __init__(self, given: Iterable[object] = ()) -> None:
        self._objects: dict[type, object] = {type(one): one for one in given}

    def of(self, kind: type[T]) -> T:
        """The type's constructor needs no arguments."""
        found = self._objects.get(kind)
        if found is None:
            found = self._objects[kind] = kind()
        return cast("T", found)

    def clear(self) -> None:
        self._objects.clear()
