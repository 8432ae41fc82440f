"""The server that all fuzz tests share: strict, in this process, with a clock that can be moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import InProcessServer
from tests.conformance.client import Credential
from tests.fuzz.channel import Channel
from tests.fuzz.requests import BLOBS, CONTAINERS
from tests.fuzz.stock import stock

CREDENTIAL = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)


@pytest.fixture(scope="session")
def server() -> Iterator[InProcessServer]:
    """Provide a strict server: an undeclared error becomes a failure of the server."""
    with InProcessServer.start(strict=True) as running:
        yield running


@pytest.fixture
def channel(server: InProcessServer) -> Iterator[Channel]:
    """Provide a connection that signs with the development account's key."""
    made = Channel(server.port, CREDENTIAL)
    yield made
    made.is_well()
    made.close()


@pytest.fixture
def stocked(channel: Channel) -> Channel:
    """Provide the same connection, after creating the containers and blobs of the requests."""
    for container in CONTAINERS:
        stock(channel, container, *BLOBS)
    return channel
