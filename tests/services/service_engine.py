"""The engine over which the tests of the services run: the one in memory, or PostgreSQL.

    STRONGROOM_TEST_STORE=postgres make test ARGS=tests/services

With `two-gateways` in place of `postgres`, consecutive calls go to two gateways in turn
(alternating.py). Lives here: that choice, and what tests ask of the engine in memory besides its
own methods. Must not live here: the same of PostgreSQL (postgres_engine.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from strongroom.engines.base import Record, Ref, Step, Write
from strongroom.engines.memory import MemoryEngine
from tests.over_postgres import keeps_in_postgres
from tests.services.beats import ROUNDS


class MemoryServiceEngine(MemoryEngine):
    """The engine in memory, as PostgresServiceEngine has it."""

    async def beat_all(self) -> None:
        """Send the heartbeats of all gateways, until each tells that it reads nothing older."""
        for _ in range(ROUNDS):
            self.data.members.refresh()

    def stop_heartbeats(self) -> None:
        self.gateways.is_beating = False

    def resume_heartbeats(self) -> None:
        self.gateways.is_beating = True

    def end_others(self) -> None:
        """End all other gateways of the store."""
        for gateway in list(self.data.members.gateways):
            if gateway is not self.gateways:
                gateway.end()

    def lose_contents(self) -> None:
        """Remove all contents, as damage does."""
        self.data.contents.clear()

    def put_record(self, ref: Ref, value: bytes | None) -> None:
        """Write a record in its place; None removes it. Nobody is told."""
        self.data.write(Step(ref.partition, (Write(ref.key, value),)), 1)

    def get_record(self, ref: Ref) -> Record | None:
        return self.data.get(ref)


async def settle(turns: int = 50) -> None:
    """Let every task run until it waits for an event.

    Arguments:
        turns: of the loop, in memory, where the engine waits for nothing.
    """
    if keeps_in_postgres():
        from tests.services import postgres_engine  # few runs need a database

        await postgres_engine.settle()
        return
    for _ in range(turns):
        await asyncio.sleep(0)


def drop_stores() -> None:
    """Drop the stores in a database of which no test has any more need."""
    if keeps_in_postgres():
        from tests.services import postgres_engine  # few runs need a database

        postgres_engine.drop_stores(all_of_them=True)


def _chosen() -> Any:
    if keeps_in_postgres():
        from tests.services.postgres_engine import PostgresServiceEngine  # few runs need a database

        return PostgresServiceEngine
    return MemoryServiceEngine


if TYPE_CHECKING:
    ServiceEngine = MemoryServiceEngine
else:
    ServiceEngine = _chosen()
