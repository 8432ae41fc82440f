"""The guard for keys in etcd: a write with an old fence is refused, in one transaction."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.guards import FencedOut, Guards, Token
from strongroom.coordination.guards.etcd import EtcdGuard
from strongroom.coordination.stores.connections.http_pool import NoResponse
from strongroom.coordination.stores.etcd.http import EtcdHttp, MemberError
from tests.coordination.servers import EtcdCluster, etcd_cluster

_clock = SystemClocks()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 3) as running:
        yield running


@pytest.fixture
def name() -> str:
    return f"job ä/{_clock.nonce()}"


def guard(cluster: EtcdCluster, name: str, fence: int) -> EtcdGuard:
    return EtcdGuard(Token(name, fence), cluster.url)


def key_of(name: str) -> str:
    return f"app/{name}"


def test_what_was_written_is_read_with_its_fence(cluster: EtcdCluster, name: str) -> None:
    with guard(cluster, name, 3) as mine:
        assert mine.read(key_of(name)) is None
        first = mine.write(key_of(name), b"1")
        assert mine.read(key_of(name)) == (b"1", first, 3)
        second = mine.write(key_of(name), b"")
        assert second > first
        assert mine.read(key_of(name)) == (b"", second, 3)
        assert mine.delete(key_of(name)) and not mine.delete(key_of(name))
        assert mine.read(key_of(name)) is None


def test_an_old_fence_is_refused_at_every_key(cluster: EtcdCluster, name: str) -> None:
    """As soon as a later holder has written anywhere: the fence belongs to the lock."""
    with guard(cluster, name, 9) as old, guard(cluster, name, 10) as new:
        old.write(key_of(name), b"old")
        new.write("app/elsewhere", b"new")
        for refused in (
            lambda: old.write(key_of(name), b"late"),
            lambda: old.delete(key_of(name)),
            old.claim,
        ):
            with pytest.raises(FencedOut, match=r"fence 9 of .* it has seen fence 10"):
                refused()
        seen = new.read(key_of(name))
        assert seen is not None and (seen.value, seen.fence) == (b"old", 10)


def test_a_claim_shuts_old_holders_out(cluster: EtcdCluster, name: str) -> None:
    with guard(cluster, name, 1) as old, guard(cluster, name, 2**62) as new:
        old.claim()
        old.write(key_of(name), b"kept")
        new.claim()
        new.claim()
        with pytest.raises(FencedOut):
            old.write(key_of(name), b"late")
        seen = new.read(key_of(name))
        assert seen is not None and seen.value == b"kept"


def test_a_late_transaction_is_refused_by_the_cluster(cluster: EtcdCluster, name: str) -> None:
    """A read before the write would not detect it: the later holder comes between the two."""
    late: list[dict[str, Any]] = []
    with guard(cluster, name, 1) as old, guard(cluster, name, 2) as new:
        write = old._http.write

        def delayed(path: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            if not late:
                new.claim()
            late.append(write(path, body, timeout_s))
            return late[-1]

        old._http.write = delayed  # type: ignore[method-assign,assignment]  # a double
        with pytest.raises(FencedOut):
            old.write(key_of(name), b"late")
        assert not late[0].get("succeeded")
        assert new.read(key_of(name)) is None


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("error", [NoResponse("cut"), MemberError("timed out")])
def test_an_answer_that_is_lost_doubles_nothing(
    cluster: EtcdCluster, name: str, applied: bool, error: Exception
) -> None:
    with guard(cluster, name, 5) as mine:
        before = mine.write(key_of(name), b"one")
        write, tries = mine._http.write, list[int]()

        def cut(path: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            tries.append(1)
            if len(tries) > 1:
                return write(path, body, timeout_s)
            if applied:
                write(path, body, timeout_s)
            raise error

        mine._http.write = cut  # type: ignore[method-assign,assignment]  # a double
        after = mine.write(key_of(name), b"two")
        assert len(tries) == (1 if applied else 2)
        assert mine.read(key_of(name)) == (b"two", after, 5)
        assert after > before


def test_a_write_that_was_given_up_never_lands_after_a_later_one(
    cluster: EtcdCluster, name: str
) -> None:
    with guard(cluster, name, 5) as mine:
        mine.write(key_of(name), b"zero")
        write, late = mine._http.write, list[dict[str, Any]]()

        def delayed(path: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            if not late:
                late.append(body)
                raise NoResponse("still on its way")
            return write(path, body, timeout_s)

        mine._http.write = delayed  # type: ignore[method-assign,assignment]  # a double
        mine.write(key_of(name), b"one")
        mine.write(key_of(name), b"two")
        assert not write("/v3/kv/txn", late[0], 5.0).get("succeeded")
        seen = mine.read(key_of(name))
        assert seen is not None and seen.value == b"two"


def test_what_nobody_can_tell_is_said(cluster: EtcdCluster, name: str) -> None:
    """A write of unknown fate, and then one of another thread: it is not repeated over that."""
    with guard(cluster, name, 5) as mine, guard(cluster, name, 5) as same:
        write = mine._http.write

        def cut(path: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            write(path, body, timeout_s)
            same.write(key_of(name), b"later")
            raise NoResponse("cut")

        mine._http.write = cut  # type: ignore[method-assign,assignment]  # a double
        with pytest.raises(coord.StoreUnavailable, match="not known"):
            mine.write(key_of(name), b"mine")
        seen = same.read(key_of(name))
        assert seen is not None and seen.value == b"later"


def test_many_writers_of_all_fences_leave_the_latest(cluster: EtcdCluster, name: str) -> None:
    refused = []

    def work(fence: int) -> None:
        with guard(cluster, name, fence) as mine:
            for lap in range(5):
                try:
                    mine.write(key_of(name), f"{fence}-{lap}".encode())
                except FencedOut:
                    refused.append(fence)
                    return

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(1, 7)))
    with guard(cluster, name, 7) as reader:
        seen = reader.read(key_of(name))
    assert seen is not None and (seen.value, seen.fence) == (b"6-4", 6)
    assert 6 not in refused


def test_a_hold_carries_its_fence(cluster: EtcdCluster, name: str) -> None:
    with coord.connect(cluster.url) as client:
        held = client.lock(name, ttl=15).acquire()
        with Guards(held).etcd(cluster.url) as mine:
            mine.write(key_of(name), b"1")
            held.release()
            with client.lock(name, ttl=15) as later, Guards(later).etcd(cluster.url) as other:
                other.claim()
                with pytest.raises(coord.LockLost):
                    mine.write(key_of(name), b"2")
                stale = EtcdGuard(Token(held.name, held.fence), cluster.url)
                with pytest.raises(FencedOut):
                    stale.write(key_of(name), b"2")
                stale.close()


@pytest.mark.parametrize("fence", [0, -1, 2**63 - 1])
def test_what_is_no_fence_is_refused(cluster: EtcdCluster, fence: int) -> None:
    with pytest.raises(coord.Unsupported, match="fence"):
        EtcdGuard(Token("x", fence), cluster.url)


def test_the_locks_own_keys_are_out_of_reach(cluster: EtcdCluster, name: str) -> None:
    with guard(cluster, name, 1) as mine:
        for key in ("", "strongroom/lock/x", "strongroom/"):
            with pytest.raises(coord.Unsupported, match="locks"):
                mine.write(key, b"")
            with pytest.raises(coord.Unsupported, match="locks"):
                mine.delete(key)


def test_a_foreign_fence_is_named(cluster: EtcdCluster, name: str) -> None:
    with guard(cluster, name, 1) as mine:
        body = {
            "key": b64encode(mine._fence_key.encode()).decode(),
            "value": b64encode(b"7").decode(),
        }
        cluster.call("/v3/kv/put", body)
        with pytest.raises(coord.CorruptRecord, match="20 digits"):
            mine.write(key_of(name), b"x")


def test_a_cluster_that_is_away(cluster: EtcdCluster, name: str) -> None:
    mine = EtcdGuard(Token(name, 1), "etcd://127.0.0.1:1", timeout_s=1.0)
    assert isinstance(mine._http, EtcdHttp)
    with pytest.raises(coord.StoreUnavailable):
        mine.write(key_of(name), b"x")
