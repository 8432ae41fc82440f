"""The service manager that started this process: it learns that the server is ready, stops, lives.

Lives here: the messages of sd_notify, and when they are sent. Without the environment variables of
a service manager nothing is sent. Source: sd_notify(3) and sd_watchdog_enabled(3) of systemd.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from typing import Final

from strongroom.platform.sockets import send_datagram

START_BEAT_S: Final = 10.0
_START_GRACE_S: Final = 60.0
_US_PER_S: Final = 1_000_000
_log = logging.getLogger(__name__)


class ServiceManager:
    """Tells a service manager the state of this process.

    The signs of life come from the event loop, so a loop that hangs is noticed. While the server
    starts, they come from a thread: the upgrade of its data keeps the loop, and may be long.

    Arguments:
        address: the socket; one that begins with @ is abstract. None = there is no manager.
        watchdog_s: within that time it wants a sign of life; None = it wants none.
    """

    def __init__(self, address: str | None, watchdog_s: float | None) -> None:
        self.address = address
        self.watchdog_s = watchdog_s
        self._has_started = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str], pid: int) -> ServiceManager:
        """Return the manager that the environment names."""
        address = environment.get("NOTIFY_SOCKET", "")
        microseconds = environment.get("WATCHDOG_USEC", "")
        is_meant = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        is_wanted = is_meant and microseconds.isascii() and microseconds.isdigit()
        watchdog_s = int(microseconds) / _US_PER_S if is_wanted else 0.0
        return cls(address if address[:1] in ("/", "@") else None, watchdog_s or None)

    def begin(self) -> None:
        """Ask for more time until the server is ready, or ends."""
        if self.address is not None:
            threading.Thread(target=self._extend, name="strongroom-start", daemon=True).start()

    def ready(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say that the server serves, and give signs of life from now on."""
        self._has_started.set()
        self.tell("READY=1")
        if self.address is not None and self.watchdog_s is not None:
            self._beat(loop)

    def stopping(self) -> None:
        """Say that the server finishes its requests, then ends. Signs of life go on."""
        self.tell("STOPPING=1")

    def end(self) -> None:
        """Give no more signs of life."""
        self._has_started.set()
        if self._timer is not None:
            self._timer.cancel()

    def _extend(self) -> None:
        while not self._has_started.is_set():
            self.tell(f"EXTEND_TIMEOUT_USEC={round(_START_GRACE_S * _US_PER_S)}")
            self._has_started.wait(START_BEAT_S)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self.watchdog_s is not None
        self.tell("WATCHDOG=1")
        self._timer = loop.call_later(self.watchdog_s / 2, self._beat, loop)

    def tell(self, state: str) -> None:
        """Send one message. A manager that does not take it is no reason to fail."""
        if self.address is None:
            return
        name = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            send_datagram(name, state.encode())
        except OSError as error:
            _log.warning("the service manager at %s was not told %s: %s", name, state, error)
