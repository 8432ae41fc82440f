"""The PostgreSQL engine in the place of the one in memory, for the tests of the services.

It is made by a constructor, and has what these tests ask of an engine besides the contract: its
records, another gateway, a restart, a cut inside a commit. Each store has a schema of its own,
which is dropped when its test has ended.

Must not live here: which engine a test gets (service_engine.py).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final, NoReturn, Self, TypeVar

from strongroom.clock import Clock, SkewedClock
from strongroom.engines.base import (
    Commit,
    CommitUnknown,
    Decide,
    Partition,
    Record,
    Ref,
)
from strongroom.engines.postgres.assembly import PostgresOptions, open_store
from strongroom.engines.postgres.sessions.session import DatabaseSession
from strongroom.engines.postgres.sql.places import place_of
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.engines.postgres.transfer import record_ref
from strongroom.standby import HOLD
from strongroom.values import Purpose
from tests.engines.postgres.servers import Administrator
from tests.over_postgres import database, new_store
from tests.services.beats import ROUNDS
from tests.services.nested import awaited

T = TypeVar("T")

_STEP_S: Final = 4.0
"""Shorter than the time after which a gateway without a heartbeat is late."""
_DEAD_S: Final = 12.0
_QUIET_TURNS: Final = 50


@functools.cache
def _administrator() -> Administrator:
    return Administrator(database().url)


class _Family:
    """The gateways of one store, and the loop on which they run.

    Arguments:
        clock: of the store, and of the table of its gateways.
    """

    def __init__(self, clock: Clock, *, allows_reset: bool) -> None:
        store = new_store()
        self.clock = clock
        self.schema = store.schema
        self._url = store.url
        self._loop = asyncio.get_running_loop()
        self.gateways: list[PostgresServiceEngine] = []
        self.options = PostgresOptions(
            connections=store.connections,
            schema=store.schema,
            table_clock=clock,
            allows_reset=allows_reset,
            test_clock=True,
        )

    async def open(self, clock: Clock) -> PostgresEngine:
        return await open_store(self._url, clock, self.options)

    async def joined(self) -> None:
        """Let the only gateway serve alone, as a server does. One of several tells the others."""
        first = self.gateways[0].gateways
        if len(self.gateways) == 1:
            first.exclusive = await first.hold(HOLD)
        else:
            await self.beat()

    def share(self) -> None:
        """End that a gateway serves alone, before another one joins."""
        for gateway in self.gateways:
            if gateway.gateways.exclusive is not None:
                gateway.gateways.exclusive.release()
                gateway.gateways.exclusive = None

    async def beat(self) -> None:
        """Send the heartbeats of all gateways that no test has stopped."""
        for gateway in self.gateways:
            heartbeats = gateway.gateways.heartbeats
            if (under_way := heartbeats._beating) is not None:
                await asyncio.wait([under_way])  # its content may be older than this call
            if heartbeats.is_beating and not heartbeats.is_dead:
                await heartbeats.beat()

    @property
    def has_ended(self) -> bool:
        return self._loop.is_closed()

    def drop(self) -> None:
        """Drop the store, whose gateways are gone."""
        for gateway in self.gateways:
            for session in gateway.sessions():
                if not session.is_lost:
                    session.is_lost = True
                    session._pq.finish()
        _administrator().run(f"DROP SCHEMA {self.schema} CASCADE")


_families: list[_Family] = []


def drop_stores(*, all_of_them: bool = False) -> None:
    """Drop the stores of event loops that have ended."""
    for family in list(_families):
        if all_of_them or family.has_ended:
            _families.remove(family)
            family.drop()


async def settle() -> None:
    """Let every task run until it waits for an event that is not an answer of the database."""
    quiet = 0
    while quiet < _QUIET_TURNS:
        is_busy = any(one.is_busy for family in _families for one in family.gateways)
        quiet = 0 if is_busy else quiet + 1
        await asyncio.sleep(0.001 if is_busy else 0)


class PostgresServiceEngine(PostgresEngine):
    """One gateway of a store that a test has made; see MemoryEngine for the arguments.

    Arguments:
        family: of another gateway of the same store.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        family: _Family | None = None,
        allows_reset: bool = False,
    ) -> None:
        if family is None:
            drop_stores()
            family = _Family(clock, allows_reset=allows_reset)
            _families.append(family)
        self._family = family
        opened = awaited(family.open(clock))
        super().__init__(opened._parts, allows_reset=opened.allows_reset)
        self._cut_after: int | None = None
        family.gateways.append(self)
        awaited(family.joined())

    def sessions(self) -> Iterator[DatabaseSession]:
        """All that are open."""
        lanes = [lane._session for lane in self.lanes()]
        return (one for one in (*lanes, self._parts.members._session) if one is not None)

    @property
    def is_busy(self) -> bool:
        """Whether a statement is being executed."""
        return any(not one.is_lost and one._answer is not None for one in self.sessions())

    def second(self, skew_s: float = 0.0) -> Self:
        """See MemoryEngine.second."""
        awaited(self._moved())
        self._family.share()
        clock = self._family.clock
        return type(self)(SkewedClock(clock, skew_s) if skew_s else clock, family=self._family)

    def restarted(self) -> Self:
        """See MemoryEngine.restarted."""
        awaited(self._stopped())
        self._family.gateways.remove(self)
        return type(self)(self._family.clock, family=self._family)

    async def _moved(self) -> None:
        """Return when the database knows how far time was moved."""
        await asyncio.gather(*self._shifts)

    async def _stopped(self) -> None:
        """End as `close` does, but leave commits that are held back unfinished."""
        parts = self._parts
        parts.life.is_closed = True
        self.watchers.wake_all()
        await parts.commits.drain(0.0)
        await parts.upkeep.stop()
        await self._moved()
        await parts.waits.close()
        await parts.gateways.leave()
        await parts.updating.close()
        await parts.reading.close()
        await parts.members.close()

    def advance(self, seconds: float) -> None:
        """See MemoryEngine.advance. Where a test has stopped heartbeats, they are late by then."""
        family = self._family
        if not all(one.gateways.heartbeats.is_beating for one in family.gateways):
            until_dead_s = min(seconds, _DEAD_S)
            awaited(self._pass(until_dead_s))
            seconds -= until_dead_s
        super().advance(seconds)
        for gateway in family.gateways:
            if gateway is not self:
                gateway._parts.time.advance(seconds)

    async def _pass(self, seconds: float) -> None:
        clock: Any = self._family.clock
        while seconds > 0:
            clock.advance(min(seconds, _STEP_S))
            seconds -= _STEP_S
            await self._family.beat()
        for gateway in self._family.gateways:
            gateway.watchers.wake_all()

    async def beat_all(self) -> None:
        """Send the heartbeats of all gateways of the store, until each tells that it reads nothing
        older. Time is moved a little: it stands still while stamps rise, and a gateway promises no
        stamp of the future."""
        self.advance(0.001)
        await self._moved()
        for _ in range(ROUNDS):
            await self._family.beat()

    def stop_heartbeats(self) -> None:
        self.gateways.heartbeats.is_beating = False

    def resume_heartbeats(self) -> None:
        self.gateways.heartbeats.is_beating = True

    def end_others(self) -> None:
        """End all other gateways of the store."""
        for gateway in self._family.gateways:
            if gateway is not self:
                awaited(gateway.gateways.leave())
        awaited(self._family.beat())

    def records(self) -> Iterator[tuple[Ref, Record]]:
        """See MemoryEngine.records."""
        table = f"{self._family.schema}.records"
        for place, version, value in _administrator().run(
            f"SELECT place, version, value FROM {table} ORDER BY place"
        ):
            yield record_ref(bytes(place)), Record(bytes(value), version)

    def content_ids(self) -> Iterator[int]:
        """See MemoryEngine.content_ids."""
        table = f"{self._family.schema}.contents"
        rows = _administrator().run(f"SELECT id FROM {table} WHERE is_adopted ORDER BY id")
        return iter([content_id for (content_id,) in rows])

    def lose_contents(self) -> None:
        """Remove all contents, as damage does."""
        schema = self._family.schema
        _administrator().run(f"TRUNCATE {schema}.contents, {schema}.chunks")

    def put_record(self, ref: Ref, value: bytes | None) -> None:
        """Write a record in its place; None removes it. Nobody is told."""
        table, place = f"{self._family.schema}.records", place_of(ref)
        _administrator().run(f"DELETE FROM {table} WHERE place = %s", (place,))
        if value is not None:
            _administrator().run(f"INSERT INTO {table} VALUES (%s, 1, %s)", (place, value))

    def get_record(self, ref: Ref) -> Record | None:
        return dict(self.records()).get(ref)

    def cut_after_steps(self, count: int) -> None:
        """See MemoryEngine.cut_after_steps. PostgreSQL keeps all of the steps, or none."""
        self._cut_after = count

    def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[T],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Awaitable[T]:
        if self._cut_after is None:
            return super().update(partition, reads, decide, purpose)
        cut = _Cut(decide, self._cut_after)
        return self._cut(cut, super().update(partition, reads, cut.decided, purpose))

    async def _cut(self, cut: _Cut, update: Awaitable[T]) -> T:
        try:
            result = await update
        except _NothingKept:
            self._break()
        if cut.has_steps:
            self._break()
        return result

    def _break(self) -> NoReturn:
        """Stop as if the process had ended inside a commit."""
        self._cut_after = None
        self._parts.life.is_closed = True
        self.watchers.wake_all()
        raise CommitUnknown("the engine was cut off inside a commit")


class _NothingKept(Exception):
    """The commit does not happen."""


class _Cut:
    """A decision whose commit is cut.

    Attributes:
        has_steps: whether the last decision wanted to change something.
    """

    def __init__(self, decide: Decide[Any], count: int) -> None:
        self._decide = decide
        self._count = count
        self.has_steps = False

    def decided(self, found: Sequence[Record | None], stamp: int) -> Commit[Any]:
        self.has_steps = False
        commit = self._decide(found, stamp)
        self.has_steps = bool(commit.steps)
        if len(commit.steps) > self._count:
            raise _NothingKept
        return commit
