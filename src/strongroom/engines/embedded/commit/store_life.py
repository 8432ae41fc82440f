"""Whether an embedded store serves: its first I/O error stops it, and `close` ends it.

Lives here: the one place that knows, which is made before all parts that report an error or ask.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from strongroom.engines.base import EngineError, Unavailable

_log = logging.getLogger(__name__)


class StoreLife:
    """The life of one store. Used on the event loop.

    Attributes:
        broken: the I/O error that has stopped the store; None while there is none.
        is_closed: whether the store was closed.
    """

    def __init__(self) -> None:
        self.broken: EngineError | None = None
        self.is_closed = False
        self._on_failure: list[Callable[[EngineError], None]] = []

    def why_stopped(self) -> EngineError | None:
        """None while the store serves."""
        return Unavailable("the store is closed") if self.is_closed else self.broken

    def on_failure(self, callback: Callable[[EngineError], None]) -> None:
        """Called once, when an I/O error has stopped the store, after those that were registered
        before."""
        self._on_failure.append(callback)

    def fail(self, error: Exception) -> None:
        """What the disk holds is unknown until recovery."""
        if self.broken is not None:
            return
        self.broken = Unavailable(f"the store has stopped after an I/O error: {error}")
        _log.critical("the store stops: %s", error)
        for callback in self._on_failure:
            callback(self.broken)
