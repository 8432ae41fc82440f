"""Soft-deleted blobs, and Undelete Blob: rules B-SFT-01 to B-SFT-09."""

from __future__ import annotations

import asyncio
import xml.etree.ElementTree as ET

import pytest
from azure.storage.blob import BlobServiceClient, RetentionPolicy
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

from tests.conformance.answer import expect, metadata
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.pages import PAGE, create, write
from tests.conformance.rows import SERVED, request_of
from tests.conformance.running import Running
from tests.operations.transcript import Row

DAY_S = 24 * 60 * 60
PROPERTIES = "/?restype=service&comp=properties"
# They create the blob, or say nothing of it.
CREATE = {
    "blockblob_upload",
    "blockblob_stage_block",
    "blockblob_commit_block_list",
    "blob_start_copy_from_url",
    "blob_copy_from_url",
    "blockblob_put_blob_from_url",
    "appendblob_create",
    "pageblob_create",
    "pageblob_copy_incremental",
    "blockblob_stage_block_from_url",
    "blob_get_account_info",
    "blob_undelete",
}
ON_BLOBS = [row for row in SERVED if "{blob}" in row.path and row.id not in CREATE]


def retain(account: Client, days: int) -> None:
    """Set the retention of deleted blobs; 0 = off."""
    given = f"<Enabled>true</Enabled><Days>{days}</Days>" if days else "<Enabled>false</Enabled>"
    document = f"<DeleteRetentionPolicy>{given}</DeleteRetentionPolicy>"
    body = f"<StorageServiceProperties>{document}</StorageServiceProperties>".encode()
    expect(account.put(PROPERTIES, {}, body), 202)
    found = expect(account.get(PROPERTIES), 200).xml
    assert found.findtext("DeleteRetentionPolicy/Enabled") == ("true" if days else "false")


def rows(account: Client, include: str) -> list[ET.Element]:
    answer = account.get(f"/box?restype=container&comp=list&include={include}")
    return expect(answer, 200).xml.findall("Blobs/Blob")


def begin(account: Client, days: int = 7) -> None:
    expect(account.put("/box?restype=container"), 201)
    retain(account, days)


def delete(account: Client, target: str, headers: dict[str, str] | None = None) -> str:
    """Delete; returns x-ms-delete-type-permanent."""
    return expect(account.delete(target, headers or {}), 202)["x-ms-delete-type-permanent"]


def test_pages_of_deleted_and_replaced_states_come_back(account: Client) -> None:
    """B-SFT-01, B-SFT-02, B-SFT-05: all states of a page blob share one map, which continues."""
    begin(account)
    target, pages = "/box/p", 4 * PAGE
    create(account, target, pages)
    taken = []
    for letter in (b"1", b"2", b"3"):
        write(account, target, 0, letter * 2 * PAGE)
        answer = expect(account.put(f"{target}?comp=snapshot"), 201)
        taken.append(f"{target}?snapshot={answer['x-ms-snapshot']}")
    for one in reversed(taken):
        delete(account, one)
        write(account, target, PAGE, b"4" * PAGE)
    delete(account, target)
    expect(account.put(f"{target}?comp=undelete"), 200)
    for one, letter in zip(taken, (b"1", b"2", b"3"), strict=True):
        assert expect(account.get(one), 200).body == letter * 2 * PAGE + bytes(2 * PAGE)
    write(account, target, 2 * PAGE, b"5" * PAGE)
    whole = b"3" * PAGE + b"4" * PAGE + b"5" * PAGE + bytes(PAGE)
    assert expect(account.get(target), 200).body == whole
    delete(account, target, {"x-ms-delete-snapshots": "include"})
    create(account, target, pages)
    write(account, target, 0, b"6" * PAGE)
    expect(account.put(f"{target}?comp=undelete"), 200)
    states = [expect(account.get(one), 200).body for one in taken]
    assert states == [letter * 2 * PAGE + bytes(2 * PAGE) for letter in (b"1", b"2", b"3")]
    assert expect(account.get(target), 200).body == b"6" * PAGE + bytes(3 * PAGE)


