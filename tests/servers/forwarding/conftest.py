"""The fixtures of the conformance tests about files, over two gateways to which requests go in
turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client
from tests.servers.forwarding.two_servers import TwoServers

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[TwoServers]:
    running = TwoServers()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(server: TwoServers) -> Client:
    return server.client()


@pytest.fixture(scope="module")
def files(server: TwoServers) -> Client:
    return server.files()


@pytest.fixture
def file_account(server: TwoServers) -> Client:
    return server.file_account()


@pytest.fixture
def new_name() -> Callable[[], str]:
    return lambda: f"container-{next(_numbers)}"


@pytest.fixture
def container(client: Client, new_name: Callable[[], str]) -> str:
    name = new_name()
    expect(client.put(f"/{name}?restype=container"), 201)
    return name


@pytest.fixture
def blob(client: Client, container: str) -> str:
    expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
    return container


@pytest.fixture
def share(files: Client) -> str:
    name = f"share-{next(_numbers)}"
    expect(files.put(f"/{name}?restype=share"), 201)
    return name
