"""A store of version 1 is served as it is, and migrated to version 2 while it is served."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from strongroom.clock import SystemClock
from strongroom.engines.base import StorageEngine
from strongroom.engines.postgres import migrating
from strongroom.engines.postgres.assembly import PostgresOptions, init_store, open_store
from strongroom.engines.postgres.migrating import migrate_store
from strongroom.engines.postgres.sessions.session import (
    DatabaseUnfit,
)
from strongroom.engines.postgres.sql.making import init_sql
from strongroom.engines.postgres.sql.schema import (
    OPEN,
    STATEMENTS,
    TRANSFER_IS_APART,
    TRANSFER_LOOK,
)
from strongroom.engines.postgres.sql.versions import (
    VERSION,
    _changed,
    lacking_version,
    of_version,
    unfit_version,
)
from strongroom.engines.postgres.status import store_status
from strongroom.testing.contract import failures, membership, shared
from strongroom.testing.contract.subject import face, put, value
from strongroom.testing.engine_contract import SharedCase, prove
from strongroom.values import TICKS_PER_S
from tests.coordination.servers import PostgresServer
from tests.engines.postgres import faults
from tests.engines.postgres.load import Load, Verdict
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject
from tests.engines.postgres.version_1 import make_version_1, silent, version_1, version_of

ON_VERSION_1 = (
    shared.counting_over_two_gateways_loses_nothing,
    membership.a_dead_gateway_blocks_nothing_and_commits_nothing,
    failures.a_restart_decides_what_became_of_an_unknown_commit,
)
_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage,
    pg_get_expr(d.adbin, d.adrelid), c.reloptions
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r' ORDER BY 1, 2"""
_INDEXES = "SELECT replace(indexdef, %s, '') FROM pg_indexes WHERE schemaname = %s ORDER BY 1"
_FUNCTIONS = """
SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid), prosrc, provolatile
FROM pg_proc WHERE pronamespace = %s::regnamespace ORDER BY 1"""


@pytest.mark.parametrize(
    ("found", "newest", "is_served"),
    [
        (1, 1, True),
        (1, 2, True),
        (2, 2, True),
        (3, 2, False),
        (1, 3, False),
        (2, 3, True),
        (3, 3, True),
        (4, 3, False),
        (5, 3, False),
    ],
)
def test_a_program_serves_its_own_version_and_the_one_before(
    found: int, newest: int, is_served: bool
) -> None:
    assert (unfit_version(found, newest) is None) == is_served


def test_what_needs_a_newer_version_is_refused_with_the_way_out() -> None:
    assert lacking_version(2, 2) is None
    assert "strongroom store migrate" in (lacking_version(1, 2) or "")


def test_each_statement_is_executed_from_a_version_on_and_in_its_form() -> None:
    of_copies = (TRANSFER_LOOK, TRANSFER_IS_APART)
    statements = (*STATEMENTS, *of_copies)
    assert of_version(statements, VERSION) == list(statements)
    before = of_version(statements, 1)
    assert {one.name for one in statements} > {one.name for one in before}
    names = "is_apart", "generation", "turns", "secret", "slots", "totals_(", "add_bytes_"
    for one in before:
        assert not [name for name in names if name in one.sql], one


@pytest.mark.parametrize("text", ["no such column", "id"])
def test_a_form_that_would_change_nothing_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not once"):
        _changed(OPEN, text, "false")


@pytest.mark.parametrize("case", ON_VERSION_1, ids=lambda case: case.__name__)
def test_a_store_of_version_1_is_served_as_it_is(
    postgres: PostgresServer, administrator: Administrator, case: SharedCase
) -> None:
    subject = PostgresSubject(postgres.url, administrator)
    make_version_1(administrator, subject.schema)

    async def proved(subject: PostgresSubject) -> None:
        await case(subject)
        assert version_of(administrator, subject.schema) == 1

    asyncio.run(prove(proved, subject))


