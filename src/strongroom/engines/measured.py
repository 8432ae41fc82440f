"""How long an engine takes: what each caller waits for it, and how long its commits took.

Lives here: the sum for each request and what counts, the histogram of commits. A server that does
not need the sums uses the engine itself, so that nothing is measured.

Scans count, and reads of records that are not in memory. Updates count with their commit and sync.
Waits for a change of a record, and bodies, do not count: these depend on clients.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from itertools import accumulate
from typing import Any, Final, TypeVar

from strongroom.engines.base import (
    SCAN_BYTES_MAX,
    Contents,
    Decide,
    Item,
    Page,
    Partition,
    Position,
    Ref,
    StorageEngine,
)
from strongroom.engines.conditions import Condition
from strongroom.engines.gateways import Gateways
from strongroom.slices import SliceTurns
from strongroom.values import Health, Purpose

T = TypeVar("T")

_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class _Spent:
    """The seconds that one request has waited for the engine."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


_SPENT: Final[ContextVar[_Spent]] = ContextVar("strongroom-engine-spent")


def begin() -> None:
    """Begin the sum of a request in the current task: the tasks that it starts add to the same sum.

    Without it, the first wait of a task begins a sum of its own.
    """
    _SPENT.set(_Spent())


def add_s(seconds: float) -> None:
    """Add to the sum of the current request."""
    spent = _SPENT.get(None)
    if spent is None:
        spent = _Spent()
        _SPENT.set(spent)
    spent.seconds += seconds


def spent_s() -> float:
    """Return the sum of the current request, in seconds; 0 if none was begun."""
    spent = _SPENT.get(None)
    return 0.0 if spent is None else spent.seconds


class MeasuredEngine:
    """An engine whose callers' waits are measured (see StorageEngine for every method).

    Arguments:
        engine: does the work.
        now: seconds of a monotonic clock.
        updating: called with the result of each `update`, before it is awaited; None = nothing.
    """

    def __init__(
        self,
        engine: StorageEngine,
        now: Callable[[], float],
        updating: Callable[[Awaitable[Any]], None] | None = None,
    ) -> None:
        self._engine = engine
        self._now = now
        self._updating = updating
        # The engine itself adds the reads that it cannot answer from memory. A request has several
        # reads, so a further coroutine for each would cost more than most of them take.
        self.read = engine.read
        self.follow = engine.follow
        self.allows_reset = engine.allows_reset
        self.wait = engine.wait
        self.watching = engine.watching
        self.stop_waiting = engine.stop_waiting
        self.now = engine.now
        self.advance = engine.advance
        self.close = engine.close

    @property
    def turns(self) -> SliceTurns:
        return self._engine.turns

    @property
    def wakes(self) -> int:
        return self._engine.wakes

    @property
    def contents(self) -> Contents:
        return self._engine.contents

    @property
    def gateways(self) -> Gateways:
        return self._engine.gateways

    def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[T],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Awaitable[T]:
        began = self._now()
        result = self._engine.update(partition, reads, decide, purpose)
        if self._updating is not None:
            self._updating(result)
        return self._measured(began, result)

    async def read_range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        reading = self._engine.read_range(partition, hidden, first, until, max_records)
        return await self._measured(self._now(), reading)

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = SCAN_BYTES_MAX,
        where: Condition | None = None,
    ) -> Page:
        reading = self._engine.scan(keyspace, first, until, max_records, max_bytes, where)
        return await self._measured(self._now(), reading)

    async def health(self, timeout_s: float) -> Health:
        return await self._engine.health(timeout_s)

    async def _measured(self, began: float, result: Awaitable[T]) -> T:
        try:
            return await result
        finally:
            add_s(self._now() - began)


class CommitTimes:
    """How long commits took, with their syncs. One thread at a time notes; others may read.

    Attributes:
        decisions: how many decisions these commits made durable; counted on the event loop.
    """

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_S) + 1)
        self.sum_s = 0.0
        self.decisions = 0

    def note(self, took_s: float) -> None:
        self._counts[bisect.bisect_left(_BOUNDS_S, took_s)] += 1
        self.sum_s += took_s

    def by_bound(self) -> tuple[tuple[float, int], ...]:
        return tuple(zip((*_BOUNDS_S, math.inf), accumulate(self._counts), strict=True))
