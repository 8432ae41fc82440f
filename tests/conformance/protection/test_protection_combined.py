"""Protection beside batches, leases, versions, soft delete and copies: odd combinations."""

from __future__ import annotations

import pytest

from strongroom.account_switches import ContainerProtection
from tests.conformance import blob_batches as batches
from tests.conformance.answer import expect
from tests.conformance.blobs import block_list, body, put, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import copy, source_url
from tests.conformance.leasing import A, Leased
from tests.conformance.protection.test_immutability import DAY_S, HELD, HOLD, IMMUTABLE, UNTIL, Box
from tests.conformance.protection.test_permanent_deletion import PERMANENT, retain
from tests.conformance.running import Running

CONTAINER = "/box?restype=container"
CASE = ContainerProtection(holds=("case",))


@pytest.fixture
def box(server: Running, account: Client) -> Box:
    server.switch(account.account, immutability=True)
    return Box(server, account)


def test_a_batch_of_blobs_some_of_which_are_protected(box: Box) -> None:
    """B-BAT-02, B-IMM-11, B-PRM-06: each request is judged by itself."""
    client = box.client
    retain(client)
    for name in ("free", "held", "old", "kept"):
        put(client, f"/box/{name}")
    expect(box.hold("/box/held"), 200)
    old = f"/box/old?snapshot={snapshot(client, '/box/old')}"
    kept = f"/box/kept?snapshot={snapshot(client, '/box/kept')}"
    expect(box.policy(old), 200)
    expect(client.delete(kept), 202)
    answers = batches.send(
        client,
        batches.delete("/box/free"),
        batches.delete("/box/held"),
        batches.delete(old),
        batches.delete("/box/old", {"x-ms-delete-snapshots": "include"}),
        batches.delete(f"{kept}&{PERMANENT}"),
        batches.delete(f"{kept}&{PERMANENT}"),
    )
    assert [one.seen for one in answers[:4]] == [
        (202, None),
        (409, HELD),
        (409, IMMUTABLE),
        (409, IMMUTABLE),
    ]
    assert sorted(one.status for one in answers[4:]) == [202, 404]
    assert body(client, "/box/held") == body(client, old) == b"content"
    tiers = batches.send(client, batches.tier("/box/held"), batches.tier("/box/old"))
    assert [one.status for one in tiers] == [200, 200]


def test_a_lease_and_a_hold(box: Box) -> None:
    """B-IMM-16, B-IMM-23: the lease is judged first; its end frees nothing."""
    put(box.client, "/box/b")
    leased = Leased(box.server, box.client, "/box/b")
    box.server.switch(box.client.account, containers={"box": CASE})
    leased.acquire()
    held = {"x-ms-lease-id": A}
    expect(box.client.delete("/box/b"), 412, "LeaseIdMissing")
    expect(box.client.delete("/box/b", held), 409, HELD)
    expect(box.client.put("/box/b", {**PUT_BLOB, **held}, b"x"), 409, HELD)
    broken = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}
    expect(box.client.put("/box/b?comp=lease", broken), 202)
    expect(box.client.delete("/box/b"), 409, HELD)
    whole = Leased(box.server, box.client, CONTAINER)
    whole.acquire()
    expect(box.client.delete(CONTAINER), 412, "LeaseIdMissing")
    expect(box.client.delete(CONTAINER, held), 409, "ContainerHasLegalHold")


def test_versions_with_holds_are_deleted_and_undeleted(box: Box) -> None:
    """B-IMM-20, B-VER-12: a hold goes with its version, through deletion of the blob and back."""
    client = box.client
    retain(client)
    box.server.switch(client.account, versioning=True)
    first = put(client, "/box/b", b"one")["x-ms-version-id"]
    expect(box.hold("/box/b"), 200)
    second = put(client, "/box/b", b"two")["x-ms-version-id"]
    assert box.protection(f"/box/b?versionid={first}")[2] == "true"
    assert box.protection("/box/b") == (None, None, None)
    expect(client.delete("/box/b"), 202)
    expect(client.delete(f"/box/b?versionid={first}"), 409, HELD)
    expect(client.delete(f"/box/b?versionid={second}"), 202)
    expect(client.put("/box/b?comp=undelete"), 200)
    refused = client.delete(f"/box/b?versionid={first}&{PERMANENT}")
    expect(refused, 400, "InvalidQueryParameterValue")
    for version, content, hold in ((first, b"one", "true"), (second, b"two", None)):
        assert body(client, f"/box/b?versionid={version}") == content
        assert box.protection(f"/box/b?versionid={version}")[2] == hold
    expect(client.delete(CONTAINER), 409, "ContainerProtectedFromDeletion")


