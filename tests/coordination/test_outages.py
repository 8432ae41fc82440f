"""The messages to a user about an unreachable store, and about a lost hold with the reason."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from strongroom import coordination as coord
from strongroom.coordination import Client, CoordTimeout, LockLost, StoreUnavailable
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import Entry, Watched
from strongroom.coordination.recipes.holding import Cancel
from strongroom.coordination.schema.records import LockRecord, decode_lock, encode_lock
from strongroom.coordination.session.outage import Outage
from tests.coordination.recipe_trials import until
from tests.coordination.test_lock import FlakyStore

LOGGER = "strongroom.coordination"


class AwayStore(FlakyStore):
    """A store that counts the requests that it does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.refused_count = 0

    def get(self, key: str, timeout_s: float) -> Entry | None:
        self.refused_count += self.cut
        return super().get(key, timeout_s)

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        if self.cut:
            self.refused_count += 1
            raise StoreUnavailable("cut off")
        return super().watch(key, version, min(timeout_s, 0.05))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == LOGGER and record.levelno == logging.WARNING
    ]


class Stopped(SystemClocks):
    """A clock that the test moves."""

    now_s = 100.0

    def monotonic_s(self) -> float:
        return self.now_s


def test_an_outage_is_told_once_and_the_next_one_again() -> None:
    clock, told = Stopped(), list[str]()
    outage = Outage(clock, "the store of the test", told.append)
    for _ in range(2):
        told.clear()
        for _ in range(50):
            outage.note_failure(StoreUnavailable("no answer"))
            clock.now_s += 0.3
        assert told == ["the store does not answer; retrying: the store of the test: no answer"]
        outage.note_answer()
        assert not outage.is_ongoing
    told.clear()
    for _ in range(50):  # single lost answers are none
        outage.note_failure(StoreUnavailable("no answer"))
        clock.now_s += 0.9
        outage.note_answer()
    assert told == []


