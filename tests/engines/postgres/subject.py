"""The PostgreSQL engine as a subject of the contract suite.

Lives here: how a store is opened in a schema of its own, filled up, damaged, and how the outcome of
a commit is made unknown. Must not live here: cases.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

from strongroom.clock import Clock, ManualClock, SkewedClock
from strongroom.engines.base import StorageEngine
from strongroom.engines.bodies.layout import name_of
from strongroom.engines.postgres.assembly import (
    PostgresOptions,
    init_bodies,
    init_store,
    open_store,
)
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import HeldCommits
from tests.engines.postgres.breaking import break_a_commit
from tests.engines.postgres.servers import Administrator, fresh_schema
from tests.engines.subjects import Held

APART_BYTES = 100
Open = Callable[[str, Clock, PostgresOptions], Awaitable[PostgresEngine]]


async def opened(url: str, clock: Clock, options: PostgresOptions) -> PostgresEngine:
    """Open a store as a user does."""
    return await open_store(url, clock, options)


class PostgresSubject:
    """A store in a schema of its own, with as many gateways as a case asks for.

    Arguments:
        url: of the database.
        administrator: a superuser's session at the same server.
        open_: opens the engine, or a mutant of it.
        mutate: changes the schema after the store was made.
        connections: of each gateway.
        beats: whether heartbeats are sent each second, too, not only where a case looks.
        bodies: a folder in which bodies of more than APART_BYTES lie; None = all in the database.
    """

    store: StorageEngine

    def __init__(
        self,
        url: str,
        administrator: Administrator,
        open_: Open = opened,
        mutate: Callable[[Administrator, str], None] | None = None,
        connections: int = 4,
        *,
        beats: bool = False,
        bodies: Path | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.schema = fresh_schema()
        self._url, self._administrator = url, administrator
        self._open, self._mutate = open_, mutate
        self.bodies = bodies
        self.options = PostgresOptions(
            connections=connections,
            schema=self.schema,
            table_clock=self.clock,
            beats=beats,
            bodies=None if bodies is None else f"file://{bodies}",
            apart_bytes=APART_BYTES,
            keep_dropped_s=0,
            observe_s=0.0,
        )
        self._gateways: list[PostgresEngine] = []
        self._held: list[Held] = []
        # A commit whose connection breaks has happened, or not.
        self._breaks = itertools.cycle((False, True))

    async def start(self) -> None:
        if self.options.bodies is not None:
            await init_store(self._url, self.schema)
            await init_bodies(self._url, self.schema, self.options.bodies)
        self.store = await self._opened(self.clock)
        if self._mutate is not None:
            self._mutate(self._administrator, self.schema)

    async def second(self, skew_s: float = 0.0) -> StorageEngine:
        return await self._opened(SkewedClock(self.clock, skew_s) if skew_s else self.clock)

    async def _opened(self, clock: Clock) -> PostgresEngine:
        engine = await self._open(self._url, clock, self.options)
        self._gateways.append(engine)
        return engine

    @property
    def gateway(self) -> PostgresEngine:
        """The gateway that is `store`."""
        return self._gateway(self.store)

    def _gateway(self, store: StorageEngine) -> PostgresEngine:
        (found,) = [one for one in self._gateways if one is store]
        return found

    def hold_commits(self, store: StorageEngine) -> HeldCommits:
        held = Held()
        self._held.append(held)
        self._gateway(store).before_commit = held
        return held

    def stop_heartbeats(self, store: StorageEngine) -> None:
        self._gateway(store).gateways.heartbeats.is_beating = False

    def resume_heartbeats(self, store: StorageEngine) -> None:
        self._gateway(store).gateways.heartbeats.is_beating = True

    async def restart(self) -> None:
        await self.store.close()
        self._gateways.remove(self._gateway(self.store))
        self.store = await self._opened(self.clock)

    async def stop(self) -> None:
        for held in self._held:
            held.release()
        for gateway in self._gateways:
            await gateway.close()
        self._administrator.run(f"DROP SCHEMA {self.schema} CASCADE")

    def fill(self) -> None:
        store = self._gateway(self.store)
        store.space.quota_bytes = store.space.used_bytes

    def free(self) -> None:
        self._gateway(self.store).space.quota_bytes = None

    def break_next_commit(self) -> None:
        store = self._gateway(self.store)
        happens = next(self._breaks)

        async def once() -> None:
            store.before_commit = None
            breaking = functools.partial(break_a_commit, happens=happens)
            await asyncio.to_thread(breaking, self._administrator, self.schema)

        store.before_commit = once

    def damage(self, content_id: int) -> None:
        """A short body lies in its row, a long one in chunks or in a file."""
        if self.bodies is not None and (file := self.bodies / name_of(content_id)).exists():
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 1
            file.write_bytes(data)
            return
        table, chunk = f"{self.schema}.contents", "true"
        if not self._administrator.value(
            f"SELECT count(data) FROM {table} WHERE id = {content_id}"
        ):
            table = f"{self.schema}.chunks"
            chunk = f"at = (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM {table}"
            chunk += f" WHERE id = {content_id})"
        middle = "length(data) / 2"
        self._administrator.run(
            f"UPDATE {table} SET data = set_byte(data, {middle}, get_byte(data, {middle}) # 1) "
            f"WHERE id = {content_id} AND {chunk}"
        )
