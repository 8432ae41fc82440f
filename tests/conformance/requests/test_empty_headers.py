"""Headers without a value, as sent by clients that always send each header: rule B-ADR-16."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect, expect_names
from tests.conformance.blobs import block_list, md5, put, snapshot
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, copy, source_url
from tests.conformance.leasing import A
from tests.conformance.table_client import JSON_SENT, TableClient, entity, expect_json, insert

CONDITIONS = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since")
NAMES = (*CONDITIONS, "x-ms-lease-id", "Content-MD5")
EMPTY = dict.fromkeys(NAMES, "")
EMPTY_OF_SOURCE = {f"x-ms-source-{name.lower()}": "" for name in CONDITIONS}


@pytest.mark.parametrize(
    "headers", [EMPTY, *({name: ""} for name in NAMES)], ids=lambda h: [*h][-1]
)
def test_on_blobs(client: Client, container: str, headers: dict[str, str]) -> None:
    """B-ADR-16."""
    target = f"/{container}/b"
    expect(client.put(target, {**PUT_BLOB, **headers}, b"first"), 201)
    expect(client.put(target, {**PUT_BLOB, **headers}, b"content"), 201)
    for method in ("GET", "HEAD"):
        assert expect(client.send(method, target, headers), 200)["Content-MD5"] == md5(b"content")
    expect(client.put(f"{target}?comp=block&blockid=QQ==", headers, b"block"), 201)
    expect(client.put(f"{target}?comp=metadata", {"x-ms-meta-a": "1", **headers}), 200)
    expect(client.put(f"{target}?comp=snapshot", headers), 201)
    expect(client.put(f"{target}?comp=blocklist", headers, block_list()), 201)
    expect(client.delete(target, {"x-ms-delete-snapshots": "include", **headers}), 202)


def test_an_empty_condition_leaves_the_others_as_they_are(client: Client, container: str) -> None:
    """B-ADR-16."""
    made = put(client, f"/{container}/b")
    metadata = f"/{container}/b?comp=metadata"
    unmet = {**EMPTY, "If-None-Match": made.etag}
    expect(client.put(metadata, unmet), 412, "ConditionNotMet")
    expect(client.put(metadata, {**EMPTY, "If-Match": made.etag}), 200)
    absent = {**PUT_BLOB, **EMPTY, "If-None-Match": "*"}
    expect(client.put(f"/{container}/b", absent, b"x"), 409, "BlobAlreadyExists")


def test_an_empty_lease_id_is_none(client: Client, container: str) -> None:
    """B-ADR-16."""
    target = f"/{container}/b"
    put(client, target)
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    expect(client.put(f"{target}?comp=lease", {**lease, **EMPTY, "x-ms-proposed-lease-id": A}), 201)
    expect(client.put(target, {**PUT_BLOB, **EMPTY}, b"x"), 412, "LeaseIdMissing")
    renewed = client.put(f"{target}?comp=lease", {"x-ms-lease-action": "renew", **EMPTY})
    expect_names(renewed, 400, "MissingRequiredHeader", "x-ms-lease-id")


@pytest.mark.parametrize("kind", [{}, SYNC], ids=["Copy Blob", "From URL"])
def test_on_copies(client: Client, container: str, kind: dict[str, str]) -> None:
    """B-ADR-16."""
    put(client, f"/{container}/b")
    url = source_url(client, f"/{container}/b")
    headers = {**kind, **EMPTY, **EMPTY_OF_SOURCE, "x-ms-source-content-md5": ""}
    expect(copy(client, url, f"/{container}/copy", headers), 202)
    taken = snapshot(client, f"/{container}/b")
    expect(copy(client, f"{url}?snapshot={taken}", f"/{container}/b", headers), 202)


def test_on_containers(client: Client, container: str) -> None:
    """B-ADR-16."""
    target = f"/{container}?restype=container"
    expect(client.get(target, EMPTY), 200)
    expect(client.get(f"{target}&comp=list", EMPTY), 200)
    expect(client.put(f"{target}&comp=metadata", EMPTY), 200)
    expect(client.put(f"{target}&comp=acl", EMPTY), 200)
    expect(client.delete(target, EMPTY), 202)


def test_on_queues(queues: Client, queue: str) -> None:
    """Q-ADR-09."""
    expect(queues.put(f"/{queue}?comp=metadata", EMPTY), 204)
    expect(queues.get(f"/{queue}/messages", EMPTY), 200)
    expect(queues.delete(f"/{queue}", EMPTY), 204)


@pytest.mark.parametrize("method", ["PUT", "MERGE", "DELETE"])
def test_on_entities_it_is_refused(tables: TableClient, table: str, method: str) -> None:
    """T-WRI-12."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r", "N": 1})
    for row in ("r", "new"):
        target = entity(table, "p", row)
        headers = {**JSON_SENT, "If-Match": ""}
        expect_json(tables.send(method, target, headers, b'{"N": 2}'), 400, "InvalidInput")
    assert expect_json(tables.get(entity(table, "p", "r")), 200)["N"] == 1
    expect_json(tables.get(entity(table, "p", "new")), 404, "ResourceNotFound")
