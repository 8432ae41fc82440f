"""Readers of one gateway, and sweeps of another: contents that are read stay, and only those."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from strongroom.operations.blob import blob
from strongroom.services.blob import blobs
from strongroom.services.blob.blobs import Download
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.blob.bodies import readers
from strongroom.store.core import keys
from tests.services import blob_calls as do
from tests.services.container_calls import run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, fresh, swept

BIG = 30_000
IDS = ("0", "1", "2")
WHOLE = b"".join(one.encode() * BIG for one in IDS)


async def two_gateways() -> tuple[Services, Services, Sweeper]:
    """Return services of one gateway, of another, and the sweeper of the other."""
    first, _ = await fresh()
    assert isinstance(first.store, ServiceEngine)
    store = first.store.second()
    second = Services(store, first.clock)
    # In this test the second gateway does all jobs.
    store.gateways.owns = lambda name: True  # type: ignore[method-assign]  # a double
    return first, second, Sweeper(second)


async def listed(on: Services, name: str) -> None:
    """Write a blob of three blocks."""
    for one in IDS:
        await do.stage(on, name, one, one.encode() * BIG)
    await do.commit(on, name, IDS)


async def download(on: Services, name: str) -> tuple[Download, AsyncIterator[bytes]]:
    found = await do.run(on, blob.GET_BLOB, name, blobs.GetBlob())
    assert isinstance(found, Download) and not isinstance(found.pieces, bytes)
    return found, aiter(found.pieces)  # type: ignore[arg-type]  # pieces of bytes here


def end(found: Download) -> None:
    assert found.finished is not None
    found.finished()


def test_a_download_arrives_whole_though_another_gateway_replaces_and_sweeps_the_blob() -> None:
    async def test() -> None:
        here, there, sweeper = await two_gateways()
        await listed(here, "b")
        found, pieces = await download(here, "b")
        data = await anext(pieces)
        await do.put(there, "b", b"new")
        await swept(there, sweeper)
        assert len(do.left(there)[1]) == len(IDS), "all of it may still be read"
        data += b"".join([piece async for piece in pieces])
        assert data == WHOLE
        end(found)
        await swept(there, sweeper)
        assert do.left(there)[1] == []
        assert await do.read(here, "b") == b"new"

    run(test)


def test_a_download_that_began_after_the_replacement_holds_nothing_back() -> None:
    async def test() -> None:
        here, there, sweeper = await two_gateways()
        await listed(here, "b")
        await listed(here, "other")
        await do.put(there, "b", b"new")
        assert isinstance(here.store, ServiceEngine)
        await here.store.beat_all()  # a reader holds back what its gateway may not yet have seen
        found, pieces = await download(here, "other")
        await swept(there, sweeper)
        assert len(do.left(there)[1]) == len(IDS), "only the other blob is left"
        assert b"".join([piece async for piece in pieces]) == WHOLE
        end(found)

    run(test)


def test_a_download_that_stalls_holds_back_only_what_it_has_still_to_read() -> None:
    async def test() -> None:
        here, there, sweeper = await two_gateways()
        for name in ("b", "other"):
            await listed(here, name)
        found, pieces = await download(here, "b")
        data = await anext(pieces) + await anext(pieces)
        (reading,) = here.held.of(readers.Readers).snapshot(found.view.partition)
        for name in ("b", "other"):
            await do.put(there, name, b"new")
        await swept(there, sweeper)
        assert len(do.left(there)[1]) == 2 * len(IDS)
        reading.narrow()
        await swept(there, sweeper)
        contents = do.left(there)[1]
        assert sorted(contents) == sorted(span.content for span in reading.left or ())
        assert 0 < len(contents) < len(IDS)
        data += b"".join([piece async for piece in pieces])
        assert data == WHOLE
        end(found)
        await swept(there, sweeper)
        assert do.left(there)[1] == []
        assert not [ref for ref, _ in do.left(there)[0] if ref.key.name[:1] == keys.RETIRED]

    run(test)


@pytest.mark.parametrize("narrows", [False, True])
def test_a_download_arrives_whole_though_another_gateway_sweeps_the_deleted_container(
    narrows: bool,
) -> None:
    async def test() -> None:
        here, there, sweeper = await two_gateways()
        await listed(here, "b")
        await listed(here, "other")
        found, pieces = await download(here, "b")
        data = await anext(pieces)
        await drop_container(there)
        (reading,) = here.held.of(readers.Readers).snapshot(found.view.partition)
        if narrows:
            reading.narrow()
        await swept(there, sweeper)
        assert len(do.left(there)[1]) == (len(IDS) if narrows else 2 * len(IDS))
        data += b"".join([piece async for piece in pieces])
        assert data == WHOLE
        end(found)
        await swept(there, sweeper)
        assert do.left(there) == ([], [])

    run(test)


def test_a_reader_names_what_it_reads_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "READING_S_MAX", 0)

    async def test() -> None:
        here, there, sweeper = await two_gateways()
        await listed(here, "b")
        found, pieces = await download(here, "b")
        await anext(pieces)
        await listed(there, "other")
        await do.put(there, "other", b"new")
        await swept(there, sweeper)
        assert len(do.left(there)[1]) == len(IDS), "the other blob's space is free again"
        end(found)

    run(test)


@pytest.mark.parametrize("writing", [0, 1])
def test_heartbeats_of_all_gateways_tell_that_nothing_older_is_read(writing: int) -> None:
    """What the sweeps of these tests rely on: a sweep waits for other gateways at most once."""

    async def test() -> None:
        here, there, _ = await two_gateways()
        assert isinstance(here.store, ServiceEngine)
        await do.put((here, there)[writing], "b", b"x")
        written = max(record.version for _, record in here.store.records())
        await here.store.beat_all()
        for on in (here, there):
            assert (await on.store.gateways.horizon()).stamp > written

    run(test)
