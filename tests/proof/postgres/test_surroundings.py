"""Settings, connections and secrets that others give: roles, other clients, TLS, files of libpq."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from strongroom.clock import SystemClock
from strongroom.engines.base import Unavailable
from strongroom.engines.postgres.assembly import PostgresOptions, open_store
from strongroom.engines.postgres.sessions.session import DatabaseUnfit
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract import chains, contents, records, shared, waiting
from strongroom.testing.contract.subject import face, put, value
from strongroom.testing.engine_contract import Case, prove
from tests.coordination.servers import PostgresServer, certificate, folder_of, user_of_postgres
from tests.engines.postgres.gateway_process import serving
from tests.engines.postgres.servers import Administrator, fresh_schema, quick_server
from tests.engines.postgres.subject import PostgresSubject

ODD_SETTINGS = {
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "statement_timeout": "'20ms'",
    "lock_timeout": "'1ms'",
    "idle_session_timeout": "'50ms'",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
    "datestyle": "'German', 'DMY'",
    "timezone": "'Asia/Kathmandu'",
    "client_encoding": "LATIN1",
    "client_min_messages": "error",
    "enable_indexscan": "off",
    "extra_float_digits": "'-10'",
    "array_nulls": "off",
    "search_path": "pg_catalog",
}
CASES = (
    records.a_scan_is_in_byte_order_whatever_the_pages,
    records.counting_by_32_tasks_loses_nothing,
    records.limits_are_kept,
    chains.CASES[0],
    waiting.no_change_is_missed_between_reading_and_waiting,
    contents.bodies_of_every_size_come_back,
    shared.counting_over_two_gateways_loses_nothing,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_what_a_role_has_set_for_itself_changes_nothing(
    postgres: PostgresServer, administrator: Administrator, case: Case
) -> None:
    administrator.run("CREATE ROLE odd LOGIN SUPERUSER")
    try:
        for name, given in ODD_SETTINGS.items():
            administrator.run(f"ALTER ROLE odd SET {name} = {given}")
        url = postgres.url.replace("//postgres@", "//odd@")
        asyncio.run(prove(case, PostgresSubject(url, administrator)))
    finally:
        administrator.run("DROP OWNED BY odd CASCADE")
        administrator.run("DROP ROLE odd")


def test_a_server_with_too_few_connections_is_refused_at_the_start(tmp_path: Path) -> None:
    with (
        quick_server(tmp_path, "-c", "max_connections=10") as server,
        pytest.raises(DatabaseUnfit, match=r"max_connections.*--store-connections"),
    ):
        asyncio.run(serving(server.url, fresh_schema(), connections=8))


def test_a_gateway_that_finds_no_connection_says_which_setting_to_raise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flags = ("-c", "max_connections=12", "-c", "superuser_reserved_connections=0")

    async def trial(server: PostgresServer) -> None:
        store = await serving(server.url, fresh_schema(), connections=2)
        administrator = Administrator(server.url)
        others = await asyncio.to_thread(_fill_up, server, administrator)
        try:
            with pytest.raises(Unavailable):
                await put(store, (face(), b""))
            assert any("max_connections" in one.message for one in caplog.records)
            for other in others:
                other.close()
            await _goes_on(store)
        finally:
            administrator.close()
            await store.close()

    caplog.set_level(logging.ERROR)
    with quick_server(tmp_path, *flags) as server:
        asyncio.run(trial(server))


def _fill_up(
    server: PostgresServer, administrator: Administrator
) -> list[psycopg.Connection[tuple[object, ...]]]:
    """Take all connections, also those of the gateway."""
    others: list[psycopg.Connection[tuple[object, ...]]] = []
    kill = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'strongroom'"
    )
    while len(others) < 11:
        try:
            others.append(psycopg.connect(server.url))
        except psycopg.OperationalError:
            administrator.run(kill)
    return others


async def _goes_on(store: PostgresEngine) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await put(store, (face(), b"goes on"))
            except Unavailable:
                await asyncio.sleep(0.05)
            else:
                break
    assert await value(store, face()) == b"goes on"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresServer, Path]]:
    """A server that speaks TLS only, with a role that needs a password."""
    folder = tmp_path_factory.mktemp("tls")
    authority, key = certificate(folder)
    user = user_of_postgres()
    own = folder_of(user)
    for source, name in ((authority, "server.crt"), (key, "server.key")):
        shutil.copy(source, own / name)
        (own / name).chmod(0o600)
        if user is not None:
            os.chown(own / name, pwd.getpwnam(user).pw_uid, -1)
    flags = ("-c", "ssl=on", "-c", f"ssl_cert_file={own}/server.crt")
    with quick_server(folder, *flags, "-c", f"ssl_key_file={own}/server.key") as server:
        server.add_user("app", "s3cret")
        yield server, authority


async def _serves(url: str) -> None:
    store = await open_store(url, SystemClock(), PostgresOptions(schema=fresh_schema()))
    try:
        await put(store, (face(), b"kept"))
        assert await value(store, face()) == b"kept"
    finally:
        await store.close()


def test_tls_with_a_verified_name_and_a_password_from_a_file(
    secured: tuple[PostgresServer, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, authority = secured
    passwords = tmp_path / "passwords"
    passwords.write_text("*:*:app:app:s3cret\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    asyncio.run(
        _serves(
            f"postgresql://app@{server.address}/app?sslmode=verify-full&sslrootcert={authority}"
        )
    )


def test_a_service_file_names_the_server(
    secured: tuple[PostgresServer, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, authority = secured
    host, _, port = server.address.rpartition(":")
    services = tmp_path / "services.conf"
    services.write_text(
        f"[store]\nhost={host}\nport={port}\ndbname=app\nuser=app\npassword=s3cret\n"
        f"sslmode=verify-full\nsslrootcert={authority}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    asyncio.run(_serves("postgresql:///?service=store"))


def test_a_certificate_that_nobody_vouches_for_is_refused(
    secured: tuple[PostgresServer, Path], tmp_path: Path
) -> None:
    server, _ = secured
    other, _ = certificate(tmp_path)
    url = f"postgresql://app:s3cret@{server.address}/app?sslmode=verify-full&sslrootcert={other}"
    with pytest.raises(Unavailable, match="certificate") as refusal:
        asyncio.run(_serves(url))
    assert "s3cret" not in repr(refusal.value)
