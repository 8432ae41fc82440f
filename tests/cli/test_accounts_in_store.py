"""Accounts and roles in the store of a database: commands change them, and all gateways see it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import ssl
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from azure.core.exceptions import HttpResponseError

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, Account
from strongroom.cli.exits import Exit
from strongroom.cli.identities.database import DatabasePlace
from strongroom.config import (
    ConfigError,
    OAuth,
    Settings,
    TlsFiles,
    account_sources,
    roles_source,
)
from strongroom.database import DatabaseSettings, StoreMode
from strongroom.servers.identities import stored_rows
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer
from tests.auth import tokens
from tests.cli.account_keys import client_of, works
from tests.cli.command import Ran, in_process
from tests.coordination.servers import certificate
from tests.over_postgres import new_store

_SEEN_S = 20.0


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a change takes is not what is tested here."""
    monkeypatch.setattr(stored_rows, "POLL_S", 0.05)


@pytest.fixture
def store() -> DatabaseSettings:
    """A store that was made, and has nothing yet."""
    made = new_store()
    assert in_process("store", "init", made.url, "--schema", made.schema).code == 0
    return made


def flags(store: DatabaseSettings) -> tuple[str, ...]:
    return ("--store", store.url, "--store-schema", store.schema)


def key_of(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    (line,) = [line for line in ran.out.splitlines() if line.startswith("Key: ")]
    return line.removeprefix("Key: ")


def add(name: str, store: DatabaseSettings) -> str:
    """Add an account; return its key."""
    return key_of(in_process("account", "add", name, *flags(store)))


def settings_of(store: DatabaseSettings, data: Path | None = None, **more: Any) -> Settings:
    """Return the settings of a gateway as the command has them."""
    ports = {f"{name}_port": free_port() for name in ("blob", "queue", "table", "file")}
    settings = {"accounts": account_sources((), None, data, {}), "roles": roles_source(None, data)}
    return Settings(data=data, store=store, **{**settings, **ports, **more})


@contextlib.contextmanager
def gateways(store: DatabaseSettings, **more: Any) -> Iterator[list[InProcessServer]]:
    """Serve a store by two gateways beside each other."""
    together = dataclasses.replace(store, mode=StoreMode.ACTIVE_ACTIVE)
    settings = [settings_of(together, **more) for _ in range(2)]
    with InProcessServer(settings[0]) as first, InProcessServer(settings[1]) as second:
        yield [first, second]


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _SEEN_S
    while not holds():
        assert time.monotonic() < end, "it was never seen"
        time.sleep(0.05)


def test_every_gateway_sees_what_commands_change(store: DatabaseSettings) -> None:
    with gateways(store) as both:
        known = DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY
        assert all(works(one, *known) for one in both)
        first = add("orders", store)
        eventually(lambda: all(works(one, "orders", first) for one in both))
        assert not any(works(one, *known) for one in both)
        ran = in_process("account", "rotate", "orders", *flags(store))
        assert f"Gateways of {store.shown} see it within a second." in ran.out
        second = key_of(ran)
        eventually(lambda: all(works(one, "orders", second) for one in both))
        assert all(works(one, "orders", first) for one in both)
        assert in_process("account", "remove-old-key", "orders", *flags(store)).code == 0
        eventually(lambda: not any(works(one, "orders", first) for one in both))
        more = add("more", store)
        eventually(lambda: all(works(one, "more", more) for one in both))
        assert in_process("account", "remove", "more", *flags(store)).code == 0
        eventually(lambda: not any(works(one, "more", more) for one in both))
        assert all(works(one, "orders", second) for one in both)


def test_switches_protections_and_data_are_those_of_the_store(store: DatabaseSettings) -> None:
    key = add("orders", store)
    add("more", store)
    with InProcessServer(settings_of(store)) as server:
        orders = client_of(server, "orders", key)
        box = orders.create_container("box")
        assert in_process("account", "set", "orders", "--versioning", "on", *flags(store)).code == 0

        def makes_versions() -> bool:
            written = box.upload_blob("b", b"1", overwrite=True)
            return written.get_blob_properties().version_id is not None

        eventually(makes_versions)
        protected = ("orders/box", "--legal-hold", "case1")
        ran = in_process("container", "protect", *protected, *flags(store))
        assert (ran.code, ran.err) == (0, "")
        absent = in_process("container", "protect", "orders/none", *protected[1:], *flags(store))
        assert "there is no container orders/none" in absent.err

        def is_protected() -> bool:
            try:
                box.get_blob_client("b").upload_blob(b"2", overwrite=True)
            except HttpResponseError:
                return True
            return False

        eventually(is_protected)
        in_process("container", "unprotect", *protected, *flags(store))
        in_process("container", "unprotect", "orders/none", *protected[1:], *flags(store))
        ran = in_process("account", "remove", "orders", *flags(store))
        assert ran.code == Exit.REFUSED and f"has data in {store.shown}" in ran.err
        ran = in_process("account", "remove", "orders", "--leave-data", *flags(store))
        assert ran.code == 0 and f"not in {store.shown} any more" in ran.out


def test_roles_change_at_every_gateway(store: DatabaseSettings, tmp_path: Path) -> None:
    role = ("Storage Blob Data Reader", "someone", "--account", "orders")
    add("orders", store)
    ran = in_process("role", "add", *role, *flags(store))
    assert ran.out == f"Storage Blob Data Reader  someone  orders: assigned in {store.shown}.\n"
    assert in_process("role", "add", *role, *flags(store)).code == Exit.REFUSED
    tls = TlsFiles(*certificate(tmp_path))
    context = ssl._create_unverified_context()
    refusals = set[int]()

    def may_list(server: InProcessServer) -> bool:
        headers = {"Authorization": f"Bearer {tokens.token(oid='someone')}"}
        url = f"{server.url.replace('http:', 'https:')}/orders?comp=list"
        asked = urllib.request.Request(url, headers={**headers, "x-ms-version": "2025-11-05"})
        try:
            urllib.request.urlopen(asked, context=context).close()
        except urllib.error.HTTPError as refused:
            refusals.add(refused.code)
            return False
        return True

    with gateways(store, tls=tls, oauth=OAuth()) as both:
        assert all(may_list(one) for one in both)
        ran = in_process("role", "remove", *role, *flags(store))
        assert f"Gateways of {store.shown} see it" in ran.out
        assert in_process("role", "list", *flags(store)).out == f"No roles in {store.shown}.\n"
        eventually(lambda: not any(may_list(one) for one in both))
        ran = in_process("role", "add", *role[:-1], "ordres", *flags(store))
        assert "has no account 'ordres' (there are: orders)" in ran.err
        in_process("role", "add", *role, *flags(store))
        eventually(lambda: all(may_list(one) for one in both))
        assert refusals == {403}


def test_of_commands_at_the_same_time_none_loses_the_change_of_another(
    store: DatabaseSettings,
) -> None:
    names = [f"account{number}" for number in range(4)]

    def add_one(name: str) -> None:
        DatabasePlace(store).change_accounts(lambda found: (*found, Account(name, (b"key",))))

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(add_one, names))
    listed = json.loads(in_process("account", "list", "--json", *flags(store)).out)
    assert [account["name"] for account in listed] == names


