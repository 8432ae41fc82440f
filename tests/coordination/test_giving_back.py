"""What is given back while the store is away for some seconds, choosing a leader say, is free when
it comes again: not only when its TTL is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from strongroom.coordination.client import Client
from tests.coordination.test_lock import FlakyStore

_AWAY_S = 2.0
_TTL_S = 300.0
_WAIT_S = 10.0

_HOLDS: dict[str, Callable[[Client], AbstractContextManager[object]]] = {
    "lock": lambda client: client.lock("a", ttl=_TTL_S, wait=_WAIT_S),
    "semaphore": lambda client: client.semaphore("a", 1, ttl=_TTL_S, wait=_WAIT_S),
    "write lock": lambda client: client.rwlock("a", ttl=_TTL_S, wait=_WAIT_S).write(),
}


@contextmanager
def _away(store: FlakyStore) -> Iterator[None]:
    """Cut the store off for a while; what begins meanwhile must outlast it."""
    back = threading.Timer(_AWAY_S, setattr, (store, "cut", False))
    store.cut = True
    back.start()
    try:
        yield
        assert not store.cut, "it was given up before the store was back"
    finally:
        back.join()


@pytest.mark.parametrize("kind", _HOLDS)
def test_a_hold_is_free_when_the_store_is_back(kind: str) -> None:
    store = FlakyStore()
    with Client(store, label="mine") as mine, Client(store, label="other") as other:
        hold = _HOLDS[kind](mine)
        hold.__enter__()
        with _away(store):
            hold.__exit__(None, None, None)
        with _HOLDS[kind](other):
            assert not store.cut


def test_a_member_is_gone_when_the_store_is_back() -> None:
    store = FlakyStore()
    with Client(store, label="mine") as mine, Client(store, label="other") as other:
        membership = mine.members("g", ttl=_TTL_S).join()
        assert len(other.members("g", ttl=_TTL_S).list()) == 1
        with _away(store):
            membership.leave()
        assert other.members("g", ttl=_TTL_S).list() == ()


def test_a_store_that_stays_away_is_given_up() -> None:
    store = FlakyStore()
    with Client(store, label="mine") as mine:
        held = mine.lock("a", ttl=1.0).acquire()
        store.cut = True
        assert held.release() is False
