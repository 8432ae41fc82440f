"""A schema that is none of a store, and a role that lacks rights: both are refused in words."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from strongroom.clock import SystemClock
from strongroom.engines.postgres.assembly import PostgresOptions, init_store, open_store
from strongroom.engines.postgres.sessions.session import DatabaseUnfit
from strongroom.engines.postgres.sql.making import init_sql
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator, fresh_schema


@pytest.mark.parametrize("table", ["records (x integer)", "orders (place bytea, version bigint)"])
def test_a_schema_with_other_tables_is_refused(
    postgres: PostgresServer, administrator: Administrator, table: str
) -> None:
    schema = fresh_schema()
    administrator.run(f"CREATE SCHEMA {schema}")
    administrator.run(f"CREATE TABLE {schema}.{table}")

    async def opened() -> None:
        store = await open_store(postgres.url, SystemClock(), PostgresOptions(2, schema=schema))
        await store.close()

    try:
        with pytest.raises(DatabaseUnfit, match="none of a store"):
            asyncio.run(opened())
        counted = f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'"
        assert administrator.value(counted) == 1
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")


def test_a_role_that_lacks_a_right_is_refused_in_words(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """The rights are granted one after the other."""
    schema, role = fresh_schema(), "poor"
    options = PostgresOptions(2, schema=schema)
    url = postgres.url.replace("postgres@", f"{role}@")

    async def opened() -> None:
        store = await open_store(url, SystemClock(), options)
        await store.close()

    def refused(text: str) -> None:
        with pytest.raises(DatabaseUnfit, match=text):
            asyncio.run(opened())

    asyncio.run(init_store(postgres.url, schema))
    administrator.run(f"CREATE ROLE {role} LOGIN")
    try:
        refused("no store that the role may use")
        administrator.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        refused("may not use the store")
        administrator.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
        refused("may not use the store")
        administrator.run(init_sql(schema, role))
        administrator.run(f"REVOKE DELETE ON {schema}.chunks FROM {role}")
        refused("these tables of the store: chunks")
        administrator.run(init_sql(schema, role))
        asyncio.run(opened())
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")
        administrator.run(f"DROP ROLE {role}")


@pytest.mark.parametrize("mark", ["test_clock", "allows_reset"])
def test_a_store_has_its_marks_from_its_creation_on(
    postgres: PostgresServer, administrator: Administrator, mark: str
) -> None:
    schema = fresh_schema()
    plain = PostgresOptions(2, schema=schema)

    async def opened(options: PostgresOptions) -> None:
        store = await open_store(postgres.url, SystemClock(), options)
        await store.close()

    try:
        asyncio.run(opened(plain))
        with pytest.raises(DatabaseUnfit, match="was made without"):
            asyncio.run(opened(msgspec.structs.replace(plain, **{mark: True})))
        administrator.run(f"DROP SCHEMA {schema} CASCADE")
        asyncio.run(opened(msgspec.structs.replace(plain, **{mark: True})))
        asyncio.run(opened(plain))
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")
