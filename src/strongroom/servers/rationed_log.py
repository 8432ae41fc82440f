"""Log lines that many clients, or one in a loop, could cause: few of each kind are written.

Lives here: which line is due, and how many were left out since the last. A flood of lines fills a
disk and hides every other line.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

# Whoever causes lines under ever new keys gets no more memory than this.
KEYS_MAX: Final = 1024


class Ration:
    """One line for each key in each interval of `every_s` seconds."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._written: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def left_out(self, key: Hashable, now: float) -> int | None:
        """How many lines of a key were left out since its last one; None if this one must be left
        out too. `now` is in seconds of a monotonic clock."""
        written = self._written.get(key)
        if written is not None and now - written[0] < self._every_s:
            self._written[key] = (written[0], written[1] + 1)
            return None
        self._written[key] = (now, 0)
        self._written.move_to_end(key)
        if len(self._written) > KEYS_MAX:
            self._written.popitem(last=False)
        return 0 if written is None else written[1]


def more(left_out: int) -> str:
    """Return the end of a line before which so many equal ones were left out."""
    return f" ({left_out} more since the last such line)" if left_out else ""
