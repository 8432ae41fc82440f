"""The Azure store against Azurite, so that it is tested on another server too.

Azurite has neither long polls nor a Strongroom's health endpoint, so waiters poll.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from benchmarks import servers
from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import Conflict, LeaseAction, LeaseTerms
from strongroom.coordination.store import Store
from tests.coordination.conformance import (
    CASES,
    TIMEOUT_S,
    applied,
    entry_of,
    fresh_key,
)

MODES = ("etag", "lease")
_clock = SystemClocks()


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    servers.install_azurite()
    folder: Path = tmp_path_factory.mktemp("azurite")
    server = servers.Server(servers.AZURITE, servers.azurite_command, folder / "data")
    server.start()
    yield f"http://127.0.0.1:{server.ports[0]}/devstoreaccount1"
    server.stop()


def url_of(endpoint: str, mode: str) -> str:
    return f"azure://devstoreaccount1/coordination?mode={mode}&endpoint={quote(endpoint, safe='')}"


@pytest.fixture(params=MODES)
def store(request: pytest.FixtureRequest, azurite: str) -> Iterator[Store]:
    opened = coord.open_store(url_of(azurite, request.param))
    yield opened
    opened.close()


@pytest.mark.parametrize("case", CASES)
def test_contract(case: str, store: Store) -> None:
    CASES[case](store)


def test_waiters_read(store: Store) -> None:
    assert store.promises().watch == "poll"


@pytest.mark.parametrize("mode", MODES)
def test_eight_exclude_each_other(azurite: str, mode: str) -> None:
    name = f"crowd-{_clock.nonce()}"
    fences: list[int] = []
    inside, most = [0], [0]
    guard = threading.Lock()

    def work(client: coord.Client) -> None:
        for _ in range(2):
            with client.lock(name, ttl=15, wait=90) as held:
                with guard:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    fences.append(held.fence)
                with guard:
                    inside[0] -= 1

    with coord.connect(url_of(azurite, mode)) as first:
        clients = [first.sibling() for _ in range(8)]
        workers = [threading.Thread(target=work, args=(client,)) for client in clients]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(100)
        for client in clients:
            client.driver.close()
    assert most[0] == 1
    assert fences == sorted(set(fences)) and len(fences) == 16


@pytest.mark.parametrize("mode", MODES)
def test_an_administrator_ends_a_hold(azurite: str, mode: str) -> None:
    name = f"broken-{_clock.nonce()}"
    with coord.connect(url_of(azurite, mode)) as client, client.sibling() as admin:
        held = client.lock(name, ttl=15).acquire()
        assert admin.break_lock(name) is not None
        with admin.lock(name, ttl=15, wait=5) as taken:
            assert taken.fence > held.fence
        assert held.lost.wait(15), "the next renewal tells"


def test_a_lease_runs_out_by_azurites_clock(azurite: str) -> None:
    store = coord.open_store(url_of(azurite, "lease"))
    key, dead, other = fresh_key(), _clock.nonce(), _clock.nonce()
    take = LeaseTerms(LeaseAction.ACQUIRE, 15.0, dead)
    version = applied(store.cas(key, None, b"dead", TIMEOUT_S, take))
    taken_s = _clock.monotonic_s()
    while (entry_of(store, key).expires_in_s or 0) > 0:
        assert _clock.monotonic_s() - taken_s < 30
        threading.Event().wait(0.5)
    assert _clock.monotonic_s() - taken_s > 13
    take = LeaseTerms(LeaseAction.ACQUIRE, 15.0, other)
    version = applied(store.cas(key, version, b"other", TIMEOUT_S, take))
    late = store.cas(key, version, b"late", TIMEOUT_S, LeaseTerms(LeaseAction.RENEW, 15.0, dead))
    assert isinstance(late, Conflict)
    store.close()


@pytest.mark.parametrize(("mode", "ttl_s"), [("etag", 2.0), ("lease", 15.0)])
def test_a_dead_holder_is_replaced(azurite: str, mode: str, ttl_s: float) -> None:
    """The first one closes its client and never gives back; the service's clock is a real one."""
    name = f"dead-{_clock.nonce()}"
    client = coord.connect(url_of(azurite, mode))
    lost = client.lock(name, ttl=ttl_s).acquire()
    client.close()
    with pytest.raises(coord.LockLost):
        lost.check()
    with coord.connect(url_of(azurite, mode)) as other:
        assert other.lock(name, ttl=ttl_s).try_acquire() is None
        with other.lock(name, ttl=ttl_s, wait=60) as held:
            assert held.fence == lost.fence + 1
