"""Calls on shares, directories and files, as requests would make them, on a store in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from strongroom.auth.request import Service
from strongroom.engines.base import Record, Ref
from strongroom.operations.core.spec import Operation
from strongroom.operations.file import directory, file, share
from strongroom.services.core.runner import Services
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.rest.creating import CreateDirectory, CreateFile
from strongroom.services.file.rest.listing import DirectoryPage, ListDirectory
from strongroom.services.file.rest.nodes import NodeView, NodeWritten
from strongroom.services.file.rest.ranges import ListRanges, PutRange
from strongroom.services.file.rest.reading import GetFile
from strongroom.services.file.shares.share_snapshots import DeleteShare
from strongroom.services.file.shares.shares import CreateShare
from strongroom.store.core import share_keys
from strongroom.store.integrity import Integrity
from strongroom.values import ByteRange
from tests.services import container_calls as given
from tests.services.service_engine import ServiceEngine

SHARE = "documents"
OPERATIONS = {one.id: one for one in (*share.OPERATIONS, *directory.OPERATIONS, *file.OPERATIONS)}


async def run(
    on: Services, operation: Operation | str, path: str, wanted: Any = None, **more: Any
) -> Any:
    """Run an operation, with a call as the pipeline would make it."""
    declared = OPERATIONS[operation] if isinstance(operation, str) else operation
    name = more.pop("share", SHARE)
    if wanted is None and declared is share.DELETE_SHARE:
        wanted = DeleteShare()
    place = await on.place(Service.FILE, given.ACCOUNT, name)
    call = given.call(
        wanted, service=Service.FILE, container=name, blob=path, place=place, rule=declared.rule,
        **more,
    )  # fmt: skip
    assert declared.run is not None
    return await declared.run(on, call)


async def services() -> Services:
    """Return services with one share."""
    on = given.services()
    await run(on, share.CREATE_SHARE, "", CreateShare())
    return on


async def mkdir(on: Services, path: str, **more: Any) -> NodeWritten:
    made: NodeWritten = await run(on, directory.CREATE_DIRECTORY, path, CreateDirectory(**more))
    return made


async def create(on: Services, path: str, size_bytes: int = 0, **more: Any) -> NodeWritten:
    wanted = CreateFile(size_bytes=size_bytes, **more.pop("given", {}))
    made: NodeWritten = await run(on, file.CREATE_FILE, path, wanted, **more)
    return made


async def put(on: Services, path: str, offset: int, data: bytes, **more: Any) -> NodeWritten:
    wanted = PutRange(span=(offset, len(data)))
    written: NodeWritten = await run(on, file.PUT_RANGE, path, wanted, body=data, **more)
    return written


async def clear(on: Services, path: str, offset: int, length: int) -> NodeWritten:
    written: NodeWritten = await run(on, file.CLEAR_RANGE, path, PutRange(span=(offset, length)))
    return written


async def write(on: Services, path: str, data: bytes) -> None:
    """Create a file with this content."""
    await create(on, path, len(data))
    await put(on, path, 0, data)


async def begin(on: Services, path: str, range_: ByteRange | None = None, **more: Any) -> Any:
    return await run(on, file.GET_FILE, path, GetFile(range=range_), **more)


async def drain(found: Any) -> bytes:
    """Return the bytes of a download."""
    pieces = found.pieces
    data = pieces if isinstance(pieces, bytes) else b"".join([one async for one in pieces])
    assert found.finished is not None
    found.finished()
    return data


async def read(on: Services, path: str, range_: ByteRange | None = None) -> bytes:
    return await drain(await begin(on, path, range_))


async def ranges(on: Services, path: str) -> list[tuple[int, int]]:
    found = await run(on, file.LIST_RANGES, path, ListRanges())
    return [(one.start, one.end) for one in found.ranges]


async def look(on: Services, path: str, **more: Any) -> NodeView:
    seen: NodeView = await run(on, file.GET_FILE_PROPERTIES, path, OnPath(), **more)
    return seen


async def look_at_directory(on: Services, path: str) -> NodeView:
    seen: NodeView = await run(on, directory.GET_DIRECTORY_PROPERTIES, path, OnPath())
    return seen


async def page(on: Services, path: str = "", **more: Any) -> DirectoryPage:
    found: DirectoryPage = await run(on, directory.LIST_DIRECTORY, path, ListDirectory(**more))
    return found


async def names(on: Services, path: str = "", **more: Any) -> list[str]:
    return [row.name.name for row in (await page(on, path, **more)).rows]


async def delete(on: Services, path: str, **more: Any) -> None:
    await run(on, file.DELETE_FILE, path, OnPath(), **more)


async def rmdir(on: Services, path: str) -> None:
    await run(on, directory.DELETE_DIRECTORY, path, OnPath())


def problems(on: Services) -> list[str]:
    """Return the doctor's findings."""
    store = on.store
    assert isinstance(store, ServiceEngine)
    return [f"{one.place}: {one.problem}" for one in Integrity(MemorySnapshot(store)).findings()]


class MemorySnapshot:
    """A store in memory, in the form that the doctor inspects."""

    def __init__(self, store: ServiceEngine) -> None:
        self._store = store

    def records(self) -> Iterator[tuple[Ref, Record]]:
        return iter(sorted(self._store.records(), key=lambda item: (item[0].key.hidden, item[0])))

    def content_ids(self) -> Iterator[int]:
        return self._store.content_ids()

    def read_content(self, content_id: int) -> Iterator[bytes]:
        raise AssertionError("files have no contents that are read as a whole")


def of_files(on: Services) -> list[Ref]:
    """Return the keys of all records of names and files. The root's attributes and the share's
    usage remain without files."""
    return [
        ref
        for ref in stored(on)
        if ref.key != share_keys.USAGE_KEY and ref.partition.name != ref.partition.keyspace[1:]
    ]


def stored(on: Services) -> list[Ref]:
    """Return the keys of all records inside of shares."""
    store = on.store
    assert isinstance(store, ServiceEngine)
    return [ref for ref, _ in store.records() if ref.partition.keyspace[:1] in (b"a", b"n")]
