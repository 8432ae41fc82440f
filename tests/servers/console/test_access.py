"""`GET access`: whose accounts and roles one sees, and commands that change them. The clock of a
test server."""

from __future__ import annotations

import base64
import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from strongroom.auth.accounts import Account, development_account
from strongroom.auth.roles import OPERATOR, ROLES, Assignment
from strongroom.cli.identities.database import DatabasePlace
from strongroom.config import AccountSources
from strongroom.servers.console.access import commands
from strongroom.servers.identities import stored_rows
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer, Server
from tests.cli.command import in_process
from tests.over_postgres import new_store
from tests.servers.console.served import (
    BANK,
    SHOP,
    Port,
    ServedConsole,
    settings,
)
from tests.servers.console.two_accounts import OPERATING, READER, by_token, key_of, two_accounts


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    with two_accounts(tmp_path_factory.mktemp("roles")) as found:
        yield found


def test_a_key_sees_its_own_account_and_the_roles_in_it(served: ServedConsole) -> None:
    for account, principals in ((SHOP, {READER}), (BANK, {OPERATING, "someone"})):
        answer = served.api("access", account)
        found = answer.json()
        assert found["account"]["name"] == account.name
        assert (found["account"]["keys"], found["account"]["source"]) == (1, "start")
        assert (found["accounts"], found["roles_flag"], found["accounts_flag"]) == ([], "", "")
        assert {one["principal"] for one in found["roles"]} == principals
        other = BANK if account is SHOP else SHOP
        assert other.name.encode() not in answer.body
        assert key_of(account).encode() not in answer.body


def test_an_operator_sees_all_and_a_role_only_its_own(served: ServedConsole) -> None:
    found = by_token(served, OPERATING, "access").json()
    assert [one["name"] for one in found["accounts"]] == ["shop", "bank"]
    assert found["account"] is None
    assert len(found["roles"]) == 3
    assert found["roles_flag"].startswith("--roles-file ")
    answer = by_token(served, READER, "access")
    found = answer.json()
    assert [one["principal"] for one in found["roles"]] == [READER]
    assert (found["account"], found["accounts"], found["add_role_command"]) == (None, [], "")
    assert (found["takes_tokens"], found["is_open"]) == (True, False)
    assert b"bank" not in answer.body


def test_the_commands_change_what_the_server_serves(tmp_path: Path) -> None:
    data, port = tmp_path / "da ta", free_port()
    in_process("account", "add", "shop", "--data", data)
    file = data / "accounts.json"

    def first_key() -> Account:
        row = json.loads(file.read_text())["accounts"][0]
        return Account("shop", (base64.b64decode(row["keys"][0]),))

    with Server.start(data=data, flags=("--console-port", str(port))) as server:
        console = Port(port)

        def run(name: str) -> Any:
            found = console.api("access", first_key()).json()
            words = shlex.split(f"{found['account'][name]} {found['accounts_flag']}")
            assert words[0] == "strongroom"
            ran = in_process(*words[1:])
            assert ran.code == 0, ran.err
            return console.api("access", first_key()).json()["account"]

        assert run("rotate_command")["keys"] == 2
        after = run("remove_command")
        assert (after["keys"], after["remove_command"], after["source"]) == (1, "", "file")
        assert "shop" in server.output()


def test_the_commands_change_what_lies_in_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_rows, "POLL_S", 0.05)
    store = new_store()
    assert in_process("store", "init", store.url, "--schema", store.schema).code == 0
    place = DatabasePlace(store)
    place.change_accounts(lambda _: (SHOP,))
    chosen = replace(settings(), accounts=AccountSources(), store=store)
    with InProcessServer(chosen) as server:
        console = Port(server._app.ports["console"])

        def seen(keys: int) -> Any:
            """Return what is told of the account once it has so many keys."""
            for _ in range(400):
                (account,) = place.accounts()
                answer = console.api("access", Account("shop", account.keys[:1]))
                if answer.status == 200 and answer.json()["account"]["keys"] == keys:
                    return answer.json()
                time.sleep(0.05)
            raise AssertionError("it was never seen")

        def run(found: Any, name: str) -> None:
            words = shlex.split(f"{found['account'][name]} {found['accounts_flag']}")
            assert words[0] == "strongroom"
            ran = in_process(*words[1:])
            assert ran.code == 0, ran.err

        found = seen(1)
        assert found["account"]["source"] == "store"
        assert found["roles_flag"] == found["accounts_flag"]
        run(found, "rotate_command")
        run(seen(2), "remove_command")
        assert seen(1)["account"]["remove_command"] == ""


def test_the_development_account_is_marked_and_gives_way_to_another(tmp_path: Path) -> None:
    port = free_port()
    with Server.start(data=tmp_path / "data", flags=("--console-port", str(port))):
        found = Port(port).api("access", development_account()).json()
        assert found["account"]["has_known_key"] is True
        assert found["account"]["source"] == "development"
        assert found["account"]["rotate_command"] == "strongroom account add NAME"


@pytest.mark.parametrize(
    "one",
    [
        Assignment("alice", "Storage Blob Data Reader", "shop", "photos"),
        Assignment("alice's;$(id)", "Storage Queue Data Reader", "shop", "jobs"),
        Assignment("alice", "Storage Table Data Reader", "shop", "Orders"),
        Assignment("alice", "Storage File Data Privileged Reader", "shop", "docs"),
        Assignment("alice", OPERATOR, "shop"),
    ],
    ids=lambda one: one.role,
)
def test_the_command_that_takes_a_role_back_does_so(tmp_path: Path, one: Assignment) -> None:
    file = tmp_path / "roles.json"
    file.write_text(
        json.dumps(
            {
                "assignments": [
                    {
                        "principal": one.principal,
                        "role": one.role,
                        "account": one.account,
                        "resource": one.resource,
                    }
                ]
            }
        )
    )
    file.chmod(0o600)
    words = shlex.split(commands.remove_role(one))
    ran = in_process(*words[1:], "--roles-file", file)
    assert ran.code == 0, ran.err
    assert json.loads(file.read_text()) == {"assignments": []}
    added = shlex.split(commands.add_role("shop"))
    assert added[3] in ROLES
    assert in_process(*added[1:], "--roles-file", file).code == 0


def test_a_role_that_no_flag_can_name_has_no_command() -> None:
    assert commands.remove_role(Assignment("a", "Storage Account Contributor", "shop", "x")) == ""
    assert commands.remove_role(Assignment("-a", OPERATOR, "shop")) == ""


def test_the_clock_of_a_test_server_is_moved_by_its_own_page_only(served: ServedConsole) -> None:
    for path, method, body in (
        ("/.strongroom/clock", "POST", b'{"advance_s": 1}'),
        ("/.strongroom/faults", "PUT", b"{}"),
        ("/.strongroom/faults", "DELETE", b""),
    ):
        for origin in ("http://127.0.0.1:1", f"http://localhost:{served.port}", "null"):
            answer = served.ask(path, method, body, {"Origin": origin})
            assert answer.status == 403, (path, origin)
        own = {"Origin": f"http://{served.authority}"}
        assert served.ask(path, method, body, own).status == 200
