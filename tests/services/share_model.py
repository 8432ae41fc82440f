"""A share's files and snapshots, and their expected state as plain dictionaries.

`Files` is the state of a share or a snapshot: each path in lower case with its name as given, and a
file's bytes and metadata. `held` reads all of it from the services.
"""

from __future__ import annotations

import msgspec

from strongroom.operations.file import directory, file
from strongroom.semantics.core.listing import START
from strongroom.services.core.runner import Services
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.rest.listing import DirectoryPage, ListDirectory
from strongroom.services.file.rest.nodes import NodeView
from strongroom.services.file.rest.reading import GetFile
from strongroom.values import Metadata
from tests.services import file_calls as do


class Held(msgspec.Struct, frozen=True):
    """A directory or file: its name as given, its ETag, and a file's bytes."""

    name: str
    etag: int
    metadata: Metadata
    data: bytes | None = None


Files = dict[str, Held]


async def held(on: Services, snapshot: int | None = None, page_names: int = 5000) -> Files:
    """Read everything in a share, or in one of its snapshots, by lists and reads."""
    found: Files = {}
    waiting = [""]
    while waiting:
        path = waiting.pop()
        view: NodeView = await do.run(
            on, directory.GET_DIRECTORY_PROPERTIES, path, OnPath(), snapshot=snapshot
        )
        if path:
            record = view.record
            found[path] = Held(found[path].name, record.etag, record.metadata)
        start = START
        while True:
            wanted = ListDirectory(max_results=page_names, start=start)
            page: DirectoryPage = await do.run(
                on, directory.LIST_DIRECTORY, path, wanted, snapshot=snapshot
            )
            for row in page.rows:
                below = f"{path}/{row.name.name}".lstrip("/").lower()
                assert below not in found
                found[below] = Held(row.name.name, row.record.etag, row.record.metadata)
                if row.name.is_directory:
                    waiting.append(below)
                else:
                    found[below] = await _file(on, below, row.name.name, snapshot)
            if page.marker is None:
                break
            start = page.marker
    return found


async def _file(on: Services, path: str, name: str, snapshot: int | None) -> Held:
    seen: NodeView = await do.run(on, file.GET_FILE_PROPERTIES, path, OnPath(), snapshot=snapshot)
    data = await do.drain(await do.run(on, file.GET_FILE, path, GetFile(), snapshot=snapshot))
    assert len(data) == seen.record.size_bytes
    return Held(name, seen.record.etag, seen.record.metadata, data)
