"""The answer to a copy within this server waits for its end: rule B-CPY-17."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
import pytest

from strongroom.testing.faults import Fault, FaultRule
from tests.conformance.answer import expect
from tests.conformance.blobs import body, put
from tests.conformance.client import Client
from tests.conformance.copying import abort, copy, ended, source_url
from tests.conformance.running import Running

LARGE = bytes(range(256)) * (16 * 1024 * 1024 // 256) + b"1"
HOLD = FaultRule(operation="Copy Blob", fault=Fault.HOLD_COPY)
ANSWER_S = 20.0


@pytest.fixture
def copying() -> Iterator[Running]:
    """A server whose copies can be held."""
    running = Running()
    yield running
    running.stop()


@pytest.fixture
def box(copying: Running, new_name: Callable[[], str]) -> Iterator[tuple[Client, str]]:
    """A client, and a container with the blob `source`."""
    client = copying.client()
    name = new_name()
    expect(client.put(f"/{name}?restype=container"), 201)
    put(client, f"/{name}/source", b"content")
    yield client, name
    client.close()


def test_a_large_copy_is_complete_when_answered(box: tuple[Client, str]) -> None:
    """B-CPY-17."""
    client, name = box
    put(client, f"/{name}/source", LARGE)
    made = expect(copy(client, source_url(client, f"/{name}/source"), f"/{name}/b"), 202)
    assert made["x-ms-copy-status"] == "success"
    found = expect(client.head(f"/{name}/b"), 200)
    assert found["Content-Length"] == str(len(LARGE))
    assert (found.etag, found["Last-Modified"]) == (made.etag, made["Last-Modified"])
    assert found["x-ms-copy-id"] == made["x-ms-copy-id"]
    assert body(client, f"/{name}/b") == LARGE


@pytest.mark.parametrize("query", ["", "?timeout=1"])
def test_one_that_takes_longer_is_answered_as_pending(
    copying: Running, box: tuple[Client, str], query: str
) -> None:
    """B-CPY-17: no time-out of the request comes before it."""
    client, name = box
    copying.server.faults.order(HOLD)
    begun = copy(client, source_url(client, f"/{name}/source"), f"/{name}/b{query}")
    assert expect(begun, 202)["x-ms-copy-status"] == "pending"
    found = expect(client.head(f"/{name}/b"), 200)
    assert (found.etag, found["x-ms-copy-status"]) == (begun.etag, "pending")
    copying.server.faults.clear()
    assert ended(client, f"/{name}/b")["x-ms-copy-status"] == "success"
    assert body(client, f"/{name}/b") == b"content"


def test_a_crowd_that_waits_holds_up_nobody(copying: Running, box: tuple[Client, str]) -> None:
    """B-CPY-17: aborts, other copies and other requests are served during the wait."""
    client, name = box
    copying.server.faults.order(msgspec.structs.replace(HOLD, resource="*/held*"))
    url = source_url(client, f"/{name}/source")
    waiters = [
        client.start("PUT", f"/{name}/held{number}", {"x-ms-copy-source": url})
        for number in range(3)
    ]
    for number in range(3):
        _await_blob(client, f"/{name}/held{number}")
    put(client, f"/{name}/large", LARGE)
    large = source_url(client, f"/{name}/large")
    made = expect(copy(client, large, f"/{name}/free"), 202)
    assert made["x-ms-copy-status"] == "success"
    for number, waiter in enumerate(waiters):
        target = f"/{name}/held{number}"
        expect(abort(client, target, client.head(target)["x-ms-copy-id"]), 204)
        expect(waiter.result(ANSWER_S), 202)
        assert client.head(target)["x-ms-copy-status"] == "aborted"


def test_a_server_that_drains_answers_it(copying: Running, box: tuple[Client, str]) -> None:
    """B-CPY-17: the answer says pending, since the copy continues after the next start."""
    client, name = box
    copying.server.faults.order(HOLD)
    url = source_url(client, f"/{name}/source")
    waiter = client.start("PUT", f"/{name}/b", {"x-ms-copy-source": url})
    _await_blob(client, f"/{name}/b")
    copying.server.stop()
    assert expect(waiter.result(ANSWER_S), 202)["x-ms-copy-status"] == "pending"


def _await_blob(client: Client, target: str) -> None:
    until = time.monotonic() + ANSWER_S
    while client.head(target).status != 200:
        assert time.monotonic() < until
        time.sleep(0.01)
