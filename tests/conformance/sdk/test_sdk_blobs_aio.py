"""The official Python SDK's asyncio clients work with blobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.storage.blob import BlobBlock
from azure.storage.blob.aio import BlobServiceClient, ContainerClient

from tests.conformance.running import Running

MIB = 1024 * 1024
LARGE = bytes(range(256)) * (9 * MIB // 256) + b"end"

Act = Callable[[ContainerClient], Awaitable[None]]


@pytest.fixture
def run(server: Running, new_name: Callable[[], str]) -> Callable[[Act], None]:
    """Runs a coroutine function on a new container."""

    async def within(act: Act) -> None:
        async with (
            BlobServiceClient.from_connection_string(
                server.server.connection_string,
                max_single_put_size=2 * MIB,
                max_block_size=MIB,
                max_single_get_size=2 * MIB,
                max_chunk_get_size=MIB,
                retry_total=0,
            ) as service,
            await service.create_container(new_name()) as box,
        ):
            await act(box)

    return lambda act: asyncio.run(asyncio.wait_for(within(act), timeout=30))


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("content", [b"", b"small", LARGE], ids=["empty", "small", "large"])
def test_up_and_down(run: Callable[[Act], None], content: bytes, concurrency: int) -> None:
    async def act(box: ContainerClient) -> None:
        blob = box.get_blob_client("b")
        await blob.upload_blob(content, max_concurrency=concurrency, validate_content=True)
        stream = await blob.download_blob(max_concurrency=concurrency, validate_content=True)
        assert await stream.readall() == content
        chunks = [chunk async for chunk in (await blob.download_blob()).chunks()]
        assert b"".join(chunks) == content
        part = await blob.download_blob(offset=1, length=2)
        if content:
            assert await part.readall() == content[1:3]

    if content:
        run(act)
    else:
        with pytest.raises(HttpResponseError) as empty:
            run(act)
        # Everything before the range of the empty blob worked.
        assert empty.value.status_code == 416


def test_upload_of_unknown_length(run: Callable[[Act], None]) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for index in range(50):
            yield bytes([index]) * 100_000

    async def act(box: ContainerClient) -> None:
        blob = await box.upload_blob("b", pieces(), max_concurrency=4)
        stream = await blob.download_blob()
        assert await stream.readall() == b"".join([piece async for piece in pieces()])

    run(act)


def test_conditions_leases_and_snapshots(run: Callable[[Act], None]) -> None:
    async def act(box: ContainerClient) -> None:
        blob = box.get_blob_client("b")
        first = await blob.upload_blob(b"first", metadata={"a": "1"})
        taken = await blob.create_snapshot()
        lease = await blob.acquire_lease(lease_duration=60)
        with pytest.raises(HttpResponseError) as locked:
            await blob.set_blob_metadata({})
        assert vars(locked.value)["error_code"] == "LeaseIdMissing"
        await blob.upload_blob(b"second", overwrite=True, lease=lease)
        await lease.release()
        with pytest.raises(ResourceModifiedError):
            await blob.delete_blob(
                etag=first["etag"], match_condition=MatchConditions.IfNotModified
            )
        old = box.get_blob_client("b", snapshot=str(taken["snapshot"]))
        assert await (await old.download_blob()).readall() == b"first"
        with pytest.raises(ResourceExistsError):
            await blob.delete_blob()
        await blob.delete_blob(delete_snapshots="include")
        assert not await blob.exists()

    run(act)


def test_blocks_copies_and_lists(run: Callable[[Act], None]) -> None:
    async def act(box: ContainerClient) -> None:
        source = box.get_blob_client("dir/source")
        await asyncio.gather(*(source.stage_block(f"{n:03}", bytes([n])) for n in range(100)))
        await source.commit_block_list([BlobBlock(f"{n:03}") for n in range(100)])
        blob = box.get_blob_client("dir/copy")
        begun = await blob.start_copy_from_url(source.url)
        assert begun["copy_status"] == "success"
        assert await (await blob.download_blob()).readall() == bytes(range(100))
        names = [row.name async for row in box.list_blobs(results_per_page=1)]
        assert names == ["dir/copy", "dir/source"]
        walked = [row.name async for row in box.walk_blobs()]
        assert walked == ["dir/"]

    run(act)


def test_32_writers_at_once(run: Callable[[Act], None]) -> None:
    async def act(box: ContainerClient) -> None:
        blob = box.get_blob_client("b")
        first = await blob.upload_blob(b"0")

        async def write(number: int) -> bool:
            try:
                await blob.upload_blob(
                    str(number).encode(),
                    overwrite=True,
                    etag=first["etag"],
                    match_condition=MatchConditions.IfNotModified,
                )
            except ResourceModifiedError:
                return False
            return True

        won = await asyncio.gather(*(write(number) for number in range(32)))
        assert sum(won) == 1
        assert await (await blob.download_blob()).readall() == str(won.index(True)).encode()

    run(act)
