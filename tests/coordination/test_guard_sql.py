"""The guard for SQL, on SQLite: the database refuses a write with an old fence."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strongroom.coordination import CorruptRecord, StoreUnavailable, Unsupported
from strongroom.coordination.guards import FencedOut, Guards, Token
from strongroom.coordination.guards.sql import SqlGuard
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


@pytest.fixture
def connect(tmp_path: Path) -> trials.Connect:
    def opened() -> sqlite3.Connection:
        return sqlite3.connect(tmp_path / "data.db", timeout=30)

    trials.prepare(opened)
    return opened


@pytest.mark.parametrize("trial", TRIALS)
def test_trial(trial: str, connect: trials.Connect) -> None:
    TRIALS[trial](connect)


def test_stale_writes_are_refused_every_time(connect: trials.Connect) -> None:
    assert trials.stale_writes_are_lost_updates(connect, guarded=True) == 0


def test_the_control_without_the_guard_loses_updates(connect: trials.Connect) -> None:
    assert trials.stale_writes_are_lost_updates(connect, guarded=False) == 20


def test_autocommit_is_refused(connect: trials.Connect) -> None:
    connection = connect()
    connection.isolation_level = None
    trials.a_connection_that_commits_by_itself_is_refused(connection)
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    trials.guard(connection, 1).enter(cursor)
    connection.commit()
    connection.close()


def test_rows_that_are_mappings_and_named_parameters(connect: trials.Connect) -> None:
    connection = connect()
    connection.row_factory = lambda cursor, row: {cursor.description[0][0]: row[0]}
    for style in ("named", "qmark"):
        with Guards(Token("job", 3)).sql(connection, paramstyle=style):
            pass
        with (
            pytest.raises(FencedOut, match="fence 3"),
            Guards(Token("job", 2)).sql(connection, paramstyle=style),
        ):
            pass
    connection.close()


def test_what_is_no_fence_in_the_table_is_told(connect: trials.Connect) -> None:
    connection = connect()
    connection.execute("INSERT INTO strongroom_fences VALUES ('job', 'many')")
    connection.commit()
    with pytest.raises(CorruptRecord, match="many"), trials.guard(connection, 1):
        pass
    connection.close()


class Spy:
    """A driver without a database: it records its calls, and returns scripted results."""

    def __init__(self, rows: list[Any], counts: list[int]) -> None:
        self.said: list[tuple[str, Any]] = []
        self.rows, self.counts, self.rowcount = rows, counts, -1
        self.autocommit = False

    def cursor(self) -> Spy:
        return self

    def execute(self, operation: str, parameters: Any = ()) -> None:
        self.said.append((" ".join(operation.split()), parameters))
        if operation.lstrip().startswith("UPDATE"):
            self.rowcount = self.counts.pop(0)
        if operation.lstrip().startswith("INSERT") and self.rows == [None]:
            raise sqlite3.IntegrityError("it is there already")

    def fetchone(self) -> Any:
        return self.rows[0]

    def close(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


STYLES = {
    "qmark": ("fence = ? WHERE resource = ? AND fence <= ?", (4, "job", 4)),
    "format": ("fence = %s WHERE resource = %s AND fence <= %s", (4, "job", 4)),
    "numeric": ("fence = :1 WHERE resource = :2 AND fence <= :3", (4, "job", 4)),
    "named": (
        "fence = :fence WHERE resource = :resource AND fence <= :limit",
        {"fence": 4, "resource": "job", "limit": 4},
    ),
    "pyformat": (
        "fence = %(fence)s WHERE resource = %(resource)s AND fence <= %(limit)s",
        {"fence": 4, "resource": "job", "limit": 4},
    ),
}


@pytest.mark.parametrize("style", STYLES)
def test_every_parameter_style(style: str) -> None:
    spy = Spy([], [1])
    SqlGuard(Token("job", 4), spy, paramstyle=style).enter(spy)
    statement, parameters = STYLES[style]
    assert spy.said == [(f"UPDATE strongroom_fences SET {statement}", parameters)]


def test_an_unknown_parameter_style_is_told() -> None:
    with pytest.raises(Unsupported, match="shouted"):
        SqlGuard(Token("job", 4), Spy([], []), paramstyle="shouted")
    with pytest.raises(Unsupported, match="paramstyle="):
        SqlGuard(Token("job", 4), Spy([], []))


def test_a_driver_that_does_not_count_what_stays_the_same() -> None:
    spy = Spy([(4,)], [0, 0])
    SqlGuard(Token("job", 4), spy, paramstyle="format").enter(spy)


def test_whoever_slipped_in_between_is_written_over_or_obeyed() -> None:
    spy = Spy([(3,)], [0, 1])
    SqlGuard(Token("job", 4), spy, paramstyle="format").enter(spy)
    assert len(spy.said) == 3, "an older one that came first in between is followed by an update"
    spy = Spy([(5,)], [0])
    with pytest.raises(FencedOut):
        SqlGuard(Token("job", 4), spy, paramstyle="format").enter(spy)
    both_first = Spy([None], [0])
    with pytest.raises(StoreUnavailable, match="try again"):
        SqlGuard(Token("job", 4), both_first, paramstyle="format").enter(both_first)


def test_a_driver_that_says_only_autocommit() -> None:
    spy = Spy([], [1])
    spy.autocommit = True
    with pytest.raises(Unsupported, match="autocommit"):
        SqlGuard(Token("job", 4), spy, paramstyle="format").enter(spy)
