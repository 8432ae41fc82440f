"""The contract of a message bus for a gate: trials that run on each real bus.

Lives here: the trials. Must not live here: starting servers, a bus's own URL.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from strongroom.coordination.client import Client
from strongroom.coordination.effects import Entry
from strongroom.coordination.hints import Hints
from strongroom.coordination.hints.bus import BusHints, BusRefused, BusUnavailable
from strongroom.coordination.hints.memory import Losing
from strongroom.coordination.recipes.gate import Gate
from strongroom.coordination.store import Promises
from strongroom.coordination.stores.memory import MemoryStore

NEVER_S = 600.0
"""A poll so seldom that only a hint can release within a trial."""
PATIENCE_S = 60.0


class Polled(MemoryStore):
    """A store without watches, which must be polled."""

    def __init__(self, poll_s: float) -> None:
        super().__init__()
        self._poll_s = poll_s
        self.reads_count = 0

    def get(self, key: str, timeout_s: float) -> Entry | None:
        self.reads_count += 1
        return super().get(key, timeout_s)

    def promises(self) -> Promises:
        return replace(
            super().promises(), watch="poll", poll_min_s=self._poll_s, poll_max_s=self._poll_s
        )


class Watched:
    """Hints that count how often they were received."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self.heard_count = self.subscribed_count = 0

    def publish(self, topic: str) -> None:
        self._hints.publish(topic)

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        def noted() -> None:
            self.heard_count += 1
            heard()

        stop = self._hints.subscribe(topic, noted)
        self.subscribed_count += 1
        return stop


class Waiters:
    """Threads that wait at a gate, each a node with a bus connection of its own."""

    def __init__(self, store: Polled, make: Callable[[], Hints], count: int, name: str) -> None:
        self._store = store
        self.hints = [Watched(make()) for _ in range(count)]
        self.found: list[Any] = []
        gates = [Client(store).gate(name, hints) for hints in self.hints]
        self._threads = [threading.Thread(target=self._wait, args=(gate,)) for gate in gates]
        for thread in self._threads:
            thread.start()

    def _wait(self, gate: Gate) -> None:
        try:
            self.found.append(gate.wait(timeout=PATIENCE_S))
        except Exception as error:
            self.found.append(error)

    def listen(self) -> None:
        """Wait until every thread listens, and has polled since."""
        until(lambda: all(hints.heard_count for hints in self.hints), "not everybody listens")
        reads_count = -1
        while reads_count != self._store.reads_count:
            reads_count = self._store.reads_count
            time.sleep(0.3)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S * 2)


def until(true: Callable[[], bool], complaint: str) -> None:
    """Wait until a condition is true, or fail."""
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s, complaint
        time.sleep(0.01)


def all_are_released_by_the_message(make: Callable[[], Hints], count: int = 50) -> None:
    store = Polled(NEVER_S)
    waiters = Waiters(store, make, count, "go live.é*>#")
    waiters.listen()
    assert not waiters.found
    Client(store).gate("another", make()).open("wrong")
    Client(store).gate("go live.é*>#", make()).open({"version": 7})
    waiters.join()
    assert waiters.found == [{"version": 7}] * count


def nobody_is_stranded_by_lost_messages(make: Callable[[], Hints], count: int = 50) -> None:
    store = Polled(0.3)
    waiters = Waiters(store, lambda: Losing(make(), 0.1), count, "lossy")
    time.sleep(0.5)
    Client(store).gate("lossy", make()).open(1)
    waiters.join()
    assert waiters.found == [1] * count


def a_wrong_secret_is_refused(hints: Hints, secret: str, caplog: pytest.LogCaptureFixture) -> None:
    """The error is clear and does not quote the secret; the gate works by polling and reports
    that."""
    caplog.set_level(logging.DEBUG)
    assert isinstance(hints, BusHints)
    with pytest.raises(BusRefused, match="refuses") as refusal:
        hints.check()
    store = Polled(0.1)
    waiters = Waiters(store, lambda: hints, 4, "g")
    until(lambda: "poll meanwhile" in caplog.text, "nobody said that it polls")
    Client(store).gate("g", hints).open("x")
    waiters.join()
    assert waiters.found == ["x"] * 4
    assert "when they look next" in caplog.text
    for text in (str(refusal.value), repr(refusal.value), caplog.text, repr(hints)):
        assert secret not in text


def a_bus_that_is_away_is_reported_once(hints: Hints, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "strongroom.coordination")
    assert isinstance(hints, BusHints)
    with pytest.raises(BusUnavailable):
        hints.check()
    store = Polled(0.2)
    waiters = Waiters(store, lambda: hints, 4, "g")
    time.sleep(1.0)
    Client(store).gate("g", hints).open("x")
    waiters.join()
    assert waiters.found == ["x"] * 4
    assert caplog.text.count("poll meanwhile") == 1
    assert caplog.text.count("when they look next") == 1


def a_bus_that_hangs_holds_nobody_up(hints: Hints, caplog: pytest.LogCaptureFixture) -> None:
    """The bus accepts connections and sends nothing: waiters poll, and `open` gives up on the
    bus."""
    store = Polled(0.2)
    waiters = Waiters(store, lambda: hints, 4, "g")
    Client(store).gate("g", hints).open("x")
    waiters.join()
    assert waiters.found == ["x"] * 4
    assert "when they look next" in caplog.text


def a_restart_strands_nobody(
    make: Callable[[], Hints],
    kill: Callable[[], None],
    restart: Callable[[], None],
    caplog: pytest.LogCaptureFixture,
    count: int = 12,
) -> None:
    """The gate is opened while the bus is dead: only its return can wake the waiters."""
    caplog.set_level(logging.INFO, "strongroom.coordination")
    store = Polled(NEVER_S)
    waiters = Waiters(store, make, count, "g")
    waiters.listen()
    kill()
    Client(store).gate("g", make()).open("x")
    assert "when they look next" in caplog.text
    assert not waiters.found
    restart()
    waiters.join()
    assert waiters.found == ["x"] * count


def tasks_are_released_by_the_message(make: Callable[[], Hints], count: int = 50) -> None:
    """Tasks of one loop share a connection; a cancelled task leaves nothing behind."""
    import asyncio

    async def scenario() -> list[Any]:
        hints = Watched(make())
        gate = Client(Polled(NEVER_S)).aio.gate("tasks", hints)
        tasks = [asyncio.create_task(gate.wait(timeout=PATIENCE_S)) for _ in range(count)]
        listening = lambda: hints.heard_count > 0 and hints.subscribed_count == count  # noqa: E731
        await asyncio.to_thread(until, listening, "not everybody listens")
        tasks.pop().cancel()
        await gate.open("x")
        return await asyncio.gather(*tasks)

    assert asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S)) == ["x"] * (count - 1)
