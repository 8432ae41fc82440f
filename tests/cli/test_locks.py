"""`strongroom locks`: the explanation of every kind of lock."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.coordination import CoordinationError, connect
from tests.cli.command import Ran, in_process, strongroom


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file://{tmp_path}/locks?sync=0"


def run(store: str, *arguments: object) -> Ran:
    return in_process("locks", *arguments, STRONGROOM_STORE=store)


def test_a_lock_is_explained_while_it_is_held(store: str) -> None:
    with connect(store, label="ann") as client, client.lock("a", ttl=20, value={"job": 7}):
        out = run(store, "show", "a").out
    first, *rest = out.splitlines()
    assert re.fullmatch(
        r"a: held by ann since [-0-9T:.]+Z, fence 1, free in 2\d\.\d s at the latest .*", first
    )
    assert rest == ['  value: {"job": 7}', "  ttl: 20 s, written 1 time by this hold"]


def test_how_the_last_hold_ended_is_explained(store: str) -> None:
    with connect(store, label="ann") as client:
        with client.lock("a"):
            pass
        assert re.search(
            r"free, last fence 1; .* ann since .*, released", run(store, "show", "a").out
        )
        with client.lock("a"):
            run(store, "break", "a")
            out = run(store, "show", "a").out
            assert re.search(r"free, last fence 3; .* ann since .*, broken by \S+ at 2", out)
            assert "broken by" in json.loads(run(store, "show", "a", "--json").out)["end"]
        with client.lock("a"):
            assert json.loads(run(store, "show", "a", "--json").out)["end"] == ""


def test_signs_of_life_are_seen_while_one_watches(store: str) -> None:
    with connect(store, label="ann") as client, client.lock("a", ttl=1.5):
        out = run(store, "show", "a", "--watch", 2).out
        found = json.loads(run(store, "show", "a", "--watch", 2, "--json").out)
    assert re.search(r"watched for 2 s: [1-9] signs of life, the last \d\.\d s ago", out)
    assert found["signs_of_life_s_ago"] == sorted(found["signs_of_life_s_ago"], reverse=True)
    assert found["signs_of_life_s_ago"]


def test_the_dead_give_no_sign(store: str) -> None:
    with connect(store, label="ann") as client:
        client.lock("a", ttl=60).acquire()
    assert "watched for 1 s: 0 signs of life\n" in run(store, "show", "a", "--watch", 1).out


def test_permits_and_sides_are_explained_and_broken(store: str) -> None:
    with connect(store, label="ann") as client:
        held = [client.semaphore("s", 3).acquire() for _ in range(2)]
        assert "s: held by 2 of 3, last fence 2" in run(store, "list", "--kind", "semaphore").out
        out = run(store, "show", "s", "--kind", "semaphore").out
        assert out.count("ann since") == 2 and "holder 2:" in out
        found = json.loads(run(store, "show", "s", "--kind", "semaphore", "--json").out)
        assert [one["fence"] for one in found["holders"]] == [1, 2]
        assert "broken: s: held by 2 of 3" in run(store, "break", "s", "--kind", "semaphore").out
        assert "nobody held 's'" in run(store, "break", "s", "--kind", "semaphore").out
        assert "s: free, last fence 3" in run(store, "show", "s", "--kind", "semaphore").out
        for one in held:
            assert not one.release()


def test_a_broken_lock_goes_to_the_writer_who_waits(store: str) -> None:
    with connect(store, label="ann") as client, connect(store, label="bob") as other:
        client.rwlock("a").read().acquire()
        waiting = threading.Thread(target=other.rwlock("a", wait=30).write().acquire)
        waiting.start()
        while "waiting 1: bob" not in run(store, "show", "a", "--kind", "rwlock").out:
            pass
        assert run(store, "break", "a", "--kind", "rwlock").code == 0
        waiting.join()
        out = run(store, "show", "a", "--kind", "rwlock").out
        assert "a: held by 1, last fence 2" in out and "bob since" in out


def test_barriers_are_explained_and_cannot_be_broken(store: str) -> None:
    with connect(store, label="ann") as client:
        meeting = client.barrier("b", 2)

        def come() -> None:
            with pytest.raises(CoordinationError):
                meeting.wait(4)

        waiting = threading.Thread(target=come)
        waiting.start()
        while (
            "b: generation 1, 1 of 2 are there"
            not in run(store, "show", "b", "--kind", "barrier").out
        ):
            pass
        assert run(store, "break", "b", "--kind", "barrier").code == Exit.USAGE
        waiting.join()


@pytest.mark.parametrize("kind", ["lock", "election", "semaphore", "rwlock", "barrier"])
def test_what_never_was(kind: str, store: str) -> None:
    ran = run(store, "show", "x", "--kind", kind)
    assert ran.code == Exit.REFUSED and f"there never was a {kind}" in ran.err
    assert f"there is no {kind}" in run(store, "list", "--kind", kind).out
    assert json.loads(run(store, "list", "--kind", kind, "--json").out) == []
    assert run(store, "show", "x", "--kind", "lok").code == Exit.USAGE


def test_a_record_that_cannot_be_read_hides_no_other(store: str, tmp_path: Path) -> None:
    with connect(store) as client:
        for name in ("a", "c"):
            client.lock(name).acquire().release()
        client.store.cas("lock/b", None, b"[" * 60_000, 1.0)
        client.store.cas("lock/%zz", None, b"somebody else's", 1.0)
    listed = in_process("locks", "list", "--store", store)
    assert [line.partition(":")[0].split() for line in listed.out.splitlines()] == [
        ["lock", "a"], ["lock", "c"],
    ]  # fmt: skip
    assert listed.code == Exit.REFUSED and "lock/b" in listed.err and "Traceback" not in listed.err
    shown = in_process("locks", "list", "--json", "--store", store)
    assert [view["name"] for view in json.loads(shown.out)] == ["a", "c"]
    assert strongroom("lock", "b", "--try", "--store", store, "--", "true").code == Exit.REFUSED


def test_what_others_wrote_does_not_move_the_cursor(store: str) -> None:
    name, label = "a\x1b[2J\nb", "ann\x1b]0;owned\x07"
    with connect(store, label=label) as client, client.lock(name), client.members("g").join():
        shown = run(store, "show", name).out + run(store, "list").out
        members = in_process("members", "g", "list", STRONGROOM_STORE=store).out
        gate = in_process("gate", "x", "open", STRONGROOM_STORE=store)
        assert gate.code == 0
        listed = json.loads(run(store, "list", "--json").out)
    assert r"a\x1b[2J\nb: held by ann\x1b]0;owned\x07 since" in shown
    assert r"ann\x1b]0;owned\x07 since" in members
    assert not {"\x1b", "\x07"} & set(shown + members)
    assert listed[0]["name"] == name


def test_every_kind_is_listed_and_shown_without_naming_it(store: str) -> None:
    with connect(store, label="ann") as client:
        two, four = client.semaphore("s", 2), client.rwlock("r").read()
        with client.lock("a"), client.election("e").lead(), two, four:
            listed = run(store, "list").out.splitlines()
            shown = {name: run(store, "show", name).out for name in "aesr"}
        client.lock("both").acquire().release()
        client.election("both").campaign().release()
    assert [line.split()[:2] for line in listed] == [
        ["lock", "a:"], ["election", "e:"], ["semaphore", "s:"], ["rwlock", "r:"],
    ]  # fmt: skip
    for name, text in shown.items():
        assert text.startswith(f"{name}: held by"), text
    assert json.loads(run(store, "show", "e", "--json").out)["kind"] == "election"
    kinds = [one["kind"] for one in json.loads(run(store, "list", "--json").out)]
    assert kinds == ["lock", "lock", "election", "election", "semaphore", "rwlock"]
    ran = run(store, "show", "both")
    assert ran.code == Exit.USAGE and "a lock and a election: say which with --kind" in ran.err
    assert "free" in run(store, "show", "both", "--kind", "election").out
    ran = run(store, "show", "nothing")
    assert ran.code == Exit.REFUSED and "there never was a lock, election" in ran.err


def test_an_election_is_broken_without_naming_its_kind(store: str) -> None:
    with connect(store, label="ann") as client, client.election("e").lead():
        assert "broken: e: held by ann" in run(store, "break", "e").out
