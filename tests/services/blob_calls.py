"""Blob operations on services, as requests would make them, and the data that a store still
holds."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any

from strongroom.auth.request import Service
from strongroom.errors.blob import BLOB_NOT_FOUND
from strongroom.errors.core import StorageError
from strongroom.operations.blob import blob, block, copy
from strongroom.operations.core.spec import Operation
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.blob import attributes, blobs, leasing
from strongroom.services.blob.copies import copying
from strongroom.services.blob.states import snapshots
from strongroom.services.blob.states.snapshots import DeleteBlob
from strongroom.services.blob.types import blocks
from strongroom.services.core.calls import ConditionUse, Existence, RequestClient, Rule
from strongroom.services.core.copies.sources import CopySources, LocalSource, OpenSource
from strongroom.services.core.leasing import AcquireLease, ReleaseLease
from strongroom.services.core.runner import Services
from strongroom.values import BlockListKind, ByteRange, ContentProperties, Piece
from tests.services.container_calls import ACCOUNT, placed
from tests.services.service_engine import ServiceEngine

LEASES = Rule(LeaseUse.NONE, ConditionUse.WRITE, Existence.ANY)
KINDS = ("Committed", "Uncommitted", "Latest")


async def run(
    on: Services, operation: Operation, name: str, given: Any, body: bytes = b"", **more: Any
) -> Any:
    """Run one operation on the blob `name` of the container `photos`."""
    call = await placed(on, given, blob=name, rule=operation.rule, body=body, **more)
    assert operation.run is not None
    return await operation.run(on, call)


async def put(on: Services, name: str, data: bytes) -> None:
    await run(on, blob.PUT_BLOB, name, blobs.PutBlob(), data)


async def stage(on: Services, name: str, block_id: str, data: bytes) -> None:
    await run(on, block.PUT_BLOCK, name, blocks.PutBlock(block_id.encode()), data)


async def commit(on: Services, name: str, ids: Sequence[str]) -> None:
    listed: list[tuple[BlockListKind, str]] = [
        ("Latest", base64.b64encode(one.encode()).decode()) for one in ids
    ]
    await run(on, block.PUT_BLOCK_LIST, name, blocks.PutBlockList(listed))


async def put_block(on: Services, name: str, data: bytes) -> None:
    """Put Block and Put Block List: a blob whose content is one block."""
    await stage(on, name, "1", data)
    await commit(on, name, ["1"])


async def snapshot(on: Services, name: str) -> int:
    taken = await run(on, blob.SNAPSHOT_BLOB, name, snapshots.SnapshotBlob())
    ticks: int = taken.snapshot
    return ticks


async def delete(
    on: Services, name: str, option: DeleteSnapshots | None = None, ticks: int | None = None
) -> None:
    await run(on, blob.DELETE_BLOB, name, DeleteBlob(option), snapshot=ticks)


async def metadata(on: Services, name: str, value: str) -> None:
    await run(on, blob.SET_BLOB_METADATA, name, attributes.SetMetadata((("v", value),)))


async def start_copy(
    on: Services,
    source: str,
    name: str,
    wait_s: float = 0.0,
    client: RequestClient | None = None,
    version: int | None = None,
) -> copying.CopyResult:
    """Copy Blob from another blob of the same container.

    Arguments:
        wait_s: how long the response waits for the end of a pending copy.
        client: the client of the request.
        version: the source's version; None = the blob.
    """
    place = await on.place(Service.BLOB, ACCOUNT, "photos")
    assert place is not None

    async def locate(url: str, call: Any, wanted: Any) -> LocalSource:
        return LocalSource(ACCOUNT, "photos", place.generation, source, None, version)

    on.held.of(CopySources).locate = locate
    given = copying.CopyBlob("http://127.0.0.1/account/photos/source", wait_s=wait_s)
    call = await placed(on, given, blob=name, rule=copy.COPY_BLOB.rule, client=client)
    return await copying.copy_blob(on, call)


def open_source(data: bytes) -> OpenSource:
    """Return an opened source on another server."""

    async def chunks() -> AsyncIterator[bytes]:
        yield data

    return OpenSource(len(data), chunks(), lambda: None, ContentProperties())


async def acquire(on: Services, name: str, wait_s: int = 0) -> str:
    """Acquire a lease that does not end by itself, and return its id."""
    call = await placed(on, AcquireLease(-1), blob=name, rule=LEASES, wait_s=wait_s)
    leased = await leasing.lease_blob(on, call)
    assert leased.lease_id is not None
    return leased.lease_id


async def release(on: Services, name: str, lease_id: str) -> None:
    call = await placed(on, ReleaseLease(), blob=name, rule=LEASES, lease_id=lease_id)
    await leasing.lease_blob(on, call)


async def read(
    on: Services, name: str, ticks: int | None = None, version: int | None = None
) -> bytes | None:
    """Return the result of Get Blob, None if there is no blob."""
    try:
        given = blobs.GetBlob()
        found = await run(on, blob.GET_BLOB, name, given, snapshot=ticks, version=version)
    except StorageError as error:
        if error.row is not BLOB_NOT_FOUND:
            raise
        return None
    return await received(found)


async def received(found: blobs.Download) -> bytes:
    """Return the whole body of a response to Get Blob."""
    if isinstance(found.pieces, bytes):
        data = found.pieces
    else:
        data = b"".join([_in_memory(piece) async for piece in found.pieces])
    if found.finished is not None:
        found.finished()
    return data


async def read_range(
    on: Services, name: str, ticks: int | None = None, first: int = 0, length: int = 512
) -> bytes:
    """Return the bytes of a range, as Get Blob returns them."""
    given = blobs.GetBlob(ByteRange(first, first + length - 1))
    found = await run(on, blob.GET_BLOB, name, given, snapshot=ticks)
    if isinstance(found.pieces, bytes):
        return found.pieces
    data = b"".join([_in_memory(piece) async for piece in found.pieces])
    if found.finished is not None:
        found.finished()
    return data


def _in_memory(piece: Piece) -> bytes:
    if isinstance(piece, bytes):
        return piece
    return os.pread(piece.file.fileno(), piece.length, piece.offset)


def left(on: Services) -> tuple[list[Any], list[int]]:
    """Return the records and contents that a memory store still holds."""
    store = on.store
    assert isinstance(store, ServiceEngine)
    return list(store.records()), list(store.content_ids())
