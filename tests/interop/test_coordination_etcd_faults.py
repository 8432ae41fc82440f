"""The etcd store when members die, pause, or lose each other: with three members, and with one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from strongroom import coordination as coord
from strongroom.coordination.effects import Applied, CasOutcome, Entry, Unknown
from tests.coordination.conformance import TIMEOUT_S, applied, entry_of, fresh_key
from tests.coordination.servers import EtcdCluster, etcd_cluster

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("three"), 3) as running:
        yield running


@pytest.fixture
def whole(cluster: EtcdCluster) -> Iterator[EtcdCluster]:
    """All three, which are made to run again afterwards."""
    yield cluster
    for number, member in enumerate(cluster.members):
        if member.runs():
            cluster.resume(number)
        else:
            member.start()
    cluster.ready()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("one")) as running:
        yield running


def until(true: Callable[[], bool], complaint: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s, complaint
        time.sleep(0.05)


@contextmanager
def opened(cluster: EtcdCluster) -> Iterator[coord.Store]:
    """A store of a cluster, for as long as the block lasts."""
    store = coord.open_store(cluster.url)
    yield store
    store.close()


class Rival:
    """Wants what another holds, all the time; notes whether both ever believed at once."""

    def __init__(self, url: str, name: str, held: coord.Held) -> None:
        self.both_believed = False
        self.fence = 0
        self._url, self._name, self._held = url, name, held
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        client = coord.connect(self._url)
        with client, client.lock(self._name, ttl=9, wait=PATIENCE_S) as mine:
            self.both_believed = self._held.remaining() > 0 and mine.remaining() > 0
            self.fence = mine.fence

    def join(self) -> None:
        self._thread.join(PATIENCE_S * 2)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("how", ["killed", "stopped and continued"])
def test_the_leader_falls_while_something_is_held(whole: EtcdCluster, how: str) -> None:
    """The holder keeps it or knows that it is over; never do two believe; the fence rises.

    A leader that was stopped does not know at first that there is another: it must not end what
    was renewed meanwhile.
    """
    name = fresh_key()
    with coord.connect(whole.url) as client:
        held = client.lock(name, ttl=15).acquire()
        rival = Rival(whole.url, name, held)
        leader = whole.leader()
        if how == "killed":
            whole.kill(leader)
            time.sleep(16)
        else:
            whole.pause(leader)
            time.sleep(16)
            whole.resume(leader)
            time.sleep(2)
        kept, fence = held.remaining() > 0, held.fence
        assert kept or held.lost.is_set()
        with opened(whole) as store:
            entry = entry_of(store, f"lock/{name.replace('/', '%2F')}")
            assert not kept or (entry.expires_in_s or 0) > 0
        held.release()
        rival.join()
    assert not rival.both_believed
    assert rival.fence > fence
    assert kept, "fifteen seconds are enough for an election and a renewal"


@pytest.mark.parametrize("dead", ["the one that is asked first, and watched", "the leader"])
def test_a_waiter_is_woken_though_a_member_died(whole: EtcdCluster, dead: str) -> None:
    """The release succeeds too, although the others may have to elect a leader first."""
    name, got = fresh_key(), threading.Event()
    with coord.connect(whole.url) as mine, coord.connect(whole.url) as other:
        held = mine.lock(name, ttl=300).acquire()

        def wait() -> None:
            with other.lock(name, ttl=300, wait=PATIENCE_S):
                got.set()

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.5)
        whole.kill(whole.leader() if dead == "the leader" else 0)
        time.sleep(0.2)
        held.release()
        assert got.wait(PATIENCE_S)
        thread.join()


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_another_member_is_asked(whole: EtcdCluster, fault: str) -> None:
    with opened(whole) as store:
        key = fresh_key()
        version = applied(store.cas(key, None, b"one", TIMEOUT_S))
        getattr(whole, fault)(0)
        entry: list[Entry | None] = []

        def reads() -> bool:
            try:
                entry[:] = [store.get(key, 3.0)]
            except coord.StoreUnavailable:
                return False  # the others may have to choose a leader first
            return True

        until(reads, "nobody answers")
        assert entry[0] is not None and entry[0].version == version

        def writes() -> bool:
            if isinstance(store.cas(key, version, b"two", TIMEOUT_S), Applied):
                return True
            # On a busy machine the answer may come too late: the write is there, or is tried again.
            return reads() and entry[0] is not None and entry[0].value == b"two"

        until(writes, "nobody writes")


def test_without_a_majority_nothing_is_promised(whole: EtcdCluster) -> None:
    """No acknowledged write is lost either."""
    name = fresh_key()
    with coord.connect(whole.url) as client, opened(whole) as store:
        key = fresh_key()
        version = applied(store.cas(key, None, b"one", TIMEOUT_S))
        held = client.lock(name, ttl=3).acquire()
        fence = held.fence
        for number in (0, 1):
            whole.kill(number)
        outcome = _tried(lambda: store.cas(key, version, b"two", 1.0))
        assert not isinstance(outcome, Applied)
        with pytest.raises(coord.StoreUnavailable):
            store.get(key, 1.0)
        assert held.lost.wait(10), "the holder must know in time"
        for number in (0, 1):
            whole.members[number].start()
        whole.ready()
        entry = entry_of(store, key)
        assert entry.value in (b"one", b"two")
        with client.lock(name, ttl=3, wait=PATIENCE_S) as again:
            assert again.fence > fence


def test_a_member_without_a_majority_ends_its_watches(whole: EtcdCluster) -> None:
    """Otherwise a waiter there would not learn of the others' changes."""
    with opened(whole) as store:
        key = fresh_key()
        version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    watched = coord.open_store(f"etcd://{whole.members[2].address}")
    failures: list[coord.StoreUnavailable] = []

    def wait() -> None:
        try:
            watched.watch(key, version, PATIENCE_S)
        except coord.StoreUnavailable as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.5)
    for number in (0, 1):
        whole.pause(number)
    thread.join(PATIENCE_S * 2)
    watched.close()
    assert len(failures) == 1