def test_a_deleted_snapshot_is_no_previous_one(account: Client) -> None:
    """B-SFT-05, B-PAG-16."""
    begin(account)
    target = "/box/p"
    create(account, target, 4 * PAGE)
    taken = expect(account.put(f"{target}?comp=snapshot"), 201)["x-ms-snapshot"]
    changed = f"{target}?comp=pagelist&prevsnapshot={taken}"
    expect(account.get(changed), 200)
    delete(account, f"{target}?snapshot={taken}")
    expect(account.get(changed), 409, "PreviousSnapshotNotFound")


def test_a_deleted_blob_comes_back(server: Running, account: Client) -> None:
    """B-SFT-01, B-SFT-05, B-SFT-06."""
    begin(account)
    expect(account.put("/box/b", PUT_BLOB | {"x-ms-meta-a": "1"}, b"text"), 201)
    leased = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    lease_id = expect(account.put("/box/b?comp=lease", leased), 201)["x-ms-lease-id"]
    taken = expect(account.put("/box/b?comp=snapshot"), 201)["x-ms-snapshot"]
    before = expect(account.head("/box/b"), 200)
    expect(account.delete("/box/b", {"x-ms-lease-id": lease_id}), 409, "SnapshotsPresent")
    both = {"x-ms-lease-id": lease_id, "x-ms-delete-snapshots": "include"}
    assert delete(account, "/box/b", both) == "false"
    for target in ("/box/b", f"/box/b?snapshot={taken}"):
        expect(account.get(target), 404, "BlobNotFound")
    assert rows(account, "") == rows(account, "snapshots,metadata") == []
    (alone,) = rows(account, "deleted")
    assert alone.find("Snapshot") is None
    snapshot, base = rows(account, "deleted,snapshots,metadata")
    assert [child.tag for child in base] == [
        *("Name", "Deleted", "Properties", "Metadata", "OrMetadata")
    ]
    assert snapshot.findtext("Snapshot") == taken
    for row in (snapshot, base):
        assert row.findtext("Deleted") == "true"
        tags = [child.tag for child in row.findall("Properties/*")]
        assert tags[-2:] == ["DeletedTime", "RemainingRetentionDays"]
        assert not [tag for tag in tags if tag.startswith("Lease")]
        assert row.findtext("Properties/RemainingRetentionDays") == "7"
    server.advance(DAY_S)
    (alone,) = rows(account, "deleted")
    assert alone.findtext("Properties/RemainingRetentionDays") == "6"
    back = expect(account.put("/box/b?comp=undelete"), 200)
    assert back.body == b""
    after = expect(account.get("/box/b"), 200)
    assert after.body == b"text"
    assert metadata(after) == {"a": "1"}
    assert after["x-ms-lease-state"] == "available"
    assert after.etag != before.etag
    assert expect(account.get(f"/box/b?snapshot={taken}"), 200).body == b"text"
    expect(account.put("/box/b?comp=undelete"), 200)
    assert [row.find("Deleted") for row in rows(account, "deleted,snapshots")] == [None, None]


@pytest.mark.parametrize("row", ON_BLOBS, ids=lambda row: row.id)
def test_every_operation_on_a_deleted_blob(server: Running, row: Row) -> None:
    """B-SFT-03."""
    account = server.account()
    begin(account)
    expect(account.put("/box/b", PUT_BLOB, b"x"), 201)
    delete(account, "/box/b")
    sample = request_of(row, "box")
    answer = account.send(sample.method, sample.target, sample.headers, sample.body)
    expect(answer, 404, "BlobNotFound")
    account.close()


def test_a_blob_over_a_deleted_one(account: Client) -> None:
    """B-SFT-03, B-SFT-04."""
    begin(account)
    expect(account.put("/box/b", PUT_BLOB | {"x-ms-meta-a": "1"}, b"old"), 201)
    delete(account, "/box/b")
    once = {"If-None-Match": "*"}
    expect(account.put("/box/b", PUT_BLOB | once, b"new"), 201)
    expect(account.put("/box/b", PUT_BLOB | once, b"new"), 409, "BlobAlreadyExists")
    assert metadata(expect(account.get("/box/b"), 200)) == {}
    kept, base = rows(account, "deleted,snapshots")
    assert (kept.findtext("Deleted"), base.find("Deleted")) == ("true", None)
    time = kept.findtext("Snapshot")
    expect(account.get(f"/box/b?snapshot={time}"), 404, "BlobNotFound")
    expect(account.put("/box/b?comp=undelete"), 200)
    assert expect(account.get(f"/box/b?snapshot={time}"), 200).body == b"old"
    assert expect(account.get("/box/b"), 200).body == b"new"


