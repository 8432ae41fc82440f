"""What is given back while the store is away for some seconds, choosing a leader say, is free when
it comes again: not only when its TTL is over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from strongroom.coordination.client import Client
from strongroom.coordination.effects import CasOutcome, Entry, LeaseTerms
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.stores.memory import MemoryStore

_AWAY_S = 2.0
_TTL_S = 300.0


class AbsentStore(MemoryStore):
    """A memory store that can be away: it then says so at once."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.refused_count = 0

    def _check(self) -> None:
        if self.away:
            self.refused_count += 1
            raise StoreUnavailable("no leader")

    def get(self, key: str, timeout_s: float) -> Entry | None:
        self._check()
        return super().get(key, timeout_s)

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        self._check()
        return super().cas(key, expected, value, timeout_s, lease, note)

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        self._check()
        return super().delete(key, expected, timeout_s)

    def come_back(self) -> None:
        self.away = False


_HOLDS: dict[str, Callable[[Client], AbstractContextManager[object]]] = {
    "lock": lambda client: client.lock("a", ttl=_TTL_S),
    "semaphore": lambda client: client.semaphore("a", 1, ttl=_TTL_S),
    "write lock": lambda client: client.rwlock("a", ttl=_TTL_S).write(),
}


@pytest.mark.parametrize("kind", _HOLDS)
def test_a_hold_is_free_when_the_store_is_back(kind: str) -> None:
    store = AbsentStore()
    with Client(store, label="mine") as mine, Client(store, label="other") as other:
        back = threading.Timer(_AWAY_S, store.come_back)
        with _HOLDS[kind](mine):
            store.away = True
            back.start()
        assert not store.away, "the release gave up before the store was back"
        assert store.refused_count > 4
        with _HOLDS[kind](other):
            pass
        back.join()


def test_a_member_is_gone_when_the_store_is_back() -> None:
    store = AbsentStore()
    with Client(store, label="mine") as mine, Client(store, label="other") as other:
        back = threading.Timer(_AWAY_S, store.come_back)
        membership = mine.members("g", ttl=_TTL_S).join()
        assert len(other.members("g", ttl=_TTL_S).list()) == 1
        store.away = True
        back.start()
        membership.leave()
        assert not store.away
        assert other.members("g", ttl=_TTL_S).list() == ()
        back.join()


def test_a_store_that_stays_away_is_given_up() -> None:
    store = AbsentStore()
    with Client(store, label="mine") as mine:
        held = mine.lock("a", ttl=1.0).acquire()
        store.away = True
        assert held.release() is False
        assert store.refused_count >= 4
