"""What a served process announces: that it starts, is ready, stops.

Lives here: who hears it, which is the ready file and the service manager. Must not live here: when
(until_signal.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strongroom.cli.serving.ready_file import ReadyFile, ready_content
from strongroom.cli.serving.service_manager import ServiceManager

if TYPE_CHECKING:
    from strongroom.app import App


class Announcements:
    """Announces one server's life, from the time before it starts. `ready_file` None = no file is
    wanted."""

    def __init__(self, manager: ServiceManager, ready_file: ReadyFile | None) -> None:
        self._manager = manager
        self._ready_file = ready_file
        self._is_stopping = False
        self._is_ready = False
        self._manager.begin()

    def waiting(self, why: str) -> None:
        """Announce that the server has started, and serves when another gateway has ended. It has
        no ready file yet."""
        self._say_ready()
        self._manager.tell(f"STATUS={why}")

    def ready(self, app: App) -> None:
        """Announce that all ports are open. Raises: ConfigError: the file cannot be written."""
        if self._ready_file is not None:
            self._ready_file.publish(ready_content(app))
        if self._is_ready:
            self._manager.tell("STATUS=serving")  # it has waited
        self._say_ready()

    def stopping(self) -> None:
        """Announce that no new connections are accepted. Idempotent."""
        if not self._is_stopping:
            self._is_stopping = True
            self._manager.stopping()
            if self._ready_file is not None:
                self._ready_file.withdraw()

    def end(self) -> None:
        """Announce the end; nothing is announced after it."""
        self.stopping()
        self._manager.end()

    def _say_ready(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._manager.ready(asyncio.get_running_loop())
