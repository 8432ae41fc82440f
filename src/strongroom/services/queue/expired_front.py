"""The place in each queue before which all messages have expired; searches start there.

Lives here: these places, in memory, of the most recently searched queues. A message that has
expired stays expired. A message that is put or moved gets a place at the stamp of its commit or
later. A commit that is not visible yet has a greater stamp than all visible ones (rule 3 of
engines/base.py). So no message can appear before a place that is not beyond a stamp that was seen.
"""

from __future__ import annotations

from typing import Final

from strongroom.engines.base import Partition

_REMEMBERED: Final = 1024


class ExpiredFronts:
    """For each queue, the key before which all messages have expired."""

    def __init__(self) -> None:
        self._fronts: dict[Partition, bytes] = {}

    def first(self, partition: Partition, otherwise: bytes) -> bytes:
        """The key at which a search starts: after the expired messages, or `otherwise`."""
        return self._fronts.get(partition, otherwise)

    def advance(self, partition: Partition, first: bytes) -> None:
        """Note that all messages before `first` have expired."""
        self._fronts.pop(partition, None)
        self._fronts[partition] = first
        if len(self._fronts) > _REMEMBERED:
            del self._fronts[next(iter(self._fronts))]
