"""The engine over PostgreSQL: one gateway of a store that several may serve.

Lives here: the contract's methods, and the end. Must not live here: the parts (commits/,
records.py, contents/, gateways/, waiting.py), what works beside the calls (upkeep.py), how all of
it is made (assembly.py). Source of the design: docs/decisions/postgresql.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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
from strongroom.engines.bodies.base import BodyStore
from strongroom.engines.bounds import check_partition, check_reads
from strongroom.engines.conditions import Condition
from strongroom.engines.links import Links
from strongroom.engines.postgres.commits.commits import Commits
from strongroom.engines.postgres.commits.space import Space
from strongroom.engines.postgres.contents.contents import PostgresContents
from strongroom.engines.postgres.gateways.clock import DatabaseClock
from strongroom.engines.postgres.gateways.gateways import PostgresGateways
from strongroom.engines.postgres.gateways.members import SharedTable
from strongroom.engines.postgres.gateways.shared_time import SharedTime
from strongroom.engines.postgres.life import Life
from strongroom.engines.postgres.records import Records
from strongroom.engines.postgres.sessions.lanes import Lane, Pool
from strongroom.engines.postgres.sessions.openers import SessionOpener
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import READ, SHIFT
from strongroom.engines.postgres.upkeep import Upkeep
from strongroom.engines.postgres.waiting import Waits
from strongroom.engines.watchers import WaitingEngine, Watchers
from strongroom.slices import SliceTurns
from strongroom.values import GatewayFacts, Health, Purpose

T = TypeVar("T")

_CLOSE_S: Final = 15.0


class GatewayParts(msgspec.Struct, frozen=True):
    """What a gateway is made of.

    Attributes:
        shown: hosts and database, as they may be shown.
        clock: that of the database, as this machine knows it.
        updating: the lanes of updates.
        reading: the lanes of everything that may be repeated.
        bodies: where long bodies lie; None = in the database.
    """

    shown: str
    opener: SessionOpener
    clock: DatabaseClock
    life: Life
    time: SharedTime
    watchers: Watchers
    members: SharedTable
    gateways: PostgresGateways
    updating: Pool
    reading: Pool
    records: Records
    commits: Commits
    contents: PostgresContents
    waits: Waits
    bodies: BodyStore | None
    space: Space
    upkeep: Upkeep


class PostgresEngine(WaitingEngine):
    """One gateway of a store in PostgreSQL."""

    def __init__(self, parts: GatewayParts, *, allows_reset: bool) -> None:
        super().__init__(parts.watchers, SliceTurns())
        self.allows_reset = allows_reset
        self._parts = parts
        self.contents = parts.contents
        self.gateways = parts.gateways
        self._shifts: set[asyncio.Task[None]] = set()

    @property
    def shown(self) -> str:
        """Hosts and database, as they may be shown."""
        return self._parts.shown

    @property
    def has_standbys(self) -> bool:
        """Whether PostgreSQL waits for standbys, as the last heartbeat found it."""
        return self._parts.members.awaits_standby

    @property
    def space(self) -> Space:
        return self._parts.space

    def facts(self) -> GatewayFacts:
        """What an operator watches of this gateway."""
        parts = self._parts
        times = parts.commits.context.times
        return GatewayFacts(
            number=self.gateways.number,
            gateways=len(self.gateways.table.rows),
            heartbeat_age_s=self.gateways.heartbeats.age_s,
            clock_ahead_s=parts.clock.ahead_s,
            used_bytes=parts.space.used_bytes,
            quota_bytes=parts.space.quota_bytes,
            sessions=parts.opener.sessions,
            commits=times.by_bound(),
            commits_s=times.sum_s,
            decisions=times.decisions,
            clock_doubt_s=parts.clock.doubt_s,
            awaits_standby=parts.members.awaits_standby,
            sessions_refused=parts.opener.refused,
            bodies_away=None if parts.bodies is None else parts.bodies.why_away() is not None,
        )

    @property
    def before_commit(self) -> Callable[[], Awaitable[None]] | None:
        """Awaited between a decision and its commit, so that a test can hold commits back."""
        return self._parts.commits.context.hook.before_commit

    @before_commit.setter
    def before_commit(self, awaited: Callable[[], Awaitable[None]] | None) -> None:
        self._parts.commits.context.hook.before_commit = awaited

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
        if self._parts.life.why_stopped() is not None or self.gateways.heartbeats.is_dead:
            return Health.STOPPED
        try:
            async with asyncio.timeout(timeout_s):
                await self.gateways.ensure_serving()
                await self._parts.reading.run(READ, wire.byteas(()))
        except (EngineError, TimeoutError):
            return Health.STALLED
        return Health.FULL if self._parts.space.is_full else Health.SERVING

    async def maintain(self) -> None:
        """Delete now what was dropped and nobody reads, and what dead gateways left."""
        await self._parts.upkeep.maintain()
        await self._parts.upkeep.tend()

    async def close(self) -> None:
        parts = self._parts
        if parts.life.is_closed:
            return
        parts.life.is_closed = True
        self.watchers.stop()
        await parts.commits.drain(_CLOSE_S)
        await parts.upkeep.stop()
        await asyncio.gather(*self._shifts, return_exceptions=True)
        await parts.waits.close()
        await parts.contents.drain()
        if parts.bodies is not None:
            await parts.bodies.close()
        await parts.records.drain()
        await parts.gateways.leave()
        await parts.updating.close()
        await parts.reading.close()
        await parts.members.close()
