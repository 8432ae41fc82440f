"""The official Python SDK with the From URL operations, sync and aio: B-URL-01 to B-URL-15,
B-URL-20."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import (
    BlobBlock,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    StandardBlobTier,
)
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

from tests.conformance.running import Running
from tests.conformance.sdk.signed_urls import readable

CONTENT = bytes(range(256)) * 1000


def md5(data: bytes) -> bytearray:
    return bytearray(hashlib.md5(data, usedforsecurity=False).digest())


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> object:
    return vars(raised.value)["error_code"]


@pytest.fixture
def box(server: Running, new_name: Callable[[], str]) -> Iterator[ContainerClient]:
    """A new container, whose clients retry nothing, with the blob `source`."""
    text = server.server.connection_string
    with BlobServiceClient.from_connection_string(text, retry_total=0) as service:
        found = service.create_container(new_name())
        settings = ContentSettings(content_type="text/own", content_language="de")
        found.upload_blob("source", CONTENT, metadata={"a": "1"}, content_settings=settings)
        yield found


def test_a_blob_from_a_url(box: ContainerClient) -> None:
    source, blob = readable(box, "source"), box.get_blob_client("b")
    made = blob.upload_blob_from_url(source, source_content_md5=md5(CONTENT))
    assert made["content_md5"] == md5(CONTENT)
    found = blob.get_blob_properties()
    assert (found.etag, found.metadata) == (made["etag"], {"a": "1"})
    assert found.content_settings.content_type == "text/own"
    assert blob.download_blob().readall() == CONTENT
    with pytest.raises(ResourceExistsError):
        blob.upload_blob_from_url(source)
    blob.upload_blob_from_url(
        source,
        overwrite=True,
        include_source_blob_properties=False,
        metadata={"b": "2"},
        tags={"k": "v"},
        standard_blob_tier=StandardBlobTier.COOL,
        content_settings=ContentSettings(content_type="text/given"),
    )
    found = blob.get_blob_properties()
    assert (found.metadata, found.tag_count, found.blob_tier) == ({"b": "2"}, 1, "Cool")
    assert found.content_settings.content_type == "text/given"
    assert found.content_settings.content_language is None
    with pytest.raises(HttpResponseError) as wrong:
        blob.upload_blob_from_url(source, overwrite=True, source_content_md5=md5(b""))
    assert code(wrong) == "Md5Mismatch"


def test_blocks_from_a_url(box: ContainerClient) -> None:
    source, blob = readable(box, "source"), box.get_blob_client("b")
    size = 64_000
    for number in range(4):
        part = CONTENT[number * size : (number + 1) * size]
        made = blob.stage_block_from_url(
            str(number), source, number * size, size, source_content_md5=md5(part)
        )
        assert made["content_md5"] == md5(part)
    blob.stage_block_from_url("4", source)
    blob.commit_block_list([BlobBlock(str(number)) for number in (3, 2, 1, 0, 4)])
    parts = [CONTENT[number * size : (number + 1) * size] for number in (3, 2, 1, 0)]
    assert blob.download_blob().readall() == b"".join(parts) + CONTENT
    with pytest.raises(HttpResponseError) as beyond:
        blob.stage_block_from_url("5", source, len(CONTENT), 10)
    assert (beyond.value.status_code, code(beyond)) == (416, "InvalidRange")


def test_pages_from_a_url(box: ContainerClient) -> None:
    """B-URL-20, B-URL-22."""
    source, blob = readable(box, "source"), box.get_blob_client("pages")
    blob.create_page_blob(8192, sequence_number=3)
    part = CONTENT[512:4608]
    made = blob.upload_pages_from_url(source, 0, 4096, 512, source_content_md5=bytes(md5(part)))
    assert (made["content_md5"], made["blob_sequence_number"]) == (md5(part), 3)
    blob.upload_pages_from_url(source, 4096, 512, 0, if_sequence_number_lte=3)
    assert blob.download_blob().readall() == part + CONTENT[:512] + bytes(3584)
    with pytest.raises(HttpResponseError) as unmet:
        blob.upload_pages_from_url(source, 0, 512, 0, if_sequence_number_eq=4)
    assert code(unmet) == "SequenceNumberConditionNotMet"


def test_sources_that_are_refused(box: ContainerClient) -> None:
    """B-URL-13, B-URL-14: as the errors that the SDK makes of them."""
    source, blob = readable(box, "source"), box.get_blob_client("b")
    found = box.get_blob_client("source").get_blob_properties()
    with pytest.raises(ResourceNotFoundError) as missing:
        blob.upload_blob_from_url(readable(box, "none"))
    assert code(missing) == "CannotVerifyCopySource"
    response: Any = missing.value.response
    assert response.headers["x-ms-copy-source-error-code"] == "BlobNotFound"
    with pytest.raises(HttpResponseError) as unmodified:
        blob.upload_blob_from_url(source, source_if_modified_since=found.last_modified)
    assert (unmodified.value.status_code, code(unmodified)) == (304, "CannotVerifyCopySource")
    with pytest.raises((HttpResponseError, ResourceModifiedError)) as changed:
        blob.upload_blob_from_url(
            source, source_etag='"0x1"', source_match_condition=MatchConditions.IfNotModified
        )
    assert (changed.value.status_code, code(changed)) == (412, "CannotVerifyCopySource")
    assert not blob.exists()


def test_with_the_aio_client(server: Running, box: ContainerClient) -> None:
    async def act() -> bytes:
        text = server.server.connection_string
        async with AsyncBlobServiceClient.from_connection_string(text, retry_total=0) as service:
            container = service.get_container_client(box.container_name)
            source, blob = readable(box, "source"), container.get_blob_client("b")
            await blob.upload_blob_from_url(source)
            await blob.stage_block_from_url("1", source, 0, 10)
            await blob.stage_block_from_url("2", source, 10, 20)
            await blob.commit_block_list([BlobBlock("2"), BlobBlock("1")])
            pages = container.get_blob_client("pages")
            await pages.create_page_blob(512)
            await pages.upload_pages_from_url(source, 0, 512, 1024)
            assert await (await pages.download_blob()).readall() == CONTENT[1024:1536]
            return await (await blob.download_blob()).readall()

    assert asyncio.run(asyncio.wait_for(act(), 60)) == CONTENT[10:30] + CONTENT[:10]