def test_a_forgotten_file_is_not_left_aside_and_is_imported(
    store: DatabaseSettings, tmp_path: Path
) -> None:
    key = key_of(in_process("account", "add", "orders", "--data", tmp_path))
    role = ("Storage Blob Data Reader", "someone", "--account", "orders")
    in_process("role", "add", *role, "--data", tmp_path)
    command = f"strongroom account import --data {tmp_path} --store {store.url}"
    with pytest.raises(ConfigError, match=re.escape(command)) as refused:
        InProcessServer(settings_of(store, tmp_path))
    assert f"{tmp_path}/accounts.json would not be used" in str(refused.value)
    ran = in_process("account", "import", "--data", tmp_path, *flags(store))
    assert f"Account orders is in {store.shown}.\n1 role of 1 added" in ran.out
    rotated = key_of(in_process("account", "rotate", "orders", *flags(store)))
    ran = in_process("account", "import", "--data", tmp_path, *flags(store))
    assert "with other keys or switches, which it keeps" in ran.out
    assert "0 roles of 1 added" in ran.out
    with InProcessServer(settings_of(store, tmp_path)) as server:
        assert works(server, "orders", key) and works(server, "orders", rotated)
    named = settings_of(store, accounts=account_sources((), tmp_path / "accounts.json", None, {}))
    with InProcessServer(named) as server:
        assert works(server, "orders", key) and not works(server, "orders", rotated)


def test_an_export_is_for_its_owner_and_replaces_nothing(
    store: DatabaseSettings, tmp_path: Path
) -> None:
    ran = in_process("account", "export", "--data", tmp_path, *flags(store))
    assert ran.code == Exit.REFUSED and "has neither accounts nor roles" in ran.err
    key = add("orders", store)
    ran = in_process("account", "export", "--data", tmp_path, *flags(store))
    assert ran.out == f"{tmp_path}/accounts.json has 1 account. Keep it secret.\n"
    assert key not in ran.out
    file = tmp_path / "accounts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key in in_process("account", "list", "--show", "--data", tmp_path).out
    kept = file.read_bytes()
    assert in_process("account", "export", "--data", tmp_path, *flags(store)).code == Exit.REFUSED
    assert file.read_bytes() == kept


