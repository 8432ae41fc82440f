"""Which messages the retrievals of this process are about to take, so that no two want the same.

Lives here: the claims, in memory, and waiting for what becomes of them: a claim is given back when
its retrieval has been answered, and so what it took is durable. Must not live here: correctness,
which is the engine's: a retrieval is decided on what its messages are at the serial point, whoever
has claimed them.
"""

from __future__ import annotations

import asyncio
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
    def hold(self, partition: Partition, competes: bool = False) -> Iterator[Claim]:
        """A claim on nothing yet; what it has taken is free again when this is left.

        Arguments:
            competes: it wants what others have claimed, too.
        """
        claimed = self._claimed.setdefault(partition, _Claimed())
        claimed.holders += 1
        claim = Claim(claimed, competes)
        try:
            yield claim
        finally:
            claim.release()
            claimed.holders -= 1
            if not claimed.holders:
                del self._claimed[partition]


class _Claimed:
    """What is claimed in one partition, how many retrievals look there, how often something was
    given back, and who waits for that."""

    __slots__ = ("holders", "names", "releases", "waiting")

    def __init__(self) -> None:
        self.names: set[bytes] = set()
        self.holders = 0
        self.releases = 0
        self.waiting: list[asyncio.Future[None]] = []


class Claim:
    """What one retrieval has claimed; made by `Claims.hold`.

    Attributes:
        passed_over: whether it left something to others.
    """

    __slots__ = ("_all", "_competes", "_mine", "_releases", "passed_over")

    def __init__(self, everyone: _Claimed, competes: bool) -> None:
        self._all = everyone
        self._competes = competes
        self._mine: list[bytes] = []
        self._releases = 0
        self.passed_over = False

    def is_taken(self, name: bytes) -> bool:
        """Whether the message under this key is claimed, and so left to who claimed it."""
        if self._competes or name not in self._all.names:
            return False
        if not self.passed_over:
            self.passed_over, self._releases = True, self._all.releases
        return True

    def take(self, name: bytes) -> None:
        """Claim the message under this key."""
        self._all.names.add(name)
        self._mine.append(name)

    async def given_back(self) -> None:
        """Wait until others have given something back since this one first left them something."""
        everyone = self._all
        while everyone.releases == self._releases:
            waiter = asyncio.get_running_loop().create_future()
            everyone.waiting.append(waiter)
            await waiter

    def release(self) -> None:
        """Free everything."""
        if not self._mine:
            return
        everyone = self._all
        everyone.names.difference_update(self._mine)
        self._mine.clear()
        everyone.releases += 1
        waiting, everyone.waiting = everyone.waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
