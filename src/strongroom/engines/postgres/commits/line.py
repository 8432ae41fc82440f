"""The line of updates that wait for a lane, and those under way, by the slot of their lane.

Lives here: which updates are taken next, and whom each has to wait for. Must not live here: what
becomes of an update (committing.py).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from strongroom.engines.base import CommitUnknown
from strongroom.engines.postgres.commits.batches import Update
from strongroom.engines.postgres.sessions.openers import unavailable

_NOT_TOLD: Final = "the database did not tell the outcome of a commit in time"


class UpdateLine:
    """The updates of one gateway, first come, first served."""

    def __init__(self) -> None:
        self._waiting: deque[Update] = deque()
        # By slot: its updates, the partitions that they claim, those that its decided batch writes.
        self._taken: dict[int, list[Update]] = {}
        self._claimed: dict[int, set[int]] = {}
        self._written: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, update: Update) -> None:
        self._waiting.append(update)

    def put_back(self, updates: Sequence[Update]) -> None:
        """They come first, in this order."""
        self._waiting.extendleft(reversed(updates))

    def take(self, slot: int, count_max: int) -> list[Update]:
        """Take the next updates for a lane. Those that read what another lane writes stay in line.

        Call `end` when all of them are answered, or put back.
        """
        taken: list[Update] = []
        left: list[Update] = []
        while self._waiting and len(taken) < count_max:
            update = self._waiting.popleft()
            if update.answer.done():
                continue  # its caller has gone
            is_busy = _meets(update, self._claimed) or self.meets_written(update)
            if is_busy or (update.is_alone and taken):
                left.append(update)
                continue
            taken.append(update)
            if update.is_alone:
                break
        self.put_back(left)
        if taken:
            self._taken[slot] = taken
            self._claimed[slot] = set().union(*(update.claimed for update in taken))
        return taken

    def decided(self, slot: int, partitions: set[int]) -> None:
        """The updates of a lane are decided, and will write these partitions."""
        self._written[slot] = partitions

    def is_decided(self, slot: int) -> bool:
        return slot in self._written

    def meets_written(self, update: Update) -> bool:
        """Whether an update has read what the decided batch of a lane writes."""
        return _meets(update, self._written)

    def end(self, slot: int) -> None:
        del self._taken[slot], self._claimed[slot]
        self._written.pop(slot, None)

    def expire(self, now_s: float) -> None:
        """Answer those who have waited for too long. What they wait for goes on, but for what is
        not decided yet."""
        fail([update for update in self._waiting if update.until_s <= now_s], unavailable(None))
        for slot, updates in self._taken.items():
            due = [update for update in updates if update.until_s <= now_s]
            error = CommitUnknown(_NOT_TOLD) if self.is_decided(slot) else unavailable(None)
            fail(due, error)

    def refuse(self, error: Exception) -> None:
        """Answer all that wait."""
        fail(list(self._waiting), error)
        self._waiting.clear()


def _meets(update: Update, by_slot: Mapping[int, set[int]]) -> bool:
    return any(not update.partitions.isdisjoint(numbers) for numbers in by_slot.values())


def fail(updates: Sequence[Update], error: Exception) -> None:
    """Answer updates with an error, where they have no answer yet."""
    for update in updates:
        answer: asyncio.Future[object] = update.answer
        if not answer.done():
            answer.set_exception(error)
            answer.exception()  # its caller may have gone
