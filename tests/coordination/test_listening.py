"""One connection listens for all waiters of a process: its notifications, and its end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import UNCHANGED, Entry
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.stores.connections import listening
from strongroom.coordination.stores.connections.listening import (
    NotificationHub,
    Subscriber,
    watch_key,
)

_clock = SystemClocks()


class FakeConnection:
    """Hears what is said to the room; a broken one fails at its next call."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)
        self.topics = set[str]()
        self.said = list[str]()
        self.broken = self.closed = False

    def fileno(self) -> int:
        return self._near.fileno()

    def subscribe(self, topic: str) -> None:
        self._check()
        self._room.adding(topic)
        self.topics.add(topic)

    def unsubscribe(self, topic: str) -> None:
        self._check()
        self.topics.remove(topic)

    def received(self) -> list[str]:
        self._check()
        try:
            self._near.recv(4096)
        except BlockingIOError:
            return []
        said, self.said = self.said, []
        return said

    def close(self) -> None:
        self.closed = True
        self._near.close()
        self._far.close()

    def say(self, topic: str) -> None:
        if topic in self.topics:
            self.said.append(topic)
            self._far.send(b"!")

    def cut(self) -> None:
        self.broken = True
        self._far.send(b"!")

    def _check(self) -> None:
        if self.broken:
            raise ConnectionError("it is cut")


class Room:
    """Where connections are made."""

    def __init__(self) -> None:
        self.connections = list[FakeConnection]()
        self.refuses = False
        self.adding: Callable[[str], None] = lambda topic: None
        self.hub = NotificationHub(self.open, _clock)

    @contextmanager
    def registered(self, topic: str) -> Iterator[Subscriber]:
        subscriber = Subscriber()
        with self.hub.registered(topic, subscriber):
            yield subscriber

    def open(self) -> FakeConnection:
        if self.refuses:
            raise StoreUnavailable("nobody may listen")
        self.connections.append(FakeConnection(self))
        return self.connections[-1]


@pytest.fixture
def room() -> Room:
    return Room()


def until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.002)


class Value:
    """An entry that tests change."""

    def __init__(self) -> None:
        self.version, self.looks, self.held_until_s = 1, 0, 0.0

    def look(self) -> Entry:
        self.looks += 1
        left_s = self.held_until_s - _clock.monotonic_s() if self.held_until_s else 0.0
        return Entry(b"", str(self.version), left_s)


def test_a_change_wakes_those_of_its_topic_only(room: Room) -> None:
    values = {"a": Value(), "b": Value()}
    with ThreadPoolExecutor(8) as pool:

        def watch(topic: str) -> object:
            with room.registered(topic) as subscriber:
                return watch_key(_clock, subscriber, values[topic].look, "1", 20)

        waiting = {topic: [pool.submit(watch, topic) for _ in range(4)] for topic in values}
        until(lambda: [value.looks for value in values.values()] == [4, 4])
        assert len(room.connections) == 1, "one connection for all"
        values["a"].version = 2
        room.connections[0].say("a")
        woken = [future.result(20) for future in waiting["a"]]
        assert all(isinstance(entry, Entry) and entry.version == "2" for entry in woken)
        time.sleep(0.05)
        assert values["b"].looks == 4 and not any(future.done() for future in waiting["b"])
        values["b"].version = 2
        room.connections[0].say("b")
        assert all(future.result(20) for future in waiting["b"])


def test_what_changes_while_it_subscribes_is_seen(room: Room) -> None:
    """The look comes after the subscription, so that nothing falls in between."""
    value = Value()

    def change(topic: str) -> None:
        value.version = 2

    room.adding = change
    with room.registered("a") as subscriber:
        entry = watch_key(_clock, subscriber, value.look, "1", 20)
    assert isinstance(entry, Entry) and entry.version == "2" and value.looks == 1


def test_the_time_ends(room: Room) -> None:
    value = Value()
    with room.registered("a") as subscriber:
        assert watch_key(_clock, subscriber, value.look, "1", 0.1) is UNCHANGED
    assert value.looks == 1, "nobody told of a change, so that there was none"


def test_the_end_of_a_hold_by_the_clock_wakes(room: Room) -> None:
    value = Value()
    value.held_until_s = _clock.monotonic_s() + 0.2
    with room.registered("a") as subscriber:
        entry = watch_key(_clock, subscriber, value.look, "1", 20)
    assert isinstance(entry, Entry) and entry.version == "1"
    assert entry.expires_in_s is not None and entry.expires_in_s <= 0


def test_whoever_is_not_told_reads(room: Room) -> None:
    room.refuses = True
    value = Value()
    timer = threading.Timer(0.3, setattr, (value, "version", 2))
    timer.start()
    with room.registered("a") as subscriber:
        entry = watch_key(_clock, subscriber, value.look, "1", 20)
    assert isinstance(entry, Entry) and entry.version == "2"
    timer.join()
    assert value.looks > 2


def test_a_hub_without_a_thread_is_begun_anew(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system started no more threads for a while: whoever waited then polls at once."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with room.registered("a") as early:
            assert not early.is_subscribed(0)
            assert early.wait(0)
    with room.registered("a") as later:
        assert later.is_subscribed(20)
    assert len(room.connections) == 1
    room.hub.close()


def test_a_connection_that_ends_makes_waiters_look_and_read(room: Room) -> None:
    value = Value()
    with ThreadPoolExecutor(1) as pool, room.registered("a") as subscriber:
        waiting = pool.submit(watch_key, _clock, subscriber, value.look, "1", 20)
        until(lambda: value.looks == 1)
        room.connections[0].cut()
        until(lambda: value.looks >= 3)
        value.version = 2
        assert isinstance(waiting.result(20), Entry)
    assert room.connections[0].closed
    with room.registered("a") as subscriber:
        assert subscriber.is_subscribed(20), "whoever waits next has a new connection"
    assert len(room.connections) == 2


def test_it_lingers_for_those_who_come_back_and_goes_then(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_LINGER_S", 0.2)
    for _ in range(5):
        with room.registered("a") as subscriber:
            assert subscriber.is_subscribed(20)
    assert len(room.connections) == 1 and room.connections[0].topics == {"a"}
    with room.registered("b") as subscriber:
        assert subscriber.is_subscribed(20)
        until(lambda: room.connections[0].topics == {"b"})
    until(lambda: room.connections[0].closed)
    with room.registered("a") as subscriber:
        assert subscriber.is_subscribed(20)
    assert len(room.connections) == 2


def test_closing_ends_the_connection_and_waiters_read(room: Room) -> None:
    value = Value()
    with ThreadPoolExecutor(1) as pool, room.registered("a") as subscriber:
        waiting = pool.submit(watch_key, _clock, subscriber, value.look, "1", 20)
        until(lambda: value.looks == 1)
        room.hub.close()
        until(lambda: room.connections[0].closed)
        value.version = 2
        assert isinstance(waiting.result(20), Entry)


def test_many_come_and_go_at_once(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every waiter gets an answer, whenever the connection opens, stays or closes."""
    monkeypatch.setattr(listening, "_LINGER_S", 0.001)

    def come_and_go(number: int) -> int:
        heard = 0
        for lap in range(100):
            with room.registered(f"topic {(number + lap) % 3}") as subscriber:
                heard += subscriber.is_subscribed(20)
                subscriber.wait(0.0005 * (lap % 4))
        return heard

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(come_and_go, range(6))) == [100] * 6
    until(lambda: all(connection.closed for connection in room.connections))
