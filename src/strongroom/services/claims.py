"""Which messages the retrievals of this process are about to take, so that no two want the same.

Lives here: the claims, in memory. Must not live here: correctness, which is the engine's: a
retrieval is decided on what its messages are at the serial point, whoever has claimed them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from strongroom.engines.base import Partition


class Claims:
    """The claims of all queues."""

    def __init__(self) -> None:
        self._claimed: dict[Partition, _Claimed] = {}

    def count(self, partition: Partition) -> int:
        """How many messages of the partition are claimed."""
        claimed = self._claimed.get(partition)
        return 0 if claimed is None else len(claimed.names)

    @contextmanager
    def hold(self, partition: Partition) -> Iterator[Claim]:
        """A claim on nothing yet; what it has taken is free again when this is left."""
        claimed = self._claimed.setdefault(partition, _Claimed())
        claimed.holders += 1
        claim = Claim(claimed.names)
        try:
            yield claim
        finally:
            claim.release()
            claimed.holders -= 1
            if not claimed.holders:
                del self._claimed[partition]


class _Claimed:
    """What is claimed in one partition, and how many retrievals look there."""

    __slots__ = ("holders", "names")

    def __init__(self) -> None:
        self.names: set[bytes] = set()
        self.holders = 0


class Claim:
    """What one retrieval has claimed; made by `Claims.hold`."""

    __slots__ = ("_all", "_mine")

    def __init__(self, everyone: set[bytes]) -> None:
        self._all = everyone
        self._mine: list[bytes] = []

    def is_taken(self, name: bytes) -> bool:
        """Whether the message under this key is claimed already."""
        return name in self._all

    def take(self, name: bytes) -> None:
        """Claim the message under this key, which nobody has."""
        self._all.add(name)
        self._mine.append(name)

    def release(self) -> None:
        """Free everything."""
        self._all.difference_update(self._mine)
        self._mine.clear()
