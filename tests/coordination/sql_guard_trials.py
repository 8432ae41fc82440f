"""The contract of the guard for SQL on every database: trials that run on each real one.

Lives here: the trials, over connections that the caller makes. Must not live here: a database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from strongroom import coordination as coord
from strongroom.coordination.guards import FencedOut, Guards, Token
from strongroom.coordination.guards.sql import SqlGuard

Connect = Callable[[], Any]
"""Opens a connection to one database whose tables are there; see `prepare`."""
_LAPS = 20


def prepare(connect: Connect) -> None:
    """Create the tables, from several connections at once."""
    with closing(connect()) as connection:
        guard(connection, 0).create_table()
        guard(connection, 0).create_table()
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE counter (place INTEGER PRIMARY KEY, value INTEGER)")
        cursor.execute("CREATE TABLE applied (number INTEGER, fence INTEGER)")
        cursor.execute("INSERT INTO counter VALUES (1, 0)")
        connection.commit()


def guard(connection: Any, fence: int, name: str = "job") -> SqlGuard:
    return Guards(Token(name, fence)).sql(connection)


def value_of(connection: Any) -> int:
    cursor = connection.cursor()
    cursor.execute("SELECT value FROM counter WHERE place = 1")
    value: int = cursor.fetchone()[0]
    connection.rollback()
    return value


def write(cursor: Any, value: int) -> None:
    cursor.execute(f"UPDATE counter SET value = {value} WHERE place = 1")


def an_old_fence_is_refused(connect: Connect) -> None:
    with closing(connect()) as one, closing(connect()) as two:
        with guard(one, 1) as cursor:
            write(cursor, 1)
        with guard(two, 2) as cursor:
            write(cursor, 2)
        with pytest.raises(FencedOut, match=r"fence 1 of 'job'.*fence 2"), guard(one, 1) as cursor:
            write(cursor, 99)
        assert value_of(one) == 2
        with guard(one, 9, "another lock") as cursor:
            write(cursor, 3)
        with guard(two, 2) as cursor:
            write(cursor, 4)
        assert value_of(one) == 4


def a_failed_body_leaves_no_trace(connect: Connect) -> None:
    with closing(connect()) as one:
        with pytest.raises(ZeroDivisionError), guard(one, 5) as cursor:
            _write_and_fail(cursor)
        assert value_of(one) == 0
        with guard(one, 4) as cursor:
            write(cursor, 1)
        assert value_of(one) == 1


def _write_and_fail(cursor: Any) -> None:
    write(cursor, 99)
    raise ZeroDivisionError


def the_callers_own_transaction(connect: Connect) -> None:
    with closing(connect()) as one, closing(connect()) as two:
        cursor = one.cursor()
        mine = guard(one, 3)
        mine.enter(cursor)
        mine.enter(cursor)
        write(cursor, 3)
        one.rollback()
        assert value_of(two) == 0
        mine.enter(cursor)
        write(cursor, 3)
        one.commit()
        assert value_of(two) == 3
        with pytest.raises(FencedOut):
            guard(two, 2).enter(two.cursor())
        two.rollback()


def a_hold_that_is_over_does_not_even_ask(connect: Connect) -> None:
    with closing(connect()) as one, coord.connect("memory://") as client:
        held = client.lock("job", ttl=15).acquire()
        with held.guard.sql(one) as cursor:
            write(cursor, 1)
        held.release()
        with pytest.raises(coord.LockLost), held.guard.sql(one) as cursor:
            write(cursor, 2)
        assert value_of(one) == 1


def resources_have_fences_of_their_own(connect: Connect) -> None:
    with closing(connect()) as one:
        for resource in ("first", "second", "ü'; --"):
            with Guards(Token("job", 7)).sql(one, resource=resource) as cursor:
                write(cursor, 1)
            with (
                pytest.raises(FencedOut, match=resource),
                Guards(Token("job", 6)).sql(one, resource=resource),
            ):
                pass
        with pytest.raises(coord.Unsupported, match="255"):
            Guards(Token("job", 7)).sql(one, resource="x" * 256)


def what_is_no_fence_is_told(connect: Connect) -> None:
    with closing(connect()) as one, pytest.raises(coord.Unsupported, match="BIGINT"):
        guard(one, 2**63).__enter__()


def a_connection_that_commits_by_itself_is_refused(connection: Any) -> None:
    with pytest.raises(coord.Unsupported, match="autocommit"), guard(connection, 1):
        pass


def stale_writes_are_lost_updates(connect: Connect, guarded: bool) -> int:
    """Let a holder pause between read and write while the next one counts.

    Return how many of the counts were lost.
    """
    with closing(connect()) as old, closing(connect()) as new:
        refused = 0
        for lap in range(_LAPS):
            seen = value_of(old)  # here the holder pauses for longer than its lease
            _count(new, value_of(new), 2 * lap + 2, guarded)
            try:
                _count(old, seen, 2 * lap + 1, guarded)
            except FencedOut:
                refused += 1
        assert refused == (_LAPS if guarded else 0)
        return _LAPS - value_of(new) if guarded else 2 * _LAPS - value_of(new)


def _count(connection: Any, seen: int, fence: int, guarded: bool) -> None:
    with guard(connection, fence) if guarded else _plain(connection) as cursor:
        write(cursor, seen + 1)


@contextmanager
def _plain(connection: Any) -> Any:
    yield connection.cursor()
    connection.commit()


def applied_fences_never_go_back(connect: Connect, holders_count: int = 6) -> None:
    """Holders of rising fences write concurrently, as fast as they can, until they are refused."""
    barrier = threading.Barrier(holders_count)

    def work(fence: int) -> tuple[int, bool]:
        done = 0
        with closing(connect()) as connection:
            barrier.wait(30)
            while done < _LAPS:
                try:
                    with guard(connection, fence, "race") as cursor:
                        cursor.execute("SELECT count(*) FROM applied")
                        number = cursor.fetchone()[0]
                        cursor.execute(f"INSERT INTO applied VALUES ({number}, {fence})")
                    done += 1
                except FencedOut:
                    return done, True
                except coord.StoreUnavailable:
                    continue  # both inserted the first row
        return done, False

    with ThreadPoolExecutor(holders_count) as pool:
        outcomes = list(pool.map(work, range(1, holders_count + 1)))
    assert outcomes[-1] == (_LAPS, False), "the latest holder is never refused"
    with closing(connect()) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT number, fence FROM applied ORDER BY number")
        rows = cursor.fetchall()
    assert [number for number, _ in rows] == list(range(sum(done for done, _ in outcomes)))
    fences = [fence for _, fence in rows]
    assert fences == sorted(fences)
