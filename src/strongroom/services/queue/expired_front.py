"""Before which place all of a queue's messages have expired: looks for messages begin there.

Lives here: these places, in memory, of the queues that were looked at last. Must not live here:
removing what has expired (retrievals.py in passing, sweep.py). A message that has expired
stays so. What is put or moved gets a place at the stamp of its commit or later. A commit that
cannot be seen yet has a greater stamp than all that can (rule 3 of engines/base.py). So nothing
ever comes to lie before a place that is not beyond a stamp that was seen.
"""

from __future__ import annotations

from typing import Final

from strongroom.engines.base import Partition

_REMEMBERED: Final = 1024


class ExpiredFronts:
    """Remembers for each queue the key before which all messages have expired."""

    def __init__(self) -> None:
        self._fronts: dict[Partition, bytes] = {}

    def first(self, partition: Partition, otherwise: bytes) -> bytes:
        """Where a look begins: behind what has expired, or at `otherwise`."""
        return self._fronts.get(partition, otherwise)

    def advance(self, partition: Partition, first: bytes) -> None:
        """Everything before `first` has expired."""
        self._fronts.pop(partition, None)
        self._fronts[partition] = first
        if len(self._fronts) > _REMEMBERED:
            del self._fronts[next(iter(self._fronts))]