def test_one_snapshot_and_a_base_of_deleted_ones(account: Client) -> None:
    """B-SFT-01, B-SFT-09."""
    begin(account)
    expect(account.put("/box/b", PUT_BLOB, b"text"), 201)
    taken = expect(account.put("/box/b?comp=snapshot"), 201)["x-ms-snapshot"]
    one = f"/box/b?snapshot={taken}"
    assert delete(account, one) == "false"
    expect(account.delete(one), 404, "BlobNotFound")
    retain(account, 0)
    assert delete(account, "/box/b") == "true"
    expect(account.put("/box/b?comp=undelete"), 404, "BlobNotFound")


def test_the_end_of_the_retention(server: Running, account: Client) -> None:
    """B-SFT-01, B-SFT-07, B-SFT-08."""
    begin(account, 1)
    expect(account.put("/box/b", PUT_BLOB, b"text"), 201)
    delete(account, "/box/b")
    retain(account, 365)
    server.advance(DAY_S)
    assert rows(account, "deleted") == []
    expect(account.put("/box/b?comp=undelete"), 404, "BlobNotFound")
    expect(account.put("/box/never?comp=undelete"), 404, "BlobNotFound")
    expect(account.put("/box/staged?comp=block&blockid=QQ==", {}, b"x"), 201)
    expect(account.put("/box/staged?comp=undelete"), 404, "BlobNotFound")


def test_the_sdk_deletes_lists_and_undeletes(each_engine: Running) -> None:
    """B-SFT-01, B-SFT-02, B-SFT-05, B-SFT-06."""
    account = each_engine.account()
    credential = {"account_name": account.account, "account_key": account.credential.key}
    service = BlobServiceClient(account.url, credential, retry_total=0)
    service.set_service_properties(delete_retention_policy=RetentionPolicy(True, 5))
    box = service.create_container("box")
    for text in ("one", "two" * 10_000):
        blob = box.upload_blob("b", text, overwrite=True)
    blob.delete_blob()
    assert list(box.list_blobs()) == []
    old, new = box.list_blobs(include=["deleted", "snapshots"])
    assert old.deleted
    assert new.deleted
    assert new.deleted_time is not None
    assert new.remaining_retention_days == 5
    blob.undelete_blob()
    assert blob.download_blob().readall() == b"two" * 10_000
    (snapshot,) = [one for one in box.list_blobs(include=["snapshots"]) if one.snapshot]
    earlier = box.get_blob_client("b", snapshot=snapshot.snapshot)
    assert earlier.download_blob().readall() == b"one"


def test_the_asynchronous_sdk(server: Running) -> None:
    """B-SFT-06."""
    account = server.account()
    retain(account, 3)
    credential = {"account_name": account.account, "account_key": account.credential.key}

    async def test() -> None:
        async with AsyncBlobServiceClient(account.url, credential, retry_total=0) as service:
            box = await service.create_container("box")
            blob = await box.upload_blob("b", b"text")
            await blob.delete_blob()
            (kept,) = [one async for one in box.list_blobs(include=["deleted"])]
            assert kept.deleted
            await blob.undelete_blob()
            assert await (await blob.download_blob()).readall() == b"text"

    asyncio.run(test())
    account.close()


def found(account: Client) -> list[str | None]:
    """The names of the blobs that have the tag a=1."""
    answer = expect(account.get("/?comp=blobs&where=%22a%22%3D%271%27"), 200)
    return [blob.findtext("Name") for blob in answer.xml.findall("Blobs/Blob")]


def test_tags_of_a_deleted_blob(account: Client) -> None:
    """B-SFT-03, B-SFT-06: searches find a blob again that came back."""
    begin(account)
    expect(account.put("/box/b", PUT_BLOB | {"x-ms-tags": "a=1"}, b"text"), 201)
    assert found(account) == ["b"]
    delete(account, "/box/b")
    assert found(account) == []
    expect(account.put("/box/b?comp=undelete"), 200)
    assert found(account) == ["b"]
    expect(account.put("/box/b", PUT_BLOB, b"text"), 201)
    assert found(account) == []
    expect(account.put("/box/b?comp=undelete"), 200)
    assert found(account) == []
