"""The etcd store against real servers: the stores' contract and the recipes, on three members."""

from __future__ import annotations

import os
import random
import threading
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from strongroom import coordination as coord
from strongroom.coordination.effects import UNCHANGED, Conflict, Entry, LeaseAction, LeaseTerms
from strongroom.coordination.stores.connections.http_pool import NoResponse
from strongroom.coordination.stores.etcd.http import EtcdHttp
from strongroom.coordination.stores.etcd.store import EtcdStore
from tests.coordination.conformance import (
    CASES,
    TIMEOUT_S,
    applied,
    entry_of,
    fresh_key,
)
from tests.coordination.servers import EtcdCluster, etcd_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 3) as running:
        yield running


@pytest.fixture
def store(cluster: EtcdCluster) -> Iterator[coord.Store]:
    opened = coord.open_store(cluster.url)
    yield opened
    opened.close()


def hold_lease(cluster: EtcdCluster, key: str) -> str:
    """The lease that the hold of a key is bound to; empty if there is no hold."""
    name = b64encode(f"strongroom/{key}\0hold".encode()).decode()
    rows = cluster.call("/v3/kv/range", {"key": name}).get("kvs", [])
    return rows[0]["lease"] if rows else ""


def leases(cluster: EtcdCluster) -> set[str]:
    return {row["ID"] for row in cluster.call("/v3/lease/leases", {}).get("leases", [])}


def taken(ttl_s: float = 15.0, nonce: str = "me-1") -> LeaseTerms:
    return LeaseTerms(LeaseAction.ACQUIRE, ttl_s, nonce)


@pytest.mark.parametrize("case", CASES)
def test_contract(store: coord.Store, case: str) -> None:
    CASES[case](store)


@pytest.mark.parametrize(
    "version", ["0", "00", "1x", "-1", "9" * 19, "9" * 40, "", "\u0661", "1hh"]
)
def test_what_is_no_version_conflicts(store: coord.Store, version: str) -> None:
    key = fresh_key()
    assert isinstance(store.cas(key, version, b"x", TIMEOUT_S), Conflict)
    assert isinstance(store.delete(key, version, TIMEOUT_S), Conflict)
    assert store.get(key, TIMEOUT_S) is None


def test_the_end_of_a_hold_is_a_new_version(store: coord.Store, cluster: EtcdCluster) -> None:
    """So that a write which was meant for the held register cannot land after the hold."""
    key = fresh_key()
    held = applied(store.cas(key, None, b"mine", TIMEOUT_S, taken()))
    cluster.call("/v3/lease/revoke", {"ID": hold_lease(cluster, key)})
    entry = entry_of(store, key)
    assert entry.version != held and entry.expires_in_s == 0
    for terms in (None, taken(nonce="other-1"), LeaseTerms(LeaseAction.RENEW, 15.0, "me-1")):
        assert isinstance(store.cas(key, held, b"late", TIMEOUT_S, terms), Conflict)
    applied(store.cas(key, entry.version, b"other", TIMEOUT_S, taken(nonce="other-1")))


def test_a_hold_that_is_over_can_be_given_back(store: coord.Store, cluster: EtcdCluster) -> None:
    key = fresh_key()
    applied(store.cas(key, None, b"mine", TIMEOUT_S, taken()))
    cluster.call("/v3/lease/revoke", {"ID": hold_lease(cluster, key)})
    over = entry_of(store, key).version
    applied(store.cas(key, over, b"", TIMEOUT_S, LeaseTerms(LeaseAction.RELEASE, 15.0, "me-1")))
    assert entry_of(store, key).value == b""


def test_a_record_that_was_deleted_by_hand_is_not_free_at_once(
    store: coord.Store, cluster: EtcdCluster
) -> None:
    """The record's holder still counts as holding until the next renewal."""
    key = fresh_key()
    applied(store.cas(key, None, b"mine", TIMEOUT_S, taken()))
    name = b64encode(f"strongroom/{key}".encode()).decode()
    cluster.call("/v3/kv/deleterange", {"key": name})
    assert store.get(key, TIMEOUT_S) is None
    for terms in (None, taken(nonce="other-1")):
        assert isinstance(store.cas(key, None, b"other", TIMEOUT_S, terms), Conflict)
    cluster.call("/v3/lease/revoke", {"ID": hold_lease(cluster, key)})
    applied(store.cas(key, None, b"other", TIMEOUT_S, taken(nonce="other-1")))


