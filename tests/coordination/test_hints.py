"""Hints without a real bus: in memory, with losses, with reconnects, and with a fake Service
Bus."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from strongroom.coordination.client import Client
from strongroom.coordination.clock import ManualClocks
from strongroom.coordination.errors import StoreUnavailable, Unsupported
from strongroom.coordination.hints import SCHEMES as KNOWN
from strongroom.coordination.hints import HintScheme, bus, multicast
from strongroom.coordination.hints.bus import BusHints, BusRefused, BusUnavailable, TopicListeners
from strongroom.coordination.hints.memory import Losing, MemoryHints
from strongroom.coordination.hints.strongroom import WatchedStore
from strongroom.coordination.stores.memory import MemoryStore
from tests.coordination import hint_trials
from tests.coordination.hint_trials import NEVER_S, Polled, Waiters, until

TOPIC = "gate/g"


# In memory


def test_memory_reaches_all_of_a_topic_and_nobody_else() -> None:
    hints, heard = MemoryHints(), [0, 0, 0]

    def counting(at: int) -> Callable[[], None]:
        def note() -> None:
            heard[at] += 1

        return note

    stops = [hints.subscribe("a", counting(0)), hints.subscribe("a", counting(1))]
    hints.subscribe("b", counting(2))
    hints.publish("a")
    stops[0]()
    hints.publish("a")
    assert heard == [1, 2, 0]
    assert hints.listeners_count == 2


def test_memory_urls_meet_by_name() -> None:
    assert multicast("memory://bus") is multicast("memory://bus")
    assert multicast("memory://") is not multicast("memory://")
    assert isinstance(multicast("memory://bus?lose=0.1"), Losing)


@pytest.mark.parametrize("share", ["2", "-1", "x"])
def test_a_share_that_is_none(share: str) -> None:
    with pytest.raises(Unsupported, match="share"):
        multicast(f"memory://bus?lose={share}")


def test_losing_loses_its_share_for_each_listener_by_itself() -> None:
    inner = MemoryHints()
    losing, heard = Losing(inner, 0.1, ManualClocks(seed=5)), [0, 0]

    def first() -> None:
        heard[0] += 1

    def second() -> None:
        heard[1] += 1

    losing.subscribe("t", first)
    losing.subscribe("t", second)
    for _ in range(2000):
        losing.publish("t")
    assert all(1700 < count < 1900 for count in heard)
    assert heard[0] != heard[1]


def test_fifty_nodes_are_released_by_the_message() -> None:
    bus_ = MemoryHints()

    class Announced(MemoryHints):
        """Says that it listens, as a real bus does."""

        def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
            stop = bus_.subscribe(topic, heard)
            heard()
            return stop

        def publish(self, topic: str) -> None:
            bus_.publish(topic)

    hint_trials.all_are_released_by_the_message(Announced)
    assert bus_.listeners_count == 0


def test_a_tenth_of_the_messages_lost_strands_nobody() -> None:
    hints = MemoryHints()
    hint_trials.nobody_is_stranded_by_lost_messages(lambda: hints)
    assert hints.listeners_count == 0


# Gates and their bus


class Recorded(MemoryHints):
    """Records its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.subscribed_count = 0
        self.published: list[str] = []

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        self.subscribed_count += 1
        return super().subscribe(topic, heard)

    def publish(self, topic: str) -> None:
        self.published.append(topic)
        super().publish(topic)


def test_who_comes_late_needs_no_bus() -> None:
    hints, store = Recorded(), Polled(NEVER_S)
    Client(store).gate("g").open("x")
    assert Client(store).gate("g", hints).wait() == "x"
    assert asyncio.run(Client(store).aio.gate("g", hints).wait()) == "x"
    assert hints.subscribed_count == 0


