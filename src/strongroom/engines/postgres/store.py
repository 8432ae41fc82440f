"""The engine over PostgreSQL: one gateway of a store that several may serve.

Lives here: the contract's methods, and the gateway's life: what notifications mean, maintenance,
the end. Must not live here: the parts; see commits.py, records.py, contents.py, gateways.py,
waiting.py, and assembly.py, which makes them. Source of the design: docs/decisions/postgresql.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Final, TypeVar

import msgspec

from strongroom.engines.base import (
    SCAN_BYTES_MAX,
    Decide,
    EngineError,
    Item,
    Page,
    Partition,
    Position,
    Record,
    Ref,
)
from strongroom.engines.bounds import check_partition, check_reads
from strongroom.engines.conditions import Condition
from strongroom.engines.links import Links
from strongroom.engines.postgres import wire
from strongroom.engines.postgres.clock import DatabaseClock
from strongroom.engines.postgres.commits import Commits
from strongroom.engines.postgres.contents import PostgresContents
from strongroom.engines.postgres.gateways import PostgresGateways
from strongroom.engines.postgres.lanes import Lane, Pool
from strongroom.engines.postgres.life import Life
from strongroom.engines.postgres.members import Members
from strongroom.engines.postgres.openers import Opener
from strongroom.engines.postgres.records import Records
from strongroom.engines.postgres.schema import FORGET_PARTITIONS, READ, SHIFT
from strongroom.engines.postgres.shared_time import SharedTime
from strongroom.engines.postgres.space import Space
from strongroom.engines.postgres.waiting import Waits
from strongroom.engines.watchers import WaitingEngine, Watchers
from strongroom.slices import SliceTurns
from strongroom.values import GatewayFacts, Health, Purpose

T = TypeVar("T")

_MAINTENANCE: Final = b"engine maintenance"
_MAINTENANCE_S: Final = 5.0
_EXPIRE_S: Final = 1.0
_ROUNDS_TO_FORGET: Final = 12
_CLOSE_S: Final = 15.0
_log = logging.getLogger(__name__)


class Parts(msgspec.Struct, frozen=True):
    """What a gateway is made of.

    Attributes:
        shown: hosts and database, as they may be shown.
        clock: that of the database, as this machine knows it.
        updating: the lanes of updates.
        reading: the lanes of everything that may be repeated.
    """

    shown: str
    opener: Opener
    clock: DatabaseClock
    life: Life
    time: SharedTime
    watchers: Watchers
    members: Members
    gateways: PostgresGateways
    updating: Pool
    reading: Pool
    records: Records
    commits: Commits
    contents: PostgresContents
    waits: Waits
    space: Space


class PostgresEngine(WaitingEngine):
    """See StorageEngine."""

    def __init__(self, parts: Parts, *, allows_reset: bool, beats: bool) -> None:
        super().__init__(parts.watchers, SliceTurns())
        self.allows_reset = allows_reset
        self._parts = parts
        self.contents = parts.contents
        self.gateways = parts.gateways
        self._tasks: set[asyncio.Task[None]] = set()
        self._shifts: set[asyncio.Task[None]] = set()
        self._background = [
            asyncio.ensure_future(self._maintain_forever()),
            asyncio.ensure_future(parts.waits.poll_forever()),
            asyncio.ensure_future(self._expire_forever()),
        ]
        if beats:
            self._background.append(asyncio.ensure_future(parts.gateways.beat_forever()))

    @property
    def shown(self) -> str:
        """Hosts and database, as they may be shown."""
        return self._parts.shown

    @property
    def space(self) -> Space:
        return self._parts.space

    def facts(self) -> GatewayFacts:
        """What an operator watches of this gateway."""
        parts, times = self._parts, self._parts.commits.times
        return GatewayFacts(
            number=self.gateways.number,
            gateways=len(self.gateways.table.rows),
            heartbeat_age_s=self.gateways.heartbeat_age_s,
            clock_ahead_s=parts.clock.ahead_s,
            used_bytes=parts.space.used_bytes,
            quota_bytes=parts.space.quota_bytes,
            sessions=parts.opener.sessions,
            commits=times.by_bound(),
            commits_s=times.sum_s,
            decisions=times.decisions,
        )

    @property
    def before_commit(self) -> Callable[[], Awaitable[None]] | None:
        """Awaited between a decision and its commit, so that a test can hold commits back."""
        return self._parts.commits.before_commit

    @before_commit.setter
    def before_commit(self, awaited: Callable[[], Awaitable[None]] | None) -> None:
        self._parts.commits.before_commit = awaited

    def lanes(self) -> list[Lane]:
        """All lanes, for the start, which opens them, and for tests."""
        return [*self._parts.reading.lanes, *self._parts.updating.lanes]

    def on_fatal(self, callback: Callable[[EngineError], None]) -> None:
        """Called once, when this gateway was declared dead."""
        self._parts.life.on_fatal(callback)

    def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[T],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Awaitable[T]:
        check_partition(partition)
        check_reads(reads)
        self._parts.life.check()
        return self._parts.commits.update(partition, reads, decide, purpose)

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        await self.gateways.ensure_serving()
        return await self._parts.records.read(reads)

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> list[tuple[Ref, Record | None]]:
        await self.gateways.ensure_serving()
        return await self._parts.records.follow(partition, links, first, names)

    async def read_range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        await self.gateways.ensure_serving()
        return await self._parts.records.range(partition, hidden, first, until, max_records)

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = SCAN_BYTES_MAX,
        where: Condition | None = None,
    ) -> Page:
        if max_records < 1 or max_bytes < 1:
            raise ValueError("a page holds at least one record")
        await self.gateways.ensure_serving()
        records = self._parts.records
        return await records.scan(keyspace, first, until, max_records, max_bytes, where)

    async def keyspaces(self, first: bytes, until: bytes) -> list[bytes]:
        """The keyspaces that have face records, from `first` on and before `until`."""
        await self.gateways.ensure_serving()
        return await self._parts.records.keyspaces(first, until)

    async def wait(self, ref: Ref, version: int | None, timeout_s: float) -> None:
        with self._parts.waits.waiting(ref, version):
            await super().wait(ref, version, timeout_s)

    async def now(self) -> int:
        if self._shifts:
            await asyncio.gather(*self._shifts)
        await self.gateways.ensure_serving()
        return max(self._parts.time.now(), self.gateways.state.last_stamp)

    def advance(self, seconds: float) -> None:
        ticks = self._parts.time.advance(seconds)
        task = asyncio.ensure_future(self._tell_advance(ticks))
        self._shifts.add(task)
        task.add_done_callback(self._shifts.discard)

    async def _tell_advance(self, ticks: int) -> None:
        await self._parts.reading.write(SHIFT, lambda _: (wire.int8(ticks),))
        self._parts.members.send("shift")

    async def health(self, timeout_s: float) -> Health:
        if self._parts.life.why_stopped() is not None or self.gateways.is_dead:
            return Health.STOPPED
        try:
            async with asyncio.timeout(timeout_s):
                await self.gateways.ensure_serving()
                await self._parts.reading.run(READ, wire.byteas(()))
        except (EngineError, TimeoutError):
            return Health.STALLED
        return Health.FULL if self._parts.space.is_full else Health.SERVING

    def notified(self, payload: str) -> None:
        """Another gateway, or this one, has sent a notification."""
        kind, _, rest = payload.partition(":")
        if kind == "changed":
            self._parts.waits.hinted(rest.split(","))
        elif kind == "shift":
            self._do(self._learn_shift())
        elif kind == "beat" and self.gateways.is_beating:
            self._do(self._beat())

    def session_opened(self) -> None:
        """Notifications may have been lost."""
        self._do(self._parts.waits.poll())

    async def _learn_shift(self) -> None:
        self._parts.time.learn((await self._parts.members.look()).shift)

    async def _beat(self) -> None:
        await self.gateways.beat()

    def _do(self, work: Coroutine[object, object, None]) -> None:
        """Work in the background; if the database is away, it is done later by other means."""
        task = asyncio.ensure_future(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _expire_forever(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRE_S)
            self._parts.commits.expire()

    async def _maintain_forever(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(_MAINTENANCE_S)
            if self.gateways.is_beating and self.gateways.owns(_MAINTENANCE):
                await _quietly(self.maintain(forgets=rounds % _ROUNDS_TO_FORGET == 0))
                rounds += 1

    async def maintain(self, *, forgets: bool = True) -> None:
        """Delete what was dropped and nobody reads.

        Arguments:
            forgets: also delete what dead gateways left, and stamps below which nothing can happen.
        """
        while await self._parts.contents.remove_dropped(await self.gateways.horizon()):
            pass
        if forgets:
            await self._parts.contents.remove_orphans()
            floor = wire.int8(self.gateways.table.floor)
            await self._parts.reading.write(FORGET_PARTITIONS, lambda _: (floor,))

    async def close(self) -> None:
        parts = self._parts
        if parts.life.is_closed:
            return
        parts.life.is_closed = True
        self.watchers.stop()
        await parts.commits.drain(_CLOSE_S)
        for task in self._background:
            task.cancel()
        pending = (*self._background, *self._tasks, *self._shifts)
        await asyncio.gather(*pending, return_exceptions=True)
        await parts.waits.close()
        await parts.contents.drain()
        await parts.records.drain()
        await parts.gateways.leave()
        await parts.updating.close()
        await parts.reading.close()
        await parts.members.close()


async def _quietly(work: Coroutine[object, object, None]) -> None:
    try:
        await work
    except EngineError as error:
        _log.debug("put off: %s", error)