def test_a_plain_write_leaves_the_hold(store: coord.Store) -> None:
    key = fresh_key()
    held = applied(store.cas(key, None, b"mine", TIMEOUT_S, taken()))
    queued = applied(store.cas(key, held, b"mine, and a queue", TIMEOUT_S))
    entry = entry_of(store, key)
    assert entry.version == queued and entry.expires_in_s is not None and entry.expires_in_s > 0
    kept = store.cas(key, queued, b"kept", TIMEOUT_S, LeaseTerms(LeaseAction.RENEW, 15.0, "me-1"))
    applied(kept)


def test_every_renewal_has_a_lease_of_its_own(store: coord.Store, cluster: EtcdCluster) -> None:
    """A leader that was replaced without knowing cannot end a lease that it never saw."""
    key = fresh_key()
    version = applied(store.cas(key, None, b"mine", TIMEOUT_S, taken()))
    first = hold_lease(cluster, key)
    time.sleep(0.6)  # as good as new no more
    keep = LeaseTerms(LeaseAction.RENEW, 15.0, "me-1")
    version = applied(store.cas(key, version, b"kept", TIMEOUT_S, keep))
    second = hold_lease(cluster, key)
    assert first != second
    assert first not in leases(cluster) and second in leases(cluster)
    time.sleep(0.6)
    applied(store.cas(key, version, b"", TIMEOUT_S, LeaseTerms(LeaseAction.RELEASE, 15.0, "me-1")))
    assert hold_lease(cluster, key) == "" and second not in leases(cluster)


