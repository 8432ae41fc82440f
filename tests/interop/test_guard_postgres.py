"""The guard for SQL on a real PostgreSQL, through psycopg, with holders that follow each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from strongroom import coordination as coord
from strongroom.coordination.guards import FencedOut, Guards, Token
from strongroom.coordination.guards.sql import SqlGuard
from tests.coordination import servers
from tests.coordination import sql_guard_trials as trials

TRIALS: dict[str, Callable[[trials.Connect], None]] = {
    trial.__name__: trial
    for trial in (
        trials.an_old_fence_is_refused,
        trials.a_failed_body_leaves_no_trace,
        trials.the_callers_own_transaction,
        trials.a_hold_that_is_over_does_not_even_ask,
        trials.resources_have_fences_of_their_own,
        trials.what_is_no_fence_is_told,
        trials.applied_fences_never_go_back,
    )
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.PostgresServer]:
    folder: Path = tmp_path_factory.mktemp("postgres")
    with servers.postgres_server(folder) as running:
        yield running


@pytest.fixture
def connect(server: servers.PostgresServer) -> trials.Connect:
    drops = (
        "DROP TABLE IF EXISTS counter",
        "DROP TABLE IF EXISTS applied",
        "DROP TABLE IF EXISTS strongroom_fences",
    )
    with psycopg.connect(server.url, autocommit=True) as admin:
        for drop in drops:
            admin.execute(drop)
    trials.prepare(lambda: psycopg.connect(server.url))
    return lambda: psycopg.connect(server.url)


@pytest.mark.parametrize("trial", TRIALS)
def test_trial(trial: str, connect: trials.Connect) -> None:
    TRIALS[trial](connect)


def test_stale_writes_are_refused_every_time(connect: trials.Connect) -> None:
    assert trials.stale_writes_are_lost_updates(connect, guarded=True) == 0


def test_the_control_without_the_guard_loses_updates(connect: trials.Connect) -> None:
    assert trials.stale_writes_are_lost_updates(connect, guarded=False) == 20


def test_autocommit_is_refused(connect: trials.Connect, server: servers.PostgresServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        trials.a_connection_that_commits_by_itself_is_refused(connection)
        with connection.transaction():
            trials.guard(connection, 1).enter(connection.cursor())


def test_rows_that_are_mappings(connect: trials.Connect, server: servers.PostgresServer) -> None:
    with psycopg.connect(server.url, row_factory=dict_row) as connection:
        with trials.guard(connection, 3):
            pass
        with pytest.raises(FencedOut, match="fence 3"), trials.guard(connection, 2):
            pass
        with Guards(Token("job", 4)).sql(connection, paramstyle="format"):
            pass


def test_two_that_come_first_at_the_same_moment(
    connect: trials.Connect, server: servers.PostgresServer
) -> None:
    """The second waits for the first, and may continue only if it has the later fence."""
    with psycopg.connect(server.url) as first, psycopg.connect(server.url) as second:
        outcome: list[object] = []

        def enter() -> None:
            try:
                SqlGuard(Token("job", 2), second).enter(second.cursor())
                outcome.append("entered")
            except coord.StoreUnavailable as error:
                outcome.append(error)

        trials.guard(first, 1).enter(first.cursor())
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(0.3)
        assert not outcome, "it must wait"
        first.commit()
        thread.join(30)
        assert isinstance(outcome[0], coord.StoreUnavailable)
        second.rollback()
        SqlGuard(Token("job", 2), second).enter(second.cursor())
        second.commit()
        with pytest.raises(FencedOut), trials.guard(first, 1):
            pass


def test_the_later_holder_waits_for_a_transaction_that_has_entered(
    connect: trials.Connect, server: servers.PostgresServer
) -> None:
    with psycopg.connect(server.url) as old, psycopg.connect(server.url) as new:
        with trials.guard(old, 1):
            pass
        cursor = old.cursor()
        trials.guard(old, 1).enter(cursor)
        trials.write(cursor, 10)

        def follow() -> None:
            with trials.guard(new, 2) as mine:
                mine.execute("UPDATE counter SET value = value + 1 WHERE place = 1")

        thread = threading.Thread(target=follow)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive(), "it must wait"
        old.commit()
        thread.join(30)
        assert trials.value_of(new) == 11


def test_the_pause_that_locks_cannot_see(
    connect: trials.Connect, server: servers.PostgresServer
) -> None:
    """A holder that stops between its check and its write, while the store is the same database."""
    with coord.connect(server.url) as client, client.sibling() as rival, connect() as database:
        held = client.lock("job", ttl=15).acquire()
        held.check()
        assert rival.break_lock("job") is not None
        with rival.lock("job", ttl=15, wait=5) as taken:
            assert taken.fence > held.fence
            with taken.guard.sql(database) as cursor:
                trials.write(cursor, 5)
            held.check()  # it does not know yet
            with pytest.raises(FencedOut), held.guard.sql(database) as cursor:
                trials.write(cursor, 99)
        assert trials.value_of(database) == 5
