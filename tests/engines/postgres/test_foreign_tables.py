"""Tables of somebody else in the schema of a store: they are neither used nor changed."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.clock import SystemClock
from strongroom.engines.postgres.assembly import PostgresOptions, open_store
from strongroom.engines.postgres.sessions.session import DatabaseUnfit
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
