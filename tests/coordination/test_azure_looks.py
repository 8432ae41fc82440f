"""What people see of a container: which records have changed, and who waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from strongroom import coordination as coord
from strongroom.coordination.store import ListsStates
from strongroom.coordination.stores.azure.etag import label_of_agent
from strongroom.testing import InProcessServer
from strongroom.wire.core.http import Request
from tests.coordination.conformance import TIMEOUT_S
from tests.coordination.test_azure_store import MODES, url_of


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
def test_a_listing_tells_which_records_have_changed(server: InProcessServer, mode: str) -> None:
    with coord.connect(url_of(server, mode, f"states-{mode}")) as client:
        store = client.store
        assert isinstance(store, ListsStates)
        assert store.list_states("lock/", TIMEOUT_S) == {}
        with client.lock("a"), client.lock("b"):
            first = store.list_states("lock/", TIMEOUT_S)
            assert sorted(first) == ["lock/a", "lock/b"]
            assert store.list_states("lock/", TIMEOUT_S) == first
            client.sibling().break_lock("b")
            second = store.list_states("lock/", TIMEOUT_S)
        assert second["lock/a"] == first["lock/a"] and second["lock/b"] != first["lock/b"]
        assert len(store.list_states("", TIMEOUT_S, 1)) >= 1


@pytest.mark.parametrize("label", ["host:4711", "<b>ä</b>\r\nx: y", "a" * 4000])
def test_a_waiting_read_says_who_waits(server: InProcessServer, label: str) -> None:
    waiting = server._app.services.waiting
    with coord.connect(url_of(server, "etag"), label=label) as client:
        gate = client.gate(f"labelled-{len(label)}")
        thread = threading.Thread(target=gate.wait, args=(20,))
        thread.start()
        while not (held := waiting.clients):
            time.sleep(0.01)
        assert isinstance(held[0], Request)
        agent = held[0].headers.get("user-agent") or ""
        gate.open()
        thread.join(20)
    shown = label_of_agent(agent)
    assert shown is not None and label.startswith(shown) and len(agent) < 300
    assert label == shown or len(label) > 100


@pytest.mark.parametrize("agent", ["", "curl/8", "strongroom-coordination/"])
def test_other_agents_name_no_waiter(agent: str) -> None:
    assert label_of_agent(agent) is None
