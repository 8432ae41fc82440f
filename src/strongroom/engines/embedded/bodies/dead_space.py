"""When dead space in an open segment is missed, so that the segment is sealed before it is full.

Lives here: the judgement. Must not live here: sealing, and which segments are open (segments.py).

A segment without anything alive is removed whole, which needs no space. So on a full disk it is
sealed for any dead byte. One with live contents has to be copied first, which must be worth it.
"""

from __future__ import annotations

import logging
from typing import Final

from strongroom.engines.embedded.bodies.segment import Segment
from strongroom.engines.embedded.disk.files import Files
from strongroom.values import TICKS_PER_S

# Above this number, a segment that waits for its next body is sealed if it is dead or has this
# many dead bytes.
IDLE_MAX: Final = 8
_CROWDED_DEAD_BYTES: Final = 16 * 1024 * 1024
# When space is short, an open segment with live contents and this many dead bytes is sealed.
_SEAL_EARLY_BYTES: Final = 1024 * 1024

# After so long without a new body, dead space in open segments is given back.
QUIET_TICKS: Final = 3600 * TICKS_PER_S

_log = logging.getLogger(__name__)


class DeadSpace:
    """Judges the open segments of one store.

    Arguments:
        path: a path on the disk of the segments.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._seen_bodies = 0
        self._quiet_since: int | None = None

    def is_missed(self, segment: Segment, is_crowded: bool) -> bool:
        """Return whether the dead bytes of an open segment matter.

        Arguments:
            is_crowded: the segment is one of too many that wait for their next body.
        """
        dead_bytes = segment.end - segment.live_bytes
        if is_crowded:
            return not segment.live_bytes or dead_bytes >= _CROWDED_DEAD_BYTES
        if segment.live_bytes and dead_bytes < _SEAL_EARLY_BYTES:
            return False
        return self.is_short_of(dead_bytes)

    def is_short_of(self, size_bytes: int) -> bool:
        """Return whether the disk has so little space that so many bytes more would matter."""
        try:
            return size_bytes * 4 > self._files.free_bytes(self._path)
        except OSError as error:  # waiters for a commit must not fail because of it
            _log.warning("how full the disk is cannot be told: %s", error)
            return False

    def is_quiet(self, now: int, bodies: int) -> bool:
        """Return whether no body came for QUIET_TICKS. Call it now and then.

        Arguments:
            now: store time, in ticks.
            bodies: how many came so far.
        """
        if self._quiet_since is None or bodies != self._seen_bodies:
            self._seen_bodies, self._quiet_since = bodies, now
        return now - self._quiet_since >= QUIET_TICKS


def is_worth_sealing(segment: Segment) -> bool:
    """Return whether the space of an open segment is worth a new file, once nobody writes."""
    dead_bytes = segment.end - segment.live_bytes
    if not segment.live_bytes:
        return dead_bytes > 0
    return dead_bytes >= _SEAL_EARLY_BYTES and segment.live_bytes * 2 < segment.end
