"""How many polls of the tail may wait at a time: of one viewer, and of all.

Lives here: the places. Must not live here: what a poll answers (answers.py). One poll too many is
not refused, since the page would show an error, and ask again. The oldest poll is answered at once
instead, as if its time were over. So a viewer with many pages has slower ones, and no error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

VIEWER_POLLS_MAX: Final = 16
POLLS_MAX: Final = 128


class WaitingPolls:
    """The polls that wait, by their viewers.

    Arguments:
        viewer_max: how many of one viewer.
        all_max: how many together. Of the viewer with the most, the oldest makes room.
    """

    def __init__(self, viewer_max: int = VIEWER_POLLS_MAX, all_max: int = POLLS_MAX) -> None:
        self._viewer_max, self._all_max = viewer_max, all_max
        # Both in the order of coming: values of a dict are ordered, those of a set are not.
        self._by_viewer: dict[str, dict[asyncio.Event, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def place(self, viewer: str) -> Iterator[asyncio.Event]:
        """Count a poll while the block runs; the event is set when it must be answered at once."""
        own = self._by_viewer.get(viewer, {})
        if len(own) >= self._viewer_max:
            self._end_oldest(viewer)
        elif self._count >= self._all_max:
            self._end_oldest(max(self._by_viewer, key=lambda name: len(self._by_viewer[name])))
        ended = asyncio.Event()
        self._by_viewer.setdefault(viewer, {})[ended] = None
        self._count += 1
        try:
            yield ended
        finally:
            self._free(viewer, ended)

    def _end_oldest(self, viewer: str) -> None:
        oldest = next(iter(self._by_viewer[viewer]))
        self._free(viewer, oldest)
        oldest.set()

    def _free(self, viewer: str, ended: asyncio.Event) -> None:
        """Free the place of a poll, unless it has lost it already."""
        own = self._by_viewer.get(viewer, {})
        if ended not in own:
            return
        del own[ended]
        self._count -= 1
        if not own:
            del self._by_viewer[viewer]
