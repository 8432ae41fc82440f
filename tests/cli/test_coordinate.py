"""`strongroom ids`, `gate`, `locks`, `check-store`: their output and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.coordination import connect
from tests.cli.command import Ran, in_process


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file://{tmp_path}/locks?sync=0"


def run(store: str, *arguments: object) -> Ran:
    return in_process(*arguments, STRONGROOM_STORE=store)


def test_ids_are_never_printed_twice(store: str) -> None:
    first = run(store, "ids", "orders", "take", 3)
    assert (first.code, first.out.split()) == (0, ["1", "2", "3"])
    assert json.loads(run(store, "ids", "orders", "take", 2, "--json").out) == [4, 5]


def test_a_gate_from_closed_to_open_to_closed(store: str) -> None:
    ran = run(store, "gate", "g", "wait", "--timeout", 0.1)
    assert ran.code == Exit.NOT_ACQUIRED and "the gate 'g' was not opened within" in ran.err
    ran = run(store, "gate", "g", "open", "--payload", '{"version": 7}')
    assert "open, generation 1" in ran.out
    assert json.loads(run(store, "gate", "g", "wait").out) == {"version": 7}
    assert json.loads(run(store, "gate", "g", "show", "--json").out)["is_open"] is True
    assert "closed, generation 2" in run(store, "gate", "g", "rearm").out
    assert run(store, "gate", "g", "wait", "--timeout", 0, "--generation", 1).code == 0
    assert run(store, "gate", "g", "open", "--payload", "{").code == Exit.USAGE


def test_locks_are_seen_and_broken(store: str) -> None:
    assert run(store, "locks", "show", "a").code == Exit.REFUSED
    assert "no lock" in run(store, "locks", "list").out
    assert "nobody held" in run(store, "locks", "break", "a").out
    with connect(store, label="ann") as client, client.lock("a"):
        assert "held by ann" in run(store, "locks", "show", "a").out
        (view,) = json.loads(run(store, "locks", "list", "--json").out)
        assert (view["name"], view["held"], view["who"], view["fence"]) == ("a", True, "ann", 1)
        assert "broken: a: held by ann" in run(store, "locks", "break", "a").out
        assert json.loads(run(store, "locks", "break", "a", "--json").out) is None
    assert "a: free, last fence 2" in run(store, "locks", "list").out


def test_a_store_is_checked(store: str) -> None:
    ran = in_process("check-store", store)
    assert ran.code == 0 and "of 16 racing writers one wins" in ran.out and "BAD" not in ran.out
    found = json.loads(in_process("check-store", store, "--json").out)
    assert found["promises"]["scope"] == "host"
    assert all(finding["passed"] for finding in found["findings"])
    with connect(store) as client:
        assert client.store.list_keys("check/", 5.0) == []


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("gopher://x", Exit.SETTINGS),
        (
            "azure://devstoreaccount1/locks?endpoint=http://127.0.0.1:9/devstoreaccount1",
            Exit.UNAVAILABLE,
        ),
    ],
)
def test_a_store_that_cannot_be_had(url: str, code: Exit) -> None:
    ran = run(url, "locks", "list")
    assert ran.code == code
    assert ran.err.startswith("strongroom: ") and ran.err.count("\n") == 1


def test_more_ids_than_there_may_be(store: str) -> None:
    ran = run(store, "ids", "orders", "take", 2 * 10**12)
    assert ran.code == Exit.USAGE and "Traceback" not in ran.err


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_many_ids_come_in_parts(flags: list[str], store: str) -> None:
    ran = run(store, "ids", "orders", "take", 25_001, *flags)
    found = json.loads(ran.out) if flags else list(map(int, ran.out.split()))
    assert found == list(range(1, 25_002))


@pytest.mark.parametrize("payload", ["NaN", "[-Infinity]", "[" * 60_000, "{"])
def test_a_payload_that_is_no_json(payload: str, store: str) -> None:
    for command in (
        ["gate", "g", "open", "--payload", payload],
        ["elect", "e", "--value", payload, "--", "true"],
        ["members", "m", "join", "--data", payload, "--", "true"],
    ):
        ran = run(store, *command)
        assert ran.code == Exit.USAGE and "JSON" in ran.err and "Traceback" not in ran.err


def test_half_a_pair_of_surrogates_is_printed_as_it_was_given(store: str) -> None:
    payload = r'"\ud800\u00fc"'
    assert run(store, "gate", "g", "open", "--payload", payload).code == Exit.DONE
    for command in (["show", "--json"], ["wait"]):
        ran = in_process("gate", "g", *command, STRONGROOM_STORE=store)
        assert ran.code == Exit.DONE and r"\ud800" in ran.out


@pytest.mark.parametrize(
    "url",
    [
        "file://user:s3cret@host/x",
        "s3://AK:s3cret@bucket",
        "etcd://u:12?s3cret@127.0.0.1:1",
        "redis://u:12?s3cret@127.0.0.1:1/0",
        "postgres://u:s3cret@127.0.0.1:abc/d",
        "azure://a:s3cret@127.0.0.1:xx/locks",
    ],
)
def test_a_url_that_cannot_be_read_is_not_quoted(url: str) -> None:
    ran = in_process("lock", "a", "--try", "--store", url, "--", "true")
    assert ran.code == Exit.SETTINGS and "s3cret" not in ran.out + ran.err
