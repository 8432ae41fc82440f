"""Locks for threads: one holder, a rising fence, and a loss that is final."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from strongroom.coordination import (
    AlreadyHeld,
    Client,
    CoordTimeout,
    LockLost,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
    connect,
)
from strongroom.coordination.effects import CasOutcome, Entry, LeaseTerms, Unknown
from strongroom.coordination.schema.records import decode_lock
from strongroom.coordination.stores.memory import MemoryStore


class FlakyStore(MemoryStore):
    """A memory store that can be cut off, and that can lose the answers of writes."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = False
        self.lose_answers = 0
        self.writes_count = 0
        self.reads_count = 0

    def get(self, key: str, timeout_s: float) -> Entry | None:
        if self.cut:
            raise StoreUnavailable("cut off")
        self.reads_count += 1
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
        if self.cut:
            raise StoreUnavailable("cut off")
        self.writes_count += 1
        outcome = super().cas(key, expected, value, timeout_s, lease, note)
        if self.lose_answers:
            self.lose_answers -= 1
            return Unknown("the answer was lost")
        return outcome


@pytest.fixture
def store() -> FlakyStore:
    return FlakyStore()


@pytest.fixture
def client(store: FlakyStore) -> Client:
    return Client(store, label="one")


def test_one_holds_and_the_other_waits_in_vain(client: Client) -> None:
    other = client.sibling("two")
    with client.lock("a") as held:
        assert held.fence == 1 and 14 < held.remaining() <= 15
        held.check()
        assert other.lock("a").try_acquire() is None
        with pytest.raises(CoordTimeout, match="held by one"):
            other.lock("a", wait=0.05).acquire()
    taken = other.lock("a").try_acquire()
    assert taken is not None and taken.fence == 2
    assert taken.release() and not taken.release()


def test_waiting_ends_with_the_release(client: Client) -> None:
    other = client.sibling()
    held = client.lock("a").acquire()
    threading.Timer(0.1, held.release).start()
    with other.lock("a", wait=20) as mine:
        assert mine.fence == 2


def test_the_fence_outlives_everyone(store: FlakyStore) -> None:
    fences = []
    for _ in range(5):
        with Client(store).lock("a") as held:
            fences.append(held.fence)
    assert fences == [1, 2, 3, 4, 5]


def test_not_reentrant_and_told_at_once(client: Client) -> None:
    with client.lock("a"):
        with pytest.raises(AlreadyHeld, match="'a'"):
            client.lock("a", wait=None).acquire()
        assert client.lock("a").try_acquire() is None
    with client.lock("a"):
        pass


def test_it_is_renewed(client: Client) -> None:
    with client.lock("a", ttl=1.0) as held:
        time.sleep(1.6)
        held.check()
        assert not held.lost.is_set()
        assert client.sibling().lock("a").try_acquire() is None


@pytest.mark.parametrize("server_lease", [False, True])
def test_a_dead_holder_is_replaced(server_lease: bool) -> None:
    store = MemoryStore(server_lease=server_lease)
    dead, heir = Client(store), Client(store)
    dead.lock("a", ttl=0.3).acquire()
    dead.driver.renewal_table.pop_due()  # nothing is due yet, and there is no renewal from now on
    dead.driver._closed = True
    dead.driver._renewal_sleep.wake()
    with heir.lock("a", ttl=0.3, wait=20) as held:
        assert held.fence == 2


def test_lost_when_the_store_is_gone(client: Client, store: FlakyStore) -> None:
    reasons: list[str] = []
    held = client.lock("a", ttl=0.3).acquire()
    held.on_lost(reasons.append)
    store.cut = True
    assert held.lost.wait(20)
    assert held.remaining() == 0 and "cut off" in held.reason
    store.cut = False
    time.sleep(0.2)
    with pytest.raises(LockLost, match="cut off"):
        held.check()
    assert not held.release()
    held.on_lost(reasons.append)
    assert reasons == [held.reason, held.reason]


def test_check_needs_no_background_thread(client: Client) -> None:
    held = client.lock("a", ttl=0.2).acquire()
    client.driver._closed = True
    time.sleep(0.3)
    with pytest.raises(LockLost):
        held.check()


def test_the_client_that_lost_it_may_take_it_again_at_once(
    client: Client, store: FlakyStore
) -> None:
    held = client.lock("a", ttl=0.3).acquire()
    store.cut = True
    assert held.lost.wait(20)
    store.cut = False
    again = client.lock("a", ttl=0.3).try_acquire()
    assert again is not None and again.fence == 2


def test_a_failing_callback_stops_nothing(client: Client, store: FlakyStore) -> None:
    called = threading.Event()
    held = client.lock("a", ttl=0.3).acquire()
    held.on_lost(lambda _: 1 / 0)
    held.on_lost(lambda _: called.set())
    store.cut = True
    assert called.wait(20)


