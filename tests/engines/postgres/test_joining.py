"""A gateway that joins takes its time from the others, whatever the database's clock says. They see
at once that one leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from strongroom.engines.base import StorageEngine
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.values import TICKS_PER_S
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.patience import soon
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject

Trial = Callable[[PostgresSubject], Awaitable[None]]
STEP_S = 5


def _try(trial: Trial, server: PostgresServer, administrator: Administrator) -> None:
    async def whole() -> None:
        subject = PostgresSubject(server.url, administrator)
        await subject.start()
        try:
            await trial(subject)
        finally:
            await subject.stop()

    asyncio.run(whole())


@pytest.mark.parametrize("step_s", [STEP_S, -STEP_S])
def test_a_gateway_that_joins_after_a_step_of_the_clock_has_the_time_of_the_others(
    postgres: PostgresServer, administrator: Administrator, step_s: int
) -> None:
    """A promoted standby has another clock. A lease that was acquired before may not end early."""

    async def trial(subject: PostgresSubject) -> None:
        before = await subject.store.now()
        subject.clock.step_wall(step_s)
        second = await subject.second()
        await subject.store.gateways.wait_for_earlier_commits(before)
        for store in (second, subject.store):
            assert 0 <= await store.now() - before < TICKS_PER_S

    _try(trial, postgres, administrator)


def test_the_others_see_at_once_that_a_gateway_has_left(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """No heartbeat is sent here by itself."""

    async def trial(subject: PostgresSubject) -> None:
        other = await subject.second()
        await subject.store.close()
        complaint = "it does not see that the other one has left"
        await soon(lambda: not _opened(other).gateways.has_others, complaint)

    _try(trial, postgres, administrator)


def _opened(store: StorageEngine) -> PostgresEngine:
    assert isinstance(store, PostgresEngine)
    return store


def test_the_first_gateway_has_the_time_of_the_database(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    async def trial(subject: PostgresSubject) -> None:
        before = await subject.store.now()
        await subject.store.close()
        subject.clock.step_wall(STEP_S)
        await subject.restart()
        assert await subject.store.now() - before >= STEP_S * TICKS_PER_S

    _try(trial, postgres, administrator)