def test_a_store_that_wakes_its_waiters_is_not_helped_but_the_bus_is_told() -> None:
    """Another node may have found the store unable to do it."""
    hints, store = Recorded(), MemoryStore()
    waiter = threading.Thread(target=Client(store).gate("g", hints).wait, args=(30,))
    waiter.start()
    Client(store).gate("g", hints).open()
    waiter.join(30)
    assert not waiter.is_alive()
    assert (hints.subscribed_count, hints.published) == (0, [TOPIC])


def test_what_is_said_between_looking_and_listening_is_not_missed() -> None:
    store = Polled(NEVER_S)

    class Late(MemoryHints):
        def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
            Client(store).gate("g", self).open("x")  # before anybody listens
            return super().subscribe(topic, heard)

    assert Client(store).gate("g", Late()).wait(timeout=30) == "x"


def test_a_task_that_is_cancelled_while_it_subscribes_leaves_nothing() -> None:
    class Slow(MemoryHints):
        def __init__(self) -> None:
            super().__init__()
            self.asked, self.go, self.stopped = threading.Event(), threading.Event(), False

        def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
            self.asked.set()
            assert self.go.wait(30)
            stop = super().subscribe(topic, heard)

            def stopped() -> None:
                stop()
                self.stopped = True

            return stopped

    async def scenario(hints: Slow) -> None:
        task = asyncio.create_task(Client(Polled(NEVER_S)).aio.gate("g", hints).wait())
        await asyncio.to_thread(hints.asked.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        hints.go.set()
        await asyncio.to_thread(until, lambda: hints.stopped, "nobody stopped it")

    asyncio.run(asyncio.wait_for(scenario(Slow()), 60))


# Listening in the background


class Scripted:
    """A bus with a script: each listen either ends with an error or continues."""

    display_url = "scripted://bus"

    def __init__(self, script: list[Exception | str]) -> None:
        self.script, self.lines = script, list[TopicListeners]()
        self.published: list[str] = []
        self.refuses: Exception | None = None

    def publish(self, topic: str) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.published.append(topic)

    def listen(self, line: TopicListeners) -> None:
        act = self.script.pop(0) if self.script else "stay"
        if isinstance(act, Exception):
            raise act
        over = threading.Event()
        line.on_close(over.set)
        self.lines.append(line)
        line.subscribed()
        if act == "break":
            raise BusUnavailable("scripted://bus: cut off")
        if act == "end":
            return
        assert over.wait(60)


def test_each_subscription_and_each_message_is_heard() -> None:
    scripted, heard = Scripted(["break", "end", "stay"]), threading.Semaphore(0)
    stop = BusHints(scripted).subscribe("t", lambda: heard.release())
    for _ in range(3):
        assert heard.acquire(timeout=30)
    scripted.lines[-1].message_received()
    assert heard.acquire(timeout=30)
    stop()
    until(lambda: threads() == 0, "a thread is left")


def threads() -> int:
    return sum(thread.name == "coordination-hints" for thread in threading.enumerate())


def test_listeners_of_a_topic_share_a_line_until_the_last_one_goes() -> None:
    scripted = Scripted([])
    hints = BusHints(scripted)
    stops = [hints.subscribe("t", lambda: None) for _ in range(5)]
    other = hints.subscribe("u", lambda: None)
    until(lambda: len(scripted.lines) == 2, "there are two lines")
    for stop in stops[:4]:
        stop()
        stop()  # twice is no harm
    assert not any(line.closed for line in scripted.lines)
    stops[4]()
    assert sorted((line.topic, line.closed) for line in scripted.lines) == [
        ("t", True),
        ("u", False),
    ]
    again = hints.subscribe("t", lambda: None)
    until(lambda: len(scripted.lines) == 3, "a new line")
    again()
    other()
    until(lambda: threads() == 0, "a thread is left")


def test_a_topic_without_a_thread_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system started no more threads for a while."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    scripted, heard = Scripted([]), threading.Semaphore(0)
    hints = BusHints(scripted)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            hints.subscribe("t", lambda: None)
    stop = hints.subscribe("t", lambda: heard.release())
    assert heard.acquire(timeout=30)
    stop()
    until(lambda: threads() == 0, "a thread is left")


def test_trouble_is_said_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "strongroom.coordination")
    away = BusUnavailable("scripted://bus does not answer")
    script: list[Exception | str] = [away, away, away, "break", away, "stay"]
    scripted, heard = Scripted(script), threading.Semaphore(0)
    stop = BusHints(scripted).subscribe("t", lambda: heard.release())
    assert heard.acquire(timeout=30)
    assert heard.acquire(timeout=30)
    stop()
    said = [(record.levelname, "poll meanwhile" in record.message) for record in caplog.records]
    assert said == [("WARNING", True), ("INFO", False), ("WARNING", True), ("INFO", False)]


