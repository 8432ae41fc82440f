"""A filter for caches: it tells in little memory whether a key was requested before.

Lives here: the marks. Must not live here: the cached data. To cache a record at its first read
would cost half as much as the read, and displace records that are read often.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable


class RecentKeys:
    """Remembers the hashes of keys, each until another key maps to the same place.

    Arguments:
        places: how many can be remembered.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._marks = array("q", bytes(8 * places))

    def check_and_add(self, one: Hashable) -> bool:
        """Return whether a key was seen before, as far as that is remembered, and remember it."""
        mark = hash(one)
        place = mark % self._places
        was_seen = self._marks[place] == mark
        self._marks[place] = mark
        return was_seen
