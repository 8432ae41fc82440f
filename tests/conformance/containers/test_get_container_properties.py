"""Get Container Properties: rule B-CON-03; and the answer for a missing container: B-CON-11."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.answer import expect, metadata
from tests.conformance.client import Client
from tests.conformance.leasing import Leased
from tests.conformance.rows import SERVED, request_of
from tests.conformance.running import Running
from tests.operations.transcript import Row

FIXED = {
    "x-ms-has-immutability-policy": "false",
    "x-ms-has-legal-hold": "false",
    "x-ms-immutable-storage-with-versioning-enabled": "false",
    "x-ms-default-encryption-scope": "$account-encryption-key",
    "x-ms-deny-encryption-scope-override": "false",
}
ON_CONTAINERS = [
    row
    for row in SERVED
    if row.path == "/{container}"
    and row.id not in ("container_create", "container_get_account_info")
]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_properties_of_a_container(
    client: Client, new_name: Callable[[], str], method: str
) -> None:
    """B-CON-03."""
    target = f"/{new_name()}?restype=container"
    made = expect(client.put(target, {"x-ms-meta-Colour": "red"}), 201)
    read = expect(client.send(method, target), 200)
    assert read.body == b""
    assert (read.etag, read["Last-Modified"]) == (made.etag, made["Last-Modified"])
    assert metadata(read) == {"Colour": "red"}
    assert {name: read[name] for name in FIXED} == FIXED
    assert read["x-ms-lease-status"] == "unlocked"
    assert read["x-ms-lease-state"] == "available"
    assert {"x-ms-lease-duration", "x-ms-blob-public-access"}.isdisjoint(read.names())


def test_the_lease_of_a_container_is_reported(
    server: Running, client: Client, container: str
) -> None:
    """B-CON-03 B-LSE-20."""
    leased = Leased(server, client, f"/{container}?restype=container")
    leased.acquire(duration_s=-1)
    read = leased.reported()
    assert read["x-ms-lease-status"] == "locked"
    assert read["x-ms-lease-state"] == "leased"
    assert read["x-ms-lease-duration"] == "infinite"


@pytest.mark.parametrize("row", ON_CONTAINERS, ids=lambda row: row.id)
def test_operations_on_a_missing_container(
    client: Client, new_name: Callable[[], str], row: Row
) -> None:
    """B-CON-11."""
    sample = request_of(row, new_name())
    for method in row.methods:
        answer = client.send(method, sample.target, sample.headers, sample.body)
        expect(answer, 404, "ContainerNotFound")
