"""`strongroom account`: keys that change while a server uses them."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
import sys
from pathlib import Path

from azure.storage.blob import BlobServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY
from strongroom.cli.exits import Exit
from strongroom.testing import Server
from tests.cli.account_keys import client_of, works
from tests.cli.command import Ran, in_process, strongroom

KEY = base64.b64encode(b"a key from standard input").decode()


def made_key(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    (line,) = [line for line in ran.out.splitlines() if line.startswith("Key: ")]
    key = line.removeprefix("Key: ")
    assert len(base64.b64decode(key, validate=True)) == 64
    return key


def test_a_new_key_works_at_once_and_the_old_one_until_it_is_removed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = made_key(in_process("account", "add", "orders", "--data", data))
    with Server.start(data=data, test_clock=False) as server:
        assert works(server, "orders", first)
        second = made_key(in_process("account", "rotate", "orders", "--data", data))
        assert second != first
        assert works(server, "orders", second)
        assert works(server, "orders", first)
        assert in_process("account", "remove-old-key", "orders", "--data", data).code == 0
        assert works(server, "orders", second)
        assert not works(server, "orders", first)
        third = made_key(in_process("account", "add", "more", "--data", data))
        assert works(server, "more", third)
        assert first not in server.output()


def test_the_first_account_ends_the_development_account(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Server.start(data=data, test_clock=False) as server:
        assert works(server, "devstoreaccount1", DEVELOPMENT_ACCOUNT_KEY)
        key = made_key(in_process("account", "add", "orders", "--data", data))
        assert works(server, "orders", key)
        assert not works(server, "devstoreaccount1", DEVELOPMENT_ACCOUNT_KEY)


def test_a_broken_file_leaves_the_accounts_as_they_were(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = made_key(in_process("account", "add", "orders", "--data", data))
    with Server.start(data=data, test_clock=False) as server:
        (data / "accounts.json").write_text('{"accounts": [')
        assert works(server, "orders", key)
        assert works(server, "orders", key)
        assert server.output().count("accounts.json is not used, what it said before stays") == 1
        (data / "accounts.json").unlink()
        assert works(server, "orders", key)
        assert not works(server, "devstoreaccount1", DEVELOPMENT_ACCOUNT_KEY)


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "accounts.json"
    made_key(in_process("account", "add", "orders", "--accounts-file", file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    made_key(in_process("account", "rotate", "orders", "--accounts-file", file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["accounts.json"]


def test_listing_shows_keys_only_when_asked(tmp_path: Path) -> None:
    key = made_key(in_process("account", "add", "orders", "--data", tmp_path))
    plain = in_process("account", "list", "--data", tmp_path)
    assert "orders" in plain.out
    assert key not in plain.out
    as_json = in_process("account", "list", "--json", "--data", tmp_path)
    facts: dict[str, object] = {"name": "orders", "key_count": 1}
    facts |= {"kind": "StorageV2", "container_retention_days": 0, "versioning": False}
    facts |= {"immutability": False, "last_access": False, "share_retention_days": 0}
    assert json.loads(as_json.out) == [facts]
    shown = in_process("account", "list", "--json", "--show", "--data", tmp_path)
    assert json.loads(shown.out) == [facts | {"keys": [key]}]
    assert key in in_process("account", "list", "--show", "--data", tmp_path).out


def test_a_key_of_ones_own_comes_from_standard_input_and_is_not_repeated(tmp_path: Path) -> None:
    ran = strongroom("account", "add", "orders", "--key-stdin", "--data", tmp_path, stdin=KEY)
    assert ran.code == 0
    assert KEY not in ran.out + ran.err
    assert KEY in in_process("account", "list", "--show", "--data", tmp_path).out


def test_what_cannot_be_done_is_said_and_changes_nothing(tmp_path: Path) -> None:
    made_key(in_process("account", "add", "orders", "--data", tmp_path))
    before = (tmp_path / "accounts.json").read_bytes()
    for arguments, stdin, code in [
        (["add", "orders"], "", Exit.REFUSED),
        (["rotate", "nobody"], "", Exit.REFUSED),
        (["remove-old-key", "nobody"], "", Exit.REFUSED),
        (["add", "No.Good"], "", Exit.SETTINGS),
        (["add", "more", "--key-stdin"], "not base64!", Exit.USAGE),
        (["add", "more", "--key-stdin"], "", Exit.USAGE),
    ]:
        ran = in_process("account", *arguments, "--data", tmp_path, stdin=stdin)
        assert ran.code == code, arguments
        assert ran.err
        assert "Traceback" not in ran.err
        assert (tmp_path / "accounts.json").read_bytes() == before


def test_a_file_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "accounts.json").write_text("{}")
    ran = in_process("account", "add", "orders", "--data", tmp_path)
    assert ran.code == Exit.SETTINGS
    assert "accounts.json" in ran.err
    assert (tmp_path / "accounts.json").read_text() == "{}"


def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    names = [f"account{number}" for number in range(6)]
    command = [sys.executable, "-m", "strongroom", "account", "add"]
    running = [
        subprocess.Popen([*command, name, "--data", str(tmp_path)], stdout=subprocess.DEVNULL)
        for name in names
    ]
    assert [process.wait(60) for process in running] == [0] * len(names)
    listed = json.loads(in_process("account", "list", "--json", "--data", tmp_path).out)
    assert sorted(account["name"] for account in listed) == names


def test_switches_take_effect_while_serving_and_are_listed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = made_key(in_process("account", "add", "orders", "--data", data))
    with Server.start(data=data, test_clock=False) as server:
        credential = {"account_name": "orders", "account_key": key}
        client = BlobServiceClient(f"{server.url}/orders", credential, retry_total=0)
        assert client.get_account_information()["account_kind"] == "StorageV2"
        switched = ("--container-retention", "7d", "--kind", "BlobStorage", "--versioning", "on")
        assert in_process("account", "set", "orders", *switched, "--data", data).code == 0
        assert client.get_account_information()["account_kind"] == "BlobStorage"
        client.create_container("box").delete_container()
        (kept,) = client.list_containers(include_deleted=True)
        assert kept.deleted
        box = client.create_container("versions")
        assert box.upload_blob("b", b"1").get_blob_properties().version_id is not None
        off = ("--container-retention", "off", "--versioning", "off")
        assert in_process("account", "set", "orders", *off, "--data", data).code == 0
        assert box.upload_blob("c", b"1").get_blob_properties().version_id is None
        client.create_container("box").delete_container()
        assert len(list(client.list_containers("box", include_deleted=True))) == 1
    assert (
        in_process("account", "list", "--data", data).out == "orders  one key  kind BlobStorage\n"
    )
    again = ("--container-retention", "30d", "--share-retention", "9d", "--versioning", "on")
    in_process("account", "set", "orders", *again, "--data", data)
    # New keys leave the switches as they are.
    made_key(in_process("account", "rotate", "orders", "--data", data))
    in_process("account", "remove-old-key", "orders", "--data", data)
    listed = json.loads(in_process("account", "list", "--json", "--data", data).out)
    wanted = {"kind": "BlobStorage", "container_retention_days": 30, "share_retention_days": 9}
    wanted |= {"versioning": True}
    wanted |= {"immutability": False, "last_access": False}
    assert listed == [{"name": "orders", "key_count": 1, **wanted}]
    text = in_process("account", "list", "--data", data).out
    days = "container retention 30d  share retention 9d"
    assert text == f"orders  one key  kind BlobStorage  {days}  versioning\n"


def test_switches_that_there_are_not(tmp_path: Path) -> None:
    data = tmp_path / "data"
    in_process("account", "add", "orders", "--data", data)
    before = (data / "accounts.json").read_bytes()
    for wrong in (
        (),
        ("--kind", "Tape"),
        ("--container-retention", "7"),
        ("--container-retention", "366d"),
        ("--container-retention", "-1d"),
        ("--container-retention", "on"),
        ("--versioning", "7d"),
        ("--versioning", ""),
    ):
        ran = in_process("account", "set", "orders", *wrong, "--data", data)
        assert ran.code == Exit.USAGE, ran
    nobody = in_process("account", "set", "nobody", "--kind", "Storage", "--data", data)
    assert nobody.code == Exit.REFUSED
    assert (data / "accounts.json").read_bytes() == before


def test_immutability_and_last_access_are_switched(tmp_path: Path) -> None:
    """B-IMM-01, B-ACC-01: what protects data stays on."""
    in_process("account", "add", "orders", "--data", tmp_path)

    def switch(*given: str) -> int:
        return in_process("account", "set", "orders", *given, "--data", tmp_path).code

    assert switch("--immutability", "on", "--last-access", "on") == 0
    text = in_process("account", "list", "--data", tmp_path).out
    assert text == "orders  one key  immutability on  last access on\n"
    assert switch("--immutability", "off") == Exit.REFUSED
    assert switch("--last-access", "off") == 0
    for option in ("--immutability", "--last-access"):
        assert switch(option, "maybe") == Exit.USAGE
    text = in_process("account", "list", "--data", tmp_path).out
    assert text == "orders  one key  immutability on\n"


def test_an_account_that_has_data_is_removed_only_if_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    kept = made_key(in_process("account", "add", "kept", "--data", data))
    gone = made_key(in_process("account", "add", "gone", "--data", data))
    with Server.start(data=data, test_clock=False) as server:
        client_of(server, "gone", gone).create_container("box")
        ran = in_process("account", "remove", "gone", "--data", data)
        assert (ran.code, "account 'gone' has data in" in ran.err) == (Exit.REFUSED, True)
        assert "--leave-data" in ran.err
        assert works(server, "gone", gone)
        ran = in_process("account", "remove", "gone", "--data", data, "--leave-data")
        assert ran.code == 0, ran.err
        assert "Data that it has stays, and is not served." in ran.out
        assert not works(server, "gone", gone)
        assert works(server, "kept", kept)
    ran = in_process("account", "remove", "gone", "--data", data)
    assert (ran.code, "no account 'gone'; there are: kept" in ran.err) == (Exit.REFUSED, True)


def test_an_account_without_data_is_removed_beside_a_server_and_without_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("kept", "one", "two"):
        in_process("account", "add", name, "--data", data)
    with Server.start(data=data, test_clock=False):
        assert in_process("account", "remove", "one", "--data", data).code == 0
    ran = in_process("account", "remove", "two", "--data", data)
    assert (ran.code, "stays" in ran.out) == (0, False)


def test_an_account_with_a_deleted_container_that_is_kept_has_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    in_process("account", "add", "kept", "--data", data)
    gone = made_key(in_process("account", "add", "gone", "--data", data))
    in_process("account", "set", "gone", "--container-retention", "7d", "--data", data)
    with Server.start(data=data, test_clock=False) as server:
        client = client_of(server, "gone", gone)
        client.create_container("box")
        client.delete_container("box")
    ran = in_process("account", "remove", "gone", "--data", data)
    assert (ran.code, "deleted ones that are kept" in ran.err) == (Exit.REFUSED, True)


def test_where_data_cannot_be_looked_for_an_account_stays(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.json"
    for name in ("kept", "gone"):
        in_process("account", "add", name, "--accounts-file", file)
    ran = in_process(
        "account", "remove", "gone", "--accounts-file", file, "--data", tmp_path / "none"
    )
    assert (ran.code, "cannot be told" in ran.err) == (Exit.REFUSED, True)
    ran = in_process(
        "account", "remove", "gone", "--accounts-file", file, "--data", tmp_path, "--leave-data"
    )
    assert ran.code == 0
    data = tmp_path / "data"
    for name in ("kept", "gone"):
        in_process("account", "add", name, "--data", data)
    (data / "FORMAT").write_text("something else")
    ran = in_process("account", "remove", "gone", "--data", data)
    assert (ran.code, "cannot be told" in ran.err) == (Exit.REFUSED, True)


def test_the_last_account_and_a_protected_one_are_not_removed(tmp_path: Path) -> None:
    in_process("account", "add", "orders", "--data", tmp_path)
    ran = in_process("account", "remove", "orders", "--data", tmp_path)
    assert (ran.code, "is the last account" in ran.err) == (Exit.REFUSED, True)
    in_process("account", "add", "other", "--data", tmp_path)
    in_process("container", "protect", "orders/box", "--retention", "1d", "--data", tmp_path)
    ran = in_process("account", "remove", "orders", "--data", tmp_path)
    assert (ran.code, "has protected containers" in ran.err) == (Exit.REFUSED, True)
    shown = in_process("account", "list", "--data", tmp_path).out
    assert "protected containers 1" in shown


def test_the_first_account_says_what_ends(tmp_path: Path) -> None:
    ran = in_process("account", "add", "orders", "--data", tmp_path)
    assert "a running server ends devstoreaccount1, the development account" in ran.out
    assert "ends" not in in_process("account", "add", "other", "--data", tmp_path).out


def test_what_is_set_is_shown(tmp_path: Path) -> None:
    in_process("account", "add", "orders", "--data", tmp_path)

    def given(*flags: str) -> str:
        return in_process("account", "set", "orders", *flags, "--data", tmp_path).out

    assert given("--versioning", "on") == "Account orders is set: versioning.\n"
    assert given("--container-retention", "7d") == (
        "Account orders is set: container retention 7d, versioning.\n"
    )
    given("--versioning", "off")
    assert "all switches have their defaults" in given("--container-retention", "off")
