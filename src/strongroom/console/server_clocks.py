"""The toolkit's clocks, with the server's wall time.

Lives here: the conversion. What the console writes into records of this server has the server's
time, and requests to itself are signed by it. Must not live here: clocks of further stores. Those
have their own times, and whoever writes into them goes by the machine's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strongroom.coordination.clock import SystemClocks
from strongroom.values import iso7

_BEYOND_MS: Final = len("4567Z")


class ServerClocks(SystemClocks):
    """The machine's clocks that cannot be set, and the wall time of the server.

    Arguments:
        wall_ticks: returns the server's wall time.
    """

    def __init__(self, wall_ticks: Callable[[], int]) -> None:
        super().__init__()
        self._wall_ticks = wall_ticks

    def wall_text(self) -> str:
        return f"{iso7(self._wall_ticks())[:-_BEYOND_MS]}Z"
