"""The list of all bodies of a place, read in threads.

Lives here: `ThreadedList`. Must not live here: threads, and what an error means (threaded.py).
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence

Pages = Generator[Sequence[int], None, None]


class ThreadedList:
    """A list of which one page at a time is read. To close it may block as long as a read, so it
    is closed in a thread too.

    Arguments:
        pages: nobody else refers to it.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages: Pages | None = pages
        self._reading = threading.Lock()
        self._is_left = False

    def page(self) -> Sequence[int] | None:
        """Return the next page, by a call that may block; None = that was all."""
        with self._reading:
            found = None if self._pages is None else next(self._pages, None)
            if found is None:
                self._pages = None
        if self._is_left:
            self._close()
        return found

    def leave(self) -> None:
        """End it, without blocking: nobody reads a page any more, though a read may hang yet."""
        self._is_left = True
        if self._pages is not None:
            threading.Thread(target=self._close, name="bodies-list", daemon=True).start()

    def _close(self) -> None:
        """A read that is under way closes the list when it ends."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            pages, self._pages = self._pages, None
            if pages is not None:
                pages.close()
        finally:
            self._reading.release()
