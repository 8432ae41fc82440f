"""`strongroom store`: the tables of a store are made, and what an operator sees of it."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace

from strongroom.cli.exits import Exit
from strongroom.cli.watching.store_report import StoreReport, findings, lines
from strongroom.database import DatabaseSettings
from strongroom.engines.postgres.status import (
    GatewayStatus,
    OldSnapshot,
    StandbyStatus,
    StoreStatus,
    TableStatus,
)
from strongroom.testing.server import InProcessServer
from tests.app.gateways_of_a_store import settings_over
from tests.cli.command import Ran, in_process
from tests.engines.postgres.version_1 import VERSION_1
from tests.over_postgres import database, new_store

SERVES = GatewayStatus(0, 1, 0.5, ("server",))
WELL = StoreStatus(
    server_version="15.1",
    version=2,
    program_version=2,
    synchronous_commit="on",
    synchronous_standby_names="",
    standbys=(),
    gateways=(SERVES,),
    floor=0,
    used_bytes=0,
    dropped=0,
    unadopted=0,
    tables=(TableStatus("records", 8192, 1000, 10, 60.0),),
    old_snapshots=(OldSnapshot("process", "77", 12, "active", 0.1),),
)
IN_SYNC = StandbyStatus("db2", "streaming", "quorum", 0)


def status(store: DatabaseSettings, *flags: str) -> Ran:
    return in_process("store", "status", store.url, "--schema", store.schema, *flags)


def run_as_administrator(sql: str) -> None:
    with psycopg.connect(database().url, autocommit=True) as session:
        session.execute(sql.encode())


def test_the_tables_are_made_and_made_again_without_harm() -> None:
    store = new_store()
    missing = status(store)
    assert (missing.code, missing.out) == (Exit.DATA, "")
    assert "strongroom store init" in missing.err
    for _ in range(2):
        made = in_process("store", "init", store.url, "--schema", store.schema)
        assert made.code == Exit.DONE
        assert f"PostgreSQL at {database().address}/postgres" in made.out


def test_the_printed_sql_lets_a_role_without_rights_serve() -> None:
    store = new_store()
    run_as_administrator("CREATE ROLE waiter LOGIN")
    own = replace_user(store, "waiter")
    refused = in_process("store", "init", own.url, "--schema", own.schema)
    assert refused.code == Exit.DATA
    printed = in_process("store", "init", "--print-sql", "waiter", "--schema", store.schema)
    assert printed.code == Exit.DONE
    run_as_administrator(printed.out)
    with InProcessServer(settings_over(own)):
        shown = status(own)
    assert shown.code == Exit.DONE, shown.out


def replace_user(store: DatabaseSettings, user: str) -> DatabaseSettings:
    url = f"postgresql://{user}@{database().address}/postgres"
    return DatabaseSettings(url, store.connections, schema=store.schema)


def test_a_store_of_the_version_before_is_migrated() -> None:
    store = new_store()
    run_as_administrator(VERSION_1.read_text("utf-8").replace('"SCHEMA"', f'"{store.schema}"'))
    refused = in_process("store", "init", store.url, "--schema", store.schema)
    assert refused.code == Exit.DATA
    assert "strongroom store migrate" in refused.err
    with InProcessServer(settings_over(store)):
        before = status(store)
        assert "version 1; `strongroom store migrate` brings them to version 2" in before.out
        migrated = in_process("store", "migrate", store.url, "--schema", store.schema)
        assert (migrated.code, migrated.err) == (Exit.DONE, "")
        first, last = migrated.out.splitlines()
        assert "have version 1, and get version 2" in first
        assert last.endswith("has tables of version 2.")
        assert "tables of version 2\n" in status(store).out
    again = in_process("store", "migrate", store.url, "--schema", store.schema)
    assert (again.code, again.out) == (Exit.DONE, last + "\n")


def test_the_status_names_a_program_that_is_older() -> None:
    older = replace(WELL, gateways=(replace(SERVES, knows=1),))
    assert "0 serves; heartbeat 0.5 s ago; its program knows tables up to version 1" in "\n".join(
        lines(StoreReport("db", "strongroom", older, ()))
    )


def test_the_status_shows_who_serves() -> None:
    store = new_store()
    with InProcessServer(settings_over(store)):
        shown, machine = status(store), status(store, "--json")
    assert shown.code == machine.code == Exit.DONE
    assert "0 serves; heartbeat" in shown.out
    assert "records:" in shown.out
    report = json.loads(machine.out)
    assert "server" in report["status"]["gateways"][0]["holds"]
    assert report["findings"] == []
    after = status(store)
    assert after.code == Exit.REFUSED
    assert "Finding: no gateway serves this store." in after.out


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (replace(WELL, gateways=(replace(SERVES, holds=()),)), "no gateway serves this store"),
        (
            replace(WELL, gateways=(SERVES, GatewayStatus(1, 2, 7.4, ()))),
            "gateway 1 has sent no heartbeat for 7 s",
        ),
        (
            replace(WELL, synchronous_standby_names="ANY 1 (db2)"),
            "no standby is in sync, so writes wait until one is",
        ),
        (
            replace(WELL, old_snapshots=(OldSnapshot("slot", "old", 6_000_000, "inactive", 0.0),)),
            "slot old (6,000,000 transactions old, inactive) keeps vacuum from removing dead rows",
        ),
        (
            replace(WELL, old_snapshots=(OldSnapshot("process", "77", 1, "idle", 7200.0),)),
            "process 77 (1 transactions old, open for 7,200 s, idle) keeps vacuum from removing "
            "dead rows",
        ),
        (
            replace(WELL, tables=(TableStatus("records", 1, 150_000, 200_000, None),)),
            "the table records has more dead rows than live ones: vacuum is behind",
        ),
    ],
)
def test_what_needs_an_operator_is_a_finding(found: StoreStatus, finding: str) -> None:
    assert [*findings(found)] == [finding]


def test_a_gateway_that_was_killed_does_not_serve() -> None:
    """Its row stays until another gateway starts."""
    killed = replace(WELL, gateways=(replace(SERVES, heartbeat_age_s=11.0),))
    told = [*findings(killed)]
    assert told == ["no gateway serves this store", "gateway 0 has sent no heartbeat for 11 s"]
    shown = "\n".join(lines(StoreReport("db", "strongroom", killed, ())))
    assert "0 dead; heartbeat 11.0 s ago" in shown


def test_what_is_well_is_none() -> None:
    assert [*findings(WELL)] == []
    names = "ANY 1 (db2)"
    assert [*findings(replace(WELL, synchronous_standby_names=names, standbys=(IN_SYNC,)))] == []
    # A role without the right to see standbys cannot judge them.
    unseen = StandbyStatus("db2", "", "", -1)
    assert [*findings(replace(WELL, synchronous_standby_names=names, standbys=(unseen,)))] == []


def test_the_url_comes_from_one_place(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://u@127.0.0.1:1/from-file")
    file.chmod(0o600)
    both = in_process("store", "status", "postgresql://u@127.0.0.1:1/x", "--store-file", file)
    assert both.code == Exit.USAGE
    none = in_process("store", "status")
    assert none.code == Exit.USAGE
    assert "STRONGROOM_STORE" in none.err
    named = in_process("store", "init", STRONGROOM_STORE_FILE=str(file))
    assert named.code == Exit.UNAVAILABLE
    assert "PostgreSQL at 127.0.0.1:1/from-file" in named.err
    wrong = in_process("store", "status", "--schema", "Pg Catalog", STRONGROOM_STORE="x")
    assert wrong.code == Exit.USAGE
