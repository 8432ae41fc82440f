"""Locks and ids over the Azure store with lost answers: no duplicate, and no stuck client.

The server applies a request and then loses the answer, cuts it off, or is busy, by a repeatable
plan. Also here: the cost of waiting, by the server's own metrics.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from strongroom import coordination as coord
from strongroom.coordination import Client
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import UNCHANGED, Applied, LeaseAction, LeaseTerms, Unknown
from strongroom.coordination.stores.connections.http_pool import HttpPool
from strongroom.testing import InProcessServer
from strongroom.testing.faults import Fault, FaultRule
from tests.coordination.conformance import TIMEOUT_S, applied, entry_of, fresh_key

MODES = ("etag", "lease")
WRITES = ("Put Blob", "Lease Blob*")
_clock = SystemClocks()


@pytest.fixture
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as running:
        yield running


def url_of(server: InProcessServer, mode: str) -> str:
    endpoint = quote(f"{server.url}/devstoreaccount1", safe="")
    return f"azure://devstoreaccount1/coordination?mode={mode}&endpoint={endpoint}"


class Resource:
    """Detects two clients that are in it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0
        self.fences: list[int] = []

    def use(self, held: coord.Held) -> None:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
            self.fences.append(held.fence)
        threading.Event().wait(0.002)
        with self._lock:
            self._inside -= 1


def contend(url: str, threads: int, laps: int, *, fair: bool = False) -> Resource:
    """Let that many participants take one lock that many times each."""
    resource = Resource()
    troubles: list[BaseException] = []

    def work(client: Client) -> None:
        try:
            for _ in range(laps):
                with client.lock("x", ttl=15, wait=90, fair=fair) as held:
                    resource.use(held)
        except BaseException as error:
            troubles.append(error)

    with coord.connect(url) as first:
        clients = [first, *(first.sibling() for _ in range(threads - 1))]
        workers = [threading.Thread(target=work, args=(client,)) for client in clients]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(110)
        for client in clients:
            client.driver.close()
    assert not troubles, troubles
    return resource


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fair", [False, True])
def test_eight_exclude_each_other(server: InProcessServer, mode: str, fair: bool) -> None:
    resource = contend(url_of(server, mode), 8, 5, fair=fair)
    assert resource.most == 1
    assert resource.fences == sorted(set(resource.fences)) and len(resource.fences) == 40


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.CUT, Fault.BUSY, Fault.ERROR])
def test_faults_never_make_two_holders(server: InProcessServer, mode: str, fault: Fault) -> None:
    rules = [FaultRule(operation=name, fault=fault, probability=0.2) for name in WRITES]
    rules.append(FaultRule(operation="Get Blob", fault=fault, probability=0.1))
    server.faults.order(*rules, seed=3)
    resource = contend(url_of(server, mode), 4, 4)
    assert resource.most == 1
    assert resource.fences == sorted(set(resource.fences)) and len(resource.fences) == 16
    # How many depends on how often the four meet; at least one of their 32 writes is always hit.
    assert sum(count.hit for count in server.faults.counts()) > 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.CUT, Fault.BUSY])
