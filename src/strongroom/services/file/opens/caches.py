"""Leases and oplocks whose holders are told of a break: the notices and their time limits.

Lives here: sending a notice, the timers of one file. Must not live here: rules
(semantics/file/oplocks.py), the holders (opens.py), the acknowledgments (handles/breaking.py).
Source: [MS-SMB2] sections 3.3.4.6, 3.3.4.7 and 3.3.6.5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from strongroom.semantics.file.oplocks import BreakNotice, CachingHolder, CachingKey
from strongroom.services.file.opens.background import fetch_error
from strongroom.services.file.opens.open_handle import Handle


@dataclass(slots=True)
class OpenCounts:
    """Counts of byte-range locks, and of how break notices to holders of caches have ended. A
    holder that closes its handle instead of answering counts as neither `acknowledged` nor
    `timed_out`.

    Attributes:
        locks: granted locks and waiting lock requests together.
        asked: notices that need an answer.
    """

    locks: int = 0
    asked: int = 0
    acknowledged: int = 0
    timed_out: int = 0


class BreakTimers:
    """The time limits of the notices of one file that wait for an answer, by their holders."""

    __slots__ = ("_timers",)

    def __init__(self) -> None:
        self._timers: dict[CachingKey, asyncio.Task[None]] = {}

    def start(self, key: CachingKey, limit: Coroutine[Any, Any, None]) -> None:
        """Run what ends the break when its holder does not answer in time."""
        timer = self._timers[key] = asyncio.ensure_future(limit)
        timer.add_done_callback(fetch_error)

    def stop(self, key: CachingKey) -> bool:
        """Return whether it was running."""
        timer = self._timers.pop(key, None)
        if timer is None:
            return False
        if timer is not asyncio.current_task():
            timer.cancel()
        return True

    def keep(self, holders: Iterable[CachingHolder]) -> None:
        """Stop all timers but those of the holders that are still being broken. The others have
        answered, or they have left."""
        if self._timers:
            for key in self._timers.keys() - {one.key for one in holders if one.is_breaking}:
                self.stop(key)


def send(notice: BreakNotice, holders: Sequence[Handle]) -> bool:
    """Send a notice by the first of its holder's handles whose client can be reached. Returns
    whether any of the handles has a connection, and may answer."""
    owners = [(one, one.owner) for one in holders if one.owner is not None]
    for handle, owner in owners:
        if owner.alive:
            owner.notify_break(handle, notice)
            break
    return bool(owners)
