"""A migration that is cut, that another one overtakes, or that has to wait for others."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from strongroom.clock import SystemClock
from strongroom.engines.base import Unavailable
from strongroom.engines.postgres import migrating
from strongroom.engines.postgres.migrating import migrate_store
from strongroom.engines.postgres.sessions.address import address_of
from strongroom.engines.postgres.sessions.openers import SessionOpener
from strongroom.engines.postgres.sessions.session import DatabaseSession, SessionLost
from strongroom.engines.postgres.sql.versions import VERSION
from strongroom.values import TICKS_PER_S
from tests.coordination.servers import PostgresServer
from tests.engines.postgres import faults
from tests.engines.postgres.load import Load, Verdict
from tests.engines.postgres.patience import PATIENCE_S, soon
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.version_1 import silent, version_1, version_of

_CUTTING = """
CREATE SCHEMA cutting;
CREATE SEQUENCE cutting.left MINVALUE -1000 MAXVALUE 1000 START -1000;
CREATE FUNCTION cutting.cut() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('application_name') = 'strongroom' AND nextval('cutting.left') = 0 THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
END $$;
CREATE EVENT TRIGGER cutting ON ddl_command_end EXECUTE FUNCTION cutting.cut()"""
"""A session ends itself inside its n-th change of a table or function."""


@contextmanager
def cutting(administrator: Administrator) -> Iterator[Callable[[int], object]]:
    administrator.run(_CUTTING)
    try:
        yield lambda count: administrator.run("SELECT setval('cutting.left', %s)", (-count,))
    finally:
        administrator.run("DROP EVENT TRIGGER cutting; DROP SCHEMA cutting CASCADE")


def test_a_migration_that_is_cut_within_its_transaction_has_not_happened(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    with version_1(administrator) as schema, cutting(administrator) as cut_at:
        for count in range(1, 1000):
            cut_at(count)
            try:
                asyncio.run(migrate_store(postgres.url, schema, silent))
            except Unavailable:
                assert version_of(administrator, schema) == 1
                assert administrator.value(f"SELECT count(*) FROM {schema}.outcomes") == 0
            else:
                break
        assert version_of(administrator, schema) == VERSION
    assert count > 10


def _cut_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Each session ends after the n-th statement of the process, when the server has done it."""
    begun = itertools.count(1)

    def cut(act: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def done(session: DatabaseSession, *given: object) -> object:
            number = next(begun)
            answer = await act(session, *given)
            if number == count:
                session.close()
                raise SessionLost("it was cut")
            return answer

        return done

    for name in ("simple", "script", "run"):
        monkeypatch.setattr(DatabaseSession, name, cut(getattr(DatabaseSession, name)))


def test_a_migration_whose_session_is_cut_has_happened_or_not_and_may_be_repeated(
    postgres: PostgresServer, administrator: Administrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for count in range(1, 100):
        with version_1(administrator) as schema:
            with monkeypatch.context() as patch:
                _cut_after(patch, count)
                try:
                    asyncio.run(migrate_store(postgres.url, schema, silent))
                except Unavailable:
                    found.append(version_of(administrator, schema))
                else:
                    break
            asyncio.run(migrate_store(postgres.url, schema, silent))
            assert version_of(administrator, schema) == VERSION
    # After its COMMIT, and after the commit that confirms it.
    assert found == [1] * (len(found) - 2) + [VERSION] * 2 and len(found) > 6


class _Overtaken(SessionOpener):
    """Another command migrates the store after this one has opened its session."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(address_of(url), schema)
        self.url = url
        self.written_by = ""

    async def open(self, notified: Callable[[str], None] | None = None) -> DatabaseSession:
        session = await super().open(notified)
        if session.version < VERSION:
            await migrate_store(self.url, self.schema, silent)
            self.written_by = await _writer(session)
        return session


async def _writer(session: DatabaseSession) -> str:
    """The transaction that wrote the store's row."""
    ((found,),) = await session.simple("SELECT xmin FROM store")
    return found


def test_a_command_that_is_overtaken_confirms_the_migration_of_the_other_one(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """The other one may have been cut before all standbys had what it committed."""
    with version_1(administrator) as schema:
        opener = _Overtaken(postgres.url, schema)
        migration = migrating._Migration(opener, silent, SystemClock())
        assert asyncio.run(migration.try_once())
        writer = administrator.value(f"SELECT xmin::text FROM {schema}.store")
    assert opener.written_by and writer != opener.written_by


_DUMP = "SELECT FROM {0}.contents, {0}.store"
"""It locks tables as a pg_dump does."""
_LOCKED_OUT = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"


def test_commits_go_on_while_a_migration_waits_for_a_transaction_that_holds_the_tables(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    async def trial(schema: str, dump: psycopg.Connection) -> Verdict:
        own = (dump.info.backend_pid,)
        async with faults.gateways(1, postgres.url, schema) as stores:
            load = Load(lambda: stores)
            dump.execute(_DUMP.format(schema).encode())
            migration = asyncio.create_task(migrate_store(postgres.url, schema, silent))
            try:
                for _ in range(3):
                    complaint = "the migration does not wait"
                    await soon(lambda: administrator.value(_LOCKED_OUT, own) > 0, complaint)
                    async with asyncio.timeout(PATIENCE_S):
                        await load.acknowledges(50)
                assert version_of(administrator, schema) == 1
            finally:
                dump.rollback()
            await migration
            await load.acknowledges(50)
            await load.stop()
            return await load.verdict(stores[0])

    with version_1(administrator) as schema, psycopg.connect(postgres.url) as dump:
        verdict = asyncio.run(trial(schema, dump))
        assert version_of(administrator, schema) == VERSION
    assert verdict.is_exact and (verdict.unknown, verdict.refused) == (0, 0)


def test_a_migration_does_not_wait_for_ever(
    postgres: PostgresServer, administrator: Administrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "_PATIENCE_TICKS", TICKS_PER_S)
    with version_1(administrator) as schema, psycopg.connect(postgres.url) as dump:
        dump.execute(_DUMP.format(schema).encode())
        with pytest.raises(Unavailable, match="in use"):
            asyncio.run(migrate_store(postgres.url, schema, silent))
        dump.rollback()
        assert version_of(administrator, schema) == 1