async def _migrated_under_load(
    url: str, schema: str, administrator: Administrator
) -> tuple[Verdict, int]:
    async with faults.gateways(2, url, schema) as stores:
        load = Load(lambda: stores)
        await load.acknowledges(200)
        assert version_of(administrator, schema) == 1
        await migrate_store(url, schema, silent)
        await load.acknowledges(200)
        await migrate_store(url, schema, silent)  # it changes nothing any more
        await load.acknowledges(50)
        await load.stop()
        used = stores[0].space.used_bytes
        await stores[0].gateways.horizon()
        verdict = await load.verdict(stores[1])
        return verdict, stores[0].space.used_bytes - used


def test_a_store_is_migrated_under_load(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    with version_1(administrator) as schema:
        moved = _migrated_under_load(postgres.url, schema, administrator)
        verdict, _ = asyncio.run(moved)
        assert version_of(administrator, schema) == VERSION
    assert verdict.is_exact, verdict
    assert (verdict.unknown, verdict.refused) == (0, 0)


def test_a_migrated_store_has_the_tables_and_functions_of_a_new_one(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    def described(schema: str) -> Any:
        return (
            administrator.run(_COLUMNS, (schema,)),
            administrator.run(_INDEXES, (f"{schema}.", schema)),
            administrator.run(_FUNCTIONS, (schema,)),
        )

    with version_1(administrator) as old, version_1(administrator) as new:
        asyncio.run(migrate_store(postgres.url, old, silent))
        administrator.run(f"DROP SCHEMA {new} CASCADE")
        asyncio.run(init_store(postgres.url, new))
        assert described(old) == described(new)


def test_gateways_have_a_secret_from_version_2_on(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """Programs of version 1 would lose one in the table of gateways."""

    async def trial(schema: str) -> None:
        async with faults.gateways(2, postgres.url, schema) as (one, two):
            assert one.gateways.secret == two.gateways.secret == b""
            await migrate_store(postgres.url, schema, silent)
            await one.gateways.horizon()
            await two.gateways.horizon()
            kept = administrator.value(f"SELECT secret FROM {schema}.store")
            assert one.gateways.secret == two.gateways.secret == bytes(kept)
            assert len(kept) == 32

    with version_1(administrator) as schema:
        asyncio.run(trial(schema))


def test_totals_and_outcomes_are_kept(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    async def used(schema: str) -> tuple[int, int]:
        store = await open_store(postgres.url, SystemClock(), PostgresOptions(2, schema=schema))
        try:
            stamp = await put(store, (face(), bytes(1000)))
            await store.contents.write_all([bytes(5000)])
            await store.gateways.horizon()
            return store.space.used_bytes, stamp
        finally:
            await store.close()

    with version_1(administrator) as schema:
        before, stamp = asyncio.run(used(schema))
        asyncio.run(migrate_store(postgres.url, schema, silent))
        administrator.run(f"SET search_path = {schema}")
        ((highest, size_bytes),) = administrator.run("SELECT * FROM totals_()")
        administrator.run("RESET search_path")
        assert highest >= stamp and size_bytes in (before, before - 5000)
        after, later = asyncio.run(used(schema))
    assert later > stamp
    # The first run's body was adopted by nobody, and may be gone.
    assert after in (before + 5000, before)


async def _with_older_program(
    url: str, schema: str, administrator: Administrator
) -> tuple[str, int]:
    async with faults.gateways(2, url, schema) as stores:
        old = stores[1].gateways.state
        old._knows = 1
        await stores[1].gateways.heartbeats.beat()
        load = Load(lambda: stores)
        with pytest.raises(DatabaseUnfit) as refused:
            await migrate_store(url, schema, silent)
        await load.acknowledges(50)
        await load.stop()
        assert (await load.verdict(stores[0])).is_exact
        version = version_of(administrator, schema)
        old._knows = VERSION  # it was updated and restarted
        await migrate_store(url, schema, silent)
        return str(refused.value), version


def test_while_a_gateway_knows_only_version_1_nothing_is_migrated(
    postgres: PostgresServer, administrator: Administrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "LATE_TICKS", 2 * TICKS_PER_S)
    with version_1(administrator) as schema:
        text, version = asyncio.run(_with_older_program(postgres.url, schema, administrator))
        assert version == 1
        assert "gateways of an older program use the store: 1." in text
        assert version_of(administrator, schema) == VERSION


def test_an_old_store_is_not_made_anew(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    with version_1(administrator) as schema:
        tables = f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'"
        before = administrator.value(tables)
        with pytest.raises(DatabaseUnfit, match="strongroom store migrate"):
            asyncio.run(init_store(postgres.url, schema))
        with pytest.raises(psycopg.Error, match="strongroom store migrate"):
            administrator.run(init_sql(schema, "postgres"))
        administrator.run("ROLLBACK")
        assert administrator.value(tables) == before
        assert version_of(administrator, schema) == 1


def test_a_gateway_that_needs_version_2_is_refused_by_version_1(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    async def opened(schema: str) -> StorageEngine:
        options = PostgresOptions(2, schema=schema, least_version=2)
        store = await open_store(postgres.url, SystemClock(), options)
        await store.close()
        return store

    with version_1(administrator) as schema:
        with pytest.raises(DatabaseUnfit, match="strongroom store migrate"):
            asyncio.run(opened(schema))
        asyncio.run(migrate_store(postgres.url, schema, silent))
        asyncio.run(opened(schema))


@pytest.mark.parametrize("granted", ["all", "nothing"])
def test_a_role_without_rights_serves_on_after_the_owner_has_migrated(
    postgres: PostgresServer, administrator: Administrator, granted: str
) -> None:
    """`nothing`: the functions of new stores are for their owner alone."""
    serving = postgres.url.replace("postgres@", "serving@")
    owning = postgres.url.replace("postgres@", "owning@")
    administrator.run("CREATE ROLE serving LOGIN; CREATE ROLE owning LOGIN")
    if granted == "nothing":
        administrator.run(
            "ALTER DEFAULT PRIVILEGES FOR ROLE owning REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"
        )

    async def trial(schema: str) -> None:
        store = await open_store(serving, SystemClock(), PostgresOptions(2, schema=schema))
        try:
            await put(store, (face(), b"before"))
            with pytest.raises(DatabaseUnfit, match="owner"):
                await migrate_store(serving, schema, silent)
            await migrate_store(owning, schema, silent)
            await put(store, (face(), b"after"))
            await store.contents.write_all([b"body"])
            assert await value(store, face()) == b"after"
        finally:
            await store.close()
        again = await open_store(serving, SystemClock(), PostgresOptions(2, schema=schema))
        await put(again, (face(), b"later"))
        await again.close()

    schema = ""
    try:
        administrator.run("GRANT CREATE ON DATABASE postgres TO owning; SET ROLE owning")
        schema = make_version_1(administrator)
        for right in (
            "USAGE ON SCHEMA {0}",
            "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {0}",
            "EXECUTE ON ALL FUNCTIONS IN SCHEMA {0}",
        ):
            administrator.run(f"GRANT {right.format(schema)} TO serving")
        administrator.run("RESET ROLE")
        asyncio.run(trial(schema))
    finally:
        administrator.run(f"RESET ROLE; DROP SCHEMA IF EXISTS {schema or 'none'} CASCADE")
        administrator.run("DROP OWNED BY owning, serving; DROP ROLE owning, serving")


def test_the_status_tells_the_versions(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    async def trial(schema: str) -> tuple[int, int, list[int]]:
        async with faults.gateways(1, postgres.url, schema):
            found = await store_status(postgres.url, PostgresOptions(schema=schema))
        return found.version, found.program_version, [one.knows for one in found.gateways]

    with version_1(administrator) as schema:
        assert asyncio.run(trial(schema)) == (1, VERSION, [VERSION])