def test_a_surprise_of_a_library_is_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    scripted, heard = Scripted([KeyError("pass=s3cret")]), threading.Semaphore(0)
    stop = BusHints(scripted).subscribe("t", lambda: heard.release())
    assert heard.acquire(timeout=30)
    stop()
    scripted.refuses = ValueError("pass=s3cret")
    BusHints(scripted).publish("t")
    assert "scripted://bus: KeyError" in caplog.text
    assert "scripted://bus: ValueError" in caplog.text
    assert "s3cret" not in caplog.text


def test_a_listener_that_fails_hurts_no_other(caplog: pytest.LogCaptureFixture) -> None:
    line, heard = TopicListeners("t"), []

    def bad() -> None:
        raise RuntimeError("boom")

    line.add(bad, bad)
    line.add(lambda: heard.append("message"), lambda: heard.append("listening"))
    line.message_received()
    line.subscribed()
    assert heard == ["message", "listening"]
    assert "boom" in caplog.text


def test_who_is_refused_does_not_hammer(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(line: TopicListeners, seconds: float) -> None:
        # Lines of earlier tests may be about to end.
        if line.topic == "refused":
            pauses.append(seconds)

    monkeypatch.setattr(TopicListeners, "pause", pause)
    away, refused = BusUnavailable("away"), BusRefused("no")
    scripted, heard = Scripted([refused, *[away] * 8, "stay"]), threading.Semaphore(0)
    stop = BusHints(scripted).subscribe("refused", lambda: heard.release())
    assert heard.acquire(timeout=30)
    stop()
    assert pauses[0] == bus._PAUSE_REFUSED_S
    assert pauses[1] < 0.2
    assert pauses[-1] > 0.9
    assert max(pauses[1:]) <= bus._PAUSE_MAX_S


def test_publishing_reports_and_never_fails(caplog: pytest.LogCaptureFixture) -> None:
    scripted = Scripted([])
    scripted.refuses = BusRefused("scripted://bus refuses the password")
    hints, store = BusHints(scripted), Polled(NEVER_S)
    assert Client(store).gate("g", hints).open("x").is_open
    assert asyncio.run(Client(store).aio.gate("g", hints).open("x")).is_open
    assert caplog.text.count("scripted://bus refuses the password") == 2
    with pytest.raises(BusRefused):
        hints.check()
    scripted.refuses = None
    hints.check()
    assert scripted.published == ["check/bus"]


def test_a_forked_child_listens_anew() -> None:
    scripted, heard = Scripted([]), threading.Semaphore(0)
    hints = BusHints(scripted)
    stop = hints.subscribe("t", lambda: heard.release())
    assert heard.acquire(timeout=30)
    child = os.fork()
    if child == 0:
        again = threading.Event()
        hints.subscribe("t", again.set)
        os._exit(0 if again.wait(30) else 1)
    _, status = os.waitpid(child, 0)
    stop()
    assert os.waitstatus_to_exitcode(status) == 0


# The registry and its URLs


def test_every_scheme_has_a_module() -> None:
    for scheme, target in KNOWN.items():
        module, _, function = target.target.partition(":")
        assert module.startswith("strongroom.coordination.hints."), scheme
        assert function == "open_url"


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("carrier-pigeon://loft", "known are amqp"),
        ("nats", "known are amqp"),
        ("nats://u:s3cret@", "names no host"),
        ("nats://u:s3cret@h:x", "port"),
        ("nats://u:s3cret@h:99999", "port"),
        ("nats://u:s3cret@[h", "cannot be read"),
        ("nats://u:s3cret@h?heartbeat=1&prefix=x", "knows no option 'heartbeat'"),
        ("amqp://u:s3cret@h?exchange=", "exchange"),
        ("amqp://u:s3cret@h?exchange=amq.topic", "exchange"),
        ("amqps://u:s3cret@h?heartbeat=1", "knows no option"),
        ("amqps://u:s3cret@h?ca=/none/at/all", "no file of certificates"),
        ("amqp://u:s3cret@h?ca=/none/at/all", "knows no option"),
        ("nats://u:s3cret@h?ca=x", "knows no option"),
        ("nats+tls://u:s3cret@h?ca=/none/at/all", "no file of certificates"),
        ("nats://u:s3cret@h?prefix=a..b", "beginning of a subject"),
        ("nats://u:s3cret@h?prefix=%3E", "beginning of a subject"),
        ("servicebus://h/topic", "POLICY:KEY"),
        ("servicebus://u:s3cret@h", "POLICY:KEY"),
        ("servicebus://u:s3cret;@h/t", "';'"),
        ("azure://acct/Bad_Name", "container"),
    ],
)
def test_a_url_that_cannot_be_used(url: str, match: str) -> None:
    with pytest.raises(Unsupported, match=match) as refusal:
        multicast(url)
    assert "s3cret" not in str(refusal.value)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pika", None)
    monkeypatch.delitem(sys.modules, "strongroom.coordination.hints.amqp", raising=False)
    with pytest.raises(Unsupported, match=r"pip install 'strongroom\[amqp\]'"):
        multicast("amqp://h")


