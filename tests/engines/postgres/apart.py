"""A store whose long bodies lie in a folder, for trials.

Lives here: the store, copies of its database, and what trials do with it. The fixture `attempt` is
in conftest.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from strongroom.engines.base import Step, StorageEngine
from strongroom.engines.bodies.layout import name_of
from strongroom.engines.postgres.assembly import open_store
from strongroom.engines.postgres.sql.making import init_sql
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import commit, pieces, place
from tests.engines.postgres.servers import Administrator, fresh_schema
from tests.engines.postgres.subject import PostgresSubject

BODY: Final = os.urandom(200_000)


class Apart(PostgresSubject):
    """A store with bodies apart, and copies of its database."""

    def __init__(self, url: str, administrator: Administrator, folder: Path) -> None:
        super().__init__(url, administrator, bodies=folder)
        self.folder, self.url, self.sql = folder, url, administrator

    def copied(self) -> str:
        """Copy the whole database, with all rows as they are; return its schema."""
        copy = fresh_schema()
        tables = self.sql.run(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (self.schema,)
        )
        self.sql.run(init_sql(copy))
        for (table,) in tables:
            self.sql.run(f"DELETE FROM {copy}.{table}")
            self.sql.run(f"INSERT INTO {copy}.{table} SELECT * FROM {self.schema}.{table}")
        return copy

    async def opened(self, schema: str | None = None, **changed: object) -> PostgresEngine:
        options = msgspec.structs.replace(self.options, **changed)
        if schema is not None:
            options = msgspec.structs.replace(options, schema=schema)
        engine = await open_store(self.url, self.clock, options)
        self._gateways.append(engine)
        return engine

    def files(self) -> set[int]:
        return {int(one.name, 16) for one in self.folder.glob("bodies/*/*")}

    def age(self, content_id: int, age_s: float) -> None:
        """Let a file be older than it is."""
        then = time.time() - age_s
        os.utime(self.folder / name_of(content_id), (then, then))


Trial = Callable[[Apart], Awaitable[None]]


async def own_body(store: StorageEngine, body: bytes = BODY) -> int:
    written = await store.contents.write(pieces(body, 50_000), len(body))
    await commit(store, Step(place(), adopt=(written.id,)))
    return written.id


async def tidy(*stores: StorageEngine, rounds: int = 3) -> None:
    """Let the gateways send the heartbeats by which the horizon lags, take turns, and tidy up."""
    for _ in range(rounds):
        for store in stores:
            await store.gateways.wait_for_earlier_commits(await store.now())
            assert isinstance(store, PostgresEngine)
            await store.maintain()
