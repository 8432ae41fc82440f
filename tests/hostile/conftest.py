"""A strict server that all tests of this folder attack, and clients with an account each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.conformance.running import Running
from tests.conformance.table_client import TableClient


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """Provide the server, which must still answer at the end."""
    made = Running()
    yield made
    assert made.tables().get("/Tables").status == 200
    made.stop()


@pytest.fixture
def tables(running: Running) -> Iterator[TableClient]:
    """Provide a client with an account of its own, which has the table `Edge`."""
    client = running.table_account()
    assert client.post("/Tables", {"TableName": "Edge"}).status == 201
    yield client
    client.close()


@pytest.fixture
def queues(running: Running) -> Iterator[Client]:
    """Provide a client with an account of its own, which has the queue `edge`."""
    client = running.queue_account()
    expect(client.put("/edge"), 201)
    yield client
    client.close()
