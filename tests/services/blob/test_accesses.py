"""The access times of blobs: which accesses are noted, when they are written, and that reads do not
wait for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from strongroom.account_switches import Switches
from strongroom.operations.blob import blob
from strongroom.operations.blob.fields.returned import blob_headers
from strongroom.services.blob import accesses, blobs
from strongroom.services.blob.decisions.views import BlobView
from strongroom.services.blob.states.snapshots import DeleteBlob
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.values import TICKS_PER_S, ByteRange
from tests.services import blob_calls as do
from tests.services.container_calls import run
from tests.services.queue_calls import problems
from tests.services.sweeps import drop_container, fresh, swept

DAY_S = 24 * 60 * 60


async def tracked() -> tuple[Services, Sweeper]:
    on, sweeper = await fresh()
    on.switches = lambda account: Switches(last_access=True)
    return on, sweeper


async def view(on: Services, name: str = "b") -> BlobView:
    found: BlobView = await do.run(on, blob.GET_BLOB_PROPERTIES, name, None)
    return found


def test_a_write_is_an_access_and_a_read_once_a_day() -> None:
    """B-ACC-02, B-ACC-03, B-ACC-04."""

    async def test() -> None:
        on, sweeper = await tracked()
        await do.put(on, "b", b"text")
        made = await view(on)
        assert made.blob.accessed == made.blob.modified
        on.store.advance(DAY_S - 60)
        await do.read(on, "b")
        await swept(on, sweeper)
        assert (await view(on)).blob == made.blob
        on.store.advance(60)
        lease = await do.acquire(on, "b")
        before = await view(on)
        await do.read(on, "b")
        # It is not written yet: the read has not waited for the write.
        assert (await view(on)).blob == before.blob
        await swept(on, sweeper)
        after = await view(on)
        assert after.blob.accessed >= made.blob.accessed + DAY_S * 10_000_000
        told = dict(blob_headers(after))
        assert told["x-ms-last-access-time"] != told["Last-Modified"]
        assert (after.blob.etag, after.blob.modified) == (made.blob.etag, made.blob.modified)
        assert after.blob.lease is not None and after.blob.lease.id == lease
        on.store.advance(DAY_S)
        await do.run(on, blob.GET_BLOB, "b", blobs.GetBlob(ByteRange(0, 1)))
        await swept(on, sweeper)
        assert (await view(on)).blob.accessed > after.blob.accessed

    run(test)


def test_what_is_no_access() -> None:
    """B-ACC-03: reads of the properties of a blob and of its snapshots."""

    async def test() -> None:
        on, sweeper = await tracked()
        await do.put(on, "b", b"text")
        ticks = await do.snapshot(on, "b")
        on.store.advance(2 * DAY_S)
        made = await view(on)
        await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None, snapshot=ticks)
        await swept(on, sweeper)
        assert (await view(on)).blob == made.blob

    run(test)


@pytest.mark.parametrize("kind", ["snapshot", "version"])
def test_each_state_has_a_time_of_its_own(kind: str) -> None:
    """B-ACC-03: a read of one state changes the time of no other; tags and bodies stay."""

    async def test() -> None:
        on, sweeper = await tracked()
        on.switches = lambda account: Switches(last_access=True, versioning=kind == "version")
        first = await do.run(on, blob.PUT_BLOB, "b", blobs.PutBlob(tags=(("k", "v"),)), b"old")
        past: dict[str, Any]
        if kind == "snapshot":
            past = {"snapshot": await do.snapshot(on, "b")}
        else:
            past = {"version": first.version}
        await do.put(on, "b", b"new")

        async def seen() -> tuple[BlobView, BlobView]:
            return await view(on), await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None, **past)

        begun = await seen()
        on.store.advance(2 * DAY_S)
        await do.run(on, blob.GET_BLOB, "b", blobs.GetBlob(), **past)
        await swept(on, sweeper)
        after = await seen()
        assert after[0].blob == begun[0].blob
        assert after[1].blob.accessed >= begun[1].blob.accessed + 2 * DAY_S * TICKS_PER_S
        assert after[1].blob == msgspec.structs.replace(
            begun[1].blob, accessed=after[1].blob.accessed
        )
        assert "x-ms-last-access-time" in dict(blob_headers(after[1]))
        assert problems(on) == []
        on.store.advance(2 * DAY_S)
        await do.run(on, blob.GET_BLOB, "b", blobs.GetBlob(), **past)
        operation = blob.DELETE_BLOB if kind == "snapshot" else blob.DELETE_VERSION
        await do.run(on, operation, "b", DeleteBlob(), **past)
        await swept(on, sweeper)
        assert (await view(on)).blob.versions == 0
        assert problems(on) == []

    run(test)


def test_nothing_is_tracked_unless_it_is_switched_on() -> None:
    """B-ACC-01, B-ACC-02."""

    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "b", b"text")
        await do.read(on, "b")
        await swept(on, sweeper)
        found = await view(on)
        assert found.blob.accessed == 0
        assert "x-ms-last-access-time" not in dict(blob_headers(found))
        on.switches = lambda account: Switches(last_access=True)
        await do.read(on, "b")
        await swept(on, sweeper)
        assert (await view(on)).blob.accessed > found.blob.modified

    run(test)


def test_what_is_gone_before_its_access_is_written() -> None:
    """B-ACC-04: the note of a deleted blob, or of one in a deleted container, is dropped."""

    async def test() -> None:
        on, sweeper = await tracked()
        await do.put(on, "b", b"text")
        await do.put(on, "c", b"text")
        on.store.advance(2 * DAY_S)
        await do.read(on, "b")
        await do.delete(on, "b")
        await swept(on, sweeper)
        assert await do.read(on, "b") is None
        await do.read(on, "c")
        await drop_container(on)
        await swept(on, sweeper)

    run(test)


def test_notes_are_bounded() -> None:
    """B-ACC-04."""
    noted = accesses.Accesses()
    for number in range(accesses._NOTED_MAX + 5):
        noted.note(1, str(number), None)
    assert len(noted.take()) == accesses._NOTED_MAX
    assert noted.take() == []
