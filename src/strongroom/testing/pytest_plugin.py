"""Fixtures for pytest: a running server, emptied for each test, and clients of its services.

Lives here: fixtures only. pytest loads this module automatically where Strongroom is installed. So
the module imports the server, and Azure's SDKs, only when a test uses them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient
    from azure.storage.blob import BlobServiceClient
    from azure.storage.fileshare import ShareServiceClient
    from azure.storage.queue import QueueServiceClient

    from strongroom.testing.server import InProcessServer, ServerClock

# The distribution that has each module of the SDKs.
DISTRIBUTIONS: Final = {
    "azure.storage.blob": "azure-storage-blob",
    "azure.storage.queue": "azure-storage-queue",
    "azure.data.tables": "azure-data-tables",
    "azure.storage.fileshare": "azure-storage-file-share",
}


@pytest.fixture(scope="session")
def strongroom_server() -> Iterator[InProcessServer]:
    """Return a server in memory with a movable clock, shared by the whole test run."""
    from strongroom.testing.server import InProcessServer

    with InProcessServer.start() as server:
        yield server


@pytest.fixture(scope="session")
def strongroom_connection_string(strongroom_server: InProcessServer) -> str:
    """Return a connection string of the development account, as every Azure SDK accepts it."""
    return strongroom_server.connection_string


@pytest.fixture
def strongroom_clock(strongroom_server: InProcessServer) -> ServerClock:
    """Return the server's clock: `strongroom_clock.advance(60)` lets a minute pass at once."""
    return strongroom_server.clock


@pytest.fixture
def empty_strongroom(strongroom_server: InProcessServer) -> InProcessServer:
    """Return the shared server, with nothing in it: it is reset before the test.

    Everything that earlier tests, and fixtures of a wider scope, have stored there is gone. The
    clock stays as it is, and so do ordered faults.
    """
    strongroom_server.reset()
    return strongroom_server


@pytest.fixture
def blob_service_client(empty_strongroom: InProcessServer) -> Iterator[BlobServiceClient]:
    """Return a client of the Blob service of an empty server."""
    with client_of(empty_strongroom, "azure.storage.blob", "BlobServiceClient") as client:
        yield client


@pytest.fixture
def queue_service_client(empty_strongroom: InProcessServer) -> Iterator[QueueServiceClient]:
    """Return a client of the Queue service of an empty server."""
    with client_of(empty_strongroom, "azure.storage.queue", "QueueServiceClient") as client:
        yield client


@pytest.fixture
def table_service_client(empty_strongroom: InProcessServer) -> Iterator[TableServiceClient]:
    """Return a client of the Table service of an empty server."""
    with client_of(empty_strongroom, "azure.data.tables", "TableServiceClient") as client:
        yield client


@pytest.fixture
def share_service_client(empty_strongroom: InProcessServer) -> Iterator[ShareServiceClient]:
    """Return a client of the File service of an empty server."""
    with client_of(empty_strongroom, "azure.storage.fileshare", "ShareServiceClient") as client:
        yield client


def client_of(server: InProcessServer, module: str, name: str) -> Any:
    """Return a client of Azure's SDK. If the SDK is missing, fail and say what to install."""
    try:
        kind = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        pytest.fail(
            f"this fixture needs Azure's SDK: pip install {DISTRIBUTIONS[module]}", pytrace=False
        )
    return kind.from_connection_string(server.connection_string)
