"""The behaviour of a store's clients when its server or network fails: trials for each store.

Lives here: the trials, over a real server and `Proxy`. Must not live here: servers, behaviour of a
single store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from strongroom import coordination as coord
from strongroom.coordination.effects import Applied, Unknown
from tests.coordination.conformance import TIMEOUT_S, applied, entry_of, fresh_key
from tests.coordination.proxy import Proxy
from tests.coordination.recipe_trials import PATIENCE_S, fresh_name, until
from tests.coordination.servers import StoreServer


def through(server: StoreServer, proxy: Proxy) -> str:
    """Return the server's URL through a proxy."""
    return server.url.replace(server.address, proxy.address)


def a_stopped_server_leaves_the_write_unknown(server: StoreServer) -> None:
    store = coord.open_store(server.url)
    key = fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    server.pause()
    try:
        assert isinstance(store.cas(key, version, b"two", 0.3), Unknown)
        with pytest.raises(coord.StoreUnavailable):
            store.get(key, 0.3)
        with pytest.raises(coord.StoreUnavailable):
            store.list_keys(key, 0.3)
        began_s = time.monotonic()
        with pytest.raises(coord.StoreUnavailable):
            store.watch(key, version, 0.3)
        assert time.monotonic() - began_s < 10
    finally:
        server.resume()
    # The request was sent and may be applied late, which only a read can show.
    until(lambda: entry_of(store, key).value in (b"one", b"two"), "it does not come back")
    store.close()


def no_server_is_certainly_not_applied(server: StoreServer) -> None:
    with Proxy(server.address) as proxy:
        store = coord.open_store(through(server, proxy))
        proxy.cut()
        with pytest.raises(coord.StoreUnavailable):
            store.cas(fresh_key(), None, b"x", TIMEOUT_S)
        store.close()
    with pytest.raises(coord.StoreUnavailable):
        store.cas(fresh_key(), None, b"x", TIMEOUT_S)


def an_answer_that_is_cut_off_leaves_the_write_unknown(server: StoreServer) -> None:
    with Proxy(server.address) as proxy:
        store = coord.open_store(through(server, proxy))
        key = fresh_key()
        version = applied(store.cas(key, None, b"one", TIMEOUT_S))
        proxy.lose_answers = 1.0
        assert isinstance(store.cas(key, version, b"two", TIMEOUT_S), Unknown)
        proxy.heal()
        entry = entry_of(store, key)
        assert entry.value == b"two" and entry.version != version
        proxy.lose_requests = 1.0
        assert isinstance(store.cas(key, entry.version, b"three", TIMEOUT_S), Unknown)
        proxy.heal()
        assert entry_of(store, key) == entry
        store.close()


def kept_connections_that_ended_cost_nothing(server: StoreServer) -> None:
    """A kept connection that the server has closed is not used for a write, whose fate would be
    unknown."""
    with Proxy(server.address) as proxy:
        store = coord.open_store(through(server, proxy))
        key = fresh_key()
        version = applied(store.cas(key, None, b"one", TIMEOUT_S))
        proxy.reset()
        time.sleep(0.1)
        outcome = store.cas(key, version, b"two", TIMEOUT_S)
        assert isinstance(outcome, Applied)
        store.close()


def what_was_answered_survives_a_kill(server: StoreServer) -> None:
    store = coord.open_store(server.url)
    written = {}
    for number in range(20):
        key = fresh_key()
        written[key] = (b"%d" % number, applied(store.cas(key, None, b"%d" % number, TIMEOUT_S)))
    server.kill()
    with pytest.raises(coord.StoreUnavailable):
        store.get(key, 0.5)
    server.restart()
    assert {key: entry_of(store, key)[:2] for key in written} == written
    store.close()


def a_hold_outlives_a_restart_of_the_server(server: StoreServer) -> None:
    name = fresh_name()
    with coord.connect(server.url) as client, coord.connect(server.url) as other:
        held = client.lock(name, ttl=9).acquire()
        waiting = threading.Thread(target=_take, args=(other, name))
        waiting.start()
        server.kill()
        server.restart()
        until(lambda: held.remaining() > 8, "it is not renewed any more")
        held.check()
        assert other.sibling().lock(name, ttl=9).try_acquire() is None
        held.release()
        waiting.join(PATIENCE_S)
        assert not waiting.is_alive()
        view = client.show(name)
        assert view is not None and view.fence == held.fence + 1


def _take(client: coord.Client, name: str) -> None:
    with client.lock(name, ttl=9, wait=PATIENCE_S):
        pass


def a_hold_ends_when_the_server_is_away_for_too_long(server: StoreServer) -> None:
    name = fresh_name()
    with coord.connect(server.url) as client:
        held = client.lock(name, ttl=1.5).acquire()
        server.pause()
        try:
            assert held.lost.wait(10), "its time is over, whatever the server does"
            with pytest.raises(coord.LockLost):
                held.check()
        finally:
            server.resume()
        with client.sibling().lock(name, ttl=5, wait=PATIENCE_S) as after:
            assert after.fence > held.fence


def a_waiter_outlives_a_listener_that_is_cut_off(server: StoreServer) -> None:
    """Every connection of the waiter is reset repeatedly, including the listening one."""
    name = fresh_name()
    with (
        Proxy(server.address) as proxy,
        coord.connect(server.url) as holder,
        coord.connect(through(server, proxy)) as waiter,
    ):
        held = holder.lock(name, ttl=20).acquire()
        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(_take, waiter, name)
            for _ in range(5):
                time.sleep(0.1)
                proxy.reset()
            held.release()
            began_s = time.monotonic()
            taking.result(PATIENCE_S)
            assert time.monotonic() - began_s < 9, "it waited for a time-out"


def a_lossy_network_makes_nobody_believe_wrongly(server: StoreServer) -> None:
    name, inside, fences, ids = fresh_name(), list[int](), list[int](), list[int]()
    with Proxy(server.address, seed=7) as proxy:
        url = through(server, proxy)
        with coord.connect(server.url) as first, first.lock(name, ttl=5):
            pass  # creates the records
        proxy.lose_requests = proxy.lose_answers = 0.05

        def work(number: int) -> None:
            with coord.connect(url) as client:
                numbers = client.ids(name, batch=3, max_retries=200)
                for _ in range(5):
                    with client.lock(name, ttl=5, wait=PATIENCE_S) as held:
                        inside.append(number)
                        assert inside == [number]
                        fences.append(held.fence)
                        inside.remove(number)
                    ids.extend(_patiently(lambda: next(numbers)) for _ in range(4))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert proxy.lost_count > 0, "the network was too good"
    assert len(fences) == 20 and fences == sorted(set(fences))
    assert len(set(ids)) == len(ids) == 80


def _patiently(call: Callable[[], int]) -> int:
    for _ in range(50):
        try:
            return call()
        except coord.StoreUnavailable:
            continue
    raise AssertionError("it never succeeds")


TRIALS: dict[str, Callable[[StoreServer], None]] = {
    trial.__name__: trial
    for trial in (
        a_stopped_server_leaves_the_write_unknown,
        no_server_is_certainly_not_applied,
        an_answer_that_is_cut_off_leaves_the_write_unknown,
        kept_connections_that_ended_cost_nothing,
        what_was_answered_survives_a_kill,
        a_hold_outlives_a_restart_of_the_server,
        a_hold_ends_when_the_server_is_away_for_too_long,
        a_waiter_outlives_a_listener_that_is_cut_off,
        a_lossy_network_makes_nobody_believe_wrongly,
    )
}
