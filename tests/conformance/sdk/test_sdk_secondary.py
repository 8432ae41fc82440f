"""Statistics by the official SDKs, which read them at the secondary endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from strongroom.testing import InProcessServer


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as started:
        yield started


def _secondary(url: str) -> str:
    """Return the secondary endpoint in the form that these SDKs take: without a scheme."""
    return f"{url.removeprefix('http://')}/devstoreaccount1-secondary"


def test_tables(server: InProcessServer) -> None:
    """T-ADR-09, T-SVC-02: the SDK finds the secondary endpoint itself."""
    with TableServiceClient.from_connection_string(server.connection_string) as client:
        found: Any = client.get_service_stats()
        assert found["geo_replication"]["status"] == "live"


def test_queues(server: InProcessServer) -> None:
    """Q-ADR-07, Q-SVC-02."""
    client = QueueServiceClient.from_connection_string(
        server.connection_string, secondary_hostname=_secondary(server.queue_url)
    )
    with client:
        assert client.get_service_stats()["geo_replication"]["status"] == "live"


def test_blobs(server: InProcessServer) -> None:
    """B-ADR-03."""
    client = BlobServiceClient.from_connection_string(
        server.connection_string, secondary_hostname=_secondary(server.url)
    )
    with client:
        client.create_container("box").upload_blob("b", b"read there")
        assert client.get_service_stats()["geo_replication"]["status"] == "live"
        client._location_mode = "secondary"
        blob = client.get_blob_client("box", "b")
        blob._location_mode = "secondary"
        assert blob.download_blob().readall() == b"read there"
