"""The PostgreSQL store against a real server: the contract, the recipes, many first clients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.stores.postgres.store import PostgresStore
from strongroom.testing.ports import free_port
from tests.coordination import servers
from tests.coordination.clock_trials import CLOCK_TRIALS
from tests.coordination.conformance import CASES, TIMEOUT_S, applied, entry_of, fresh_key
from tests.coordination.recipe_trials import TRIALS, fresh_name, until

_clock = SystemClocks()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.PostgresServer]:
    folder: Path = tmp_path_factory.mktemp("postgres")
    with servers.postgres_server(folder) as server:
        server.add_user("app", "s3cret")
        yield server


@pytest.fixture
def url(running: servers.PostgresServer) -> str:
    return running.url


@pytest.fixture
def admin(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(url, autocommit=True) as session:
        yield session


def database(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return f"{url.rpartition('/')[0]}/{name}"


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


def test_many_first_clients_make_the_table_once(
    url: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    for lap in range(5):
        admin.execute(f"CREATE DATABASE fresh{lap}".encode())
        fresh = database(url, f"fresh{lap}")
        stores = [coord.open_store(fresh) for _ in range(12)]
        assert stores[0].get("lock/x", TIMEOUT_S) is None
        assert stores[0].list_keys("", TIMEOUT_S) == []

        def write(store: coord.Store) -> str:
            return applied(store.cas(fresh_key(), None, b"x", 30.0))

        with ThreadPoolExecutor(12) as pool:
            versions = list(pool.map(write, stores))
        assert len(set(versions)) == 12
        for store in stores:
            store.close()


def test_a_table_that_is_dropped_is_made_again(
    url: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    store = coord.open_store(url)
    key = fresh_key()
    version = applied(store.cas(key, None, b"x", TIMEOUT_S))
    admin.execute("DROP TABLE strongroom_coordination")
    assert store.get(key, TIMEOUT_S) is None
    assert store.watch(key, None, 0.1) is coord.effects.UNCHANGED
    assert not isinstance(store.cas(key, version, b"y", TIMEOUT_S), coord.effects.Applied)
    applied(store.cas(key, None, b"z", TIMEOUT_S))
    store.close()


def test_whoever_may_not_make_the_table_is_told(running: servers.PostgresServer) -> None:
    store = coord.open_store(f"postgres://app:s3cret@{running.address}/template1")
    with pytest.raises(coord.StoreRefused, match="permission denied"):
        store.cas(fresh_key(), None, b"x", TIMEOUT_S)
    store.close()


@pytest.mark.parametrize(
    ("password", "end", "words"),
    [
        ("wr0ngsecret", "app", "authentication failed"),
        ("s3cret", "nosuchdatabase", "does not exist"),
        ("s3cret", "app?sslmode=require", "does not support SSL"),
    ],
)
def test_what_will_not_get_better_is_refused_without_the_secret(
    running: servers.PostgresServer, password: str, end: str, words: str
) -> None:
    store = coord.open_store(f"postgres://app:{password}@{running.address}/{end}")
    with pytest.raises(coord.StoreRefused, match=words) as refusal:
        store.get(fresh_key(), TIMEOUT_S)
    with pytest.raises(coord.StoreRefused, match=words):
        store.cas(fresh_key(), None, b"x", TIMEOUT_S)
    assert password not in f"{refusal.value!r} {refusal.value.__cause__!r} {store!r}"
    store.close()


@pytest.mark.parametrize("end", ["h", "h:port/app", "h/app?nonsense=1", "h/app?watch=x", "%zz/app"])
def test_urls_that_cannot_be_read_keep_their_secret(end: str) -> None:
    with pytest.raises(coord.Unsupported) as refusal:
        coord.open_store(f"postgres://app:s3cret@{end}")
    assert "s3cret" not in f"{refusal.value!r} {refusal.value.__cause__!r}"


def test_a_unix_socket_is_a_way_to_the_server(tmp_path: Path) -> None:
    folder = str(servers.folder_of(servers.user_of_postgres()))
    encoded = quote(folder, safe="")
    with servers.postgres_server(tmp_path, "-k", folder) as server:
        port = server.address.rpartition(":")[2]
        for url in (
            f"postgres:///postgres?host={folder}&port={port}&user=postgres",
            f"postgresql:///postgres?user=postgres&port={port}&host={encoded}",
            f"postgres://postgres@/postgres?host={folder}&port={port}",
            f"postgres://postgres@{encoded}:{port}/postgres",
            f"postgres://postgres@{encoded}/postgres?port={port}",
        ):
            with coord.connect(url) as client, client.lock("jobs", ttl=5, wait=5) as held:
                held.check()
                store = client.store
                assert isinstance(store, PostgresStore)
                until_s = _clock.monotonic_s() + 10
                with store._pool.lend(until_s) as session:
                    asked = session.execute("SELECT inet_server_port()::text", (), until_s)
                assert asked == [[b""]], "a connection over TCP has a port"


@pytest.mark.parametrize("trial", CLOCK_TRIALS)
def test_the_clock_is_set_back(
    url: str, admin: psycopg.Connection[tuple[object, ...]], trial: str
) -> None:
    def ahead(key: str) -> None:
        changed = admin.execute(
            "UPDATE strongroom_coordination SET expires = expires + interval '1 hour'"
            " WHERE key = %s AND holder <> ''",
            (key,),
        )
        assert changed.rowcount == 1

    CLOCK_TRIALS[trial](url, ahead)


def test_several_hosts_are_tried_in_turn(running: servers.PostgresServer) -> None:
    dead = free_port()
    url = f"postgres://app:s3cret@127.0.0.1:{dead},{running.address}/app"
    store = coord.open_store(url)
    applied(store.cas(fresh_key(), None, b"x", TIMEOUT_S))
    store.close()


def test_a_standby_or_a_read_only_database_is_not_believed(
    running: servers.PostgresServer, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    admin.execute("CREATE DATABASE readonly")
    admin.execute("ALTER DATABASE readonly SET default_transaction_read_only = on")
    url = database(running.url, "readonly")
    for asked in (url, f"{url}?target_session_attrs=any"):
        store = coord.open_store(asked)
        with pytest.raises(coord.StoreUnavailable, match=r"read-only"):
            store.cas(fresh_key(), None, b"x", TIMEOUT_S)
        store.close()
    with pytest.raises(coord.StoreUnavailable, match=r"read-only"):
        coord.open_store(url).get(fresh_key(), TIMEOUT_S)


def test_sixteen_idle_waiters_cost_next_to_nothing(
    running: servers.PostgresServer, admin: psycopg.Connection[tuple[object, ...]], tmp_path: Path
) -> None:
    """The server counts the waiters' statements: two reads per waiter and ten seconds."""
    log = running.log
    admin.execute("ALTER SYSTEM SET log_statement = 'all'")
    admin.execute("SELECT pg_reload_conf()")
    until(lambda: _logs_everything(running.url), "it is not reloaded")
    name = fresh_name()
    with coord.connect(running.url) as holder, coord.connect(running.url) as first:
        held = holder.lock(name, ttl=60).acquire()
        with ThreadPoolExecutor(16) as pool:
            waiting = [
                pool.submit(_take, first if number == 0 else first.sibling(), name)
                for number in range(16)
            ]
            until(lambda: log.read_text().count("LISTEN") >= 1, "nobody listens")
            _settle(log)
            before, began_s = _statements(log), _clock.monotonic_s()
            until(lambda: _clock.monotonic_s() - began_s > 5, "")
            asked, passed_s = _statements(log) - before, _clock.monotonic_s() - began_s
            rows = admin.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'strongroom'"
            ).fetchone()
            held.release()
            fences = [future.result(60) for future in waiting]
    admin.execute("ALTER SYSTEM RESET log_statement")
    admin.execute("SELECT pg_reload_conf()")
    assert sorted(fences) == list(range(held.fence + 1, held.fence + 17))
    assert asked <= 2 * 16 * (1 + passed_s / 10), f"{asked} statements in {passed_s:.1f} s"
    assert rows is not None and isinstance(rows[0], int)
    assert rows[0] <= 1 + 8 + 2, "one session listens for all"


def _take(client: coord.Client, name: str) -> int:
    with client.lock(name, ttl=60, wait=60) as held:
        return held.fence


def _logs_everything(url: str) -> bool:
    """Whether the settings have come to new sessions."""
    with psycopg.connect(url) as session:
        return session.execute("SHOW log_statement").fetchone() == ("all",)


def _statements(log: Path) -> int:
    return log.read_text().count("LOG:  execute <unnamed>") + log.read_text().count("statement:")


def _settle(log: Path) -> None:
    """Wait until the first looks are over."""
    seen, since_s = -1, _clock.monotonic_s()
    while _clock.monotonic_s() - since_s < 0.5:
        if (now := _statements(log)) != seen:
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


def test_polling_where_the_url_says_so(url: str) -> None:
    store = coord.open_store(f"{url}?watch=poll")
    assert store.promises().watch == "poll"
    store.close()
    TRIALS["eight_take_turns"](f"{url}?watch=poll")
