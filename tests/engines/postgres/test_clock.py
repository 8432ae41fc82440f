"""The database's clock as a gateway knows it: by its answers, and how exactly."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.clock import ManualClock, SystemClock
from strongroom.engines.base import Unavailable
from strongroom.engines.postgres.assembly import PostgresOptions, open_store
from strongroom.engines.postgres.gateways import heartbeats
from strongroom.engines.postgres.gateways.clock import DOUBT_MAX_S, DatabaseClock
from strongroom.testing.contract.subject import face, put
from strongroom.values import TICKS_PER_S
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator, fresh_schema

MS = TICKS_PER_S // 1000


class Database:
    """A database whose clock is some seconds ahead of the machine's boot clock."""

    def __init__(self, ahead_s: float) -> None:
        self.machine = ManualClock()
        self.known = DatabaseClock(self.machine)
        self.ahead = round(ahead_s * TICKS_PER_S)

    @property
    def now(self) -> int:
        return self.machine.boot_ticks() + self.ahead

    @property
    def error_s(self) -> float:
        return abs(self.known.wall_ticks() - self.now) / TICKS_PER_S

    def asked(self, there_s: float, back_s: float) -> None:
        """The question takes so long, and then the answer."""
        sent = self.machine.boot_ticks()
        self.machine.advance(there_s)
        told = self.now
        self.machine.advance(back_s)
        self.known.learn(sent, self.machine.boot_ticks(), told)


def test_a_quick_answer_counts_more_than_later_slow_ones() -> None:
    database = Database(50.0)
    database.asked(0.001, 0.001)
    for _ in range(20):
        database.asked(0.0, 0.4)
    assert database.error_s < 0.001
    assert database.known.doubt_s < DOUBT_MAX_S


def test_the_clock_is_never_further_off_than_its_doubt() -> None:
    database = Database(50.0)
    for there_s, back_s in ((0.0, 0.5), (0.5, 0.0), (0.1, 0.3), (0.0, 0.01), (0.3, 0.0)):
        database.asked(there_s, back_s)
        assert database.error_s <= database.known.doubt_s + 1 / TICKS_PER_S


def test_slow_answers_alone_leave_a_doubt_until_a_quick_one() -> None:
    database = Database(50.0)
    for _ in range(100):
        database.asked(0.15, 0.15)
    assert database.known.doubt_s > DOUBT_MAX_S
    database.asked(0.01, 0.01)
    assert database.known.doubt_s < DOUBT_MAX_S


@pytest.mark.parametrize("jump_s", [5.0, -5.0, 0.2])
def test_a_clock_that_was_set_is_followed_at_once(jump_s: float) -> None:
    database = Database(50.0)
    for _ in range(10):
        database.asked(0.001, 0.001)
    database.ahead += round(jump_s * TICKS_PER_S)
    database.asked(0.01, 0.01)
    assert database.error_s <= database.known.doubt_s < DOUBT_MAX_S


def test_old_answers_count_less_and_less() -> None:
    database = Database(50.0)
    database.asked(0.001, 0.001)
    before_s = database.known.doubt_s
    database.machine.advance(1000.0)
    assert database.known.doubt_s > before_s + 0.1


def test_a_gateway_that_does_not_know_the_time_says_so_and_goes_on_later(
    postgres: PostgresServer, administrator: Administrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = fresh_schema()

    async def trial() -> None:
        store = await open_store(postgres.url, SystemClock(), PostgresOptions(2, schema=schema))
        try:
            await put(store, (face(), b"before"))
            with monkeypatch.context() as patch:
                patch.setattr(heartbeats, "DOUBT_MAX_S", -1.0)
                with pytest.raises(Unavailable, match="clock is known to"):
                    await put(store, (face(), b"meanwhile"))
                with pytest.raises(Unavailable, match="clock is known to"):
                    await store.read([face()])
            await put(store, (face(), b"after"))
        finally:
            await store.close()

    try:
        asyncio.run(trial())
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")
