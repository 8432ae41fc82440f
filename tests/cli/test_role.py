"""`strongroom role` and the flags of `strongroom serve` about bearer tokens."""

from __future__ import annotations

import http.client
import json
import stat
from pathlib import Path

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.auth.roles import ROLES
from strongroom.cli.exits import Exit
from strongroom.testing import Server
from tests.auth import tokens
from tests.cli.command import Ran, in_process, strongroom

READER, OWNER = "Storage Blob Data Reader", "Storage Blob Data Owner"
ACCOUNT = ("--account", DEVELOPMENT_ACCOUNT_NAME)


def status(server: Server, user: str, method: str = "GET", target: str = "/?comp=list") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        token = tokens.token(oid=user)
        headers = {"Authorization": f"Bearer {token}", "x-ms-version": "2025-11-05"}
        connection.request(method, f"/{DEVELOPMENT_ACCOUNT_NAME}{target}", b"", headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_roles_count_while_a_server_runs(tmp_path: Path) -> None:
    """B-ROL-03, B-BRR-10."""
    data = tmp_path / "data"

    def role(*arguments: object) -> Ran:
        return in_process("role", *arguments, "--data", data)

    with Server.start(data=data, flags=("--oauth", "basic")) as server:
        # As long as there is no roles file, tokens of the development mode may do everything.
        assert status(server, "ann", "PUT", "/photos?restype=container") == 201
        made = role("add", READER, "ann", *ACCOUNT)
        assert made.code == 0 and str(data / "roles.json") in made.out
        assert stat.S_IMODE((data / "roles.json").stat().st_mode) == 0o600
        assert status(server, "ann") == 200 and status(server, "bob") == 403
        assert status(server, "ann", "PUT", "/films?restype=container") == 403
        assert role("add", OWNER, "bob", *ACCOUNT, "--container", "photos").code == 0
        assert status(server, "bob", "GET", "/photos?restype=container&comp=list") == 200
        assert status(server, "bob") == 403
        assert role("remove", READER, "ann", *ACCOUNT).code == 0
        assert status(server, "ann") == 403
        assert "of any issuer; development mode: signatures are not" in server.output()


def test_a_roles_file_that_was_made_before_the_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert in_process("role", "add", READER, "ann", *ACCOUNT, "--data", data).code == 0
    with Server.start(data=data, flags=("--oauth", "basic")) as server:
        assert status(server, "ann") == 200 and status(server, "bob") == 403


def test_what_is_assigned_is_listed(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "roles.json"

    def role(*arguments: object) -> Ran:
        return in_process("role", *arguments, "--roles-file", file)

    assert role("list").out == f"No roles in {file}.\n"
    assert role("add", READER, "ann", "--account", "orders", "--container", "photos").code == 0
    again = role("add", READER, "ann", "--account", "orders", "--container", "photos")
    assert again.code == Exit.REFUSED and "assigned already" in again.err
    table = "Storage Table Data Contributor"
    assert role("add", table, "ann", "--account", "orders", "--table", "Items").code == 0
    assert role("list").out.splitlines() == [
        f"{READER}  ann  orders/photos",
        f"{table}  ann  orders/Items",
    ]
    assert json.loads(role("list", "--json").out) == [
        {"principal": "ann", "role": READER, "account": "orders", "resource": "photos"},
        {"principal": "ann", "role": table, "account": "orders", "resource": "Items"},
    ]
    other = role("remove", READER, "ann", "--account", "orders")
    assert other.code == Exit.REFUSED and "not assigned" in other.err
    assert role("remove", READER, "ann", "--account", "orders", "--container", "photos").code == 0
    assert len(json.loads(role("list", "--json").out)) == 1
    file.write_text("{")
    broken = role("list")
    assert broken.code == Exit.SETTINGS and str(file) in broken.err
    assert role("add", READER, "ann", "--account", "orders").code == Exit.SETTINGS
    assert file.read_text() == "{"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("Owner", "ann", "--account", "orders"), "did you mean 'Storage Blob Data Owner'?"),
        ((READER, "a b", "--account", "orders"), "principal"),
        ((READER, "ann", "--account", "Orders"), "account name"),
        ((READER, "ann", "--account", "orders", "--container", "a/b"), "resource"),
        ((READER, "ann", "--account", "orders", "--queue", "jobs"), "services blob only"),
        (
            (READER, "ann", "--account", "orders", "--queue", "jobs", "--table", "t"),
            "one of --container, --queue, --table and --share",
        ),
        (
            ("Storage Account Contributor", "ann", "--account", "orders", "--queue", "jobs"),
            "services blob, file, queue, table only",
        ),
    ],
)
def test_an_assignment_that_makes_no_sense(
    tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    ran = in_process("role", "add", *arguments, "--data", tmp_path)
    assert ran.code == Exit.USAGE and reason in ran.err
    assert not (tmp_path / "roles.json").exists()


def test_the_names_of_roles() -> None:
    assert in_process("role", "names").out.splitlines() == list(ROLES)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--oauth", "basic", "--host", "0.0.0.0", "--account", "own:a2V5"), "--oauth-issuer"),
        (
            ("--oauth", "basic", "--host", "0.0.0.0", "--allow-development-key"),
            "can be reached from other machines",
        ),
        (("--oauth-issuer", "https://x"), "need --oauth-issuer and --oauth-keys"),
        (("--oauth-audience", "https://x"), "need --oauth-issuer and --oauth-keys"),
        (("--oauth-issuer", "https://x", "--oauth-keys", "http://x/k"), "https URL"),
        (("--oauth-issuer", "https://x", "--oauth-keys", "missing.json"), "no key file"),
        (("--oauth-issuer", "a b", "--oauth-keys", "k"), "cannot be the claim"),
        (("--oauth", "basic", "--roles-file", "missing.json"), "no roles file missing.json"),
    ],
)
def test_flags_that_do_not_go_together(tmp_path: Path, flags: tuple[str, ...], reason: str) -> None:
    ran = strongroom("serve", "--data", tmp_path / "data", "--blob-port", "0", *flags)
    assert ran.code == Exit.SETTINGS and reason in " ".join(ran.err.split()), ran.err


def test_tokens_are_checked_or_not() -> None:
    ran = in_process("serve", "--in-memory", "--oauth", "basic", "--oauth-keys", "k")
    assert ran.code == Exit.USAGE
    assert "--oauth basic checks no signatures; it does not go with --oauth-keys" in ran.err


def test_a_role_in_an_account_that_is_not_known_is_noted(tmp_path: Path) -> None:
    def add(account: str) -> Ran:
        return in_process(
            "role", "add", READER, "someone", "--account", account, "--data", tmp_path
        )

    assert add(DEVELOPMENT_ACCOUNT_NAME).err == ""
    ran = add("nope")
    assert ran.code == 0
    assert f"Note: {tmp_path} has no account 'nope' (there are: devstoreaccount1)" in ran.err
    in_process("account", "add", "orders", "--data", tmp_path)
    assert add("orders").err == ""
