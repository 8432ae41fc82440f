"""Notifications of other gateways, handed on to the engine that is made after the session.

Lives here: `Notices`, the end of a session to which the engine is connected once it exists.
"""

from __future__ import annotations

from typing import Protocol


class NoticeListener(Protocol):
    """Who is told."""

    def notified(self, payload: str) -> None: ...

    def session_opened(self) -> None: ...


class Notices:
    """Hands on notifications; before an engine is connected, there is nobody who waits for any."""

    def __init__(self) -> None:
        self._listener: NoticeListener | None = None

    def connect(self, listener: NoticeListener) -> None:
        self._listener = listener

    def notified(self, payload: str) -> None:
        if self._listener is not None:
            self._listener.notified(payload)

    def session_opened(self) -> None:
        if self._listener is not None:
            self._listener.session_opened()
