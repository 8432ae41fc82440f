"""Copies: the block structure, aborts that win, pinned sources, jobs after a restart."""

from __future__ import annotations

import asyncio
import random

import pytest

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.limits import COPY_AT_ONCE_BYTES_MAX
from strongroom.operations.blob import blob, block, copy
from strongroom.services.blob.blobs import GetBlob
from strongroom.services.blob.copies import copying
from strongroom.services.blob.types import blocks
from strongroom.services.core.copies.sources import CopySources, check_url, url_without_credentials
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.blob.bodies import listed
from strongroom.store.core import keys, records
from strongroom.store.core.keys import Past
from strongroom.values import ByteRange
from tests.services import blob_calls as do
from tests.services import page_calls as pages
from tests.services import version_calls as ver
from tests.services.container_calls import run
from tests.services.sweeps import drop_container, fresh, swept

BIG = 20_000
LARGE = COPY_AT_ONCE_BYTES_MAX + 1


async def block_ids(on: Services, name: str) -> list[tuple[str, int]]:
    found = await do.run(on, block.GET_BLOCK_LIST, name, blocks.GetBlockList())
    return list(found.committed)


async def stage_and_commit(on: Services, name: str, count: int, size: int) -> bytes:
    data = random.Random(count).randbytes(count * size)
    ids = [f"{number:03}" for number in range(count)]
    for number, block_id in enumerate(ids):
        await do.stage(on, name, block_id, data[number * size : (number + 1) * size])
    await do.commit(on, name, ids)
    return data


@pytest.mark.parametrize("group_bytes", [1, 3 * BIG - 1, 10**9])
def test_a_copy_has_the_blocks_of_its_source(
    monkeypatch: pytest.MonkeyPatch, group_bytes: int
) -> None:
    """B-CPY-02: and they can be committed again, alone or with new ones."""
    monkeypatch.setattr(listed, "GROUP_BYTES", group_bytes)
    monkeypatch.setattr(listed, "GROUPS_MAX", 10**9)

    async def test() -> None:
        on, sweeper = await fresh()
        data = await stage_and_commit(on, "source", 7, BIG)
        await do.start_copy(on, "source", "copy")
        assert await do.read(on, "copy") == data
        assert await block_ids(on, "copy") == await block_ids(on, "source")
        await do.delete(on, "source")
        await do.stage(on, "copy", "new", b"new")
        await do.commit(on, "copy", ["005", "new", "001"])
        await swept(on, sweeper)
        assert await do.read(on, "copy") == data[5 * BIG : 6 * BIG] + b"new" + data[BIG : 2 * BIG]
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_many_blocks_need_no_more_contents_than_a_commit_adopts() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await do.stage(on, "source", "1", b"0123456789")
        await do.commit(on, "source", ["1"] * 5000)
        await do.start_copy(on, "source", "copy")
        assert await do.read(on, "copy") == b"0123456789" * 5000
        assert len(await block_ids(on, "copy")) == 5000

    run(test)


def test_an_abort_wins_over_the_copy_that_goes_on() -> None:
    """B-CPY-07."""

    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "source", bytes(LARGE))
        made = await do.start_copy(on, "source", "copy")
        real = on.store.contents.write

        async def aborted(*given: object, **more: object) -> object:
            written = await real(*given, **more)  # type: ignore[arg-type]  # keywords of a table
            given_id = copying.AbortCopy(made.copy_id)
            await do.run(on, copy.ABORT_COPY, "copy", given_id)
            return written

        on.store.contents.write = aborted  # type: ignore[assignment,method-assign]  # a double
        await swept(on, sweeper)
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)
        assert (view.blob.copy.status.value, view.blob.size_bytes) == ("aborted", 0)
        assert view.blob.etag > made.etag
        assert not on.store.contents.adoptions.written  # type: ignore[attr-defined]
        with pytest.raises(StorageError) as caught:
            await do.run(on, copy.ABORT_COPY, "copy", copying.AbortCopy(made.copy_id))
        assert caught.value.row is copy_errors.NO_PENDING_COPY_OPERATION

    run(test)


