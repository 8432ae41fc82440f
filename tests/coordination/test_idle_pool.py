"""Kept connections: which are reused, and which are closed."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from strongroom.coordination.clock import ManualClocks
from strongroom.coordination.stores.connections.idle_pool import IdlePool


class Answer(Exception):
    """The server refuses the request."""


class Fake:
    """A connection that does nothing."""

    def __init__(self) -> None:
        self.stale = self.closed = False

    def is_stale(self) -> bool:
        return self.stale

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> list[Fake]:
    return []


@pytest.fixture
def clock() -> ManualClocks:
    return ManualClocks()


@pytest.fixture
def pool(made: list[Fake], clock: ManualClocks) -> IdlePool[Fake]:
    def connect(until_s: float) -> Fake:
        if until_s < 0:
            raise OSError("nobody is there")
        made.append(Fake())
        return made[-1]

    return IdlePool(connect, lambda error: isinstance(error, Answer), clock)


def lend_at_once(pool: IdlePool[Fake], count: int) -> None:
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(pool.lend(1.0))


def test_one_after_the_other_uses_the_same(pool: IdlePool[Fake], made: list[Fake]) -> None:
    for _ in range(3):
        lend_at_once(pool, 1)
    assert len(made) == 1 and not made[0].closed


def test_an_answer_keeps_it_and_an_error_does_not(pool: IdlePool[Fake], made: list[Fake]) -> None:
    for error, count in ((Answer, 1), (OSError, 1), (KeyboardInterrupt, 2)):
        with pytest.raises(error), pool.lend(1.0):
            raise error
        assert len(made) == count
    assert [one.closed for one in made] == [True, True]


def test_one_that_said_good_bye_is_not_lent(pool: IdlePool[Fake], made: list[Fake]) -> None:
    lend_at_once(pool, 2)
    made[0].stale = made[1].stale = True
    lend_at_once(pool, 1)
    assert [one.closed for one in made] == [True, True, False]


def test_what_a_burst_left_behind_goes(
    pool: IdlePool[Fake], made: list[Fake], clock: ManualClocks
) -> None:
    lend_at_once(pool, 12)
    assert sum(one.closed for one in made) == 4
    for _ in range(10):
        clock.advance(20)
        lend_at_once(pool, 1)
    assert sum(not one.closed for one in made) == 1
    pool.close()
    assert all(one.closed for one in made)


def test_no_connection_is_no_change(pool: IdlePool[Fake], made: list[Fake]) -> None:
    with pytest.raises(OSError, match="nobody"), pool.lend(-1.0):
        pass
    lend_at_once(pool, 1)
    assert len(made) == 1