@pytest.mark.parametrize("what", ["lock", "semaphore", "gate", "barrier", "election", "register"])
def test_whoever_waits_for_ever_is_told_of_a_store_that_is_away(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = AwayStore()
    holder, client = Client(store), Client(store)
    held = holder.lock("x", ttl=60).acquire()
    permit = holder.semaphore("x", 1, ttl=60).acquire()
    waits = {
        "lock": lambda: client.lock("x", ttl=60).acquire(),
        "semaphore": lambda: client.semaphore("x", 1, ttl=60).acquire(),
        "gate": lambda: client.gate("x").wait(),
        "barrier": lambda: client.barrier("x", 2, ttl=60).wait(),
        "election": lambda: next(client.election("x").observe(), None),
        "register": lambda: client.register("x").wait_for_change(None),
    }
    store.cut = True
    waiter = threading.Thread(target=waits[what], daemon=True)
    waiter.start()
    try:
        for lap in range(2):
            caplog.clear()
            store.cut, store.refused_count = True, 0
            until(lambda: bool(warnings(caplog)), "nobody is told")
            asked = store.refused_count
            # Binds the loop's value.
            until(lambda n=asked: store.refused_count >= n + 3, "nobody asks")  # type: ignore[misc]
            assert len(warnings(caplog)) == 1
            assert "does not answer" in warnings(caplog)[0] and "cut off" in warnings(caplog)[0]
            if what == "election" or lap:
                break  # it has what it waited for as soon as the store is back
            store.cut = False
            until(lambda: not client.context.outage.is_ongoing, "nobody notices that it is back")
    finally:
        store.cut = False
        held.release()
        permit.release()
        client.gate("x").open()
        holder.register("x").put("new")
        if what == "barrier":
            holder.barrier("x", 2, ttl=60).wait(60)
        waiter.join(60)
    assert not waiter.is_alive()


def test_one_failed_try_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    store = AwayStore()
    store.cut = True
    with pytest.raises(StoreUnavailable):
        Client(store).lock("x", wait=0).acquire()
    assert warnings(caplog) == []


# A block whose hold was lost


def test_a_block_that_ends_after_a_loss_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    store = FlakyStore()

    def lose(strict: bool = False, error: Exception | None = None, look: bool = False) -> None:
        caplog.clear()
        store.cut = False
        with Client(store).lock("jobs", ttl=0.3, wait=20, strict=strict) as held:
            store.cut = True
            assert held.lost.wait(20)
            if look:
                held.check()
            if error is not None:
                raise error

    lose()
    assert len(warnings(caplog)) == 1
    assert "'jobs', held with fence 1, was lost before its block ended" in warnings(caplog)[0]
    with pytest.raises(KeyError, match="the body's own"):
        lose(error=KeyError("the body's own"))
    assert len(warnings(caplog)) == 1
    for strict, look in ((True, False), (False, True)):
        with pytest.raises(LockLost):
            lose(strict=strict, look=look)
        assert warnings(caplog) == []
    with Client(FlakyStore()).lock("jobs"):
        pass
    assert warnings(caplog) == []


@pytest.mark.parametrize("cancel", ["deadline", "event", "never"])
def test_a_block_of_asyncio_is_told_of_once(
    cancel: Cancel, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        store = FlakyStore()
        client = Client(store)
        async with client.aio.lock("jobs", ttl=0.3, cancel=cancel) as held:
            store.cut = True
            await held.wait_lost()

    if cancel == "never":
        asyncio.run(main())
        assert len(warnings(caplog)) == 1 and "'jobs'" in warnings(caplog)[0]
    else:
        with pytest.raises(LockLost):
            asyncio.run(main())
        assert warnings(caplog) == []


# Why it was lost


def overwritten(change: dict[str, object]) -> str:
    """Return the message to a holder whose record was replaced by another program."""
    store = FlakyStore()
    held = Client(store).lock("a", ttl=60, alert=True).acquire()
    entry = store.get("lock/a", 1.0)
    assert entry is not None
    found = decode_lock("lock/a", entry.value)
    fields = {"owner": None, "fence": found.fence, "ttl_s": 60.0, "seq": 99, **change}
    record = LockRecord(**fields)  # type: ignore[arg-type]  # keywords of a table
    store.cas("lock/a", entry.version, encode_lock(record), 1.0)
    assert held.lost.wait(60)
    return held.reason


def test_a_cause_that_is_not_known_is_not_guessed() -> None:
    reason = overwritten({"fence": 2})
    assert "others have held it since" in reason and "administrator" not in reason
    assert "does not tell whether this hold expired or was broken" in reason
    assert "administrator" not in overwritten({})
    # Others took it, and one of them was broken: that is not why it was lost here.
    assert "administrator" not in overwritten({"fence": 9, "end": "broken by ann"})
    assert overwritten({"owner": "n-1", "fence": 2, "who": "ann"}) == "ann took it with fence 2"


def test_a_break_is_told_as_one() -> None:
    store = FlakyStore()
    held = Client(store).lock("a", ttl=60, alert=True).acquire()
    Client(store, label="ann").break_lock("a")
    assert held.lost.wait(60)
    assert held.reason.startswith("it was ended by an administrator (broken by ann at ")


# Words of refusals


def test_a_single_try_names_no_time() -> None:
    store = FlakyStore()
    with Client(store, label="ann").lock("a"), pytest.raises(CoordTimeout) as refused:
        Client(store).lock("a", wait=0).acquire()
    assert str(refused.value) == "'a' is not free; held by ann" and refused.value.waited_s == 0
    with Client(store, label="ann").lock("a"), pytest.raises(CoordTimeout) as refused:
        Client(store).lock("a", wait=0.05).acquire()
    assert "'a' was not obtained within 0.0" in str(refused.value) and refused.value.waited_s > 0


def test_a_ttl_that_is_refused_names_the_bounds_alone() -> None:
    with coord.connect("etcd://127.0.0.1:9") as client, pytest.raises(coord.Unsupported) as refused:
        client.lock("a", ttl=1.5)
    words = "etcd takes TTLs of whole seconds from 2 to 86400, not 1.5 s"
    assert str(refused.value) == words
    with coord.connect("etcd://127.0.0.1:9") as client, pytest.raises(coord.Unsupported) as refused:
        client.lock("a", ttl=2.5)
    assert str(refused.value) == words.replace("1.5", "2.5")