def test_a_source_that_is_replaced_meanwhile_is_copied_as_it_was() -> None:
    """B-CPY-16."""

    async def test() -> None:
        on, sweeper = await fresh()
        old = random.Random(3).randbytes(LARGE)
        await do.put(on, "source", old)
        await do.start_copy(on, "source", "copy")
        await do.put(on, "source", b"new")
        await swept(on, sweeper)
        assert await do.read(on, "copy") == old

    run(test)


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_pending_copy_goes_on_after_a_restart(seconds: float) -> None:
    """B-CPY-05."""

    async def test() -> None:
        on, _ = await fresh()
        data = random.Random(4).randbytes(LARGE)
        await do.put(on, "source", data)
        await do.start_copy(on, "source", "copy")
        # Of the memory engine.
        again = Services(on.store.restarted(), on.clock)  # type: ignore[attr-defined]
        again.store.advance(1 + seconds)
        assert await Sweeper(again).run_once() > 0
        assert await do.read(again, "copy") == data

    run(test)


def test_a_source_that_is_gone_after_a_restart_fails_the_copy() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "source", bytes(LARGE))
        await do.start_copy(on, "source", "copy")
        await on.held.of(CopySources).close()
        await do.delete(on, "source")
        await swept(on, sweeper)
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)
        assert view.blob.copy.status.value == "failed"
        assert "404" in view.blob.copy.description
        await do.put(on, "copy", b"free again")
        jobs = [ref for ref, _ in do.left(on)[0] if ref.partition.keyspace == keys.JOBS]
        await swept(on, sweeper)
        assert jobs == []

    run(test)


def test_the_order_of_a_copy_elsewhere_keeps_the_signature_and_the_blob_does_not() -> None:
    """B-CPY-03."""

    async def test() -> None:
        on, _ = await fresh()

        class Remote:
            async def open(self, url: str, wanted: object) -> object:
                return do.open_source(b"data")

        on.held.of(CopySources).remote = Remote()  # type: ignore[assignment]  # a double
        url = "https://other.example/c/b?snapshot=x&sv=1&sig=secret"
        made = await do.run(on, copy.COPY_BLOB, "copy", copying.CopyBlob(url))
        assert made.copy_status == "pending"
        texts = {
            ref.partition.keyspace: records.JOB.decode(record.value).order
            for ref, record in do.left(on)[0]
            if ref.partition.keyspace == keys.JOBS
        }
        (order,) = texts.values()
        assert order is not None and order.url == url
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)
        assert view.blob.copy.source == "https://other.example/c/b?snapshot=x"
        await on.held.of(CopySources).close()
        await asyncio.sleep(0)

    run(test)


@pytest.mark.parametrize("broken", [1, 2])
def test_a_source_elsewhere_that_did_not_wait_for_the_copy_is_asked_once_more(broken: int) -> None:
    """B-CPY-13."""

    async def test() -> None:
        on, sweeper = await fresh()
        answers = [b"da"] * broken + [b"data"]
        released: list[None] = []

        class Remote:
            async def open(self, url: str, wanted: object) -> object:
                source = do.open_source(answers.pop(0))
                source.size_bytes = len(b"data")
                source.release = lambda: released.append(None)
                return source

        on.held.of(CopySources).remote = Remote()  # type: ignore[assignment]  # a double
        url = "https://other.example/c/b"
        await do.run(on, copy.COPY_BLOB, "copy", copying.CopyBlob(url))
        await swept(on, sweeper)
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)
        assert view.blob.copy.status.value == ("success" if broken == 1 else "failed")
        assert view.blob.size_bytes == (4 if broken == 1 else 0)
        assert len(answers) == broken - 1
        assert len(released) >= 2

    run(test)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/c/b",
        "c/b",
        "ftp://host/c/b",
        "http://",
        "http:///c/b",
        "http://host:0/c/b",
        "http://host:99999/c/b",
        "http://user@host/c/b",
        "http://user:word@host/c/b",
        "http://[::1/c/b",
        "http://host/c d",
        "http://host/c\r\nd",
        "http://host/\u00e9",
        "http://host/" + "x" * 2048,
    ],
)
def test_urls_that_are_no_source(url: str) -> None:
    """B-CPY-11."""
    with pytest.raises(StorageError) as caught:
        check_url(url)
    assert caught.value.row is errors.INVALID_HEADER_VALUE


