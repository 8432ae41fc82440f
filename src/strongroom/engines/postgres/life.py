"""Whether the engine serves, and who is told when it breaks."""

from __future__ import annotations

from collections.abc import Callable

from strongroom.engines.base import EngineError, Unavailable


class Life:
    """The life of one gateway's store.

    Attributes:
        is_closed: whether it takes no more work; what it took before is finished.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._callback: Callable[[EngineError], None] | None = None
        self._failure: EngineError | None = None

    def why_stopped(self) -> Unavailable | None:
        """None while it serves."""
        return Unavailable("the store is closed") if self.is_closed else None

    def check(self) -> None:
        """Raise Unavailable unless it serves."""
        if (error := self.why_stopped()) is not None:
            raise error

    def on_fatal(self, callback: Callable[[EngineError], None]) -> None:
        """Called once; at once if it is too late."""
        self._callback = callback
        if self._failure is not None:
            self.failed(self._failure)

    def failed(self, error: EngineError) -> None:
        """The gateway can never serve again."""
        self._failure = error
        callback, self._callback = self._callback, None
        if callback is not None and not self.is_closed:
            callback(error)
