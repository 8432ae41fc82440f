"""Claims on messages, so that concurrent retrievals of one gateway do not try for the same ones.

Lives here: the claims, in memory, and waiting for their release. A claim is released after the
commit of its retrieval, so everything that the retrieval took is durable by then. Also here: how
this gateway avoids the other gateways, whose claims it cannot see. Must not live here: correctness,
which is the engine's. A retrieval is decided on its messages at the serial point, regardless of
claims.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from strongroom.engines.base import Partition

# Gateways whose numbers differ by less than _PLACES start their searches at different messages.
_OFFSET_STEP: Final = 8
_PLACES: Final = 8
# This many searches start there, before one starts at the oldest message again. That message must
# not be left for ever because the other gateways have stopped.
_SEARCHES_WITH_OFFSET: Final = 16


class SearchOffsets:
    """The offset from the oldest message at which this gateway starts its searches, per queue."""

    def __init__(self) -> None:
        self._left: dict[Partition, int] = {}

    def next(self, partition: Partition, number: int) -> int:
        """How many messages the next search of gateway `number` leaves to others, if there are
        more."""
        left = self._left.pop(partition, 0)
        if left > 1:
            self._left[partition] = left - 1
        return number % _PLACES * _OFFSET_STEP if left else 0

    def note_lost_messages(self, partition: Partition) -> None:
        """Note that another gateway has taken all messages that a search found.

        The next searches of this gateway begin at other messages.
        """
        self._left[partition] = _SEARCHES_WITH_OFFSET


class Claims:
    def __init__(self) -> None:
        self._claimed: dict[Partition, _Claimed] = {}

    def count(self, partition: Partition) -> int:
        claimed = self._claimed.get(partition)
        return 0 if claimed is None else len(claimed.names)

    @contextmanager
    def hold(self, partition: Partition, competes: bool = False) -> Iterator[Claim]:
        """Yield an empty claim. Its messages are released when the context ends. `competes`: the
        retrieval also tries for messages that others have claimed."""
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
    """The claims in one partition, the number of its retrievals, the number of releases, and the
    waiters for a release."""

    __slots__ = ("holders", "names", "releases", "waiting")

    def __init__(self) -> None:
        self.names: set[bytes] = set()
        self.holders = 0
        self.releases = 0
        self.waiting: list[asyncio.Future[None]] = []


class Claim:
    """The messages that one retrieval has claimed; made by `Claims.hold`. `has_skipped`: it has
    left a message to another claim."""

    __slots__ = ("_all", "_competes", "_own_names", "_releases", "has_skipped")

    def __init__(self, everyone: _Claimed, competes: bool) -> None:
        self._all = everyone
        self._competes = competes
        self._own_names: list[bytes] = []
        self._releases = 0
        self.has_skipped = False

    def is_taken(self, name: bytes) -> bool:
        """Return whether the message with this key is claimed by another retrieval."""
        if self._competes or name not in self._all.names:
            return False
        if not self.has_skipped:
            self.has_skipped, self._releases = True, self._all.releases
        return True

    def take(self, name: bytes) -> None:
        """Claim the message with this key, so that no other retrieval of this gateway takes it."""
        self._all.names.add(name)
        self._own_names.append(name)

    async def wait_for_release(self) -> None:
        """Wait until another claim has released messages since this one first left it a message."""
        everyone = self._all
        while everyone.releases == self._releases:
            waiter = asyncio.get_running_loop().create_future()
            everyone.waiting.append(waiter)
            await waiter

    def release(self, besides: Collection[bytes] = ()) -> None:
        """Release all messages of the claim, except `besides`."""
        freed = [name for name in self._own_names if name not in besides]
        if not freed:
            return
        everyone = self._all
        everyone.names.difference_update(freed)
        self._own_names = [name for name in self._own_names if name in besides]
        everyone.releases += 1
        waiting, everyone.waiting = everyone.waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
