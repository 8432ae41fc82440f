"""The contract detects PostgreSQL engines that break a rule, and forgives a lost notification."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.engines.postgres import upkeep
from strongroom.testing.contract import membership, shared, waiting
from strongroom.testing.contract.subject import face, put
from strongroom.testing.engine_contract import SharedCase, prove
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.mutants import PYTHON_MUTANTS, SQL_MUTANTS, without_notifications
from tests.engines.postgres.patience import soon
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject

_TRIES = 8
POLLED = (
    shared.a_commit_wakes_waiters_at_the_other_gateway,
    shared.a_moved_clock_reaches_every_gateway,
    waiting.a_commit_wakes_the_waiters_of_its_records,
    waiting.no_change_is_missed_between_reading_and_waiting,
)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that never answers is detected soon."""
    for module in (membership, shared, waiting):
        monkeypatch.setattr(module, "_SOON_S", 8.0, raising=False)


@pytest.mark.parametrize("mutant", SQL_MUTANTS)
def test_a_broken_schema_fails(
    postgres: PostgresServer, administrator: Administrator, mutant: str
) -> None:
    mutate, case = SQL_MUTANTS[mutant]

    async def trials() -> None:
        for _ in range(_TRIES):  # two commits have to meet, and on a busy machine they may not
            await prove(case, PostgresSubject(postgres.url, administrator, mutate=mutate))

    with pytest.raises((AssertionError, TimeoutError)):
        asyncio.run(trials())


@pytest.mark.parametrize("mutant", PYTHON_MUTANTS)
def test_a_broken_engine_fails(
    postgres: PostgresServer, administrator: Administrator, mutant: str
) -> None:
    replaced, case = PYTHON_MUTANTS[mutant]
    subject = PostgresSubject(postgres.url, administrator)
    with replaced(), pytest.raises((AssertionError, TimeoutError)):
        asyncio.run(prove(case, subject))


async def _hinted(subject: PostgresSubject) -> None:
    one, two = subject.store, await subject.second()
    await one.gateways.horizon()  # so it sees the other one
    async with asyncio.timeout(30):
        waiting_there = asyncio.create_task(two.wait(face(), None, 3600.0))
        await soon(lambda: two.watching() == 1, "nobody waits")
        await put(one, (face(), b""))
        await waiting_there


def test_a_notification_alone_wakes_a_waiter_elsewhere(
    postgres: PostgresServer, administrator: Administrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_POLL_S", 3600.0)

    async def trial(subject: PostgresSubject) -> None:
        await subject.start()
        try:
            await _hinted(subject)
        finally:
            await subject.stop()

    asyncio.run(trial(PostgresSubject(postgres.url, administrator)))


@pytest.mark.parametrize("case", POLLED, ids=lambda case: case.__name__)
def test_without_notifications_changes_are_found_by_looking(
    postgres: PostgresServer, administrator: Administrator, case: SharedCase
) -> None:
    """A clock that was moved is found by a heartbeat, a changed record by looking at it."""
    with without_notifications():
        asyncio.run(prove(case, PostgresSubject(postgres.url, administrator, beats=True)))
