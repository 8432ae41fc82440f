"""The Redis store when servers and connections fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.stores.redis.address import address_of, open_session
from strongroom.coordination.stores.redis.wire import RedisConnection, RedisError, Reply
from strongroom.testing.ports import free_port
from tests.coordination import servers
from tests.coordination.conformance import TIMEOUT_S, applied, entry_of, fresh_key
from tests.coordination.recipe_trials import until
from tests.coordination.store_fault_trials import TRIALS

_clock = SystemClocks()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.RedisServer]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with servers.redis_server(folder) as server:
        yield server


def connection(server: servers.RedisServer) -> RedisConnection:
    return open_session(address_of(server.url), _clock, _clock.monotonic_s() + 10)


def say(admin: RedisConnection, *words: str | bytes | int) -> Reply:
    return admin.call(_clock.monotonic_s() + 10, *words)


@pytest.mark.parametrize("trial", TRIALS)
def test_faults(running: servers.RedisServer, trial: str) -> None:
    TRIALS[trial](running)


def test_a_full_memory_refuses_for_now(running: servers.RedisServer) -> None:
    store, admin, key = coord.open_store(running.url), connection(running), fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    say(admin, "CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(coord.StoreUnavailable, match="memory is full"):
            store.cas(key, version, b"two", TIMEOUT_S)
        assert entry_of(store, key)[:2] == (b"one", version)
    finally:
        say(admin, "CONFIG", "SET", "maxmemory", "0")
    applied(store.cas(key, version, b"two", TIMEOUT_S))
    store.close()
    admin.close()


def test_somebody_elses_long_script_is_waited_out(running: servers.RedisServer) -> None:
    store, admin, other = coord.open_store(running.url), connection(running), connection(running)
    key = fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    say(admin, "CONFIG", "SET", "busy-reply-threshold", "50")
    ended: list[str] = []

    def run() -> None:
        try:
            other.call(_clock.monotonic_s() + 30, "EVAL", "while true do end", 0)
        except RedisError as error:
            ended.append(error.code)

    thread = threading.Thread(target=run)
    thread.start()

    def busy() -> bool:
        try:
            store.cas(key, "no-such-version", b"x", TIMEOUT_S)
        except coord.StoreUnavailable as error:
            return "BUSY" in str(error)
        return False

    until(busy, "it is never busy")
    say(admin, "SCRIPT", "KILL")
    thread.join(30)
    assert ended
    applied(store.cas(key, version, b"two", TIMEOUT_S))
    store.close()
    admin.close()
    other.close()


def test_something_else_under_a_key_of_ours_is_told(running: servers.RedisServer) -> None:
    store, admin, key = coord.open_store(running.url), connection(running), fresh_key()
    say(admin, "SET", f"strongroom:key:{key}", "foreign")
    with pytest.raises(coord.StoreRefused, match="somebody else"):
        store.get(key, TIMEOUT_S)
    with pytest.raises(coord.StoreRefused, match="somebody else"):
        store.cas(key, None, b"x", TIMEOUT_S)
    store.close()
    admin.close()


def test_a_replica_is_not_believed_and_a_failover_is_waited_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with (
        servers.redis_server(tmp_path / "one") as one,
        servers.redis_server(tmp_path / "two") as two,
    ):
        kept, key = coord.open_store(two.url), fresh_key()
        version = applied(kept.cas(key, None, b"one", TIMEOUT_S))
        admin = connection(two)
        host, _, port = one.address.rpartition(":")
        say(admin, "REPLICAOF", host, port)
        # A connection from before, which leads to a replica by now; then a new one.
        for _ in range(2):
            with pytest.raises(coord.StoreUnavailable, match="replica"):
                kept.cas(key, version, b"two", TIMEOUT_S)
        fresh = coord.open_store(two.url)
        with pytest.raises(coord.StoreUnavailable, match="replica"):
            fresh.get(key, TIMEOUT_S)
        say(admin, "REPLICAOF", "NO", "ONE")
        applied(fresh.cas(fresh_key(), None, b"x", TIMEOUT_S))
        for opened in (kept, fresh, admin):
            opened.close()


def test_a_node_of_a_cluster_is_refused_clearly(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    flags = ("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-port")
    buses = [str(free_port()), str(free_port())]
    with (
        servers.redis_server(folders[0], *flags, buses[0]) as one,
        servers.redis_server(folders[1], *flags, buses[1]) as two,
    ):
        admin, far = connection(one), connection(two)
        name = say(far, "CLUSTER", "MYID")
        assert isinstance(name, bytes)
        host, _, port = two.address.rpartition(":")
        say(admin, "CLUSTER", "MEET", host, port, buses[1])
        until(lambda: name in _nodes(admin), "they do not meet")
        say(admin, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        until(lambda: _state(admin) == b"ok", "the cluster does not come up")
        own = coord.open_store(one.url)
        applied(own.cas(fresh_key(), None, b"x", TIMEOUT_S))
        until(lambda: _state(far) == b"ok", "the cluster does not come up")
        store = coord.open_store(two.url)
        with pytest.raises(coord.StoreRefused, match="Redis Cluster"):
            store.cas(fresh_key(), None, b"x", TIMEOUT_S)
        for opened in (own, store, admin, far):
            opened.close()


def _nodes(admin: RedisConnection) -> bytes:
    nodes = say(admin, "CLUSTER", "NODES")
    assert isinstance(nodes, bytes)
    return nodes


def _state(admin: RedisConnection) -> bytes:
    info = say(admin, "CLUSTER", "INFO")
    assert isinstance(info, bytes)
    return info.partition(b"cluster_state:")[2].partition(b"\r")[0]
