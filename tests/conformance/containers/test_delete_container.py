"""Delete Container and creation right after it: rules B-CON-04, B-CON-05, B-CON-06."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect, metadata, texts
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.leasing import Leased
from tests.conformance.rows import SERVED, request_of
from tests.conformance.running import Running
from tests.operations.transcript import Row

# These answers do not depend on the container; a copy looks for its source first.
APART = {"container_create", "container_get_account_info", "blob_get_account_info"}
INSIDE = [row for row in SERVED if "{container}" in row.path and row.id not in APART]


def test_deletion(client: Client, container: str) -> None:
    """B-CON-04."""
    target = f"/{container}?restype=container"
    gone = expect(client.delete(target), 202)
    assert gone.body == b""
    assert {"etag", "last-modified"}.isdisjoint(gone.names())
    expect(client.delete(target), 404, "ContainerNotFound")
    expect(client.head(target), 404, "ContainerNotFound")


@pytest.mark.parametrize("row", INSIDE, ids=lambda row: row.id)
def test_every_operation_in_a_deleted_container(client: Client, container: str, row: Row) -> None:
    """B-CON-04."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    expect(client.delete(f"/{container}?restype=container"), 202)
    sample = request_of(row, container)
    answer = client.send(sample.method, sample.target, sample.headers, sample.body)
    expect(answer, 404, "ContainerNotFound")


def test_creation_right_after_deletion(server: Running, client: Client, container: str) -> None:
    """B-CON-05."""
    target = f"/{container}?restype=container"
    expect(client.put(target + "&comp=metadata", {"x-ms-meta-old": "1"}), 200)
    policy = (
        b"<SignedIdentifiers><SignedIdentifier><Id>p</Id></SignedIdentifier></SignedIdentifiers>"
    )
    expect(client.put(target + "&comp=acl", {"x-ms-blob-public-access": "container"}, policy), 200)
    Leased(server, client, target).acquire(duration_s=-1)
    for number in range(300):
        expect(client.put(f"/{container}/b{number}", PUT_BLOB, b"x" * number), 201)
    before = expect(client.head(target), 200)
    lease = {"x-ms-lease-id": "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa"}
    expect(client.delete(target, lease), 202)
    made = expect(client.put(target), 201)
    assert made.etag > before.etag
    read = expect(client.get(target), 200)
    assert metadata(read) == {}
    assert read["x-ms-lease-state"] == "available"
    assert read.get("x-ms-blob-public-access") is None
    assert texts(client.get(target + "&comp=acl").xml, ".//Id") == []
    listed = expect(client.get(target + "&comp=list&include=uncommittedblobs,snapshots"), 200)
    assert texts(listed.xml, ".//Name") == []
    expect(client.get(f"/{container}/b7"), 404, "BlobNotFound")


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("query", ["", "?comp=block&blockid=QQ=="])
def test_a_write_in_flight_never_appears_in_the_new_container(
    client: Client, container: str, again: bool, query: str
) -> None:
    """B-CON-06."""
    target = f"/{container}?restype=container"
    expecting = {**PUT_BLOB, "Expect": "100-continue"}
    writing = client.begin("PUT", f"/{container}/b{query}", expecting, 200_000)
    writing.await_continue()
    writing.send(b"x" * 100_000)
    expect(client.delete(target), 202)
    if again:
        expect(client.put(target), 201)
    expect(writing.finish(b"x" * 100_000), 404, "ContainerNotFound")
    if again:
        listed = expect(client.get(target + "&comp=list&include=uncommittedblobs"), 200)
        assert texts(listed.xml, ".//Name") == []
