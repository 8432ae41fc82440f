"""The stores of the highest fence: in memory and in SQL. They are atomic, and fail closed."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.guards import FencedOut, Guards, Token
from strongroom.coordination.guards.http import ENVIRON_KEY, FenceWsgi, header_of
from strongroom.coordination.guards.keepers import (
    FenceKeeper,
    KeeperFull,
    MemoryKeeper,
    SqlKeeper,
    sqlite_keeper,
)
from strongroom.coordination.schema.records import FENCE_MAX


class FormatCursor:
    """SQLite's cursor in another driver's parameter style."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    def execute(self, operation: str, parameters: tuple[Any, ...] = ()) -> None:
        assert "?" not in operation
        self._cursor.execute(operation.replace("%s", "?"), parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


class FormatConnection:
    """SQLite's connection in another driver's parameter style."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=30)

    def cursor(self) -> FormatCursor:
        return FormatCursor(self._connection.cursor())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def format_keeper(path: Path) -> SqlKeeper:
    keeper = SqlKeeper(lambda: FormatConnection(path), "format")
    keeper.create_table()
    return keeper


@pytest.fixture(params=["memory", "sqlite", "format"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> FenceKeeper:
    path = tmp_path / "fences.db"
    made: dict[str, Callable[[], FenceKeeper]] = {
        "memory": MemoryKeeper,
        "sqlite": lambda: sqlite_keeper(path, 30),
        "format": lambda: format_keeper(path),
    }
    return made[request.param]()


def test_a_keeper_knows_the_highest(keeper: FenceKeeper) -> None:
    seen = [keeper.admit("a", fence) for fence in (3, 3, 2, 5, 4, FENCE_MAX, 6)]
    assert seen == [3, 3, 3, 5, 5, FENCE_MAX, FENCE_MAX]
    assert keeper.admit("b", 0) == 0
    assert keeper.admit("b", 1) == 1


def test_a_keeper_is_atomic_among_threads(keeper: FenceKeeper) -> None:
    order: list[tuple[int, int]] = []
    lock, start = threading.Lock(), threading.Barrier(8)

    def run(first: int) -> None:
        start.wait()
        for fence in range(first, 80, 8):
            seen = keeper.admit("a", fence)
            with lock:
                order.append((fence, seen))

    threads = [threading.Thread(target=run, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(order) == 80
    assert all(seen >= fence for fence, seen in order)
    assert keeper.admit("a", 0) == 79


def test_memory_does_not_fill_and_forgets_nothing() -> None:
    keeper = MemoryKeeper(names_max=2)
    assert [keeper.admit("a", 5), keeper.admit("b", 1)] == [5, 1]
    with pytest.raises(KeeperFull):
        keeper.admit("c", 1)
    assert keeper.admit("a", 4) == 5


def test_sql_outlives_the_process_and_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "fences.db"
    sqlite_keeper(path).admit("a", 7)
    other = multiprocessing.get_context("spawn").Process(target=_admit, args=(path, 9))
    other.start()
    other.join(60)
    assert other.exitcode == 0
    assert sqlite_keeper(path).admit("a", 8) == 9


def _admit(path: Path, fence: int) -> None:
    assert sqlite_keeper(path).admit("a", fence) == fence


def test_in_the_transaction_of_the_data_nothing_of_an_old_holder_is_committed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.db"
    keeper = sqlite_keeper(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE report (text TEXT)")

    def late(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """An application that is slow: a later holder is admitted while it runs."""
        assert keeper.admit("reports", 2) == 2
        with closing(sqlite3.connect(path)) as connection:
            try:
                with Guards(environ[ENVIRON_KEY]).sql(connection) as cursor:
                    cursor.execute("INSERT INTO report VALUES ('late')")
            except FencedOut as error:
                start_response("412 Precondition Failed", [])
                return [str(error).encode()]
        start_response("200 OK", [])
        return []

    started: list[str] = []
    guarded = FenceWsgi(late, keeper)
    for number, status in ((1, "412"), (2, "200")):
        environ = {"REQUEST_METHOD": "PUT", "HTTP_FENCE": header_of(Token("reports", number))}
        guarded(environ, lambda status, _: started.append(status))
        assert started.pop().startswith(status)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM report").fetchone() == (1,)


def test_a_sql_keeper_tries_again_when_another_was_first(tmp_path: Path) -> None:
    """Two first holders insert at once: the database refuses one insert, and that keeper reads
    again."""
    path = tmp_path / "fences.db"
    sqlite_keeper(path)
    inserted: list[str] = []

    class Racing(FormatCursor):
        def execute(self, operation: str, parameters: tuple[Any, ...] = ()) -> None:
            if operation.startswith("INSERT") and len(inserted) < failures:
                inserted.append(operation)
                raise sqlite3.IntegrityError("UNIQUE")
            super().execute(operation, parameters)

    class RacingConnection(FormatConnection):
        def cursor(self) -> FormatCursor:
            return Racing(self._connection.cursor())

    keeper = SqlKeeper(lambda: RacingConnection(path), "format")
    failures = 2
    assert keeper.admit("a", 7) == 7
    failures = 99
    with pytest.raises(StoreUnavailable):
        keeper.admit("b", 7)


def test_a_sql_keeper_that_cannot_write_admits_nobody(tmp_path: Path) -> None:
    path = tmp_path / "fences.db"
    keeper = sqlite_keeper(path, timeout_s=0.05)
    blocker = sqlite3.connect(path)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError):
        keeper.admit("a", 1)
    blocker.rollback()
    blocker.close()
    assert keeper.admit("a", 1) == 1