def test_ids_are_never_handed_out_twice(server: InProcessServer, mode: str, fault: Fault) -> None:
    rules = [FaultRule(operation=name, fault=fault, probability=0.3) for name in WRITES]
    server.faults.order(*rules, seed=5)
    found: list[int] = []
    guard = threading.Lock()

    def work(client: Client) -> None:
        ids = client.ids("orders", 10)
        for _ in range(12):
            some = ids.take(7)
            with guard:
                found.extend(some)

    with coord.connect(url_of(server, mode)) as first:
        clients = [first, *(first.sibling() for _ in range(3))]
        workers = [threading.Thread(target=work, args=(client,)) for client in clients]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(100)
    assert len(found) == len(set(found)) == 4 * 12 * 7
    assert sum(count.hit for count in server.faults.counts()) > 0


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.CUT])
def test_a_take_whose_answer_is_lost_at_any_step_may_be_repeated(
    server: InProcessServer, step: int, fault: Fault
) -> None:
    """The steps: the placeholder, the lease, the record under it."""
    store = coord.open_store(url_of(server, "lease"))
    applied(store.cas(fresh_key("ids"), None, b"", TIMEOUT_S))
    operation = ("Put Blob", "Lease Blob*", "Put Blob")[step]
    server.faults.order(FaultRule(operation=operation, fault=fault, skip=step // 2, times=1))
    key, terms = fresh_key(), LeaseTerms(LeaseAction.ACQUIRE, 15.0, _clock.nonce())
    outcome = store.cas(key, None, b"mine", TIMEOUT_S, terms)
    assert [count.hit for count in server.faults.counts()] == [1]
    entry = store.get(key, TIMEOUT_S)
    if entry is None:
        assert isinstance(outcome, Unknown)
        outcome = store.cas(key, None, b"mine", TIMEOUT_S, terms)
        assert isinstance(outcome, Applied)
    entry = entry_of(store, key)
    assert entry.value == b"mine" and (entry.expires_in_s or 0) > 0
    other = LeaseTerms(LeaseAction.ACQUIRE, 15.0, _clock.nonce())
    assert not isinstance(store.cas(key, entry.version, b"other", TIMEOUT_S, other), Applied)
    store.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_hold_past_its_time_is_lost_and_stays_lost(server: InProcessServer, mode: str) -> None:
    """Nothing gets through for longer than the TTL: the holder knows before anybody else can."""
    if mode == "lease":
        ttl_s, options = 15.0, {"ttl": 15.0}
    else:
        ttl_s, options = 1.5, {"ttl": 1.5}
    with (
        coord.connect(url_of(server, mode)) as client,
        coord.connect(url_of(server, mode)) as rival,
    ):
        # Keywords of a table.
        held = client.lock("x", **options).acquire()  # type: ignore[arg-type]
        order = [FaultRule(operation=name, fault=Fault.BUSY) for name in WRITES]
        server.faults.order(*order)
        assert held.lost.wait(ttl_s * 1.5)
        server.faults.clear()
        if mode == "lease":
            server.clock.advance(16)
        # Keywords of a table.
        with rival.lock("x", **options, wait=30) as taken:  # type: ignore[arg-type]
            assert taken.fence > held.fence
            with pytest.raises(coord.LockLost):
                held.check()


@pytest.mark.parametrize("mode", MODES)
def test_an_administrator_ends_a_hold_at_once(server: InProcessServer, mode: str) -> None:
    with (
        coord.connect(url_of(server, mode)) as client,
        coord.connect(url_of(server, mode)) as admin,
    ):
        # A renewal would learn of it after a third of the TTL.
        held = client.lock("x", ttl=60, alert=True).acquire()
        broken = admin.break_lock("x")
        assert broken is not None and broken.fence == held.fence
        assert held.lost.wait(15), "a holder that watches learns of it at once"
        taken = admin.lock("x", ttl=15).try_acquire()
        assert taken is not None and taken.fence > held.fence
        taken.release()


def await_waiters(server: InProcessServer, count: int) -> None:
    """Return when at least that many requests wait in the server, and no more join them."""
    pool, before = HttpPool(server.url, _clock), -1
    for _ in range(100):
        text = pool.send("GET", "/.strongroom/metrics", {}, b"", 5).body.decode()
        found = re.search(r"^strongroom_waiters (\d+)", text, re.MULTILINE)
        assert found is not None
        if before == int(found[1]) >= count:
            pool.close()
            return
        before = int(found[1])
        threading.Event().wait(0.4)
    raise AssertionError(f"there are never {count} waiters, but {before}")


@pytest.mark.parametrize("mode", MODES)
def test_sixteen_idle_waiters_cost_next_to_nothing(server: InProcessServer, mode: str) -> None:
    """The server counts; the holder renews every 20 s, and a wait ends after 30 s at the latest."""
    with coord.connect(url_of(server, mode)) as first:
        clients = [first.sibling() for _ in range(16)]
        went = []

        def wait(client: Client) -> None:
            with client.lock("x", ttl=60, wait=60) as held:
                went.append(held.fence)

        held = first.lock("x", ttl=60).acquire()
        waiters = [threading.Thread(target=wait, args=(client,)) for client in clients]
        for waiter in waiters:
            waiter.start()
        await_waiters(server, 16)
        server.faults.order(FaultRule())
        threading.Event().wait(4)
        asked = server.faults.counts()[0].matched
        held.release()
        for waiter in waiters:
            waiter.join(60)
        for client in clients:
            client.driver.close()
    assert sorted(went) == list(range(held.fence + 1, held.fence + 17))
    assert asked <= 4, f"{asked} requests in 4 s"


@pytest.mark.parametrize("mode", MODES)
def test_tasks_exclude_each_other(server: InProcessServer, mode: str) -> None:
    async def main() -> tuple[int, list[int]]:
        inside, most, fences = 0, 0, []
        clients = [coord.connect(url_of(server, mode)) for _ in range(6)]

        async def work(client: Client) -> None:
            nonlocal inside, most
            for _ in range(3):
                async with client.aio.lock("x", ttl=15, wait=60) as held:
                    inside += 1
                    most = max(most, inside)
                    fences.append(held.fence)
                    await asyncio.sleep(0)
                    inside -= 1

        await asyncio.gather(*(work(client) for client in clients))
        for client in clients:
            await client.aio.close()
            client.close()
        return most, fences

    most, fences = asyncio.run(main())
    assert most == 1
    assert fences == sorted(set(fences)) and len(fences) == 18


@pytest.mark.parametrize("mode", MODES)
def test_a_forked_child_is_another_participant(server: InProcessServer, mode: str) -> None:
    """The child holds no lock, and does not use the connections of its parent."""
    with coord.connect(url_of(server, mode)) as client:
        held = client.lock("x", ttl=15).acquire()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                lost = held.remaining() == 0 and client.lock("x", ttl=15).try_acquire() is None
                with client.lock("y", ttl=15, wait=10) as own:
                    code = 0 if lost and own.fence == 1 else 2
            finally:
                os._exit(code)
        with client.lock("z", ttl=15) as other:
            assert other.fence == 1
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        held.check()
        assert held.release()


def test_closing_ends_what_waits(server: InProcessServer) -> None:
    async def main() -> float:
        client = coord.connect(url_of(server, "etag"))
        aio = client.store.aio()
        applied(await aio.cas("lock/x", None, b"x", TIMEOUT_S))
        entry = await aio.get("lock/x", TIMEOUT_S)
        assert entry is not None
        assert await aio.watch("lock/x", entry.version, 1.0) is UNCHANGED
        waiting = asyncio.ensure_future(aio.watch("lock/x", entry.version, 30.0))
        await asyncio.sleep(0.3)
        started_s = _clock.monotonic_s()
        await aio.close()
        with pytest.raises(coord.StoreUnavailable):
            await waiting
        client.close()
        return _clock.monotonic_s() - started_s

    assert asyncio.run(main()) < 5
