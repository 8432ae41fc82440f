"""The server that all fuzz tests share: strict, in this process, with a clock that can be moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import InProcessServer
from tests.conformance.client import Credential
from tests.fuzz.channel import Channel, Sent
from tests.fuzz.requests import BLOBS, CONTAINERS

CREDENTIAL = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)


@pytest.fixture(scope="session")
def server() -> Iterator[InProcessServer]:
    """An error that an operation does not declare becomes a failure of the server."""
    with InProcessServer.start(strict=True) as running:
        yield running


@pytest.fixture
def channel(server: InProcessServer) -> Iterator[Channel]:
    """A connection that signs with the development account's key."""
    made = Channel(server.port, CREDENTIAL)
    yield made
    made.is_well()
    made.close()


@pytest.fixture
def stocked(channel: Channel) -> Channel:
    """The same, with the containers and blobs that requests are about."""
    for container in CONTAINERS:
        target = f"/{CREDENTIAL.account}/{container}"
        channel.ask(Sent("PUT", f"{target}?restype=container"))
        for blob in BLOBS:
            headers = (("x-ms-blob-type", "BlockBlob"),)
            channel.ask(Sent("PUT", f"{target}/{blob}", headers, b"some body"))
    return channel
