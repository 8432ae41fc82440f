"""Which messages the retrievals of this gateway are about to take, so that no two want the same.

Lives here: the claims, in memory, and waiting for their end. A claim is given back when its
retrieval has been answered, and so what it took is durable. How this gateway keeps apart from the
others, whose claims it does not see, lives here too. Must not live here: correctness, which is the
engine's. A retrieval is decided on its messages at the serial point, whoever has claimed them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from strongroom.engines.base import Partition

# Gateways whose numbers differ by less than _PLACES begin at different messages.
_APART: Final = 8
_PLACES: Final = 8
# So many looks begin there, before one begins at the oldest message again: it must not stay for
# ever because the others have stopped.
_LOOKS_APART: Final = 16


class Distances:
    """How far behind the oldest message the looks of this gateway begin, queue by queue."""

    def __init__(self) -> None:
        self._left: dict[Partition, int] = {}

    def next(self, partition: Partition, number: int) -> int:
        """How many messages the next look leaves to other gateways, if there are more.

        Arguments:
            number: this gateway's.
        """
        left = self._left.pop(partition, 0)
        if left > 1:
            self._left[partition] = left - 1
        return number % _PLACES * _APART if left else 0

    def lost(self, partition: Partition) -> None:
        """Note that another gateway has taken all messages that a search found. The next searches
        of this gateway begin at other messages."""
        self._left[partition] = _LOOKS_APART


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
    """The claims in one partition, how many retrievals look there, how often something was given
    back, and who waits for that."""

    __slots__ = ("holders", "names", "releases", "waiting")

    def __init__(self) -> None:
        self.names: set[bytes] = set()
        self.holders = 0
        self.releases = 0
        self.waiting: list[asyncio.Future[None]] = []


class Claim:
    """The messages that one retrieval has claimed; made by `Claims.hold`.

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
        """Claim the message with this key, so that no other retrieval of this gateway takes it."""
        self._all.names.add(name)
        self._mine.append(name)

    async def given_back(self) -> None:
        """Wait until others have given something back since this one first left them something."""
        everyone = self._all
        while everyone.releases == self._releases:
            waiter = asyncio.get_running_loop().create_future()
            everyone.waiting.append(waiter)
            await waiter

    def release(self, besides: Collection[bytes] = ()) -> None:
        """Free everything, or all but these."""
        freed = [name for name in self._mine if name not in besides]
        if not freed:
            return
        everyone = self._all
        everyone.names.difference_update(freed)
        self._mine = [name for name in self._mine if name in besides]
        everyone.releases += 1
        waiting, everyone.waiting = everyone.waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