def test_what_a_copy_tells_of_its_source() -> None:
    shown = url_without_credentials("https://h/c/b?sv=1&Snapshot=t&sig=s&X-Amz-Signature=y#part")
    assert shown == "https://h/c/b?Snapshot=t"
    assert url_without_credentials("https://h/c/b?sig=s") == "https://h/c/b"


def test_a_large_blob_is_copied_to_itself_before_the_answer() -> None:
    """B-CPY-12: a pending copy would have lost the only bytes at a restart."""

    async def test() -> None:
        on, sweeper = await fresh()
        data = bytes(LARGE - 1) + b"1"
        await do.put(on, "blob", data)
        made = await do.start_copy(on, "blob", "blob")
        assert made.copy_status == "success"
        await on.held.of(CopySources).close()  # as a restart does
        await swept(on, sweeper)
        assert await do.read(on, "blob") == data

    run(test)


@pytest.mark.parametrize("size_bytes", [2048, 2 * LARGE - 2, 2**40])
def test_no_page_moves_when_a_page_blob_is_copied_to_itself(size_bytes: int) -> None:
    """B-CPY-12: a pending copy would have emptied its own source."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "blob", size_bytes)
        await pages.write(on, "blob", size_bytes - 512, b"1" * 512)
        snapshot = await do.snapshot(on, "blob")
        await pages.write(on, "blob", 0, b"2" * 512)
        before = do.left(on)[1]
        made = await do.start_copy(on, "blob", "blob")
        assert made.copy_status == "success"
        await on.held.of(CopySources).close()  # as a restart does
        await swept(on, sweeper)
        assert do.left(on)[1] == before
        ends = [(0, 512, False), (size_bytes - 512, size_bytes, False)]
        assert await pages.ranges(on, "blob") == ends
        await pages.write(on, "blob", 512, b"3" * 512)
        await do.delete(on, "blob", ticks=snapshot)
        await swept(on, sweeper)
        begin = await do.run(on, blob.GET_BLOB, "blob", GetBlob(range=ByteRange(0, 1023)))
        assert await do.received(begin) == b"2" * 512 + b"3" * 512
        assert pages.problems(on) == []
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


async def read_state(on: Services, name: str, past: Past) -> bytes | None:
    if past.is_version:
        return await do.read(on, name, version=past.ticks)
    return await do.read(on, name, past.ticks or None)


@pytest.mark.parametrize("is_versioned", [True, False])
def test_the_pages_that_a_copy_to_itself_displaces_are_kept(is_versioned: bool) -> None:
    """B-CPY-12, B-VER-01, B-SFT-06: a version or a deleted snapshot shares the pages."""

    async def test() -> None:
        on, sweeper = await fresh()
        if is_versioned:
            ver.switch(on, True)
        await ver.retain(on, 7)
        await pages.create(on, "blob", 2048)
        await pages.write(on, "blob", 0, b"1" * 512)
        await do.start_copy(on, "blob", "blob")
        await swept(on, sweeper)
        await pages.write(on, "blob", 0, b"2" * 512)
        await swept(on, sweeper)
        await ver.undelete(on, "blob")
        rows = await ver.listed(on, "versions", "snapshots")
        pasts = [row.past or Past(0) for row in rows]
        bodies = [await read_state(on, "blob", past) for past in pasts]
        assert bodies == [b"1" * 512 + bytes(1536)] * (len(rows) - 1) + [b"2" * 512 + bytes(1536)]
        assert len(rows) > 1
        assert pages.problems(on) == []

    run(test)


def test_a_page_blob_that_is_written_while_it_is_copied_to_itself() -> None:
    """B-CPY-12: the copy is of one state, the one that is there at its commit."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "blob", 2048)
        real, written = on.commit, False

        async def late(decision: object, turn: object = None) -> object:
            nonlocal written
            if not written:
                written = True
                await pages.write(on, "blob", 0, b"1" * 512)
            return await real(decision, turn)  # type: ignore[arg-type]  # a double

        on.commit = late  # type: ignore[assignment,method-assign]  # a double
        made = await do.start_copy(on, "blob", "blob")
        assert made.copy_status == "success"
        await swept(on, sweeper)
        assert await do.read(on, "blob") == b"1" * 512 + bytes(1536)
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "blob", None)
        assert view.blob.etag == made.etag

    run(test)
