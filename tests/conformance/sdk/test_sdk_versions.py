"""Versions of blobs, as the official SDK makes, reads, promotes and deletes them."""

from __future__ import annotations

import asyncio

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, RetentionPolicy
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

from tests.conformance.client import Client
from tests.conformance.running import Running


def test_the_sdk_makes_reads_promotes_and_deletes_versions(each_engine: Running) -> None:
    """B-VER-01, B-VER-04, B-VER-06, B-VER-07, B-VER-12, B-VER-19, B-VER-20."""
    account = each_engine.account()
    each_engine.switch(account.account, versioning=True)
    credential = {"account_name": account.account, "account_key": account.credential.key}
    service = BlobServiceClient(account.url, credential, retry_total=0)
    box = service.create_container("box")
    blob = box.get_blob_client("b")
    made = [blob.upload_blob(text, overwrite=True)["version_id"] for text in ("1", "2" * 30_000)]
    made.append(blob.set_blob_metadata({"a": "1"})["version_id"])
    assert blob.download_blob(version_id=made[0]).readall() == b"1"
    assert blob.get_blob_properties().is_current_version
    old = box.get_blob_client("b", version_id=made[0])
    assert old.get_blob_properties().version_id == made[0]
    old.set_blob_tags({"k": "v"}, version_id=made[0])
    assert old.get_blob_tags(version_id=made[0]) == {"k": "v"}
    old.set_standard_blob_tier("Cool", version_id=made[0])
    listed = list(box.list_blobs(include=["versions", "tags"]))
    assert [one.version_id for one in listed] == made
    assert [one.is_current_version for one in listed] == [None, None, True]
    assert listed[0].tags == {"k": "v"}
    made.append(blob.start_copy_from_url(f"{blob.url}?versionid={made[0]}")["version_id"])
    assert blob.download_blob().readall() == b"1"
    with pytest.raises(HttpResponseError) as refused:
        blob.delete_blob(version_id=made[-1])
    assert refused.value.status_code == 403
    service.set_service_properties(delete_retention_policy=RetentionPolicy(True, 5))
    blob.delete_blob(version_id=made[1])
    blob.delete_blob()
    (alone,) = box.list_blobs(include=["deletedwithversions"])
    assert (alone.name, alone.has_versions_only, alone.version_id) == ("b", True, made[-1])
    blob.undelete_blob()
    assert [one.version_id for one in box.list_blobs(include=["versions"])] == made
    assert blob.download_blob(version_id=made[1]).readall() == b"2" * 30_000


def test_the_async_sdk_reads_versions(server: Running, account: Client) -> None:
    """B-VER-01, B-VER-04, B-VER-08, B-VER-19."""
    server.switch(account.account, versioning=True)
    credential = {"account_name": account.account, "account_key": account.credential.key}

    async def steps() -> None:
        async with AsyncBlobServiceClient(account.url, credential, retry_total=0) as service:
            box = await service.create_container("box")
            blob = box.get_blob_client("b")
            first = (await blob.upload_blob(b"1"))["version_id"]
            second = (await blob.upload_blob(b"2", overwrite=True))["version_id"]
            stream = await blob.download_blob(version_id=first)
            assert await stream.readall() == b"1"
            await blob.delete_blob(version_id=first)
            listed = [one.version_id async for one in box.list_blobs(include=["versions"])]
            assert listed == [second]

    asyncio.run(steps())