def test_few_leases_serve_many_short_holds(
    store: coord.Store, cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is young, bound to nothing, and long enough is used again."""
    monkeypatch.setattr("strongroom.coordination.stores.etcd.leases._REUSABLE_S", 60.0)
    before, seen = leases(cluster), set[str]()
    for number in range(20):
        key, mine = fresh_key(), f"me-{number}"
        version = applied(store.cas(key, None, b"x", TIMEOUT_S, taken(5.0, mine)))
        seen.add(hold_lease(cluster, key))
        applied(store.cas(key, version, b"", TIMEOUT_S, LeaseTerms(LeaseAction.RELEASE, 5.0, mine)))
    assert len(seen) == 1
    held = [fresh_key() for _ in range(4)]
    for number, key in enumerate(held):
        ttl_s = 7.0 if number == 0 else 5.0
        applied(store.cas(key, None, b"x", TIMEOUT_S, taken(ttl_s, f"other-{number}")))
    found = [hold_lease(cluster, key) for key in held]
    assert found[0] not in seen and found[1] in seen, "another TTL, another lease"
    assert len(set(found)) == 4, "each has its own"
    for key in held:
        applied(store.delete(key, entry_of(store, key).version, TIMEOUT_S))
    store.close()
    assert leases(cluster) <= before


def test_a_lease_that_ended_before_its_use_binds_nothing(
    store: coord.Store, cluster: EtcdCluster
) -> None:
    """The transaction is refused as a whole; another lease is granted, and it is tried again."""
    assert isinstance(store, EtcdStore)
    key, write, granted = fresh_key(), store._http.write, list[str]()

    def ended(path: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        found = write(path, body, timeout_s)
        if path == "/v3/lease/grant":
            granted.append(found["ID"])
            if len(granted) <= revoked:
                cluster.call("/v3/lease/revoke", {"ID": found["ID"]})
        return found

    store._http.write = ended  # type: ignore[method-assign,assignment]  # a double
    revoked = 2
    with pytest.raises(coord.StoreUnavailable):
        store.cas(key, None, b"x", TIMEOUT_S, taken())
    assert store.get(key, TIMEOUT_S) is None
    revoked = 3
    applied(store.cas(key, None, b"x", TIMEOUT_S, taken()))
    assert hold_lease(cluster, key) == granted[3]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_lost_answers_lose_nothing(
    cluster: EtcdCluster, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of the writes may or may not be applied, without an answer."""
    chance, before = random.Random(7), leases(cluster)
    write = EtcdHttp.write

    def cut(http: EtcdHttp, path: str, body: dict[str, Any], timeout_s: float) -> Any:
        lost = path == "/v3/kv/txn" and chance.random() < 0.2
        if not lost or chance.random() < share:
            found = write(http, path, body, timeout_s)
        if lost:
            raise NoResponse("cut")
        return found

    monkeypatch.setattr(EtcdHttp, "write", cut)
    name, fences, inside = fresh_key(), list[int](), list[int]()

    def work(number: int) -> None:
        with coord.connect(cluster.url, label=str(number)) as client:
            for _ in range(8):
                with client.lock(name, ttl=15, wait=60) as held:
                    inside.append(number)
                    assert inside == [number]
                    fences.append(held.fence)
                    inside.remove(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(fences) == 32 and fences == sorted(set(fences))
    with coord.connect(cluster.url) as client:
        ids = [number for _ in range(5) for number in client.ids(name, batch=3).take(9)]
    assert len(set(ids)) == 45
    monkeypatch.undo()
    assert len(leases(cluster) - before) < 32, "what nobody was told of ends by itself"


def test_nothing_is_left_behind(store: coord.Store, cluster: EtcdCluster) -> None:
    """Neither successful nor failed clients leave keys behind."""
    before = leases(cluster)
    with coord.connect(cluster.url) as mine, coord.connect(cluster.url) as other:
        for _ in range(3):
            with mine.lock(fresh_key(), ttl=60):
                pass
        with mine.lock("contended", ttl=600):
            assert other.lock("contended", ttl=600).try_acquire() is None
        key = fresh_key()
        version = applied(store.cas(key, None, b"x", TIMEOUT_S, taken(60.0)))
        assert isinstance(store.cas(key, version, b"y", TIMEOUT_S, taken(60.0, "b-1")), Conflict)
        applied(store.delete(key, version, TIMEOUT_S))
    store.close()
    assert leases(cluster) <= before


def test_a_dead_holders_lock_is_free_after_its_ttl(cluster: EtcdCluster) -> None:
    with coord.connect(cluster.url) as next_one:
        name = fresh_key()
        dead = coord.open_store(cluster.url)
        with coord.connect(cluster.url) as first:
            fence = first.lock(name, ttl=2).acquire().fence
            key = f"lock/{name.replace('/', '%2F')}"
            entry = entry_of(dead, key)
            first.close()  # renews no more, and gives nothing back
        assert entry.expires_in_s is not None and entry.expires_in_s > 0
        with next_one.lock(name, ttl=2, wait=20) as held:
            assert held.fence > fence
        dead.close()


@pytest.mark.parametrize("fair", [False, True])
def test_clients_take_turns(cluster: EtcdCluster, fair: bool) -> None:
    name, fences, inside = fresh_key(), list[int](), list[int]()

    def work(number: int) -> None:
        with coord.connect(cluster.url, label=str(number)) as client:
            for _ in range(3):
                with client.lock(name, ttl=15, wait=60, fair=fair) as held:
                    inside.append(number)
                    assert inside == [number]
                    fences.append(held.fence)
                    inside.remove(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(fences) == 24 and fences == sorted(set(fences))


def test_a_release_wakes_the_waiter(cluster: EtcdCluster) -> None:
    with coord.connect(cluster.url) as mine, coord.connect(cluster.url) as other:
        name, got = fresh_key(), threading.Event()
        held = mine.lock(name, ttl=30).acquire()

        def wait() -> None:
            with other.lock(name, ttl=30, wait=60):
                got.set()

        thread = threading.Thread(target=wait)
        thread.start()
        assert not got.wait(0.5)
        held.release()
        assert got.wait(5), "a poll would have come after a third of the TTL, or 10 s"
        thread.join()


def test_an_end_of_the_hold_between_look_and_watch_is_told(
    store: coord.Store, cluster: EtcdCluster
) -> None:
    key = fresh_key()
    held = applied(store.cas(key, None, b"mine", TIMEOUT_S, taken(60.0)))
    cluster.call("/v3/lease/revoke", {"ID": hold_lease(cluster, key)})
    seen = store.watch(key, held, 20.0)
    assert isinstance(seen, Entry) and seen.expires_in_s == 0
    # And what is known of it now is waited on: it is not told again and again.
    assert store.watch(key, seen.version, 0.5) is UNCHANGED


def test_a_compacted_revision_loses_no_change(store: coord.Store, cluster: EtcdCluster) -> None:
    key = fresh_key()
    first = applied(store.cas(key, None, b"one", TIMEOUT_S))
    second = applied(store.cas(key, first, b"two", TIMEOUT_S))
    later = applied(store.cas(fresh_key(), None, b"", TIMEOUT_S))
    cluster.call("/v3/kv/compaction", {"revision": later, "physical": True})
    seen = store.watch(key, first, 20.0)
    assert isinstance(seen, Entry) and seen.version == second
    assert store.watch(key, second, 0.5) is UNCHANGED


def test_a_revoked_lease_is_learned_at_once(cluster: EtcdCluster) -> None:
    with coord.connect(cluster.url) as client:
        name = fresh_key()
        held = client.lock(name, ttl=600, alert=True).acquire()
        key = f"lock/{name.replace('/', '%2F')}"
        time.sleep(0.3)
        cluster.call("/v3/lease/revoke", {"ID": hold_lease(cluster, key)})
        assert held.lost.wait(5), "without a watch it would be learned after 200 s"
        with pytest.raises(coord.LockLost, match="store's clock"):
            held.check()
        again = client.lock(name, ttl=600).try_acquire()
        assert again is not None and again.fence > held.fence


def test_election_ids_gate_and_register(cluster: EtcdCluster) -> None:
    name = fresh_key()
    with coord.connect(cluster.url) as one, coord.connect(cluster.url) as two:
        with one.election(name, value="one", ttl=15).lead() as term:
            view = next(iter(two.election(name).observe()))
            assert view.leader == "one" and view.fence == term.fence
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda c: c.ids(name, batch=10).take(25), (one, two, one, two))
            taken_ids = [number for ids in found for number in ids]
        assert len(set(taken_ids)) == 100
        with ThreadPoolExecutor(4) as pool:
            waits = [pool.submit(two.gate(name).wait, 30) for _ in range(4)]
            one.gate(name).open({"go": 1})
            assert [wait.result() for wait in waits] == [{"go": 1}] * 4


def test_many_pages_of_keys(store: coord.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strongroom.coordination.stores.etcd.store._PAGE", 3)
    prefix = fresh_key()
    keys = [f"{prefix}-{number:02}" for number in range(10)]
    for key in keys:
        applied(store.cas(key, None, b"x", TIMEOUT_S, taken()))
    assert store.list_keys(prefix, TIMEOUT_S) == keys


def test_a_foreign_value_is_named(store: coord.Store, cluster: EtcdCluster) -> None:
    key = fresh_key()
    name, value = f"strongroom/{key}".encode(), b"what is this"
    body = {"key": b64encode(name).decode(), "value": b64encode(value).decode()}
    cluster.call("/v3/kv/put", body)
    with pytest.raises(coord.CorruptRecord, match="what is this"):
        store.get(key, TIMEOUT_S)


def test_prefixes_part_clients(cluster: EtcdCluster) -> None:
    stores = [coord.open_store(f"{cluster.url}/{prefix}") for prefix in ("a", "b%2Fc")]
    key = fresh_key()
    for store in stores:
        assert store.get(key, TIMEOUT_S) is None
        applied(store.cas(key, None, b"x", TIMEOUT_S))
        assert key in store.list_keys("", TIMEOUT_S)
        store.close()


def requests_count(cluster: EtcdCluster) -> int:
    """Return how many requests the members have answered or begun, including watches."""
    total = 0.0
    for member in cluster.members:
        with urllib.request.urlopen(f"http://{member.address}/metrics", timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("grpc_server_started_total{"):
                    total += float(line.rpartition(" ")[2])
    return int(total)


def test_idle_waiters_cost_next_to_nothing(cluster: EtcdCluster) -> None:
    """One read and one watch in ten seconds each; the holder renews besides."""
    clients = [coord.connect(cluster.url) for _ in range(17)]
    name = fresh_key()
    holder, *waiters = clients

    def wait(client: coord.Client) -> None:
        with pytest.raises(coord.CoordTimeout):
            client.lock(name, wait=20).acquire()

    with holder.lock(name, ttl=120), ThreadPoolExecutor(16) as pool:
        done = [pool.submit(wait, client) for client in waiters]
        before = -1
        while (now := requests_count(cluster)) != before:
            before = now  # not all of them have begun to wait
            time.sleep(0.7)
        time.sleep(10)
        spent = requests_count(cluster) - before
        for each in done:
            each.result()
    for client in clients:
        client.close()
    assert spent <= 16 * 2 + 8, "more than 0.2 requests a second for each"


def test_a_forked_child_has_connections_and_leases_of_its_own(
    cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strongroom.coordination.stores.etcd.leases._REUSABLE_S", 60.0)
    names = fresh_key(), fresh_key()
    keys = [f"lock/{name.replace('/', '%2F')}" for name in names]
    with coord.connect(cluster.url) as client:
        with client.lock(names[0], ttl=15) as held:
            fence = held.fence
        hears, says = os.pipe()  # from here on there are an idle connection and an idle lease
        child = os.fork()
        if child == 0:
            os.close(says)
            status = 1
            try:
                with client.lock(names[0], ttl=15) as mine:
                    os.read(hears, 1)  # until the parent has looked, or is no more
                    status = 0 if mine.fence > fence and mine.remaining() > 0 else 2
            finally:
                os._exit(status)
        os.close(hears)
        try:
            with client.lock(names[1], ttl=15):
                until_s = time.monotonic() + 30
                while not hold_lease(cluster, keys[0]) and time.monotonic() < until_s:
                    time.sleep(0.01)
                found = [hold_lease(cluster, key) for key in keys]
        finally:
            os.close(says)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert all(found) and len(set(found)) == 2
