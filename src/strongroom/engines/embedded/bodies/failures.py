"""The consequences of a failed write or sync of a segment.

Lives here: which failures stop the store, and which error the caller gets.
"""

from __future__ import annotations

from collections.abc import Callable

from strongroom.engines.base import Busy, EngineError, Full, Unavailable
from strongroom.engines.embedded.disk.files import is_no_space, is_too_many_open_files


class Failures:
    """Failures of one store's segments.

    Arguments:
        on_broken: called with each failure that stops the store.
    """

    def __init__(self, on_broken: Callable[[Exception], None]) -> None:
        self._on_broken = on_broken

    def of_write(self, error: OSError) -> EngineError:
        """Full, Busy, or the end of the store."""
        if is_no_space(error):
            return Full()
        if is_too_many_open_files(error):
            # Nothing was written: only this caller is refused, since the disk has not failed.
            return Busy(f"a segment cannot be opened now: {error}")
        return self.fatal(error, "an I/O error")

    def fatal(self, error: BaseException, what: str) -> Unavailable:
        """Stop the store, and return the error for the waiters."""
        stopped = Unavailable(f"the store has stopped after {what}: {error}")
        self._on_broken(error if isinstance(error, Exception) else stopped)
        return stopped
