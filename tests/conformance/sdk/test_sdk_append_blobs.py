"""The official Python SDK's clients, sync and asyncio, work with append blobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.storage.blob import BlobServiceClient, BlobType
from azure.storage.blob.aio import BlobServiceClient as AsyncService
from azure.storage.blob.aio import ContainerClient as AsyncContainer

from tests.conformance.running import Running

_SAME = MatchConditions.IfNotModified
MIB = 1024 * 1024
LARGE = bytes(range(256)) * (3 * MIB // 256) + b"end"


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> object:
    """The error code, which the SDK puts on each error that it raises."""
    return vars(raised.value)["error_code"]


def test_create_append_seal_and_copy(server: Running, new_name: Callable[[], str]) -> None:
    """B-APP-01 B-APP-02 B-APP-10 B-APP-11 B-APP-13."""
    with (
        BlobServiceClient.from_connection_string(
            server.server.connection_string, retry_total=0
        ) as service,
        service.create_container(new_name()) as box,
    ):
        blob = box.get_blob_client("log")
        blob.create_append_blob(metadata={"a": "1"})
        first = blob.append_block(b"first", validate_content=True)
        assert (str(first["blob_append_offset"]), first["blob_committed_block_count"]) == ("0", 1)
        second = blob.append_block(b"second", appendpos_condition=5, maxsize_condition=11)
        assert (str(second["blob_append_offset"]), second["blob_committed_block_count"]) == ("5", 2)
        with pytest.raises(HttpResponseError) as refused:
            blob.append_block(b"x", appendpos_condition=5)
        assert code(refused) == "AppendPositionConditionNotMet"
        taken = blob.create_snapshot()
        blob.append_block(b"third")
        assert blob.download_blob().readall() == b"firstsecondthird"
        assert blob.download_blob(offset=4, length=3).readall() == b"tse"
        old = box.get_blob_client("log", snapshot=str(taken["snapshot"]))
        assert old.download_blob().readall() == b"firstsecond"
        found = blob.get_blob_properties()
        assert found.blob_type == BlobType.APPENDBLOB
        assert found.append_blob_committed_block_count == 3
        blob.seal_append_blob()
        with pytest.raises(HttpResponseError) as sealed:
            blob.append_block(b"x")
        assert code(sealed) == "BlobIsSealed"
        copy = box.get_blob_client("copy")
        copy.start_copy_from_url(blob.url, seal_destination_blob=True)
        assert copy.get_blob_properties()["is_append_blob_sealed"] is True
        listed = {one.name: one for one in box.list_blobs()}
        assert {one.blob_type for one in listed.values()} == {BlobType.APPENDBLOB}
        assert vars(listed["log"])["is_append_blob_sealed"] is True


@pytest.mark.parametrize("overwrite", [False, True])
def test_upload_appends_to_what_is_there(
    server: Running, new_name: Callable[[], str], overwrite: bool
) -> None:
    """B-APP-02: of what the SDK cuts into blocks, and of a blob that is there."""
    with (
        BlobServiceClient.from_connection_string(
            server.server.connection_string, max_block_size=MIB, retry_total=0
        ) as service,
        service.create_container(new_name()) as box,
    ):
        blob = box.get_blob_client("log")
        for _ in range(2):
            blob.upload_blob(LARGE, blob_type=BlobType.APPENDBLOB, overwrite=overwrite)
        wanted = LARGE if overwrite else LARGE * 2
        assert blob.download_blob().readall() == wanted
        assert blob.download_blob(max_concurrency=4).readall() == wanted
        count = blob.get_blob_properties().append_blob_committed_block_count
        assert count == (4 if overwrite else 8)


def test_asyncio_appenders(server: Running, new_name: Callable[[], str]) -> None:
    """B-APP-03 B-APP-04."""

    async def act(box: AsyncContainer) -> None:
        blob = box.get_blob_client("log")
        await blob.create_append_blob()
        parts = [bytes([n]) * (n + 1) for n in range(64)]
        found = await asyncio.gather(*(blob.append_block(part) for part in parts))
        whole = await (await blob.download_blob()).readall()
        for answer, part in zip(found, parts, strict=True):
            offset = int(str(answer["blob_append_offset"]))
            assert whole[offset : offset + len(part)] == part
        counts = [answer["blob_committed_block_count"] for answer in found]
        assert sorted(counts) == list(range(1, 65))
        with pytest.raises(ResourceModifiedError):
            await blob.append_block(b"x", etag='"0x1"', match_condition=_SAME)
        await blob.seal_append_blob(appendpos_condition=len(whole))
        assert (await blob.get_blob_properties())["is_append_blob_sealed"] is True

    asyncio.run(asyncio.wait_for(_within(server, new_name(), act), timeout=30))


async def _within(
    server: Running, name: str, act: Callable[[AsyncContainer], Awaitable[None]]
) -> None:
    text = server.server.connection_string
    async with (
        AsyncService.from_connection_string(text, retry_total=0) as service,
        await service.create_container(name) as box,
    ):
        await act(box)