@pytest.mark.parametrize("kind", ["BlockBlob", "AppendBlob", "PageBlob"])
def test_a_hold_refuses_delete_blob_where_deletes_make_versions(box: Box, kind: str) -> None:
    """B-IMM-17, B-IMM-20: as a write gave it, with and without a policy; a policy alone passes."""
    client = box.client
    box.server.switch(client.account, versioning=True)
    headers = {HOLD: "true", UNTIL: box.date(DAY_S), "x-ms-blob-type": kind}
    size = {"x-ms-blob-content-length": "512"} if kind == "PageBlob" else {}
    version = expect(client.put("/box/b", {**headers, **size}), 201)["x-ms-version-id"]
    expect(client.delete("/box/b"), 409, HELD)
    expect(client.delete("/box/b?comp=immutabilityPolicies"), 200)
    expect(client.delete("/box/b"), 409, HELD)
    assert client.head("/box/b")["x-ms-version-id"] == version
    expect(box.hold("/box/b", "false"), 200)
    expect(box.policy("/box/b"), 200)
    expect(client.delete("/box/b"), 202)
    expect(client.head("/box/b"), 404, "BlobNotFound")
    expect(client.delete(f"/box/b?versionid={version}"), 409, IMMUTABLE)


@pytest.mark.parametrize("of_container", [False, True])
def test_promotion_of_a_version_under_a_policy(box: Box, of_container: bool) -> None:
    """B-VER-06, B-IMM-20, B-IMM-23: the blob's own policy stays with its version; the container's
    forbids to replace the blob."""
    client = box.client
    box.server.switch(client.account, versioning=True)
    first = put(client, "/box/b", b"one")["x-ms-version-id"]
    second = put(client, "/box/b", b"two")["x-ms-version-id"]
    expect(box.policy("/box/b", mode="Locked"), 200)
    if of_container:
        box.server.switch(client.account, containers={"box": ContainerProtection(7)})
    source = source_url(client, f"/box/b?versionid={first}")
    answer = copy(client, source, "/box/b")
    if of_container:
        expect(answer, 409, IMMUTABLE)
        assert body(client, "/box/b") == b"two"
        return
    expect(answer, 202)
    assert body(client, "/box/b") == b"one"
    assert box.protection("/box/b") == (None, None, None)
    expect(client.delete(f"/box/b?versionid={second}"), 409, IMMUTABLE)
    assert box.protection(f"/box/b?versionid={second}")[1] == "locked"


def test_a_deleted_container_comes_back_under_a_policy(box: Box) -> None:
    """B-IMM-29, B-RST-03: what it held before is protected then."""
    box.server.switch(box.client.account, immutability=False, container_retention_days=5)
    put(box.client, "/box/b")
    expect(box.client.delete(CONTAINER), 202)
    box.server.switch(box.client.account, containers={"box": CASE})
    listed = expect(box.client.get("/?comp=list&include=deleted&prefix=box"), 200)
    version = listed.xml.findtext("Containers/Container/Version")
    names = {"x-ms-deleted-container-name": "box", "x-ms-deleted-container-version": version or ""}
    expect(box.client.put(CONTAINER + "&comp=undelete", names), 201)
    assert body(box.client, "/box/b") == b"content"
    expect(box.client.delete("/box/b"), 409, HELD)
    expect(box.client.delete(CONTAINER), 409, "ContainerHasLegalHold")


def test_a_deleted_blob_under_a_new_one_that_is_protected(box: Box) -> None:
    """B-SFT-04, B-IMM-17: the old state ends with its own retention, the new one does not."""
    client = box.client
    retain(client)
    put(client, "/box/b", b"old")
    expect(client.delete("/box/b"), 202)
    headers = {**PUT_BLOB, UNTIL: box.date(30 * DAY_S), HOLD: "true"}
    expect(client.put("/box/b", headers, b"new"), 201)
    box.server.advance(8 * DAY_S)
    expect(client.put("/box/b?comp=undelete"), 200)
    assert body(client, "/box/b") == b"new"
    expect(client.delete("/box/b", {"x-ms-delete-snapshots": "include"}), 409, HELD)


def test_blocks_that_are_staged_on_a_protected_blob(box: Box) -> None:
    """B-IMM-14, B-IMM-23: the blocks expire, and never become the blob's content."""
    client = box.client
    put(client, "/box/b")
    box.server.switch(client.account, containers={"box": CASE})
    expect(stage(client, "/box/b", "1", b"x"), 201)
    expect(client.put("/box/b?comp=blocklist", body=block_list("1")), 409, HELD)
    expect(stage(client, "/box/new", "1", b"x"), 201)
    expect(client.put("/box/new?comp=blocklist", body=block_list("1")), 201)
    expect(client.put("/box/new?comp=blocklist", body=block_list()), 409, HELD)
    box.server.advance(8 * DAY_S)
    assert body(client, "/box/b") == b"content"
    assert body(client, "/box/new") == b"x"
