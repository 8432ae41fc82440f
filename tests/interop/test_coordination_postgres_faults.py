"""The PostgreSQL store when servers, connections and poolers fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from strongroom import coordination as coord
from strongroom.coordination.effects import UNCHANGED, Unknown
from strongroom.testing.ports import HOST, free_port
from tests.coordination import servers
from tests.coordination.conformance import CASES, TIMEOUT_S, applied, entry_of, fresh_key
from tests.coordination.recipe_trials import TRIALS as RECIPES
from tests.coordination.recipe_trials import until
from tests.coordination.store_fault_trials import TRIALS


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.PostgresServer]:
    folder: Path = tmp_path_factory.mktemp("postgres")
    with servers.postgres_server(folder) as server:
        yield server


@pytest.mark.parametrize("trial", TRIALS)
def test_faults(running: servers.PostgresServer, trial: str) -> None:
    TRIALS[trial](running)


def test_a_server_that_prefers_speed_writes_this_to_its_disk_all_the_same(
    running: servers.PostgresServer,
) -> None:
    """The control is a row of another client. The same kill loses it, unless the server happens to
    write it to its disk by itself just before."""
    with psycopg.connect(running.url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_commit = off")
        admin.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        admin.execute("SELECT pg_reload_conf()")
        admin.execute("CREATE TABLE IF NOT EXISTS control (number int)")
    store = coord.open_store(running.url)
    assert any(_control_is_lost(running, store, number) for number in range(20))
    with psycopg.connect(running.url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM RESET ALL")
        admin.execute("SELECT pg_reload_conf()")
    store.close()


def _control_is_lost(running: servers.PostgresServer, store: coord.Store, number: int) -> bool:
    """Kill the server after a change, a deletion and a control; assert that both are kept."""
    key, gone = fresh_key(), fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    version_gone = applied(store.cas(gone, None, b"x", TIMEOUT_S))
    with psycopg.connect(running.url, autocommit=True) as admin:
        assert admin.execute("SHOW synchronous_commit").fetchone() == ("off",)
        applied(store.delete(gone, version_gone, TIMEOUT_S))
        version = applied(store.cas(key, version, b"two", TIMEOUT_S))
        admin.execute("INSERT INTO control VALUES (%s)", (number,))
        running.kill()
    running.restart()
    assert entry_of(store, key)[:2] == (b"two", version)
    assert store.get(gone, TIMEOUT_S) is None
    with psycopg.connect(running.url, autocommit=True) as admin:
        found = admin.execute("SELECT 1 FROM control WHERE number = %s", (number,)).fetchall()
    return not found


def test_a_session_that_an_administrator_ends_leaves_the_write_unknown(
    running: servers.PostgresServer,
) -> None:
    store = coord.open_store(running.url)
    key = fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with (
        psycopg.connect(running.url) as other,
        psycopg.connect(running.url, autocommit=True) as admin,
    ):
        other.execute("SELECT * FROM strongroom_coordination FOR UPDATE")
        threading.Timer(0.5, admin.execute, (kill,)).start()
        assert isinstance(store.cas(key, version, b"two", TIMEOUT_S), Unknown)
        other.rollback()
    assert entry_of(store, key).value == b"one"
    store.close()


def test_a_write_that_is_locked_out_gives_up_in_time(running: servers.PostgresServer) -> None:
    store = coord.open_store(running.url)
    key = fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    with psycopg.connect(running.url) as other:
        other.execute("SELECT * FROM strongroom_coordination FOR UPDATE")
        assert isinstance(store.cas(key, version, b"two", 0.3), Unknown)
        assert entry_of(store, key).value == b"one", "readers do not wait"
        other.rollback()
    store.close()


def test_a_server_without_room_is_tried_again(tmp_path: Path) -> None:
    with servers.postgres_server(
        tmp_path, "-c", "max_connections=4", "-c", "superuser_reserved_connections=0"
    ) as small:
        others = [psycopg.connect(small.url) for _ in range(4)]
        store = coord.open_store(small.url)
        with pytest.raises(coord.StoreUnavailable, match="too many clients"):
            store.cas(fresh_key(), None, b"x", TIMEOUT_S)
        others.pop().close()
        until(lambda: _answers(store), "there is no room after all")
        key = fresh_key()
        version = applied(store.cas(key, None, b"x", TIMEOUT_S))
        # There is no room for a session that listens: the waiter reads.
        assert store.watch(key, version, 0.5) is UNCHANGED
        for other in others:
            other.close()
        store.close()


def _answers(store: coord.Store) -> bool:
    try:
        return store.get("lock/none", TIMEOUT_S) is None
    except coord.StoreUnavailable:
        return False


@pytest.fixture(scope="module")
def pooled(
    running: servers.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A pgbouncer that gives a session away after every transaction."""
    folder: Path = tmp_path_factory.mktemp("pgbouncer")
    port = free_port()
    host, _, far = running.address.rpartition(":")
    user = servers.user_of_postgres()
    own = servers.folder_of(user)
    (own / "users.txt").write_text('"postgres" ""\n')
    settings = own / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={host} port={far}\n[pgbouncer]\n"
        f"listen_addr = {HOST}\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {own}/users.txt\n"
        "pool_mode = transaction\ndefault_pool_size = 4\n"
    )
    command = [servers.program("pgbouncer", "pgbouncer"), str(settings)]
    server = servers.StoreServer(command, port, folder / "pgbouncer.log", user)
    server.wait(server.listens)
    yield f"postgres://postgres@{server.address}/postgres"
    server.stop()


@pytest.mark.parametrize("case", CASES)
def test_contract_behind_a_pooler(pooled: str, case: str) -> None:
    store = coord.open_store(pooled)
    try:
        CASES[case](store)
    finally:
        store.close()


@pytest.mark.parametrize("query", ["", "?watch=poll"])
@pytest.mark.parametrize("trial", ["eight_take_turns", "a_gate_lets_all_through"])
def test_recipes_behind_a_pooler(pooled: str, trial: str, query: str) -> None:
    """There are no notifications, so waiters poll; the pooler is detected without a setting."""
    RECIPES[trial](f"{pooled}{query}")
