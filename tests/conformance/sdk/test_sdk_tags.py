"""The official Python SDK works with blobs' tags, its plain clients and those for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient, aio

from tests.conformance.running import Running
from tests.conformance.sdk.signed_urls import readable

Name = Callable[[], str]


@pytest.fixture
def box(server: Running, new_name: Name) -> ContainerClient:
    """A new container."""
    service = BlobServiceClient.from_connection_string(
        server.server.connection_string, retry_total=0
    )
    return service.create_container(new_name())


def names(found: object) -> list[str]:
    return sorted(blob.name for blob in found)  # type: ignore[attr-defined]  # a pager of blobs


def test_tags_are_set_read_and_replaced(box: ContainerClient) -> None:
    blob = box.get_blob_client("dir/a b")
    blob.upload_blob(b"x", tags={"project": "a b+c", "stage": "1"})
    assert blob.get_blob_tags() == {"project": "a b+c", "stage": "1"}
    assert blob.get_blob_properties().tag_count == 2
    blob.set_blob_tags({"stage": "2"})
    assert blob.get_blob_tags() == {"stage": "2"}
    blob.set_blob_tags(None)
    assert blob.get_blob_tags() == {}
    assert blob.get_blob_properties().tag_count is None


def test_blocks_copies_and_snapshots(box: ContainerClient) -> None:
    blob = box.get_blob_client("b")
    blob.stage_block("1", b"x")
    blob.commit_block_list([BlobBlock("1")], tags={"stage": "1"})
    taken = blob.create_snapshot()
    blob.set_blob_tags({"stage": "2"})
    snapshot = box.get_blob_client("b", snapshot=str(taken["snapshot"]))
    assert snapshot.get_blob_tags() == {"stage": "1"}
    for name, more, expected in (
        ("plain", {}, {}),
        ("given", {"tags": {"stage": "3"}}, {"stage": "3"}),
        ("copied", {"tags": "COPY", "requires_sync": True}, {"stage": "2"}),
    ):
        copy = box.get_blob_client(name)
        copy.start_copy_from_url(readable(box, "b"), **more)
        assert copy.get_blob_tags() == expected
    assert names(box.find_blobs_by_tags("stage >= '0'")) == ["b", "copied", "given"]


def test_lists_and_searches(box: ContainerClient, server: Running) -> None:
    for number in range(7):
        box.upload_blob(f"b{number}", b"x", tags={"n": str(number), "box": box.container_name})
    listed = {blob.name: blob.tags for blob in box.list_blobs(include=["tags"])}
    assert listed["b3"] == {"n": "3", "box": box.container_name}
    where = f"\"box\" = '{box.container_name}' AND \"n\" > '2'"
    assert names(box.find_blobs_by_tags(where)) == ["b3", "b4", "b5", "b6"]
    pages = box.find_blobs_by_tags(where, results_per_page=3).by_page()
    assert [len(list(page)) for page in pages] == [3, 1]
    service = BlobServiceClient.from_connection_string(server.server.connection_string)
    everywhere = list(service.find_blobs_by_tags(where, results_per_page=2))
    assert names(everywhere) == ["b3", "b4", "b5", "b6"]
    assert {blob.container_name for blob in everywhere} == {box.container_name}
    assert everywhere[0].tags == {"n": "3", "box": box.container_name}
    with pytest.raises(HttpResponseError) as raised:
        list(box.find_blobs_by_tags("n = 1"))
    assert vars(raised.value)["error_code"] == "InvalidQueryParameterValue"


def test_conditions_on_tags(box: ContainerClient) -> None:
    blob = box.get_blob_client("b")
    made = blob.upload_blob(b"x", tags={"state": "new"})
    for refused in (
        lambda: blob.set_blob_tags({"state": "done"}, if_tags_match_condition="state = 'old'"),
        lambda: blob.download_blob(if_tags_match_condition="state = 'old'"),
        lambda: blob.set_blob_metadata({"a": "b"}, if_tags_match_condition="state <> 'new'"),
        lambda: blob.delete_blob(
            etag=made["etag"],
            match_condition=MatchConditions.IfNotModified,
            if_tags_match_condition="state = 'old' OR state > 'new'",
        ),
    ):
        with pytest.raises((ResourceModifiedError, HttpResponseError)) as raised:
            refused()
        assert vars(raised.value)["error_code"] == "ConditionNotMet"
    blob.set_blob_tags({"state": "done"}, if_tags_match_condition="\"state\" = 'new'")
    assert blob.get_blob_tags(if_tags_match_condition="state = 'done'") == {"state": "done"}


def test_the_clients_for_asyncio(server: Running, new_name: Name) -> None:
    async def act() -> None:
        text = server.server.connection_string
        async with (
            aio.BlobServiceClient.from_connection_string(text, retry_total=0) as service,
            await service.create_container(new_name()) as box,
        ):
            blob = box.get_blob_client("b")
            await blob.upload_blob(b"x", tags={"a": "1"})
            await blob.set_blob_tags({"a": "2", "box": box.container_name})
            assert (await blob.get_blob_tags())["a"] == "2"
            where = f"box = '{box.container_name}' AND a <= '2'"
            found = [one.name async for one in service.find_blobs_by_tags(where)]
            assert found == ["b"]
            assert [one.name async for one in box.find_blobs_by_tags(where)] == ["b"]

    asyncio.run(asyncio.wait_for(act(), timeout=30))
