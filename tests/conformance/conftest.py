"""Fixtures of the conformance tests: one server for all tests, unique names for each test.

`client` is a signed client of the development account; `container` the name of a new container;
`leased` a new container or blob, without a lease yet;
`account` a client of an account that only this test uses. `queues`, `queue`, `queue_account` are
the same for queues, `tables`, `table`, `table_account` for tables, `files`, `share`,
`file_account` for shares of files. See client.py. `trusting`
is a server of its own that accepts bearer tokens: see trusting.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.leasing import Leased
from tests.conformance.running import Running
from tests.conformance.table_client import TableClient
from tests.conformance.trusting import Trusting

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """The server that all conformance tests share."""
    running = Running()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def client(server: Running) -> Iterator[Client]:
    """A client of the development account, one connection for all tests."""
    found = server.client()
    yield found
    found.close()


@pytest.fixture
def account(server: Running) -> Iterator[Client]:
    """Provide a client of an account that only this test uses."""
    found = server.account()
    yield found
    found.close()


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Return a function that makes unique container names."""
    return lambda: f"container-{next(_numbers)}"


@pytest.fixture
def container(client: Client, new_name: Callable[[], str]) -> str:
    """The name of a new, private container."""
    name = new_name()
    expect(client.put(f"/{name}?restype=container"), 201)
    return name


@pytest.fixture
def blob(client: Client, container: str) -> str:
    """The name of a new, private container with a blob `b`."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
    return container


@pytest.fixture(params=["container", "blob"])
def leased(
    request: pytest.FixtureRequest, server: Running, client: Client, container: str
) -> Leased:
    """A new container or blob without a lease."""
    if request.param == "container":
        return Leased(server, client, f"/{container}?restype=container")
    expect(client.put(f"/{container}/b", PUT_BLOB, b"content"), 201)
    return Leased(server, client, f"/{container}/b")


@pytest.fixture(scope="session")
def queues(server: Running) -> Iterator[Client]:
    """A client of the development account's queues, one connection for all tests."""
    found = server.queues()
    yield found
    found.close()


@pytest.fixture
def queue_account(server: Running) -> Iterator[Client]:
    """Provide a client of the queues of an account that only this test uses."""
    found = server.queue_account()
    yield found
    found.close()


@pytest.fixture
def queue(queues: Client) -> str:
    """The name of a new queue."""
    name = f"queue-{next(_numbers)}"
    expect(queues.put(f"/{name}"), 201)
    return name


@pytest.fixture(scope="session")
def tables(server: Running) -> Iterator[TableClient]:
    """A client of the development account's tables, one connection for all tests."""
    found = server.tables()
    yield found
    found.close()


@pytest.fixture
def table_account(server: Running) -> Iterator[TableClient]:
    """Provide a client of the tables of an account that only this test uses."""
    found = server.table_account()
    yield found
    found.close()


@pytest.fixture
def table(tables: TableClient) -> str:
    """The name of a new table."""
    name = f"Table{next(_numbers)}"
    made = tables.post("/Tables", {"TableName": name}, {"Prefer": "return-no-content"})
    assert made.status == 204, made
    return name


@pytest.fixture(scope="session")
def files(server: Running) -> Iterator[Client]:
    """A client of the development account's shares, one connection for all tests."""
    found = server.files()
    yield found
    found.close()


@pytest.fixture
def file_account(server: Running) -> Iterator[Client]:
    """Provide a client of the shares of an account that only this test uses."""
    found = server.file_account()
    yield found
    found.close()


@pytest.fixture
def share(files: Client) -> str:
    """The name of a new share."""
    name = f"share-{next(_numbers)}"
    expect(files.put(f"/{name}?restype=share"), 201)
    return name


@pytest.fixture(scope="session")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    """A server that accepts bearer tokens; see trusting.py."""
    found = Trusting(tmp_path_factory.mktemp("trusting"))
    yield found
    found.stop()


@pytest.fixture(params=["memory", "embedded"])
def each_engine(
    request: pytest.FixtureRequest, server: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A server of each engine in turn."""
    if request.param == "memory":
        yield server
        return
    own = Running(tmp_path_factory.mktemp("engine") / "data")
    yield own
    own.stop()
