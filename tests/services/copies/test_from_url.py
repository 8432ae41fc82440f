"""From URL operations on services: the body made from a source, and what remains after failures."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.engines.checksum import crc64
from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.blob import blob, from_url
from strongroom.services.blob.bodies import intake
from strongroom.services.blob.bodies.intake import Digests
from strongroom.services.blob.from_url.source import UrlSource, uploaded_from
from strongroom.services.blob.from_url.writes import PutBlobFromUrl, PutBlockFromUrl
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import (
    CopySources,
    LocalSource,
    OpenSource,
    SourceBroken,
    SourceRequest,
)
from strongroom.services.core.runner import Services
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.blob.bodies.received import inline_body
from strongroom.values import ByteRange, ContentProperties
from tests.services import blob_calls as do
from tests.services.container_calls import ACCOUNT, placed, refused, run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, fresh, swept

URL = "http://127.0.0.1/account/photos/source"
BIG = 20_000
WANTED = [
    None,
    ByteRange(0, None),
    ByteRange(0, 0),
    ByteRange(BIG // 2, BIG),
    ByteRange(7, 3 * BIG - 1),
]
Chunks = Callable[[], AsyncIterator[bytes]]


async def locate_source(on: Services) -> None:
    """Resolve every URL to the blob `source`."""
    place = await on.place(Service.BLOB, ACCOUNT, "photos")
    assert place is not None

    async def locate(url: str, call: Any, wanted: Any) -> LocalSource:
        return LocalSource(ACCOUNT, "photos", place.generation, "source")

    on.held.of(CopySources).locate = locate


def from_remote(on: Services, size_bytes: int | None, chunks: Chunks) -> list[None]:
    """Resolve every URL to a source on another server. The returned list grows when the source is
    closed."""
    closed: list[None] = []

    class Remote:
        async def open(self, url: str, wanted: object) -> OpenSource:
            return OpenSource(
                size_bytes, chunks(), lambda: closed.append(None), ContentProperties()
            )

    on.held.of(CopySources).remote = Remote()
    return closed


def source(range_: ByteRange | None = None, digests: Digests = intake.NO_DIGESTS) -> UrlSource:
    return UrlSource(URL, SourceRequest(range=range_, is_read=True), digests)


async def put_from(on: Services, name: str, digests: Digests = intake.NO_DIGESTS) -> Any:
    return await do.run(
        on, from_url.PUT_BLOB_FROM_URL, name, PutBlobFromUrl(source(digests=digests))
    )


async def stage_from(
    on: Services, name: str, block_id: str, range_: ByteRange | None = None
) -> Any:
    given = PutBlockFromUrl(block_id.encode(), source(range_))
    return await do.run(on, from_url.PUT_BLOCK_FROM_URL, name, given)


def nothing_is_held(on: Services) -> None:
    """Check that no reader is registered, and that no content waits for a commit."""
    assert isinstance(on.store, ServiceEngine)
    assert not on.held.of(Readers)._active
    assert not on.store.contents.adoptions.written


async def make_source(on: Services, kind: str) -> bytes:
    data = random.Random(kind).randbytes(3 * BIG)
    if kind == "stored":
        await do.put(on, "source", data)
    else:
        for number in range(3):
            await do.stage(on, "source", str(number), data[number * BIG : (number + 1) * BIG])
        await do.commit(on, "source", ["0", "1", "2"])
    return data


@pytest.mark.parametrize("range_", WANTED, ids=str)
@pytest.mark.parametrize("kind", ["stored", "listed"])
def test_any_operation_that_takes_a_body_takes_a_source(
    kind: str, range_: ByteRange | None
) -> None:
    """B-URL-08, B-URL-12: Append Block and Put Page need nothing else."""

    async def consume(call: Call[Digests], size_max: int) -> bytes:
        intake.check_size(call.client.body, size_max)
        data = b"".join([chunk async for chunk in call.client.body])
        intake.verify(call.input, inline_body(data))
        return data

    async def test() -> None:
        on, _ = await fresh()
        data = await make_source(on, kind)
        await locate_source(on)
        offset, length = (0, len(data)) if range_ is None else range_.within(len(data)) or (0, 0)
        part = data[offset : offset + length]
        call = await placed(on, blob="b", rule=blob.PUT_BLOB.rule)
        async with uploaded_from(on, call, source(range_)) as upload:
            body = upload.call(None).client.body
            assert (body.size_bytes, body.is_held_back) == (length, False)
            taken = upload.call(Digests(None, crc64(part)))
            assert await consume(taken, length) == part
        async with uploaded_from(on, call, source(range_)) as upload:
            attempt = consume(upload.call(Digests()), length - 1)
            assert await refused(attempt) == (413, "RequestBodyTooLarge")
        nothing_is_held(on)

    run(test)


@pytest.mark.parametrize("kind", ["stored", "listed"])
@pytest.mark.parametrize("how", ["replaced", "deleted"])
def test_a_source_that_goes_while_it_is_read(kind: str, how: str) -> None:
    """B-URL-17: the body is that of the source when it was opened."""

    async def test() -> None:
        on, sweeper = await fresh()
        data = await make_source(on, kind)
        await locate_source(on)
        real = on.store.contents.write

        async def write(chunks: AsyncIterator[bytes], *given: Any) -> Any:
            async def changed() -> AsyncIterator[bytes]:
                on.store.contents.write = real  # type: ignore[method-assign]  # a double
                first = await anext(aiter(chunks))
                if how == "deleted":
                    await do.delete(on, "source")
                else:
                    await do.put(on, "source", b"new")
                yield first
                async for chunk in chunks:
                    yield chunk

            return await real(changed(), *given)

        on.store.contents.write = write  # type: ignore[method-assign, assignment]  # a double
        await put_from(on, "b")
        assert await do.read(on, "b") == data
        await swept(on, sweeper)
        assert await do.read(on, "b") == data
        nothing_is_held(on)

    run(test)


def test_a_destination_that_changes_while_the_source_is_read() -> None:
    """B-URL-16: the destination is checked again when the blob is written."""

    async def test() -> None:
        on, sweeper = await fresh()
        await locate_source(on)
        await make_source(on, "stored")
        await do.put(on, "b", b"old")
        real, lease_ids = on.store.contents.write, list[str]()

        async def write(*given: Any) -> Any:
            written = await real(*given)
            on.store.contents.write = real  # type: ignore[method-assign]  # a double
            lease_ids.append(await do.acquire(on, "b"))
            return written

        on.store.contents.write = write  # type: ignore[method-assign, assignment]  # a double
        assert await refused(put_from(on, "b")) == (412, "LeaseIdMissing")
        assert await do.read(on, "b") == b"old"
        nothing_is_held(on)
        await do.release(on, "b", lease_ids[0])
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


@pytest.mark.parametrize("size_bytes", [None, 3 * BIG])
@pytest.mark.parametrize("fault", ["breaks", "short", "long", "none"])
def test_a_source_elsewhere_that_does_not_keep_its_word(size_bytes: int | None, fault: str) -> None:
    """B-URL-17: nothing is written, and nothing is left behind."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * BIG
        if fault == "breaks":
            raise SourceBroken("The connection broke.")
        yield b"y" * (2 * BIG + {"short": -1, "long": 1}.get(fault, 0))

    async def test() -> None:
        on, sweeper = await fresh()
        closed = from_remote(on, size_bytes, chunks)
        is_told = fault == "breaks" or (size_bytes is not None and fault != "none")
        if is_told:
            assert await refused(put_from(on, "b")) == (404, "CannotVerifyCopySource")
            assert await refused(stage_from(on, "b", "1")) == (404, "CannotVerifyCopySource")
            assert await do.read(on, "b") is None
        else:
            await stage_from(on, "b", "1")
            await do.commit(on, "b", ["1"])
            assert (await do.read(on, "b") or b"").startswith(b"x" * BIG + b"y")
        assert closed
        nothing_is_held(on)
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_a_source_of_unknown_length_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-URL-12."""
    monkeypatch.setattr(intake, "block_bytes_max", lambda version: BIG)

    async def chunks() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    async def test() -> None:
        on, _ = await fresh()
        from_remote(on, None, chunks)
        assert await refused(stage_from(on, "b", "1")) == (413, "RequestBodyTooLarge")
        nothing_is_held(on)

    run(test)


def test_a_refused_digest_leaves_nothing() -> None:
    """B-URL-06."""

    async def test() -> None:
        on, sweeper = await fresh()
        await locate_source(on)
        await make_source(on, "stored")
        assert await refused(put_from(on, "b", Digests(b"x" * 16))) == (400, "Md5Mismatch")
        assert await refused(put_from(on, "b", Digests(None, 1))) == (400, "Crc64Mismatch")
        nothing_is_held(on)
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_no_source_is_looked_for_where_the_destination_refuses() -> None:
    """B-URL-16."""

    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "b", b"old")
        await do.acquire(on, "b")
        assert await refused(put_from(on, "b")) == (412, "LeaseIdMissing")
        assert await refused(stage_from(on, "b", "1")) == (412, "LeaseIdMissing")

    async def locate(url: str, call: Any, wanted: Any) -> LocalSource:
        raise AssertionError("the source was looked for")

    async def guarded() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CopySources, "locate", locate, raising=False)
            await test()

    run(guarded)


def test_the_source_of_a_missing_content_is_a_damaged_one() -> None:
    """A source with missing bytes is not a missing source, which would be answered with 404."""

    async def test() -> None:
        on, _ = await fresh()
        await locate_source(on)
        await make_source(on, "listed")
        assert isinstance(on.store, ServiceEngine)
        on.store.lose_contents()
        with pytest.raises(Exception) as caught:
            await put_from(on, "b")
        error = caught.value
        row = error.row if isinstance(error, StorageError) else errors.INTERNAL_ERROR
        assert row not in (copy_errors.CANNOT_VERIFY_COPY_SOURCE, blob_errors.BLOB_NOT_FOUND)

    run(test)