def test_a_program_may_add_a_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    target = "strongroom.coordination.hints.memory:open_url"
    monkeypatch.setitem(KNOWN, "pigeon", HintScheme(target))
    assert isinstance(multicast("pigeon://loft"), MemoryHints)


def test_no_secret_is_in_a_repr() -> None:
    for url in ("nats://u:s3cret@h", "nats://s3cret@h", "amqp://u:s3cret@h"):
        hints = multicast(url)
        assert isinstance(hints, BusHints)
        assert (
            "s3cret"
            not in f"{hints!r} {hints._bus!r} {vars(hints._bus)!r} {hints._bus.display_url}"
        )


# A store that can be watched


def watched(store: MemoryStore) -> BusHints:
    return BusHints(WatchedStore(store, "azure://test"))


def test_a_store_that_can_be_watched_is_a_bus() -> None:
    store = MemoryStore()
    hint_trials.all_are_released_by_the_message(lambda: watched(store), 8)
    hint_trials.tasks_are_released_by_the_message(lambda: watched(store), 8)


def test_a_store_that_can_only_be_polled_is_no_bus(caplog: pytest.LogCaptureFixture) -> None:
    store, hints = Polled(0.05), watched(Polled(NEVER_S))
    waiters = Waiters(store, lambda: hints, 2, "g")
    until(lambda: "cannot be watched" in caplog.text, "nobody said so")
    Client(store).gate("g", hints).open(1)
    waiters.join()
    assert waiters.found == [1, 1]


def test_a_watched_store_that_is_away() -> None:
    class Away(MemoryStore):
        def get(self, key: str, timeout_s: float) -> Any:
            raise StoreUnavailable("down")

    with pytest.raises(BusUnavailable, match=r"azure://test does not answer: down"):
        watched(Away()).check()
