"""A directory whose accounts are missing, damaged, or not all served says so, and stays closed."""

from __future__ import annotations

import base64
import json
import logging
import os
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY
from strongroom.cli.exits import Exit
from strongroom.config import Settings, account_sources, roles_source
from strongroom.servers.identities.accounts_file import read_accounts
from strongroom.testing import InProcessServer
from strongroom.testing.ports import free_port, port_flags
from tests.cli.command import in_process, strongroom

_FILE = "accounts.json"


def _start(data: Path, given: tuple[str, ...] = ()) -> InProcessServer:
    """Serve a directory as the command does; `given` is what --account gives."""
    blob, queue, table, file = (free_port() for _ in range(4))
    return InProcessServer(
        Settings(
            data=data,
            blob_port=blob,
            queue_port=queue,
            table_port=table,
            file_port=file,
            accounts=account_sources(given, None, data, {}),
            roles=roles_source(None, data),
        )
    )


def _containers(server: InProcessServer, data: Path) -> ContainerClient:
    """Return a client of the container of the account `orders`."""
    (account,) = read_accounts(data / _FILE)
    return ContainerClient(
        f"{server.url}/{account.name}",
        "box",
        credential=AzureNamedKeyCredential(
            account.name, base64.b64encode(account.keys[0]).decode()
        ),
    )


def _served(data: Path) -> None:
    """Make a directory with a container of an account of its own."""
    assert in_process("account", "add", "orders", "--data", data).code == 0
    with _start(data) as server:
        _containers(server, data).create_container()


def test_without_its_accounts_a_directory_is_not_opened_with_the_known_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    _served(data)
    kept = (data / _FILE).read_bytes()
    (data / _FILE).unlink()
    ran = strongroom("serve", "--data", data, *port_flags())
    assert ran.code == Exit.SETTINGS
    assert "has data of other accounts (orders)" in ran.err
    assert f"there is no {data / _FILE}" in ran.err
    assert "strongroom account add orders" in ran.err
    (data / _FILE).write_bytes(kept)
    with _start(data) as server:
        assert _containers(server, data).exists()


def test_the_development_account_is_served_there_when_it_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _served(tmp_path)
    (tmp_path / _FILE).unlink()
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)
    with _start(tmp_path, (f"devstoreaccount1:{DEVELOPMENT_ACCOUNT_KEY}",)):
        pass
    assert "has data of accounts that are not served: orders;" in caplog.text


def test_the_data_of_the_development_account_needs_no_accounts(tmp_path: Path) -> None:
    for _ in range(2):
        with _start(tmp_path) as server:
            client = QueueServiceClient.from_connection_string(server.connection_string)
            for queue in client.list_queues():
                client.delete_queue(queue.name)
            client.create_queue("work")
    assert json.loads(in_process("doctor", tmp_path, "--json").out)["notes"] == []


def test_doctor_sees_damaged_files_of_accounts_and_roles(tmp_path: Path) -> None:
    _served(tmp_path)
    (tmp_path / _FILE).write_text('{"accounts": [')
    (tmp_path / "roles.json").write_text("[]")
    ran = in_process("doctor", tmp_path, "--json")
    assert ran.code == Exit.REFUSED
    found = json.loads(ran.out)["findings"]
    assert [one["place"] for one in found] == [_FILE, "roles.json"]
    assert all("it cannot be used" in one["problem"] for one in found)


def test_doctor_says_which_accounts_with_data_have_no_keys(tmp_path: Path) -> None:
    data = tmp_path / "data"
    _served(data)
    assert json.loads(in_process("doctor", data, "--json").out)["notes"] == []
    (data / _FILE).unlink()
    ran = in_process("doctor", data)
    assert ran.code == 0
    assert f"Note: {_FILE} does not have these accounts, which have data here: orders." in ran.out


def test_roles_without_an_issuer_are_said_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)
    role = ("role", "add", "Storage Blob Data Reader", "someone", "--account", "devstoreaccount1")
    assert in_process(*role, "--data", tmp_path).code == 0
    with _start(tmp_path):
        pass
    assert f"{tmp_path / 'roles.json'} is not used: bearer tokens are refused" in caplog.text


def test_a_backup_has_the_accounts_on_request_and_a_restore_brings_them_back(
    tmp_path: Path,
) -> None:
    data, backup, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    _served(data)
    ran = in_process("backup", data, backup, "--with-accounts")
    assert (ran.code, "are in it: keep it secret" in ran.out) == (0, True)
    assert (backup / _FILE).read_bytes() == (data / _FILE).read_bytes()
    assert (backup / _FILE).stat().st_mode & 0o077 == 0
    ran = in_process("restore", backup, restored)
    assert (ran.code, "has no accounts" in ran.out) == (0, False)
    with _start(restored) as server:
        assert _containers(server, restored).exists()
    without = tmp_path / "without"
    assert in_process("backup", data, without).code == 0
    assert "has no accounts" in in_process("restore", without, tmp_path / "second").out


def test_a_backup_with_accounts_says_that_there_are_none(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with _start(data):
        pass
    ran = in_process("backup", data, tmp_path / "backup", "--with-accounts")
    assert ran.code == 0
    assert f"There is no {data / _FILE}, so no keys are in it" in ran.out
    ran = in_process("backup", data, tmp_path / "second")
    assert (ran.code, "no keys" in ran.out) == (0, False)


def test_accounts_that_are_added_during_a_backup_do_not_cut_off_its_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    _served(data)
    size_of = os.path.getsize

    def size_before_an_account_is_added(path: str) -> int:
        size_bytes = size_of(path)
        if os.path.basename(path) == _FILE:
            assert in_process("account", "add", "invoices", "--data", data).code == 0
        return size_bytes

    monkeypatch.setattr(os.path, "getsize", size_before_an_account_is_added)
    assert in_process("backup", data, backup, "--with-accounts").code == 0
    assert "orders" in [account.name for account in read_accounts(backup / _FILE)]


def test_a_killed_backup_with_accounts_is_replaced(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    _served(data)
    assert in_process("backup", data, backup, "--with-accounts").code == 0
    (backup / "FORMAT").rename(backup / "UNFINISHED")
    (backup / _FILE).rename(backup / f"{_FILE}.copying")
    assert in_process("backup", data, backup).code == 0
    assert not [one for one in backup.iterdir() if one.name.startswith(_FILE)]
