"""The guard for blobs: the blob refuses a write with an old fence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from strongroom import coordination as coord
from strongroom.coordination.guards import FencedOut, Guards, Token
from strongroom.coordination.guards.blob import BlobGuard
from strongroom.testing import InProcessServer
from strongroom.testing.faults import Fault, FaultRule


@pytest.fixture
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as running:
        store = coord.open_store(url_of(running))  # makes the container
        store.cas("lock/any", None, b"", 5.0)
        yield running


def url_of(server: InProcessServer, mode: str = "etag") -> str:
    endpoint = quote(f"{server.url}/devstoreaccount1", safe="")
    return f"azure://devstoreaccount1/reports?mode={mode}&endpoint={endpoint}"


def guard(server: InProcessServer, fence: int, name: str = "job") -> BlobGuard:
    return BlobGuard(Token(name, fence), url_of(server))


def test_what_was_written_is_read_with_its_fence(server: InProcessServer) -> None:
    with guard(server, 3) as mine:
        assert mine.read("a/b c.csv") is None
        etag = mine.write("a/b c.csv", b"1", metadata={"Kind": "daily"})
        assert mine.read("a/b c.csv") == (b"1", etag, 3)
        second = mine.write("a/b c.csv", b"2")
        assert second != etag
        assert mine.read("a/b c.csv") == (b"2", second, 3)


def test_an_old_fence_is_refused_once_a_later_one_has_written(server: InProcessServer) -> None:
    with guard(server, 1) as old, guard(server, 2) as new:
        old.write("x", b"old")
        new.write("x", b"new")
        with pytest.raises(FencedOut, match=r"fence 1 of 'job'.*fence 2"):
            old.write("x", b"late")
        with pytest.raises(FencedOut):
            old.claim("x")
        seen = new.read("x")
        assert seen is not None and seen[::2] == (b"new", 2)


def test_a_claim_shuts_old_holders_out_and_changes_nothing_else(server: InProcessServer) -> None:
    with guard(server, 1) as old, guard(server, 2) as new:
        old.write("x", b"kept", metadata={"kind": "daily"})
        new.claim("x")
        with pytest.raises(FencedOut):
            old.write("x", b"late")
        seen = new.read("x")
        assert seen is not None and seen[::2] == (b"kept", 2)
        answer = new._http.send("HEAD", "/reports/x", {}, {}, 5.0)
        assert answer.header("x-ms-meta-kind") == "daily"
        new.claim("absent")
        made = new.read("absent")
        assert made is not None and made[::2] == (b"", 2)


def test_a_blob_that_no_guard_wrote_is_taken_over(server: InProcessServer) -> None:
    with guard(server, 1) as mine:
        mine._http.send("PUT", "/reports/x", {}, {"x-ms-blob-type": "BlockBlob"}, 5.0, b"foreign")
        seen = mine.read("x")
        assert seen is not None and seen[::2] == (b"foreign", 0)
        mine.write("x", b"mine")
        seen = mine.read("x")
        assert seen is not None and seen[::2] == (b"mine", 1)


def test_fences_of_two_locks_do_not_meet(server: InProcessServer) -> None:
    with guard(server, 7, "ä job") as mine, guard(server, 9, "other") as other:
        mine.write("x", b"1")
        with pytest.raises(coord.StoreRefused, match="belongs to the lock"):
            other.write("x", b"2")


def test_a_hold_that_is_known_to_be_lost_does_not_even_ask(server: InProcessServer) -> None:
    with coord.connect(url_of(server)) as client:
        held = client.lock("job", ttl=15).acquire()
        with Guards(held).blob(url_of(server)) as mine:
            mine.write("x", b"1")
            held.release()
            with pytest.raises(coord.LockLost):
                mine.write("x", b"2")


def test_many_writers_of_all_fences_leave_the_latest(server: InProcessServer) -> None:
    """Stale and live holders at once: what the last fence wrote last is there in the end."""
    refused = []

    def work(fence: int) -> None:
        with guard(server, fence) as mine:
            for lap in range(5):
                try:
                    mine.write("x", f"{fence}-{lap}".encode())
                except FencedOut:
                    refused.append(fence)
                    return

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(1, 7)))
    with guard(server, 7) as reader:
        seen = reader.read("x")
    assert seen is not None and seen[::2] == (b"6-4", 6)
    assert 6 not in refused


def test_without_the_guard_the_late_write_is_not_refused(server: InProcessServer) -> None:
    """The control: a plain write of the stale holder overwrites what the new one wrote."""
    with guard(server, 2) as new:
        new.write("x", b"new")
        new._http.send("PUT", "/reports/x", {}, {"x-ms-blob-type": "BlockBlob"}, 5.0, b"late")
        seen = new.read("x")
        assert seen is not None and seen.value == b"late"


def test_a_lease_refuses_those_who_do_not_ask_the_guard(server: InProcessServer) -> None:
    plain = {"x-ms-blob-type": "BlockBlob"}
    with guard(server, 1) as old, guard(server, 2) as new:
        old.claim("x", lease_s=15)
        old.write("x", b"1")
        answer = new._http.send("PUT", "/reports/x", {}, plain, 5.0, b"late")
        assert answer.status == 412
        with pytest.raises(coord.StoreRefused, match="LeaseIdMissing"):
            new.write("x", b"2")
        server.clock.advance(16)
        new.claim("x", lease_s=15)
        new.claim("x", lease_s=15)
        with pytest.raises(FencedOut):
            old.write("x", b"late")
        with pytest.raises(FencedOut):
            old.claim("x", lease_s=15)
        new.write("x", b"2")
        new.give_back("x")
        new.give_back("x")
        new.write("x", b"3")


def test_a_lease_that_ran_out_fences_out(server: InProcessServer) -> None:
    with guard(server, 1) as mine:
        mine.claim("x", lease_s=15)
        server.clock.advance(16)
        with pytest.raises(FencedOut):
            mine.write("x", b"late")


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.CUT, Fault.BUSY, Fault.ERROR])
def test_lost_answers_are_found_out(server: InProcessServer, fault: Fault) -> None:
    rules = [FaultRule(operation=f"*{name}*", fault=fault, times=3) for name in ("Put Blob", "Set")]
    server.faults.order(*rules)
    with guard(server, 1) as mine:
        etag = mine.write("x", b"1")
        assert mine.read("x") == (b"1", etag, 1)
        mine.claim("x")
    hits = [count.hit for count in server.faults.counts()]
    assert hits[0] >= 1 and hits[1] >= 1


def test_the_container_must_exist_and_the_service_answer(server: InProcessServer) -> None:
    url = url_of(server).replace("reports", "no-such-container")
    with (
        BlobGuard(Token("job", 1), url) as mine,
        pytest.raises(coord.StoreRefused, match="Container"),
    ):
        mine.write("x", b"1")
    server.stop()
    with guard(server, 1) as mine, pytest.raises(coord.StoreUnavailable):
        mine.write("x", b"1")


def test_the_pause_that_locks_cannot_see(server: InProcessServer) -> None:
    """A holder was stopped between its check and its write, which only the resource can detect."""
    url = url_of(server, "lease")
    with coord.connect(url) as client, coord.connect(url) as rival:
        held = client.lock("job", ttl=15).acquire()
        checked, go = threading.Event(), threading.Event()

        class Paused:
            name, fence = held.name, held.fence

            def check(self) -> None:
                held.check()
                checked.set()
                assert go.wait(30)

        outcome: list[object] = []

        def write() -> None:
            with BlobGuard(Paused(), url) as mine:
                try:
                    outcome.append(mine.write("x", b"late"))
                except FencedOut as error:
                    outcome.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        assert checked.wait(60)
        assert rival.break_lock("job") is not None
        with rival.lock("job", ttl=15, wait=5) as taken, BlobGuard(taken, url) as theirs:
            theirs.write("x", b"theirs")
            go.set()
            writer.join(20)
            seen = theirs.read("x")
        assert seen is not None and seen.value == b"theirs"
        assert len(outcome) == 1 and isinstance(outcome[0], FencedOut)
