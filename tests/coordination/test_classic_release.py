"""The article's two kinds of release: a polled flag, and a message."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom import coordination
from strongroom.coordination import (
    Client,
    CoordTimeout,
    ListeningRelease,
    OutcomeUnknown,
    PollingRelease,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
)
from strongroom.coordination.hints.memory import Losing, MemoryHints
from strongroom.coordination.stores.memory import MemoryStore
from strongroom.testing import InProcessServer
from tests.coordination.classic_world import Scripted, url_of
from tests.coordination.hint_trials import until

FLAG = "release/hounds"


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as running:
        yield running


# Polling release


def waiting(release: PollingRelease | ListeningRelease) -> tuple[threading.Thread, list[object]]:
    found: list[object] = []

    def run() -> None:
        try:
            release.wait(timeout=60)
            found.append("released")
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def test_fifty_paused_nodes_are_released_by_the_flag() -> None:
    store = MemoryStore()
    waiters = [waiting(PollingRelease(Client(store), "hounds", 0.05)) for _ in range(50)]
    assert not any(found for _, found in waiters)
    PollingRelease(Client(store), "hounds").set()
    for thread, found in waiters:
        thread.join(60)
        assert found == ["released"]
    PollingRelease(Client(store), "hounds").wait(timeout=0)


def test_the_flag_is_a_blob_that_any_tool_can_set_and_see(server: InProcessServer) -> None:
    azure = BlobServiceClient.from_connection_string(server.connection_string)
    with coordination.connect(url_of(server)) as client:
        release = PollingRelease(client, "hounds", 0.05)
        assert not release.is_set()  # not even its container is there
        release.set()
        release.set()
        blob = azure.get_blob_client("classic", FLAG)
        assert blob.download_blob().readall() == b"Set"
        release.clear()
        release.clear()
        assert not blob.exists()
        with pytest.raises(CoordTimeout):
            release.wait(timeout=0.1)
        for content in (b"", b"0", b"\xff not Set"):
            blob.upload_blob(content, overwrite=True)
            assert release.is_set()
            release.wait(timeout=0)
            release.set()
            assert blob.download_blob().readall() == content
        release.clear()
        assert not release.is_set()


def test_every_other_error_is_raised(server: InProcessServer) -> None:
    with coordination.connect(url_of(server, quote("AAAA", safe=""))) as client:
        release = PollingRelease(client, "hounds", 0.05)
        acts: list[Callable[[], object]] = [
            release.is_set, release.set, release.clear, release.wait,
        ]  # fmt: skip
        for act in acts:
            with pytest.raises(StoreRefused):
                act()


@pytest.mark.parametrize("kind", ["lost", "never"])
def test_a_change_that_was_not_answered_or_beaten_is_looked_at_again(kind: str) -> None:
    store = Scripted(kind)
    release = PollingRelease(Client(store), "hounds")
    release.set()
    assert release.is_set()
    store.script = [kind]
    release.clear()
    assert not release.is_set()


def test_a_change_that_failed_says_whether_it_may_have_happened() -> None:
    release = PollingRelease(Client(Scripted("down")), "hounds")
    with pytest.raises(StoreUnavailable):
        release.set()
    assert not release.is_set()
    with pytest.raises(OutcomeUnknown):
        PollingRelease(Client(Scripted("lost, then down")), "hounds").set()


def test_a_flag_that_cannot_be_seen_is_not_guessed() -> None:
    store = Scripted()
    store.reads_fail = True
    for act in (PollingRelease(Client(store), "hounds").is_set,):
        with pytest.raises(StoreUnavailable):
            act()
    with pytest.raises(StoreUnavailable):
        PollingRelease(Client(store), "hounds").wait()


@pytest.mark.parametrize("interval_s", [0, -1])
def test_an_interval_that_is_none(interval_s: float) -> None:
    with pytest.raises(ValueError, match="interval"):
        PollingRelease(Client(MemoryStore()), "hounds", interval_s)


# Listening release


def test_fifty_listeners_are_released_at_once_and_who_comes_late_stays_paused() -> None:
    bus = MemoryHints()
    releases = [ListeningRelease(bus, "hounds") for _ in range(50)]
    waiters = [waiting(release) for release in releases]
    until(lambda: all(release.listening.is_set() for release in releases), "not all listen")
    assert not any(found for _, found in waiters)  # to listen is no message
    ListeningRelease(bus, "other").release()
    ListeningRelease(bus, "hounds").release()
    for thread, found in waiters:
        thread.join(60)
        assert found == ["released"]
    assert bus.listeners_count == 0
    late = ListeningRelease(bus, "hounds")
    with pytest.raises(CoordTimeout):
        late.wait(timeout=0.05)
    assert not late.listening.is_set()


def test_what_a_gate_adds_to_both() -> None:
    """A message that is lost, or comes too early, strands a listener, but no waiter at a gate."""
    bus = MemoryHints()
    deaf = Losing(bus, 1.0)
    store = MemoryStore()
    gate = Client(store).gate("hounds", deaf)
    Client(store).gate("hounds", bus).open()
    gate.wait(timeout=30)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_listening_release_over_a_bus_that_loses(share: float) -> None:
    bus = MemoryHints()
    release = ListeningRelease(Losing(bus, share), "hounds")

    def say() -> None:
        until(release.listening.is_set, "it does not listen")
        release.release()

    teller = threading.Thread(target=say)
    teller.start()
    if share:
        with pytest.raises(CoordTimeout):
            release.wait(timeout=0.5)
    else:
        release.wait(timeout=60)
    teller.join()


def test_hints_that_cannot_tell_a_message_are_no_release() -> None:
    class Bare:
        def publish(self, topic: str) -> None:
            pass

        def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
            return lambda: None

    with pytest.raises(Unsupported, match="cannot tell"):
        ListeningRelease(Losing(Bare(), 0.0), "hounds").wait(timeout=1)
