"""The updates of one gateway of a memory store. A decision whose inputs are stale runs again.

Lives here: the optimistic loop, the conditions of a commit, and stamps. Must not live here: the
data (data.py), or whether the gateway may serve at all (store.py, gateways.py).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from strongroom.clock import StoreTime
from strongroom.engines.base import (
    CommitUnknown,
    Decide,
    Partition,
    Record,
    Ref,
    Step,
    Unavailable,
)
from strongroom.engines.bounds import check_steps
from strongroom.engines.memory.contents import MemoryContents
from strongroom.engines.memory.data import MemoryData
from strongroom.engines.memory.gateways import MemoryGateway
from strongroom.values import Purpose

T = TypeVar("T")

_OPTIMISTIC_ATTEMPTS: Final = 8


class MemoryLife:
    """Whether the store of one gateway serves requests.

    Attributes:
        closed: whether it was closed.
        broken: whether it was cut off, or gave its data to another store.
    """

    def __init__(self) -> None:
        self.closed = False
        self.broken = False

    def why_stopped(self) -> Unavailable | None:
        """None while it serves."""
        if self.closed:
            return Unavailable("the store is closed")
        return Unavailable("the store has stopped") if self.broken else None


class _Running:
    """An update in progress, and the stamp of its last decision (0: none yet)."""

    def __init__(self) -> None:
        self.stamp = 0
        self.done = asyncio.Event()


class UnderWay:
    """The updates in progress at one gateway."""

    def __init__(self) -> None:
        self._running: set[_Running] = set()

    def __len__(self) -> int:
        return len(self._running)

    def begin(self) -> _Running:
        running = _Running()
        self._running.add(running)
        return running

    def end(self, running: _Running) -> None:
        self._running.discard(running)
        running.done.set()

    def stamps(self) -> list[int]:
        """Of decisions that are neither committed nor refused."""
        return [one.stamp for one in self._running if one.stamp]

    async def drain(self) -> None:
        while self._running:
            await next(iter(self._running)).done.wait()


class MemoryUpdates:
    """The updates of one gateway, as Engine.update describes each.

    Arguments:
        time: the gateway's own clock.
        contents: what the gateway wrote, and its commits may adopt.

    Attributes:
        before_commit: see MemoryEngine.
        cut_after: how many steps the next commit keeps before the store stops; None = all.
    """

    def __init__(
        self,
        data: MemoryData,
        time: StoreTime,
        contents: MemoryContents,
        gateway: MemoryGateway,
        under_way: UnderWay,
        life: MemoryLife,
    ) -> None:
        self._data = data
        self._members = data.members
        self._time = time
        self._contents = contents
        self._gateway = gateway
        self._under_way = under_way
        self._life = life
        self._sent: set[asyncio.Future[Any]] = set()
        self.before_commit: Callable[[], Awaitable[None]] | None = None
        self.cut_after: int | None = None

    async def update(
        self, partition: Partition, reads: Sequence[Ref], decide: Decide[T], purpose: Purpose
    ) -> T:
        trying = self._try(partition, reads, decide, purpose)
        if self.before_commit is None:
            return await trying
        sent = asyncio.ensure_future(trying)
        self._sent.add(sent)
        sent.add_done_callback(self._answered)
        return await asyncio.shield(sent)

    def _answered(self, sent: asyncio.Future[Any]) -> None:
        self._sent.discard(sent)
        if not sent.cancelled():
            sent.exception()  # its caller may have gone

    async def _try(
        self, partition: Partition, reads: Sequence[Ref], decide: Decide[T], purpose: Purpose
    ) -> T:
        running = self._under_way.begin()
        try:
            for attempt in itertools.count():
                seen = [self.see(ref) for ref in reads]
                was_alone = self._gateway.is_alone
                stamp = running.stamp = self._stamp()
                commit = decide(seen, stamp)
                check_steps(commit.steps)
                adopted = [content_id for step in commit.steps for content_id in step.adopt]
                self._contents.adoptions.begin(adopted)
                try:
                    if attempt < _OPTIMISTIC_ATTEMPTS:
                        await self._pause()
                    is_as_seen = self._gateway.is_alone == was_alone
                    if is_as_seen and self._is_current(partition, reads, seen, commit.steps, stamp):
                        self.apply(commit.steps, stamp, purpose)
                        return commit.result
                finally:
                    self._contents.adoptions.end(adopted)
            raise AssertionError("a decision that nobody interrupts is current")
        finally:
            self._under_way.end(running)
            self._members.decision_ended()
            if not (self._under_way or self._members.has_had_several):
                self._data.newest.clear()

    async def _pause(self) -> None:
        """Suspend before a commit, so that other commits may come first, as on a distributed
        engine. Raises: Unavailable if this gateway was declared dead."""
        await (asyncio.sleep(0) if self.before_commit is None else self.before_commit())
        if self._life.broken:
            raise self._life.why_stopped() or AssertionError
        if self._members.has_had_several and not self._gateway.may_commit():
            raise Unavailable("this gateway was declared dead: nothing was changed")

    def _is_current(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        seen: Sequence[Record | None],
        steps: Sequence[Step],
        stamp: int,
    ) -> bool:
        pairs = list(zip(reads, seen, strict=True))
        return (
            self._are_unchanged([pair for pair in pairs if pair[0].partition == partition])
            and self._are_inputs_unchanged([one for one in pairs if one[0].partition != partition])
            and self._do_stamps_rise(steps, stamp)
        )

    def _are_unchanged(self, pairs: Sequence[tuple[Ref, Record | None]]) -> bool:
        return all(self.see(ref) == record for ref, record in pairs)

    def _are_inputs_unchanged(self, pairs: Sequence[tuple[Ref, Record | None]]) -> bool:
        return all(self.see(ref) == record for ref, record in pairs)

    def _do_stamps_rise(self, steps: Sequence[Step], stamp: int) -> bool:
        """Above all versions in the partitions, read or not."""
        newest = max((self._data.newest.get(step.partition, 0) for step in steps), default=0)
        self._gateway.state.observe(newest)
        return newest < stamp

    def apply(self, steps: Sequence[Step], stamp: int, purpose: Purpose) -> None:
        """Commit steps that are current. Raises: Full; ValueError: a content cannot be adopted;
        CommitUnknown: the store was cut off inside the commit."""
        self._contents.adoptions.check(steps)
        self._data.check_space(steps, purpose)
        cut, self.cut_after = self.cut_after if steps else None, None
        if steps:
            self._members.highest = max(self._members.highest, stamp)
        for step in steps[:cut]:
            self._data.newest[step.partition] = stamp
            self._data.write(step, stamp)
            self._contents.adopt(step)
        if cut is not None:
            self._life.broken = True
            self._gateway.is_beating = False
            self._gateway.watchers.wake_all()
            raise CommitUnknown("the engine was cut off inside a commit")
        self._members.notify(
            [Ref(step.partition, write.key) for step in steps for write in step.writes]
        )

    def see(self, ref: Ref) -> Record | None:
        """Later stamps of this gateway are above the version of what is returned."""
        record = self._data.get(ref)
        if record is not None:
            self._gateway.state.observe(record.version)
        return record

    def _stamp(self) -> int:
        state, now = self._gateway.state, self._time.now()
        if self._members.has_had_several:
            return state.stamp(now)
        state.observe(max(now, state.last_stamp + 1))
        return state.last_stamp
