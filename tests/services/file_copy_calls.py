"""Copies to files on services: the resolution of URLs, and calls as requests would make them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

from strongroom.auth.request import Service
from strongroom.operations.file import copy
from strongroom.services.copy_openers import OPENERS
from strongroom.services.core.copies.sources import (
    CopySources,
    LocalSource,
    OpenSource,
    SourceBroken,
)
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.copying import CopyFile, FileCopied
from strongroom.services.file.rest.files import SetFileProperties
from strongroom.values import ContentProperties
from tests.services import file_calls as do
from tests.services.alternating import sweeper_of
from tests.services.container_calls import ACCOUNT, create
from tests.services.sweeps import swept

MIB = 1 << 20
HERE = "http://here/"
ELSEWHERE = "http://elsewhere/file"
DATA = random.Random(5).randbytes(20_000)


async def ready() -> Services:
    """Return services with a share and a container, whose URLs are `http://here/SERVICE/NAME`. The
    URL of a file in a snapshot ends in `?STAMP`."""
    on = await do.services()
    await create(on)

    async def locate(url: str, call: Any, wanted: Any) -> LocalSource | None:
        if not url.startswith(HERE):
            return None
        kind, _, name = url.removeprefix(HERE).partition("/")
        service = Service(kind)
        container = "photos" if service is Service.BLOB else do.SHARE
        place = await on.place(service, ACCOUNT, container)
        assert place is not None
        name, _, stamp = name.partition("?")
        snapshot = int(stamp) if stamp else None
        return LocalSource(ACCOUNT, container, place.generation, name, snapshot, service=service)

    on.held.of(CopySources).locate = locate
    on.held.of(CopySources).openers = OPENERS
    return on


class Elsewhere:
    """Another server, whose source sends `pieces`, and fails at a piece that is None."""

    def __init__(self, on: Services, pieces: list[bytes | None], size_bytes: int | None) -> None:
        self.pieces = pieces
        self.size_bytes = size_bytes
        self.asked = 0
        on.held.of(CopySources).remote = self

    async def open(self, url: str, wanted: object) -> OpenSource:
        self.asked += 1
        return OpenSource(
            self.size_bytes, self._chunks(), lambda: None, ContentProperties("text/plain")
        )

    async def _chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if piece is None:
                raise SourceBroken("the wire was cut")
            yield piece


async def begin(on: Services, source: str, path: str, **more: Any) -> FileCopied:
    """Run Copy File without waiting for the copy's end."""
    wanted = CopyFile(source=source, **more)
    begun: FileCopied = await do.run(on, copy.COPY_FILE, path, wanted)
    return begun


async def done(on: Services) -> int:
    """Run every job, and return how many there were."""
    return await swept(on, sweeper_of(on))  # type: ignore[arg-type]  # its own services


def resized(size_bytes: int) -> SetFileProperties:
    return SetFileProperties(size_bytes=size_bytes)


async def copied(on: Services, source: str, path: str, **more: Any) -> Any:
    """Run Copy File to its end, and return the file's properties."""
    await begin(on, source, path, **more)
    await done(on)
    return (await do.look(on, path)).record
