"""`strongroom container`: policies and legal holds of containers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.auth.accounts import parse_document
from strongroom.cli.exits import Exit
from strongroom.testing import InProcessServer
from tests.cli.command import Ran, in_process


@pytest.fixture
def data(tmp_path: Path) -> Path:
    in_process("account", "add", "orders", "--data", tmp_path)
    in_process("account", "add", "other", "--data", tmp_path)
    return tmp_path


def protect(data: Path, *given: str, place: str = "orders/box") -> Ran:
    return in_process("container", "protect", place, *given, "--data", data)


def unprotect(data: Path, *given: str) -> Ran:
    return in_process("container", "unprotect", "orders/box", *given, "--data", data)


def listed(data: Path) -> list[dict[str, Any]]:
    shown = in_process("container", "list", "--json", "--data", data)
    assert shown.code == 0
    found: list[dict[str, Any]] = json.loads(shown.out)
    return found


def test_a_policy_is_set_extended_locked_and_shown(data: Path) -> None:
    """B-IMM-21, B-IMM-26: the account keeps its keys and switches."""
    in_process("account", "set", "orders", "--versioning", "on", "--data", data)
    assert protect(data, "--retention", "7d").code == 0
    text = in_process("container", "list", "--data", data).out
    assert text == "orders/box  retention 7d unlocked\n"
    assert protect(data, "--retention", "3d", "--allow-appends", "append-blobs").code == 0
    assert protect(data, "--lock", "--legal-hold", "Case1", "--legal-hold", "case2").code == 0
    assert protect(data, "--retention", "4d").code == 0
    assert listed(data) == [
        {
            "container": "orders/box",
            "retention_days": 4,
            "locked": True,
            "extensions": 1,
            "legal_holds": ["case1", "case2"],
            "allow_appends": "append-blobs",
        }
    ]
    text = in_process("container", "list", "--data", data).out
    words = ("retention 4d locked", "legal holds case1, case2", "appends allowed")
    assert text == "  ".join(("orders/box", *words)) + "\n"
    accounts = parse_document((data / "accounts.json").read_bytes())
    assert [one.switches.versioning for one in accounts] == [True, False]


def test_an_unlocked_policy_and_holds_are_removed(data: Path) -> None:
    """B-IMM-26: nothing is left of them in the file."""
    before = parse_document((data / "accounts.json").read_bytes())
    assert protect(data, "--retention", "7d", "--legal-hold", "case").code == 0
    assert protect(data, "--retention", "7d", place="orders/other").code == 0
    assert unprotect(data, "--retention").code == 0
    assert [one["retention_days"] for one in listed(data)] == [0, 7]
    assert unprotect(data, "--legal-hold", "CASE").code == 0
    assert [one["container"] for one in listed(data)] == ["orders/other"]
    in_process("container", "unprotect", "orders/other", "--retention", "--data", data)
    assert parse_document((data / "accounts.json").read_bytes()) == before
    text = in_process("container", "list", "--data", data).out
    assert text == "No container is protected.\n"


def test_what_is_refused_changes_nothing(data: Path) -> None:
    """B-IMM-26, B-IMM-27, B-IMM-30: the message says why."""
    protect(data, "--retention", "7d", "--lock", "--legal-hold", "case")
    before = (data / "accounts.json").read_bytes()
    for ran, word in (
        (protect(data, "--retention", "6d"), "only be extended"),
        (protect(data, "--allow-appends", "append-blobs"), "locked"),
        (unprotect(data, "--retention"), "cannot be removed"),
        (unprotect(data, "--legal-hold", "none"), "'none'"),
        (protect(data, "--legal-hold", "x"), "3 to 23"),
        (protect(data, "--retention", "146001d"), "146000"),
        (protect(data, "--lock", place="orders/new"), "no policy"),
        (protect(data, "--retention", "7d", place="nobody/box"), "'nobody'"),
    ):
        assert ran.code == Exit.REFUSED
        assert word in ran.err
    assert (data / "accounts.json").read_bytes() == before


def test_what_cannot_be_meant(data: Path) -> None:
    before = (data / "accounts.json").read_bytes()
    for given in (
        (),
        ("--retention", "7"),
        ("--retention", "0d"),
        ("--retention", "-1d"),
        ("--retention", "x"),
        ("--retention", "9999999d"),
        ("--allow-appends", "all blobs"),
    ):
        assert protect(data, *given).code == Exit.USAGE, given
    for place in ("box", "orders/", "orders/Box", "orders/a/b", "/box"):
        assert protect(data, "--retention", "7d", place=place).code == Exit.USAGE, place
    assert unprotect(data).code == Exit.USAGE
    assert (data / "accounts.json").read_bytes() == before


def test_a_file_with_a_protection_that_cannot_be_is_refused(data: Path) -> None:
    protect(data, "--retention", "7d")
    file = data / "accounts.json"
    file.write_text(file.read_text().replace('"retention_days": 7', '"retention_days": -7'))
    ran = in_process("container", "list", "--data", data)
    assert ran.code == Exit.SETTINGS
    assert "container 'box'" in ran.err


def test_a_protection_of_a_container_that_is_not_there_is_noted(tmp_path: Path) -> None:
    in_process("account", "add", "devstoreaccount1", "--data", tmp_path)
    place = "devstoreaccount1/box"
    before = protect(tmp_path, "--retention", "1d", place=place)
    assert (before.code, "there is no container" in before.err) == (0, True)
    with InProcessServer.start(data=tmp_path, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box")
        assert protect(tmp_path, "--retention", "2d", place=place).err == ""
        other = protect(tmp_path, "--retention", "1d", place="devstoreaccount1/bax")
        assert f"Note: there is no container devstoreaccount1/bax in {tmp_path} now" in other.err
