"""Which servers, databases, roles and poolers the engine accepts, and how it refuses the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from strongroom.clock import ManualClock, SystemClock
from strongroom.engines.base import Position, StorageEngine, Unavailable
from strongroom.engines.postgres.assembly import PostgresOptions, open_store
from strongroom.engines.postgres.sessions.session import DatabaseUnfit
from strongroom.engines.postgres.sql.making import init_sql
from strongroom.testing.contract import records
from strongroom.testing.contract.subject import face, put, value
from strongroom.testing.engine_contract import Case, prove
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator, fresh_schema, pgbouncer
from tests.engines.postgres.subject import PostgresSubject

ORDERED = (
    records.a_range_is_in_byte_order_and_bounded,
    records.a_scan_is_in_byte_order_whatever_the_pages,
    records.limits_are_kept,
)


async def _serves(url: str, schema: str) -> None:
    """Write and read through a store, whose clock is the database's."""
    store = await open_store(url, ManualClock(), PostgresOptions(schema=schema))
    try:
        await _writes_and_reads(store)
    finally:
        await store.close()


async def _writes_and_reads(store: StorageEngine) -> None:
    await put(store, (face(), b"kept"))
    assert await value(store, face()) == b"kept"
    assert len((await store.scan(b"k", Position(b"", b""), None, 10)).faces()) == 1


def _refused(url: str, *words: str) -> str:
    """Assert that a store is refused with these words, in a sentence or two."""
    with pytest.raises(DatabaseUnfit) as refusal:
        asyncio.run(_serves(url, fresh_schema()))
    text = str(refusal.value)
    for word in words:
        assert word in text
    return text


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler_may_share_sessions_out_but_not_transactions(
    postgres: PostgresServer, tmp_path: Path, mode: str
) -> None:
    with pgbouncer(tmp_path, postgres, mode) as pooler:
        if mode == "session":
            asyncio.run(_serves(pooler.url, fresh_schema()))
        else:
            _refused(pooler.url, "transaction", "session")


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_said_is_refused(
    postgres: PostgresServer, administrator: Administrator, setting: str
) -> None:
    administrator.configure(**{setting: "off"})
    try:
        _refused(postgres.url, f"{setting} is off", f"set {setting} to on")
    finally:
        administrator.configure(**{setting: None})


@pytest.mark.parametrize("level", ["off", "local"])
def test_commits_that_wait_for_too_little_are_refused(
    postgres: PostgresServer, administrator: Administrator, level: str
) -> None:
    administrator.run("CREATE ROLE hasty LOGIN SUPERUSER")
    administrator.run(f"ALTER ROLE hasty SET synchronous_commit = {level}")
    try:
        url = postgres.url.replace("//postgres@", "//hasty@")
        _refused(url, f"synchronous_commit is {level}")
    finally:
        administrator.run("DROP ROLE hasty")


def test_commits_that_wait_for_less_than_the_url_demands_are_refused(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """The role's own setting is stronger than what a URL asks for only if it is set last; so the
    database says what is in effect."""
    url = f"{postgres.url}?options=-c%20synchronous_commit%3Dlocal"
    _refused(url, "synchronous_commit is local")


def test_a_session_that_may_only_read_is_refused(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    url = f"{postgres.url}?options=-c%20default_transaction_read_only%3Don"
    text = _refused(f"{url}&target_session_attrs=any")
    assert "read" in text


def test_a_server_that_may_only_be_read_is_told_from_one_that_is_away(
    postgres: PostgresServer,
) -> None:
    """A standby may become the primary, so it is tried again, and then the text says both."""
    url = f"{postgres.url}?options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(Unavailable, match="default_transaction_read_only is on"):
        asyncio.run(open_store(url, SystemClock(), PostgresOptions(2)))


def test_another_encoding_is_refused(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    administrator.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        _refused(_in(postgres, "latin"), "UTF8")
    finally:
        administrator.run("DROP DATABASE latin WITH (FORCE)")


def _in(server: PostgresServer, database: str) -> str:
    return f"postgresql://postgres@{server.address}/{database}"


@pytest.fixture(scope="module")
def icu(postgres: PostgresServer, administrator: Administrator) -> Iterator[str]:
    """The URL of a database that sorts text as Germans do."""
    administrator.run(
        "CREATE DATABASE icu ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de-AT' LOCALE 'C' "
        "TEMPLATE template0"
    )
    yield _in(postgres, "icu")
    administrator.run("DROP DATABASE icu WITH (FORCE)")


@pytest.mark.parametrize("case", ORDERED, ids=lambda case: case.__name__)
def test_the_locale_of_a_database_orders_nothing(icu: str, case: Case) -> None:
    administrator = Administrator(icu)
    try:
        asyncio.run(prove(case, PostgresSubject(icu, administrator)))
    finally:
        administrator.close()


def test_a_role_that_may_change_no_tables_serves_a_store_that_was_made_for_it(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    schema = fresh_schema()
    postgres.add_user("modest", "s3cret")
    url = f"postgresql://modest:s3cret@{postgres.address}/modest"
    owner = Administrator(_in(postgres, "modest"))
    try:
        owner.run("ALTER DATABASE modest OWNER TO postgres")
        owner.run("REVOKE CREATE ON DATABASE modest FROM PUBLIC, modest")
        text = _refused(url, "strongroom store init")
        assert "s3cret" not in text
        for _ in range(2):  # it changes nothing of a store that is there
            with psycopg.connect(owner.url, autocommit=True) as session:
                session.execute(init_sql(schema, "modest").encode())
        asyncio.run(_serves(url, schema))
    finally:
        owner.close()
        administrator.run("DROP DATABASE modest WITH (FORCE)")
        administrator.run("DROP ROLE modest")


@pytest.mark.parametrize(
    ("password", "end", "words"),
    [
        ("wr0ng", "guarded", "authentication failed"),
        ("s3cret", "nowhere", "does not exist"),
        ("s3cret", "guarded?sslmode=require", "SSL"),
        ("s3cret", "guarded?nonsense=1", "cannot be read"),
    ],
)
def test_no_refusal_has_the_password(
    postgres: PostgresServer, administrator: Administrator, password: str, end: str, words: str
) -> None:
    postgres.add_user("guarded", "s3cret")
    try:
        url = f"postgresql://guarded:{password}@{postgres.address}/{end}"
        with pytest.raises(Exception, match=words) as refusal:
            asyncio.run(_serves(url, fresh_schema()))
        assert password not in f"{refusal.value!r} {refusal.value.__cause__!r}"
    finally:
        administrator.run("DROP DATABASE guarded WITH (FORCE)")
        administrator.run("DROP ROLE guarded")


def test_a_store_that_a_later_version_has_changed_is_refused(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    schema = fresh_schema()
    asyncio.run(_serves(postgres.url, schema))
    administrator.run(f"UPDATE {schema}.store SET version = version + 1")
    with pytest.raises(DatabaseUnfit, match="version"):
        asyncio.run(_serves(postgres.url, schema))