def test_a_stopped_server_leaves_the_write_unknown(alone: EtcdCluster) -> None:
    with opened(alone) as store:
        key = fresh_key()
        version = applied(store.cas(key, None, b"one", TIMEOUT_S))
        alone.pause(0)
        try:
            assert isinstance(store.cas(key, version, b"two", 0.5), Unknown)
            with pytest.raises(coord.StoreUnavailable):
                store.get(key, 0.5)
        finally:
            alone.resume(0)


def test_what_was_answered_survives_a_kill(alone: EtcdCluster) -> None:
    name = fresh_key()
    with coord.connect(alone.url) as client, opened(alone) as store:
        key = fresh_key()
        version = applied(store.cas(key, None, b"one", TIMEOUT_S))
        with client.lock(name, ttl=30) as held:
            fence = held.fence
        ids = client.ids(name, batch=5).take(5)
        alone.kill(0)
        with pytest.raises(coord.StoreUnavailable):
            store.get(key, 0.5)
        alone.restart(0)
        entry = entry_of(store, key)
        assert (entry.value, entry.version) == (b"one", version)
        with client.lock(name, ttl=30) as held:
            assert held.fence > fence
        assert not set(ids) & set(client.ids(name, batch=5).take(5))


def test_a_hold_survives_a_restart_of_its_server(alone: EtcdCluster) -> None:
    """Bound to its newest lease alone, also after the server has read it back from disk."""
    name = fresh_key()
    with coord.connect(alone.url) as client:
        held = client.lock(name, ttl=12).acquire()
        time.sleep(5)  # a renewal
        alone.members[0].stop(signal.SIGKILL)
        alone.restart(0)
        time.sleep(8)  # the first lease would have ended, and another renewal was due
        assert held.remaining() > 0
        with coord.connect(alone.url) as other:
            assert other.lock(name, ttl=12).try_acquire() is None
        held.release()


def _tried(write: Callable[[], CasOutcome]) -> CasOutcome | None:
    try:
        return write()
    except coord.StoreUnavailable:
        return None
