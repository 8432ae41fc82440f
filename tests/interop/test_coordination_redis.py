"""The Redis store against a real server: the contract, the recipes, authentication."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.stores.redis.address import address_of, open_session
from strongroom.coordination.stores.redis.wire import RedisConnection, Reply
from strongroom.testing.ports import free_port
from tests.coordination import servers
from tests.coordination.clock_trials import CLOCK_TRIALS
from tests.coordination.conformance import CASES, TIMEOUT_S, applied, entry_of, fresh_key
from tests.coordination.recipe_trials import TRIALS, fresh_name, until

_clock = SystemClocks()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.RedisServer]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with servers.redis_server(folder) as server:
        yield server


@pytest.fixture
def url(running: servers.RedisServer) -> str:
    return running.url


@pytest.fixture
def admin(url: str) -> Iterator[RedisConnection]:
    connection = open_session(address_of(url), _clock, _clock.monotonic_s() + 10)
    yield connection
    connection.close()


def say(admin: RedisConnection, *words: str | bytes | int) -> Reply:
    return admin.call(_clock.monotonic_s() + 10, *words)


@pytest.mark.parametrize("case", CASES)
def test_contract(url: str, case: str) -> None:
    store = coord.open_store(url)
    try:
        CASES[case](store)
    finally:
        store.close()


@pytest.mark.parametrize("trial", TRIALS)
def test_recipes(url: str, trial: str) -> None:
    TRIALS[trial](url)


@pytest.mark.parametrize("trial", CLOCK_TRIALS)
def test_the_clock_is_set_back(url: str, admin: RedisConnection, trial: str) -> None:
    def ahead(key: str) -> None:
        name = f"strongroom:key:{key}"
        assert say(admin, "HGET", name, "holder")
        ends_us = say(admin, "HINCRBY", name, "ends_us", 3_600_000_000)
        assert isinstance(ends_us, int)

    CLOCK_TRIALS[trial](url, ahead)


def test_what_it_promises(url: str) -> None:
    with coord.connect(url) as client:
        promises = client.promises()
    assert (promises.mutual_exclusion, promises.fencing) == ("efficiency", "best-effort")
    assert not promises.durable


def test_databases_and_prefixes_keep_apart(running: servers.RedisServer) -> None:
    base = f"redis://{running.address}"
    key = fresh_key()
    for number, url in enumerate(
        (f"{base}/1", f"{base}/2", f"{base}/2?prefix=a*", f"{base}/1?prefix=")
    ):
        store = coord.open_store(url)
        assert store.get(key, TIMEOUT_S) is None
        applied(store.cas(key, None, b"%d" % number, TIMEOUT_S))
        assert store.list_keys("", TIMEOUT_S) == [key]
        store.close()


def test_what_a_watcher_of_one_database_hears_is_its_own(running: servers.RedisServer) -> None:
    """Channels belong to the whole server: a message from elsewhere only makes it look."""
    one, two = (coord.open_store(f"redis://{running.address}/{number}") for number in (3, 4))
    key = fresh_key()
    version = applied(one.cas(key, None, b"x", TIMEOUT_S))
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(one.watch, key, version, 1.0)
        while not watching.done():
            applied(two.cas(fresh_key(), None, b"x", TIMEOUT_S))
            written = two.get(key, TIMEOUT_S)
            two.cas(key, None if written is None else written.version, b"y", TIMEOUT_S)
        assert watching.result() is coord.effects.UNCHANGED
    one.close()
    two.close()


def test_scripts_that_the_server_forgot_are_sent_again(url: str, admin: RedisConnection) -> None:
    store = coord.open_store(url)
    key = fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    say(admin, "SCRIPT", "FLUSH")
    version = applied(store.cas(key, version, b"two", TIMEOUT_S))
    say(admin, "SCRIPT", "FLUSH")
    assert entry_of(store, key)[:2] == (b"two", version)
    store.close()


def test_a_server_that_forgot_everything_repeats_no_version(
    url: str, admin: RedisConnection
) -> None:
    store = coord.open_store(url)
    key = fresh_key()
    before = applied(store.cas(key, None, b"one", TIMEOUT_S))
    say(admin, "FLUSHALL")
    after = applied(store.cas(key, None, b"one", TIMEOUT_S))
    assert before != after
    assert isinstance(store.cas(key, before, b"late", TIMEOUT_S), coord.effects.Conflict)
    store.close()


def test_sixteen_idle_waiters_cost_next_to_nothing(url: str, admin: RedisConnection) -> None:
    """Two reads per waiter and ten seconds."""
    name = fresh_name()
    with coord.connect(url) as holder, coord.connect(url) as first:
        held = holder.lock(name, ttl=60).acquire()
        with ThreadPoolExecutor(16) as pool:
            waiting = [
                pool.submit(_take, first if number == 0 else first.sibling(), name)
                for number in range(16)
            ]
            _settle(admin)
            before, began_s = _commands(admin), _clock.monotonic_s()
            until(lambda: _clock.monotonic_s() - began_s > 5, "")
            asked, passed_s = _commands(admin) - before, _clock.monotonic_s() - began_s
            assert say(admin, "PUBSUB", "NUMPAT") == 0
            listening = say(admin, "CLIENT", "LIST", "TYPE", "pubsub")
            held.release()
            fences = [future.result(60) for future in waiting]
    assert sorted(fences) == list(range(held.fence + 1, held.fence + 17))
    assert asked <= 2 * 16 * (1 + passed_s / 10), f"{asked} reads in {passed_s:.1f} s"
    assert isinstance(listening, bytes) and listening.count(b"\n") == 1, "one listens for all"


def _take(client: coord.Client, name: str) -> int:
    with client.lock(name, ttl=60, wait=60) as held:
        return held.fence


def _commands(admin: RedisConnection) -> int:
    """Return the number of executed scripts: every read and every write is one."""
    stats = say(admin, "INFO", "commandstats")
    assert isinstance(stats, bytes)
    return int(stats.partition(b"cmdstat_evalsha:calls=")[2].partition(b",")[0])


def _settle(admin: RedisConnection) -> None:
    """Wait until the first looks are over."""
    seen, since_s = -1, _clock.monotonic_s()
    while _clock.monotonic_s() - since_s < 0.5:
        if (now := _commands(admin)) != seen:
            seen, since_s = now, _clock.monotonic_s()


def test_a_forked_child_talks_on_connections_of_its_own(url: str) -> None:
    store = coord.open_store(url)
    client = coord.Client(store)
    key = fresh_key()
    version = applied(store.cas(key, None, b"x", TIMEOUT_S))
    store.watch(key, version, 0.1)
    child = os.fork()
    if child == 0:
        done = 1
        try:
            fine = entry_of(store, key).value == b"x"
            done = 0 if fine and store.watch(key, "1", 5) is not None else 1
        finally:
            os._exit(done)
    assert os.waitpid(child, 0)[1] == 0
    version = applied(store.cas(key, version, b"y", TIMEOUT_S))
    assert entry_of(store, key).value == b"y"
    client.close()


def test_users_and_what_they_may(running: servers.RedisServer, admin: RedisConnection) -> None:
    rights = "+eval +evalsha +scan +subscribe +unsubscribe +select +hmget +hget +hset +del"
    rights = f"{rights} +time +publish"
    say(
        admin,
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">s3cret/%",
        "~strongroom:*",
        "&strongroom:*",
        *rights.split(),
    )
    say(
        admin,
        "ACL",
        "SETUSER",
        "mute",
        "on",
        ">s3cret/%",
        "~strongroom:*",
        "resetchannels",
        *rights.split(),
    )
    url = f"redis://app:s3cret%2F%25@{running.address}/1"
    TRIALS["watchers_wake_at_once"](url)
    TRIALS["eight_take_turns"](url)
    mute = coord.open_store(url.replace("app", "mute"))
    key = fresh_key()
    with pytest.raises(coord.StoreRefused, match="may not do that"):
        mute.cas(key, None, b"x", TIMEOUT_S)
    assert mute.get(key, TIMEOUT_S) is None, "what was refused was not done by halves"
    mute.close()
    for wrong in (url.replace("s3cret", "wr0ng"), url.replace("app", "nobody")):
        store = coord.open_store(wrong)
        with pytest.raises(coord.StoreRefused, match="user or the password") as refusal:
            store.get(key, TIMEOUT_S)
        assert "%25" not in str(refusal.value) and "wr0ng" not in str(refusal.value)
        store.close()


def test_a_password_is_asked_for(tmp_path: Path) -> None:
    with servers.redis_server(tmp_path, "--requirepass", "s3cret") as server:
        store = coord.open_store(server.url)
        with pytest.raises(coord.StoreRefused, match="wants a user or a password"):
            store.get(fresh_key(), TIMEOUT_S)
        store.close()
        store = coord.open_store(f"redis://:s3cret@{server.address}")
        applied(store.cas(fresh_key(), None, b"x", TIMEOUT_S))
        assert "s3cret" not in repr(address_of(f"redis://:s3cret@{server.address}"))
        store.close()


def test_a_password_that_nobody_asked_for_is_told(url: str) -> None:
    store = coord.open_store(url.replace("redis://", "redis://:s3cret@"))
    with pytest.raises(coord.StoreRefused, match="user or the password") as refusal:
        store.get(fresh_key(), TIMEOUT_S)
    assert "s3cret" not in str(refusal.value)
    store.close()


def test_tls(tmp_path: Path) -> None:
    certificate, key = servers.certificate(tmp_path)
    flags = ("--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-auth-clients")
    with servers.redis_server(tmp_path, "--tls-port", "0", *flags, "no") as server:
        port = free_port()
        admin = open_session(address_of(server.url), _clock, _clock.monotonic_s() + 10)
        say(admin, "CONFIG", "SET", "tls-port", port)
        admin.close()
        url = f"rediss://127.0.0.1:{port}/0"
        trusting = f"{url}?ssl_ca_certs={certificate}"
        CASES["create_only_once"](coord.open_store(trusting))
        TRIALS["watchers_wake_at_once"](trusting)
        TRIALS["eight_take_turns"](trusting)
        for unknown in (url, trusting.replace("127.0.0.1", "localhost")):
            store = coord.open_store(unknown)
            with pytest.raises(coord.StoreRefused, match="CERTIFICATE_VERIFY_FAILED"):
                store.get(fresh_key(), TIMEOUT_S)
            store.close()
        plain = coord.open_store(f"redis://127.0.0.1:{port}")
        with pytest.raises(coord.StoreUnavailable):
            plain.get(fresh_key(), TIMEOUT_S)
        plain.close()
        admin = open_session(address_of(server.url), _clock, _clock.monotonic_s() + 10)
        say(admin, "CONFIG", "SET", "tls-ca-cert-file", str(certificate))
        say(admin, "CONFIG", "SET", "tls-auth-clients", "yes")
        admin.close()
        with coord.connect(trusting) as nobody:
            for _ in range(5):
                with pytest.raises(coord.StoreRefused, match="requires a client certificate"):
                    nobody.lock("x").acquire()
        known = f"{trusting}&ssl_certfile={certificate}&ssl_keyfile={key}"
        CASES["create_only_once"](coord.open_store(known))
        wrong = coord.open_store(f"rediss://{server.address}")
        with pytest.raises((coord.StoreRefused, coord.StoreUnavailable)):
            wrong.get(fresh_key(), 1.0)
        wrong.close()


@pytest.mark.parametrize(
    "end", ["h:port", "h/name", "", "h?nonsense=1", "h?ssl_certfile=x", "[h", "h:99999"]
)
def test_urls_that_cannot_be_read_keep_their_secret(end: str) -> None:
    with pytest.raises(coord.Unsupported) as refusal:
        coord.open_store(f"redis://:s3cret@{end}")
    assert "s3cret" not in f"{refusal.value!r} {refusal.value.__cause__!r}"


def test_a_file_for_tls_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(coord.Unsupported, match="ssl_"):
        coord.open_store(f"rediss://h?ssl_ca_certs={tmp_path}/none")
