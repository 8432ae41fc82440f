"""The deadline of a connection, and how many bytes must move before it passes.

Lives here: one deadline, and the limits of a lingering close. Must not live here: what happens when
the deadline has passed (http/life.py). Source: RFC 9112 section 9.6. Closing a socket with unread
input resets it, and the reset may destroy the last answer. The server therefore reads and discards
input for a while.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from strongroom.errors.core import StorageError
from strongroom.servers.http.body import EmptyBody, IncomingBody
from strongroom.servers.http.send import Sender
from strongroom.servers.http.settings import HttpSettings


class Pacing:
    """The deadline of one connection.

    `now` gives seconds of the loop's clock. `deadline` is a time of that clock; infinite if there
    is none.
    """

    __slots__ = ("_left_bytes", "_linger_end", "_mark_bytes", "_now", "_settings", "deadline")

    def __init__(self, settings: HttpSettings, now: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self.deadline = math.inf
        self._mark_bytes = 0
        self._linger_end = math.inf
        self._left_bytes = settings.linger_bytes_max

    def set_timeout(self, timeout_s: float) -> None:
        self.deadline = self._now() + timeout_s

    def began(self, timeout_s: float) -> float:
        """Return when a state began whose deadline was set once, `timeout_s` later."""
        end = self.deadline if math.isinf(self._linger_end) else self._linger_end
        return end - timeout_s

    def watch_body(self, body: IncomingBody | EmptyBody) -> None:
        """Require the body to arrive quickly from now on, unless a deadline is set already."""
        if math.isinf(self.deadline):
            self._watch(body.received_bytes, self._settings.body_stall_timeout_s)

    def check_body(self, body: IncomingBody | EmptyBody, error: StorageError) -> None:
        """Check the body after its deadline: fail it with `error` if it has stalled, or set the
        next deadline."""
        self.deadline = math.inf
        if body.waiting and self._is_stalled(body.received_bytes):
            body.fail(error)
        else:
            self.watch_body(body)

    def watch_writing(self, sender: Sender) -> None:
        """Require the client to read quickly from now on."""
        self._watch(sender.flushed_bytes(), self._settings.write_stall_timeout_s)

    def check_writing(self, sender: Sender, give_up: Callable[[], None]) -> None:
        """Check the answer after its deadline: give it up if it has stalled, or set the next
        deadline."""
        is_blocked = sender.congested or sender.in_kernel
        if is_blocked and self._is_stalled(sender.flushed_bytes()):
            give_up()
        self.watch_writing(sender)

    def _watch(self, moved_bytes: int, timeout_s: float) -> None:
        self._mark_bytes = moved_bytes
        self.set_timeout(timeout_s)

    def _is_stalled(self, moved_bytes: int) -> bool:
        return moved_bytes - self._mark_bytes < self._settings.stall_bytes_min

    def linger(self) -> None:
        """Set the deadline for the end of a connection whose last answer is written."""
        self._linger_end = self._now() + self._settings.linger_timeout_s
        self._wait_for_more()

    def count_discarded(self, size_bytes: int) -> bool:
        """Count discarded bytes; return False if they are more than a connection may send."""
        self._left_bytes -= size_bytes
        self._wait_for_more()
        return self._left_bytes >= 0

    def _wait_for_more(self) -> None:
        idle_end = self._now() + self._settings.linger_idle_timeout_s
        self.deadline = min(self._linger_end, idle_end)
