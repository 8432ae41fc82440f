"""Gates with hints over a real PostgreSQL: NOTIFY wakes the waiters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from strongroom.coordination import Unsupported
from strongroom.coordination.hints import Hints, multicast
from strongroom.coordination.hints.postgres import PostgresBus
from strongroom.coordination.stores.postgres.wire import conninfo_of
from strongroom.testing.ports import HOST, free_port
from tests.coordination import hint_trials, servers

USER, PASSWORD, ESCAPED = "app", "s3cret/%@:word", "s3cret%2F%25%40%3Aword"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.PostgresServer]:
    folder: Path = tmp_path_factory.mktemp("postgres")
    with servers.postgres_server(folder, "-c", "max_connections=150") as running:
        running.add_user(USER, PASSWORD)
        yield running


@pytest.fixture
def make(server: servers.PostgresServer) -> Callable[[], Hints]:
    return lambda: multicast(f"postgres://{USER}:{ESCAPED}@{server.address}/{USER}")


def test_fifty_nodes_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.all_are_released_by_the_message(make)


def test_tasks_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.tasks_are_released_by_the_message(make)


def test_lost_messages_strand_nobody(make: Callable[[], Hints]) -> None:
    hint_trials.nobody_is_stranded_by_lost_messages(make)


def test_a_wrong_password_is_refused(
    server: servers.PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    hints = multicast(f"postgres://{USER}:wr0ng%2Fword@{server.address}/{USER}")
    hint_trials.a_wrong_secret_is_refused(hints, "wr0ng", caplog)


def test_a_server_that_restarts_strands_nobody(
    server: servers.PostgresServer,
    make: Callable[[], Hints],
    caplog: pytest.LogCaptureFixture,
) -> None:
    hint_trials.a_restart_strands_nobody(make, server.kill, server.restart, caplog)


def test_whoever_is_cut_off_listens_again_and_looks(
    server: servers.PostgresServer, make: Callable[[], Hints]
) -> None:
    hints = hint_trials.Watched(make())
    stop = hints.subscribe("gate/cut", lambda: None)
    hint_trials.until(lambda: hints.heard_count == 1, "it does not listen")
    with psycopg.connect(server.url, autocommit=True) as admin:
        cut = admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'"
        ).fetchall()
        assert len(cut) == 1, "one connection listens for one topic"
        hint_trials.until(lambda: hints.heard_count == 2, "nobody said that it should look")
        make().publish("gate/cut")
        hint_trials.until(lambda: hints.heard_count == 3, "it does not listen again")
        stop()
        gone = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'"
        hint_trials.until(lambda: admin.execute(gone).fetchone() == (0,), "a connection stays open")


def test_no_server_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    hints = multicast(f"postgres://{USER}:{ESCAPED}@{HOST}:{free_port()}/{USER}")
    hint_trials.a_bus_that_is_away_is_reported_once(hints, caplog)
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("end", ["bad%zzescape/app", "h:port/app", "h", "h/app?nonsense=1"])
def test_urls_that_cannot_be_read_keep_their_secret(end: str) -> None:
    with pytest.raises(Unsupported) as refusal:
        multicast(f"postgres://{USER}:s3cret@{end}")
    assert "s3cret" not in str(refusal.value)


def test_a_bus_is_called_by_its_first_host_alone() -> None:
    bus = PostgresBus(conninfo_of(f"postgres://{USER}:s3cret@h:1,g:2/app", {}), "hints")
    assert bus.display_url == "postgres://h:1"