def test_a_store_with_data_and_without_accounts_is_not_served_with_the_known_key(
    store: DatabaseSettings, tmp_path: Path
) -> None:
    file = tmp_path / "elsewhere.json"
    key = key_of(in_process("account", "add", "orders", "--accounts-file", file))
    named = settings_of(store, accounts=account_sources((), file, None, {}))
    with InProcessServer(named) as server:
        client_of(server, "orders", key).create_container("box")
    with pytest.raises(ConfigError, match=r"data of other accounts \(orders\), and no account"):
        InProcessServer(settings_of(store))
    assert in_process("account", "import", "--accounts-file", file, *flags(store)).code == 0
    with InProcessServer(settings_of(store)) as server:
        assert works(server, "orders", key)


def test_what_is_typed_is_stronger_than_a_variable(store: DatabaseSettings, tmp_path: Path) -> None:
    variables = {"STRONGROOM_STORE": store.url, "STRONGROOM_STORE_SCHEMA": store.schema}
    where = {**variables, "STRONGROOM_DATA": str(tmp_path / "unused")}
    assert store.shown in in_process("account", "add", "one", **where).out
    ran = in_process("account", "add", "two", "--data", tmp_path, **variables)
    assert f"Account two is in {tmp_path}/accounts.json." in ran.out
    file = tmp_path / "url"
    file.write_text(store.url)
    by_file = {"STRONGROOM_STORE_FILE": str(file), "STRONGROOM_STORE_SCHEMA": store.schema}
    assert store.shown in in_process("account", "add", "three", **by_file).out
    elsewhere = {"STRONGROOM_STORE": "http://127.0.0.1:1/nodes", "STRONGROOM_DATA": str(tmp_path)}
    assert f"{tmp_path}/accounts.json" in in_process("account", "add", "four", **elsewhere).out
    ran = in_process("account", "export", **elsewhere)
    assert ran.code == Exit.SETTINGS and "STRONGROOM_STORE: " in ran.err
    listed = in_process("account", "list", "--store-file", file, *flags(store)[2:]).out
    assert [line.split()[0] for line in listed.splitlines()] == ["one", "three"]
    for wrong in (
        ("--store", store.url, "--store-file", file),
        ("--store", store.url, "--accounts-file", tmp_path / "accounts.json"),
        ("--store", "http://127.0.0.1:1/nodes"),
        ("--store", "postgresql://user:s3cret@127.0.0.1/x"),
        ("--store", store.url, "--store-schema", "No Name"),
    ):
        ran = in_process("account", "list", *wrong)
        assert ran.code == Exit.USAGE, wrong
        assert "s3cret" not in ran.err and "Traceback" not in ran.err


def test_a_database_without_a_store_is_told_and_nothing_is_made() -> None:
    missing = new_store()
    ran = in_process("account", "add", "orders", *flags(missing))
    assert ran.code == Exit.DATA and "strongroom store init" in ran.err
    assert in_process("account", "list", *flags(missing)).code == Exit.DATA


def test_a_copy_to_a_directory_has_no_keys_until_they_are_exported(
    store: DatabaseSettings, tmp_path: Path
) -> None:
    key, data = add("orders", store), tmp_path / "data"
    with InProcessServer(settings_of(store)) as server:
        client_of(server, "orders", key).create_container("box")
    source = ("--from", store.url, "--from-schema", store.schema)
    ran = in_process("store", "copy", *source, "--to", data)
    assert f"strongroom account export --data {data} --store URL" in ran.out
    for file in data.rglob("*"):
        assert file.is_dir() or key.encode() not in file.read_bytes(), file
    assert in_process("account", "export", "--data", data, *flags(store)).code == 0
    served = Settings(data=data, blob_port=free_port(), queue_port=0, table_port=0, file_port=0)
    accounts = account_sources((), None, data, {})
    with InProcessServer(msgspec.structs.replace(served, accounts=accounts)) as server:
        assert client_of(server, "orders", key).get_container_client("box").exists()
    other = new_store()
    back = ("--from", data, "--to", other.url, "--to-schema", other.schema)
    ran = in_process("store", "copy", *back)
    where = f"--data {data} --store URL --store-schema {other.schema}"
    assert f"Not in it: {data}/accounts.json." in ran.out
    assert f"strongroom account import {where}" in ran.out
    third = new_store()
    ran = in_process("store", "copy", *source, "--to", third.url, "--to-schema", third.schema)
    assert "account" not in ran.out
    assert key in in_process("account", "list", "--show", *flags(third)).out


@pytest.mark.parametrize(
    ("command", "page"),
    [
        (("backup",), "docs/operators/postgresql.md, section Backups"),
        (("restore", "monday"), "docs/operators/postgresql.md, section Backups"),
        (("upgrade",), "strongroom store migrate: docs/operators/postgresql.md"),
        (("import-azurite",), "strongroom store copy: docs/operators/copying.md"),
    ],
)
def test_commands_for_directories_name_the_tool_for_a_store(
    command: tuple[str, ...], page: str
) -> None:
    for option in ("--store", "--store-file"):
        ran = in_process(*command, option, "postgresql://user:s3cret@db1/x")
        assert (ran.code, ran.out) == (Exit.USAGE, "")
        (line,) = ran.err.splitlines()
        assert line.endswith(page)