def test_strict_tells_at_the_end_and_never_hides_the_body(
    client: Client, store: FlakyStore
) -> None:
    def lose(strict: bool, error: Exception | None = None) -> None:
        store.cut = False
        with client.lock("a", ttl=0.3, strict=strict) as held:
            store.cut = True
            assert held.lost.wait(20)
            if error is not None:
                raise error

    lose(strict=False)
    with pytest.raises(LockLost):
        lose(strict=True)
    with pytest.raises(KeyError):
        lose(strict=True, error=KeyError("the body's own"))


def test_lost_answers_are_found_again(client: Client, store: FlakyStore) -> None:
    store.lose_answers = 1
    held = client.lock("a").acquire()
    assert held.fence == 1
    store.lose_answers = 1
    assert held.release()
    assert client.sibling().lock("a").try_acquire() is not None


def test_an_ambiguous_renewal_is_no_loss(client: Client, store: FlakyStore) -> None:
    with client.lock("a", ttl=1.0) as held:
        for _ in range(10):
            store.lose_answers = 1
            time.sleep(0.16)
        held.check()


def test_an_unreachable_store_is_no_free_lock(client: Client, store: FlakyStore) -> None:
    store.cut = True
    with pytest.raises(StoreUnavailable):
        client.lock("a").try_acquire()
    with pytest.raises(StoreUnavailable):
        client.lock("a", wait=0.1).acquire()
    store.cut = False
    with client.lock("a"):
        pass


def test_release_leaves_a_readable_tombstone(client: Client, store: FlakyStore) -> None:
    with client.lock("a", value={"job": 7}) as held:
        entry = store.get("lock/a", 1.0)
        assert entry is not None
        record = decode_lock("lock/a", entry.value)
        assert (record.owner, record.who, record.value) == (held.nonce, "one", {"job": 7})
    entry = store.get("lock/a", 1.0)
    assert entry is not None
    record = decode_lock("lock/a", entry.value)
    assert (record.owner, record.fence) == (None, 1)


def test_retaking_costs_two_writes_and_no_read(client: Client, store: FlakyStore) -> None:
    with client.lock("a"):
        pass
    before = (store.writes_count, store.reads_count)
    for _ in range(10):
        with client.lock("a"):
            pass
    assert (store.writes_count - before[0], store.reads_count - before[1]) == (20, 0)


def test_idle_waiters_do_not_write(client: Client, store: FlakyStore) -> None:
    with client.lock("a"), ThreadPoolExecutor(8) as pool:
        before = store.writes_count
        waits = [pool.submit(client.sibling().lock("a", wait=0.5).acquire) for _ in range(8)]
        assert all(isinstance(wait.exception(), CoordTimeout) for wait in waits)
        assert store.writes_count == before


def test_fair_is_first_come_first_served(client: Client, store: FlakyStore) -> None:
    order: list[int] = []

    def wait_in_line(number: int) -> None:
        with client.sibling().lock("a", fair=True, wait=30):
            order.append(number)

    threads = []
    with client.lock("a", fair=True):
        for number in range(6):
            thread = threading.Thread(target=wait_in_line, args=(number,))
            thread.start()
            threads.append(thread)
            _until_queued(store, number + 1)
        assert client.sibling().lock("a", fair=True).try_acquire() is None
    for thread in threads:
        thread.join(30)
    assert order == list(range(6))


def test_who_gives_up_leaves_the_queue(client: Client, store: FlakyStore) -> None:
    with client.lock("a", fair=True):
        with pytest.raises(CoordTimeout):
            client.sibling().lock("a", fair=True, wait=0.2).acquire()
        _until_queued(store, 0)


def _until_queued(store: FlakyStore, count: int) -> None:
    for _ in range(1000):
        entry = store.get("lock/a", 1.0)
        assert entry is not None
        if len(decode_lock("lock/a", entry.value).queue) == count:
            return
        time.sleep(0.01)
    raise AssertionError(f"never {count} in the queue")


def test_several_names_or_none(client: Client) -> None:
    other = client.sibling()
    with client.locks("b", "a", "b", ttl=10) as held:
        assert list(held.holds) == ["a", "b"] and held.fences == {"a": 1, "b": 1}
        held.check()
        assert 9 < held.remaining() <= 10
        with pytest.raises(CoordTimeout), other.locks("b", "c", wait=0.05):
            raise AssertionError("held by nobody else")
        taken = other.lock("c").try_acquire()
        assert taken is not None
    assert other.lock("a").try_acquire() is not None
    with pytest.raises(ValueError, match="at least one"):
        client.locks()


def test_several_names_of_one_object_in_two_threads(client: Client) -> None:
    both = client.locks("a", "b")
    with both as first, ThreadPoolExecutor(1) as pool:
        for name in ("a", "b"):
            client.break_lock(name)
        assert all(held.lost.wait(20) for held in first.holds.values())
        entered, left = threading.Event(), threading.Event()

        def hold() -> float:
            with both as second:
                entered.set()
                assert left.wait(30)
                return second.remaining()

        other = pool.submit(hold)
        assert entered.wait(30)
        both.__exit__(None, None, None)
        left.set()
        assert other.result(30) > 0
        both.__enter__()  # for the end of this block


