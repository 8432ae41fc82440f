"""A gateway that joins takes its time from the others, whatever the database's clock says. It
declares nobody dead whom it has not watched. They see at once that one leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from strongroom.clock import SystemClock
from strongroom.engines import membership
from strongroom.engines.base import StorageEngine, Unavailable
from strongroom.engines.gateways import GATEWAYS_MAX
from strongroom.engines.membership import DEAD_TICKS, MembershipTable
from strongroom.engines.postgres.assembly import PostgresOptions, open_store
from strongroom.engines.postgres.gateways import joining, watched
from strongroom.engines.postgres.gateways.joining import Joined, joined
from strongroom.engines.postgres.gateways.members import SharedTable, TableSeen
from strongroom.engines.postgres.gateways.watched import WatchedGateways
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.values import TICKS_PER_S
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.patience import soon
from tests.engines.postgres.servers import Administrator, fresh_schema
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


class _Watch(WatchedGateways):
    """Says when it has looked for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.has_looked = asyncio.Event()

    def look(self, table: MembershipTable, at: int) -> None:
        super().look(table, at)
        self.has_looked.set()


async def _fill(members: SharedTable) -> None:
    """All numbers are taken, by gateways that sent nothing for long."""

    def rule(seen: TableSeen) -> tuple[MembershipTable, None]:
        table, old = seen.table, seen.now - 2 * DEAD_TICKS
        while (more := membership.join(table, old)) is not None:
            table, _ = more
        return _received(table, old), None

    await members.change(rule)


def _received(table: MembershipTable, at: int) -> MembershipTable:
    rows = {
        number: msgspec.structs.replace(row, received_at=at) for number, row in table.rows.items()
    }
    return msgspec.structs.replace(table, rows=rows)


async def _join_full(
    url: str, administrator: Administrator, meanwhile: Callable[[SharedTable], Awaitable[object]]
) -> tuple[Joined | Unavailable, MembershipTable]:
    """Let one gateway too many join; return what became of it, and the table."""
    schema = fresh_schema()
    options = PostgresOptions(2, schema=schema, beats=False)
    store = await open_store(url, SystemClock(), options)
    members = store.gateways._members
    try:
        await _fill(members)
        watch = _Watch()
        joining = asyncio.create_task(joined(members, watch, is_idle=False))
        await watch.has_looked.wait()
        await meanwhile(members)
        (found,) = await asyncio.gather(joining, return_exceptions=True)
        assert isinstance(found, (Joined, Unavailable)), found
        return found, (await members.look()).table
    finally:
        await store.close()
        administrator.run(f"DROP SCHEMA {schema} CASCADE")


def test_after_an_outage_one_too_many_is_refused_and_declares_nobody_dead(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    async def all_beat(members: SharedTable) -> None:
        await members.change(lambda seen: (_received(seen.table, seen.now), None))

    found, table = asyncio.run(_join_full(postgres.url, administrator, all_beat))
    assert isinstance(found, Unavailable) and f"{GATEWAYS_MAX} gateways" in str(found)
    assert len(table.rows) == table.incarnations == GATEWAYS_MAX


def test_one_too_many_joins_once_it_has_watched_that_the_others_are_silent(
    postgres: PostgresServer, administrator: Administrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (joining, watched):
        monkeypatch.setattr(module, "DEAD_TICKS", TICKS_PER_S)

    async def one_is_fresh(members: SharedTable) -> None:
        def rule(seen: TableSeen) -> tuple[MembershipTable, None]:
            rows, row = seen.table.rows, seen.table.rows[7]
            # It stays fresh until the end of the test.
            fresh = {7: msgspec.structs.replace(row, received_at=seen.now + 600 * TICKS_PER_S)}
            return msgspec.structs.replace(seen.table, rows={**rows, **fresh}), None

        await members.change(rule)

    found, table = asyncio.run(_join_full(postgres.url, administrator, one_is_fresh))
    assert isinstance(found, Joined)
    assert sorted(table.rows) == [found.run.number, 7]


def test_the_gateway_of_a_command_never_has_works(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    schema = fresh_schema()
    options = PostgresOptions(2, schema=schema, beats=False)
    command = msgspec.structs.replace(options, serves=False)
    waiting = msgspec.structs.replace(options, begins_idle=True)

    async def trial() -> None:
        opened = [await open_store(postgres.url, SystemClock(), options)]
        try:
            for each in (command, waiting):
                opened.append(await open_store(postgres.url, SystemClock(), each))
            serving, *idle = opened
            for _ in range(2):
                await serving.gateways.horizon()
                assert all(serving.gateways.owns(b"%d" % number) for number in range(60))
                for one in idle:
                    await one.gateways.heartbeats.beat()
        finally:
            for one in opened:
                await one.close()

    try:
        asyncio.run(trial())
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")
