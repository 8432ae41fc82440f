"""Whether something was asked for before, in little memory, for caches that keep only what is.

Lives here: the marks. Must not live here: what is kept. To keep what is asked for once would cost
half of what reading it did, and push out what is asked for all the time.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable


class SeenOnce:
    """Remembers by their hashes what was seen, each until another falls into the same place.

    Arguments:
        places: how many can be remembered.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._marks = array("q", bytes(8 * places))

    def again(self, one: Hashable) -> bool:
        """Whether it was seen before, as far as that is remembered; from now on it was."""
        mark = hash(one)
        place = mark % self._places
        was_seen = self._marks[place] == mark
        self._marks[place] = mark
        return was_seen
