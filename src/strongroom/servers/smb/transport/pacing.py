"""The times of an SMB connection: when its bytes moved, and which limit has passed.

Lives here: the limits as times. Must not live here: what happens when one has passed (life.py).
Source: smb.md 5.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.life import SmbEvent

# The lowest rate at which a frame may arrive, beside the time that it may stall.
_RATE_MIN_BYTES_PER_S: Final = 16 * 1024


class SmbPacing:
    """The times of one connection.

    Arguments:
        now: of the loop's clock, as are the attributes and every argument of this name.

    Attributes:
        progress_at: when bytes were last received or sent.
        frame_began_at: when the present frame began, or reading resumed in it.
    """

    __slots__ = ("_is_logged_on", "_made_at", "_settings", "frame_began_at", "progress_at")

    def __init__(self, settings: SmbSettings, now: float) -> None:
        self._settings = settings
        self._made_at = now
        self._is_logged_on = False
        self.progress_at = now
        self.frame_began_at = now

    def logged_on(self) -> None:
        """Note that the connection's first session is authenticated."""
        self._is_logged_on = True

    def waits_since(self, *, has_begun: bool) -> float:
        """Since when the connection waits for its client.

        Before the first logon, progress does not count if the client `has_begun` something. A logon
        in small pieces would else never give way.
        """
        return self._made_at if has_begun and not self._is_logged_on else self.progress_at

    def late(self, now: float, incomplete_bytes_max: int | None) -> Iterator[tuple[SmbEvent, str]]:
        """Yield an event for each limit that has passed, and the reason for the log.

        `incomplete_bytes_max` is the size that the frame in arrival may have; None if there is
        none.
        """
        settings = self._settings
        if not self._is_logged_on and now > self._made_at + settings.authenticate_s:
            yield SmbEvent.LOGON_LATE, "nobody was authenticated in time"
        has_stalled = now > self.progress_at + settings.stalled_s
        if has_stalled:
            yield SmbEvent.ANSWERS_LATE, "the client has stalled"
        if incomplete_bytes_max is None:
            return
        frame_s = settings.stalled_s + incomplete_bytes_max / _RATE_MIN_BYTES_PER_S
        if has_stalled:
            yield SmbEvent.FRAME_LATE, "the client has stalled"
        if now > self.frame_began_at + frame_s:
            yield SmbEvent.FRAME_LATE, "a frame has come too slowly"
