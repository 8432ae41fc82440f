"""An administrator changes settings of the server while a store is served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.clock import SystemClock
from strongroom.engines.base import EngineError, Full, Unavailable
from strongroom.engines.postgres.assembly import PostgresOptions, open_store
from strongroom.engines.postgres.sessions.session import DatabaseUnfit, StoreReplaced
from strongroom.testing.contract.subject import face, pieces, put
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator, fresh_schema, quick_server

_MIB = 1024 * 1024


def test_open_sessions_keep_synchronous_commit(tmp_path: Path) -> None:
    async def prove(server: PostgresServer, administrator: Administrator) -> None:
        store = await open_store(server.url, SystemClock(), PostgresOptions(2))
        administrator.configure(synchronous_commit="off")
        await put(store, (face(), b""))
        for lane in store.lanes():
            session = await lane.session()
            assert await session.simple("SHOW synchronous_commit") == [["on"]]
        await store.close()

    with quick_server(tmp_path) as server:
        administrator = Administrator(server.url)
        asyncio.run(prove(server, administrator))
        administrator.close()


def test_a_server_that_became_unsafe_is_not_used_any_more(tmp_path: Path) -> None:
    async def prove(server: PostgresServer, administrator: Administrator) -> None:
        store = await open_store(server.url, SystemClock(), PostgresOptions(2))
        administrator.configure(fsync="off")
        refusal: DatabaseUnfit | None = None
        async with asyncio.timeout(30):
            while refusal is None:  # until the session has read its settings again
                try:
                    await store.gateways.heartbeats.beat()
                except DatabaseUnfit as refused:
                    refusal = refused
        assert "fsync is off" in str(refusal)
        administrator.configure(fsync=None)
        await store.close()

    with quick_server(tmp_path) as server:
        administrator = Administrator(server.url)
        asyncio.run(prove(server, administrator))
        administrator.close()


def test_a_store_that_was_replaced_is_not_served_on(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """The new one has a gateway with the same number and incarnation."""
    schema = fresh_schema()

    async def prove() -> None:
        failures: list[EngineError] = []
        options = PostgresOptions(2, schema=schema, beats=False)
        store = await open_store(postgres.url, SystemClock(), options)
        store.on_fatal(failures.append)
        administrator.run(f"DROP SCHEMA {schema} CASCADE")
        later = await open_store(postgres.url, SystemClock(), options)
        assert later.gateways.run == store.gateways.run
        assert not await store.gateways.heartbeats.beat()
        (failure,) = failures
        assert isinstance(failure, StoreReplaced)
        with pytest.raises(Unavailable):
            await put(store, (face(), b"to the wrong store"))
        await store.close()
        await later.close()

    try:
        asyncio.run(prove())
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")


def test_uploads_under_way_count_for_the_quota(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    schema, quota_bytes = fresh_schema(), 8 * _MIB

    async def prove() -> None:
        options = PostgresOptions(4, schema=schema, quota_bytes=quota_bytes)
        store = await open_store(postgres.url, SystemClock(), options)
        body = bytes(6 * _MIB)
        uploads = [store.contents.write(pieces(body, _MIB), None) for _ in range(6)]
        answers = await asyncio.gather(*uploads, return_exceptions=True)
        assert any(isinstance(answer, Full) for answer in answers)
        chunks = f"SELECT coalesce(sum(length(data)), 0) FROM {schema}.chunks"
        assert administrator.value(chunks) <= quota_bytes
        assert store.space.under_way_bytes == 0
        await store.close()

    try:
        asyncio.run(prove())
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.parametrize("size_bytes", [65_537, 262_144, 262_145])
def test_a_body_of_chunks_is_counted_once(
    postgres: PostgresServer, administrator: Administrator, size_bytes: int
) -> None:
    schema = fresh_schema()

    async def prove() -> None:
        store = await open_store(postgres.url, SystemClock(), PostgresOptions(2, schema=schema))
        before = store.space.used_bytes
        written = await store.contents.write(pieces(bytes(size_bytes)), size_bytes)
        assert (store.space.used_bytes - before, store.space.under_way_bytes) == (size_bytes, 0)
        store.contents.discard(written.id)
        await store.close()

    try:
        asyncio.run(prove())
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")