def test_the_decorator_names_the_arguments_and_skips(client: Client) -> None:
    other, seen = client.sibling(), []

    @client.locked("report:{customer}", ttl=10, skip=True)
    def report(customer: str, deep: bool = False) -> str:
        seen.append(other.lock(f"report:{customer}").try_acquire())
        return customer

    assert report("x") == "x" and seen == [None]
    with other.lock("report:y"):
        assert report(customer="y") is None
    assert seen == [None]


def test_counter_under_contention(store: FlakyStore) -> None:
    total = 0

    def add(_: int) -> None:
        nonlocal total
        client = Client(store)
        for _ in range(25):
            with client.lock("a", wait=60) as held:
                seen = total
                time.sleep(0)
                total = seen + 1
                held.check()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert total == 200


def test_alert_learns_of_a_break_at_once(client: Client) -> None:
    held = client.lock("a", ttl=60, alert=True).acquire()
    client.sibling().break_lock("a")
    assert held.lost.wait(20) and "administrator" in held.reason


def test_a_forked_child_holds_nothing(client: Client) -> None:
    with client.lock("a") as held:
        identity = client.context.identity
        child = os.fork()
        if child == 0:
            lost = held.remaining() == 0 and held.lost.is_set() and "fork" in held.reason
            other = client.context.identity != identity
            free = client.lock("a").try_acquire() is None  # its copy of the memory says: held
            os._exit(0 if lost and other and free else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        held.check()


def test_closing_loses_what_is_held(client: Client) -> None:
    held = client.lock("a").acquire()
    client.close()
    assert held.lost.is_set() and held.remaining() == 0


def test_abort_ends_the_process_that_outlives_its_lock() -> None:
    program = """
        import time
        from strongroom.coordination import StoreUnavailable, Client
        from strongroom.coordination.stores.memory import MemoryStore
        class Gone(MemoryStore):
            def cas(self, *arguments, **named):
                if self.taken: raise StoreUnavailable("gone")
                self.taken = True
                return super().cas(*arguments, **named)
        store = Gone(); store.taken = False
        with Client(store).lock("the books", ttl=0.3, on_lost="abort"):
            time.sleep(60)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 76
    assert "the books" in done.stderr and "aborting" in done.stderr


ABORTING = """
    import os, time
    from strongroom.coordination.recipes.holding import abort_process
    {before}
    abort_process("the books", "taken by \\ud800")
"""


@pytest.mark.parametrize(
    "before",
    [
        "os.close(2)",
        "read, write = os.pipe(); os.dup2(write, 2); os.close(read)",
        "read, write = os.pipe(); os.dup2(write, 2); os.set_blocking(2, False);"
        " [os.write(2, b'x' * 4096) for _ in range(16)]; os.set_blocking(2, True)",
    ],
    ids=["closed", "broken", "full"],
)
def test_abort_needs_nobody_who_reads_its_last_words(before: str) -> None:
    program = textwrap.dedent(ABORTING).format(before=before)
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 76


def test_a_closed_client_takes_nothing(store: FlakyStore) -> None:
    client = Client(store)
    lock, members = client.lock("a"), client.members("g", ttl=0.3)
    client.close()
    with pytest.raises(StoreRefused, match="closed"):
        lock.acquire()
    assert Client(store).lock("a").try_acquire()
    assert members.join().lost.is_set()


def test_who_waits_when_its_client_is_closed_gets_nothing(store: FlakyStore) -> None:
    holder, waiter = Client(store), Client(store)
    held = holder.lock("a").acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waiter.lock("a", wait=30).acquire)
        time.sleep(0.1)
        waiter.close()
        held.release()
        with pytest.raises(StoreRefused, match="closed"):
            waiting.result(30)
    assert holder.lock("a").try_acquire()


@pytest.mark.parametrize("ttl", [0, -1, 0.05, 1e9, float("nan")])
def test_a_ttl_that_cannot_be_kept(client: Client, ttl: float) -> None:
    with pytest.raises(Unsupported, match="TTL"):
        client.lock("a", ttl=ttl)


def test_the_core_needs_the_standard_library_only() -> None:
    program = (
        "import sys; before = set(sys.modules); import strongroom.coordination as c;"
        "c.connect('memory://').lock('x').try_acquire();"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "extra = new - set(sys.stdlib_module_names) - {'strongroom'}; assert not extra, extra;"
        "own = {n for n in sys.modules if n.startswith('strongroom.')};"
        "alien = {n for n in own if not n.startswith('strongroom.coordination')};"
        "assert not alien, alien"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_promises_are_told() -> None:
    promises = connect("memory://").promises()
    assert promises.mutual_exclusion == "clock-rate" and promises.scope == "process"


def test_a_slow_callback_delays_no_other_loss() -> None:
    client = Client(MemoryStore())
    going_on = threading.Event()
    slow = client.lock("a", ttl=0.5).acquire()
    quick = client.lock("b", ttl=0.6).acquire()
    slow.on_lost(lambda _: going_on.wait(30))
    told = threading.Event()
    quick.on_lost(lambda _: told.set())
    for name in ("a", "b"):
        client.break_lock(name)
    assert slow.lost.wait(20) and quick.lost.wait(20) and told.wait(20)
    going_on.set()
    client.close()
