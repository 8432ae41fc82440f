"""The end of a connection whose client still sends: how long that is read and thrown away.

Lives here: the bounds of time and bytes. Must not live here: why it ends (http/protocol.py).
Source: RFC 9112 section 9.6. Closing a socket with unread input resets it, and a reset may overtake
the last answer.
"""

from __future__ import annotations

from strongroom.servers.http.settings import HttpSettings


class Linger:
    """What is left of one connection's end.

    Arguments:
        settings: the bounds (`linger_*`).
        now: seconds of the loop's clock, as below.
    """

    __slots__ = ("_end", "_idle_timeout_s", "_left_bytes")

    def __init__(self, settings: HttpSettings, now: float) -> None:
        self._end = now + settings.linger_timeout_s
        self._idle_timeout_s = settings.linger_idle_timeout_s
        self._left_bytes = settings.linger_bytes_max

    def deadline(self, now: float) -> float:
        """When it is over, if nothing more comes."""
        return min(self._end, now + self._idle_timeout_s)

    def takes(self, size_bytes: int) -> bool:
        """Count bytes that have come; False when they are too many."""
        self._left_bytes -= size_bytes
        return self._left_bytes >= 0
