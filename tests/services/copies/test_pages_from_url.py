"""Put Page From URL on services: what remains after failures, and concurrent changes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.operations.blob import from_url
from strongroom.semantics.blob.pages import NO_SEQUENCE_CONDITIONS, SequenceConditions
from strongroom.services.blob.bodies.intake import NO_DIGESTS, Digests
from strongroom.services.blob.from_url.source import UrlSource
from strongroom.services.blob.from_url.writes import PutPageFromUrl
from strongroom.services.core.copies.sources import (
    CopySources,
    LocalSource,
    OpenSource,
    SourceBroken,
    SourceRequest,
)
from strongroom.services.core.runner import Services
from strongroom.store.blob.bodies.readers import Readers
from strongroom.values import ByteRange, ContentProperties
from tests.services import blob_calls as do
from tests.services import page_calls as pages
from tests.services.container_calls import ACCOUNT, refused, run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, fresh, swept

KIB = 1024
URL = "http://127.0.0.1/account/photos/source"


def source_of(length: int, first: int = 0, digests: Digests = NO_DIGESTS) -> UrlSource:
    wanted = ByteRange(first, first + length - 1)
    return UrlSource(URL, SourceRequest(range=wanted, is_read=True), digests)


async def write_from(
    on: Services,
    offset: int,
    source: UrlSource,
    sequence: SequenceConditions = NO_SEQUENCE_CONDITIONS,
) -> Any:
    wanted = source.wanted.range
    assert wanted is not None and wanted.last is not None
    pages_ = (offset, wanted.last + 1 - wanted.first)
    given = PutPageFromUrl(pages_, source, sequence)
    return await do.run(on, from_url.PUT_PAGE_FROM_URL, "b", given)


class Elsewhere:
    """Another server, whose source is sent in two pieces.

    Attributes:
        meanwhile: is awaited between the two.
        fault: is raised instead of the second piece.
        asked: how often it was opened; `closed`: how often it was closed.
    """

    def __init__(self, on: Services, data: bytes) -> None:
        self._data = data
        self.meanwhile = asyncio.Event()
        self.meanwhile.set()
        self.begun = asyncio.Event()
        self.fault: Exception | None = None
        self.asked = self.closed = 0
        on.held.of(CopySources).remote = self

    async def open(self, url: str, wanted: SourceRequest) -> OpenSource:
        assert wanted.range is not None and wanted.range.last is not None
        self.asked += 1
        part = self._data[wanted.range.first : wanted.range.last + 1]
        return OpenSource(len(part), self._pieces(part), self._close, ContentProperties())

    def _close(self) -> None:
        self.closed += 1

    async def _pieces(self, part: bytes) -> AsyncIterator[bytes]:
        yield part[: len(part) // 2]
        self.begun.set()
        await self.meanwhile.wait()
        if self.fault is not None:
            raise self.fault
        yield part[len(part) // 2 :]


async def nothing_is_left(on: Services, sweeper: Any) -> None:
    """Check that there is no reader, no content without a record, and nothing after the container
    is deleted."""
    assert isinstance(on.store, ServiceEngine)
    assert not on.held.of(Readers)._active
    assert pages.problems(on) == []
    await drop_container(on)
    await swept(on, sweeper)
    assert do.left(on) == ([], [])


@pytest.mark.parametrize("length", [512, 8 * KIB, 200 * KIB])
def test_a_source_that_breaks_or_differs_leaves_no_page(length: int) -> None:
    """B-URL-06, B-URL-17, B-URL-20."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "b", 400 * KIB)
        await pages.write(on, "b", 0, b"x" * KIB)
        elsewhere = Elsewhere(on, random.Random(length).randbytes(length))
        elsewhere.fault = SourceBroken("The connection broke.")
        broken = await refused(write_from(on, 0, source_of(length)))
        assert broken == (404, "CannotVerifyCopySource")
        elsewhere.fault = None
        wrong = source_of(length, digests=Digests(b"x" * 16))
        assert await refused(write_from(on, 0, wrong)) == (400, "Md5Mismatch")
        wrong = source_of(length, digests=Digests(None, 1))
        assert await refused(write_from(on, 0, wrong)) == (400, "Crc64Mismatch")
        assert (elsewhere.asked, elsewhere.closed) == (3, 3)
        assert await do.read(on, "b") == b"x" * KIB + bytes(399 * KIB)
        await nothing_is_left(on, sweeper)

    run(test)


def test_the_blob_is_judged_again_when_the_pages_are_written() -> None:
    """B-URL-16, B-PAG-10: a number that rises while the source is read refuses the write."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "b", 400 * KIB)
        elsewhere = Elsewhere(on, bytes(range(256)) * 800)
        elsewhere.meanwhile.clear()
        equal = SequenceConditions(equal=0)
        writing = asyncio.create_task(write_from(on, 0, source_of(200 * KIB), equal))
        await elsewhere.begun.wait()
        await pages.increment(on, "b")
        elsewhere.meanwhile.set()
        assert await refused(writing) == (412, "SequenceNumberConditionNotMet")
        assert await pages.ranges(on, "b") == []
        assert await refused(write_from(on, 0, source_of(512), equal)) == (
            412,
            "SequenceNumberConditionNotMet",
        )
        assert await refused(write_from(on, 400 * KIB, source_of(512))) == (416, "InvalidPageRange")
        assert elsewhere.asked == 1, "where the write is refused, no source is asked"
        await nothing_is_left(on, sweeper)

    run(test)


def test_pages_of_the_blob_itself_are_those_of_one_state() -> None:
    """B-URL-17, B-URL-18: others write while the blob's own pages are read."""

    async def test() -> None:
        on, sweeper = await fresh()
        size = 200 * KIB
        await pages.create(on, "b", 2 * size)
        await pages.write(on, "b", 0, b"a" * size)
        await locate(on, "b")
        real = on.store.contents.write

        async def write(chunks: AsyncIterator[bytes], *given: Any) -> Any:
            async def changed() -> AsyncIterator[bytes]:
                on.store.contents.write = real  # type: ignore[method-assign]  # a double
                first = await anext(aiter(chunks))
                await pages.write(on, "b", 0, b"b" * size)
                yield first
                async for chunk in chunks:
                    yield chunk

            return await real(changed(), *given)

        on.store.contents.write = write  # type: ignore[method-assign, assignment]  # a double
        await write_from(on, size, source_of(size))
        assert on.store.contents.write == real, "others have written meanwhile"
        assert await do.read(on, "b") == b"b" * size + b"a" * size
        await swept(on, sweeper)
        await write_from(on, size - 512, source_of(size, size // 2))
        whole = b"b" * size + b"a" * size
        part = whole[size // 2 : size // 2 + size]
        assert await do.read(on, "b") == whole[: size - 512] + part + whole[2 * size - 512 :]
        await swept(on, sweeper)
        await nothing_is_left(on, sweeper)

    run(test)


async def locate(on: Services, name: str) -> None:
    """Resolve every URL to this blob."""
    place = await on.place(Service.BLOB, ACCOUNT, "photos")
    assert place is not None

    async def found(url: str, call: Any, wanted: Any) -> LocalSource:
        return LocalSource(ACCOUNT, "photos", place.generation, name)

    on.held.of(CopySources).locate = found
