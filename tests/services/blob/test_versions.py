"""Versions of blobs: which writes make them, their deletion, and that all space is freed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from strongroom.limits import UNCOMMITTED_LIFETIME_S
from strongroom.operations.blob import blob, block, tag
from strongroom.semantics.blob import tag_queries
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.services.blob import attributes, blobs
from strongroom.services.blob.tags import find_blobs
from strongroom.services.blob.tags.find_blobs import FindBlobs
from strongroom.services.blob.tags.tagging import SetTags
from strongroom.services.blob.tiers import tiering
from strongroom.services.blob.types import blocks
from strongroom.services.core.runner import Services
from strongroom.store.core import keys
from strongroom.values import ContentProperties
from tests.services import append_calls, page_calls
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import placed, refused, run
from tests.services.queue_calls import problems
from tests.services.sweeps import drop_container, swept

DAY_S = 24 * 60 * 60
BIG = 30_000
PAGE = 512
INCLUDE = DeleteSnapshots.INCLUDE
GONE = (404, "BlobNotFound")


async def put_listed(on: Services, name: str, data: bytes) -> None:
    half = len(data) // 2
    await do.stage(on, name, "1", data[:half])
    await do.stage(on, name, "2", data[half:])
    await do.commit(on, name, ["1", "2"])


async def put_appended(on: Services, name: str, data: bytes) -> None:
    await append_calls.create(on, name)
    await append_calls.add(on, name, data)


async def put_pages(on: Services, name: str, data: bytes) -> None:
    await page_calls.create(on, name, len(data))
    await page_calls.write(on, name, 0, data)


Make = Callable[[Services, str, bytes], Awaitable[None]]
BODIES: dict[str, tuple[Make, int]] = {
    "empty": (do.put, 0),
    "within": (do.put, 10),
    "inline": (do.put, 1000),
    "stored": (do.put, BIG),
    "listed": (put_listed, BIG),
    "appended": (put_appended, BIG),
    "pages": (put_pages, 8 * PAGE),
}
# Blocks are staged on block blobs only.
REPLACEMENTS = [
    (a, b) for a in BODIES for b in BODIES if a not in ("appended", "pages") or b != "listed"
]


@pytest.mark.parametrize(("old", "new"), REPLACEMENTS)
def test_what_is_replaced_is_a_previous_version(old: str, new: str) -> None:
    """B-VER-01, B-VER-03, B-VER-13: for every kind of body."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        bodies = []
        for kind, letter in ((old, b"o"), (new, b"n")):
            make, size_bytes = BODIES[kind]
            bodies.append(letter * size_bytes)
            await make(on, "b", bodies[-1])
            await swept(on, sweeper)
        first, second = await ver.ids(on, "b")
        assert problems(on) == []
        assert [await ver.read(on, "b", one) for one in (first, second)] == bodies
        assert await do.read(on, "b") == bodies[1]
        # Delete the blob, but not its versions.
        assert not (await ver.delete_blob(on, "b")).is_permanent
        await swept(on, sweeper)
        assert await do.read(on, "b") is None
        assert await ver.ids(on, "b") == [first, second]
        assert [await ver.read(on, "b", one) for one in (first, second)] == bodies
        assert problems(on) == []
        assert await ver.delete(on, "b", second)
        assert await ver.delete(on, "b", first)
        await swept(on, sweeper)
        assert do.left(on)[1] == []
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


@pytest.mark.parametrize("kind", BODIES)
def test_new_metadata_makes_a_version_that_shares_the_body(kind: str) -> None:
    """B-VER-01, B-VER-02: for every kind of body, in any order of deletion of its states."""
    make, size_bytes = BODIES[kind]

    async def test() -> None:
        on, sweeper = await ver.versioned()
        data = b"d" * size_bytes
        await make(on, "b", data)
        await do.metadata(on, "b", "1")
        await swept(on, sweeper)
        await do.metadata(on, "b", "2")
        rows = await ver.listed(on, "versions")
        assert [row.blob.metadata for row in rows] == [(), (("v", "1"),), (("v", "2"),)]
        old, middle, last = (row.blob.version for row in rows)
        assert old < middle < last
        if kind == "appended":
            await append_calls.add(on, "b", b"more")
        if kind == "pages":
            await page_calls.write(on, "b", PAGE, b"m" * PAGE)
        given = attributes.SetProperties(ContentProperties("text/plain"))
        await do.run(on, blob.SET_BLOB_PROPERTIES, "b", given)
        await swept(on, sweeper)
        # Neither a body that changes nor other properties make a version.
        assert await ver.ids(on, "b") == [old, middle, last]
        assert problems(on) == []
        assert await ver.read(on, "b", old) == data
        assert await ver.delete(on, "b", old)
        await swept(on, sweeper)
        assert await ver.read(on, "b", middle) == data
        await do.put(on, "b", b"other" if kind not in ("appended", "pages") else b"")
        await swept(on, sweeper)
        assert problems(on) == []
        await ver.delete_blob(on, "b")
        assert await ver.read(on, "b", middle) == data
        for one in await ver.ids(on, "b"):
            await ver.delete(on, "b", one)
            await swept(on, sweeper)
        assert problems(on) == []
        assert do.left(on)[1] == []

    run(test)


def test_the_current_version_cannot_be_deleted_by_its_id() -> None:
    """B-VER-08, B-VER-09."""

    async def test() -> None:
        on, _ = await ver.versioned()
        first = await ver.put(on, "b", b"1")
        root = (403, "OperationNotAllowedOnRootBlob")
        assert await refused(ver.delete(on, "b", first)) == root
        second = await ver.put(on, "b", b"2")
        assert await refused(ver.delete(on, "b", second)) == root
        assert await refused(ver.delete(on, "b", second + 1)) == GONE
        assert await ver.delete(on, "b", first)
        assert await refused(ver.delete(on, "b", first)) == GONE
        assert await do.read(on, "b") == b"2"

    run(test)


def test_a_deleted_blob_holds_no_place_once_its_versions_are_gone() -> None:
    """B-VER-07, B-VER-13: every operation on it answers as if it did not exist."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        version = await ver.put(on, "b", b"1")
        await ver.delete_blob(on, "b")
        assert await refused(ver.delete_blob(on, "b")) == GONE
        assert await refused(do.metadata(on, "b", "1")) == GONE
        assert await refused(do.acquire(on, "b")) == GONE
        assert await ver.listed(on) == await ver.listed(on, "deleted", "uncommittedblobs") == []
        (row,) = await ver.listed(on, "deletedwithversions")
        assert row.blob.vacant and row.blob.version == version
        await do.stage(on, "b", "1", b"staged")
        on.store.advance(2 * UNCOMMITTED_LIFETIME_S)
        await swept(on, sweeper)
        assert await ver.listed(on, "uncommittedblobs") == []
        assert len(await ver.listed(on, "deletedwithversions")) == 1
        await do.stage(on, "b", "1", b"staged")
        assert len(await ver.listed(on, "uncommittedblobs")) == 1
        await do.commit(on, "b", ["1"])
        assert await do.read(on, "b") == b"staged"
        assert len(await ver.ids(on, "b")) == 2
        await ver.delete_blob(on, "b")
        for one in await ver.ids(on, "b"):
            assert await ver.delete(on, "b", one)
        assert await refused(ver.undelete(on, "b")) == GONE
        await swept(on, sweeper)
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_deleted_versions_are_kept_and_come_back() -> None:
    """B-VER-10, B-VER-11, B-VER-12."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        await ver.retain(on, 7)
        first = await ver.put(on, "b", b"1" * BIG)
        second = await ver.put(on, "b", b"2" * BIG)
        third = await ver.put(on, "b", b"3" * BIG)
        assert await ver.listed(on, "deleted", "snapshots") == await ver.listed(on)
        assert not await ver.delete(on, "b", first)
        assert not await ver.delete(on, "b", second)
        assert await ver.read(on, "b", first) is None
        assert await refused(ver.delete(on, "b", first)) == GONE
        assert await ver.ids(on, "b") == [third]
        assert await ver.ids(on, "b", "deleted") == [first, second, third]
        assert problems(on) == []
        await ver.delete_blob(on, "b")
        assert await ver.ids(on, "b", "deleted", "deletedwithversions") == [
            *(first, second, third, third)
        ]
        on.store.advance(3 * DAY_S)
        await ver.undelete(on, "b")
        assert await do.read(on, "b") is None
        assert await ver.ids(on, "b") == [first, second, third]
        assert await ver.read(on, "b", first) == b"1" * BIG
        await ver.delete(on, "b", first)
        on.store.advance(6 * DAY_S)
        await swept(on, sweeper)
        assert await ver.ids(on, "b", "deleted") == [first, second, third]
        on.store.advance(DAY_S + 1)
        assert await ver.ids(on, "b", "deleted") == [second, third]
        await ver.undelete(on, "b")
        await swept(on, sweeper)
        assert await ver.read(on, "b", first) is None
        assert len(do.left(on)[1]) == 2
        assert problems(on) == []

    run(test)


def test_a_blob_that_was_deleted_before_versions_were_made_comes_back() -> None:
    """B-VER-12, B-SFT-06: and its retention ends independently of its versions."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        version = await ver.put(on, "b", b"1" * BIG)
        ver.switch(on, False)
        await ver.retain(on, 1)
        await do.put(on, "b", b"2" * BIG)
        assert not (await ver.delete_blob(on, "b")).is_permanent
        assert await ver.ids(on, "b") == [version]
        await ver.undelete(on, "b")
        assert await do.read(on, "b") == b"2" * BIG
        await ver.delete_blob(on, "b")
        on.store.advance(DAY_S + 1)
        await swept(on, sweeper)
        assert problems(on) == []
        await ver.undelete(on, "b")
        assert await do.read(on, "b") is None
        assert await ver.read(on, "b", version) == b"1" * BIG
        await ver.retain(on, 0)
        assert await ver.delete(on, "b", version)
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)


def test_versioning_off_and_on_again() -> None:
    """B-VER-14, B-VER-15: a version stays one; a blob that is none becomes one when it is
    changed."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        first = await ver.put(on, "b", b"1" * BIG)
        ver.switch(on, False)
        assert await ver.put(on, "b", b"2" * BIG) == 0
        assert await ver.put(on, "b", b"3" * BIG) == 0
        assert await ver.ids(on, "b") == [first, 0]
        await swept(on, sweeper)
        assert len(do.left(on)[1]) == 2
        ver.switch(on, True)
        assert await ver.ids(on, "b") == [first, 0]
        last = await ver.put(on, "b", b"4" * BIG)
        before, between, now = await ver.ids(on, "b")
        assert (before, now) == (first, last)
        assert await ver.read(on, "b", between) == b"3" * BIG
        ver.switch(on, False)
        await do.metadata(on, "b", "off")
        assert await ver.ids(on, "b") == [first, between, last, 0]
        assert await ver.read(on, "b", last) == b"4" * BIG
        # A blob that is a version is not lost by a deletion either.
        ver.switch(on, True)
        current = await ver.put(on, "c", b"5")
        ver.switch(on, False)
        assert not (await ver.delete_blob(on, "c")).is_permanent
        assert await ver.read(on, "c", current) == b"5"
        assert (await ver.delete_blob(on, "b")).is_permanent
        assert problems(on) == []

    run(test)


def test_a_snapshot_of_a_versioned_blob_makes_a_version() -> None:
    """B-VER-16."""

    async def test(size_bytes: int) -> None:
        on, sweeper = await ver.versioned()
        data = b"d" * size_bytes
        first = await ver.put(on, "b", data)
        ticks = await do.snapshot(on, "b")
        assert await ver.ids(on, "b") == [first, ticks]
        await do.put(on, "b", b"new")
        assert await do.read(on, "b", ticks) == await ver.read(on, "b", ticks) == data
        await swept(on, sweeper)
        assert problems(on) == []
        assert await refused(ver.delete_blob(on, "b")) == (409, "SnapshotsPresent")
        await do.delete(on, "b", ticks=ticks)
        await swept(on, sweeper)
        assert await ver.read(on, "b", ticks) == await ver.read(on, "b", first) == data
        await do.snapshot(on, "b")
        assert not (await ver.delete_blob(on, "b", INCLUDE)).is_permanent
        assert len(await ver.ids(on, "b")) == 4
        await swept(on, sweeper)
        assert problems(on) == []

    for size_bytes in (0, 10, 1000, BIG):
        # Binds the loop's value.
        run(lambda size_bytes=size_bytes: test(size_bytes))  # type: ignore[misc]


@pytest.mark.parametrize("size_bytes", [10, 1000, BIG])
def test_a_copy_of_a_version_over_the_blob_promotes_it(size_bytes: int) -> None:
    """B-VER-06: also without a blob, and from the current version."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        first = await ver.put(on, "b", b"1" * size_bytes)
        second = await ver.put(on, "b", b"2" * size_bytes)
        made = await do.start_copy(on, "b", "b", version=first)
        assert await do.read(on, "b") == b"1" * size_bytes
        assert await ver.ids(on, "b") == [first, second, made.version]
        await do.start_copy(on, "b", "c", version=made.version)
        assert await do.read(on, "c") == b"1" * size_bytes
        await ver.delete_blob(on, "b")
        made = await do.start_copy(on, "b", "b", version=second)
        assert await do.read(on, "b") == b"2" * size_bytes
        assert (await ver.ids(on, "b"))[-1] == made.version
        missing = (404, "CannotVerifyCopySource")
        assert await refused(do.start_copy(on, "b", "b", version=made.version + 1)) == missing
        await swept(on, sweeper)
        assert problems(on) == []

    run(test)


def test_each_version_has_its_tier_and_its_tags() -> None:
    """B-VER-05, B-VER-17."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        first = await do.run(on, blob.PUT_BLOB, "b", blobs.PutBlob(tags=(("k", "1"),)), b"x")
        second = await do.run(on, blob.PUT_BLOB, "b", blobs.PutBlob(tags=(("k", "2"),)), b"y")
        for version, tier in ((first.version, "Archive"), (second.version, "Cool")):
            await do.run(on, blob.SET_BLOB_TIER, "b", tiering.SetTier(tier), version=version)
        old = await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None, version=first.version)
        now = await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None)
        assert (old.blob.tier, now.blob.tier) == ("Archive", "Cool")
        assert await refused(ver.read(on, "b", first.version)) == (409, "BlobArchived")
        assert await found(on, "k >= '0'") == [("b", 0, True, (("k", "2"),))]
        versions = [
            ("b", first.version, False, (("k", "1"),)),
            ("b", second.version, True, (("k", "2"),)),
        ]
        assert await found(on, "k >= '0'", "versions") == versions
        await do.run(on, tag.SET_BLOB_TAGS, "b", SetTags((("k", "7"),)), version=first.version)
        assert await found(on, "k = '1'", "versions") == []
        assert await found(on, "k = '7'", "versions") == [
            ("b", first.version, False, (("k", "7"),))
        ]
        read = await do.run(on, tag.GET_BLOB_TAGS, "b", None, version=first.version)
        assert read.blob.tags == (("k", "7"),)
        await do.metadata(on, "b", "kept tags")
        assert len(await found(on, "k = '2'", "versions")) == 2
        assert problems(on) == []
        await ver.retain(on, 1)
        await ver.delete(on, "b", first.version)
        assert await found(on, "k = '7'", "versions") == []
        assert problems(on) == []
        await ver.undelete(on, "b")
        assert len(await found(on, "k = '7'", "versions")) == 1
        await ver.delete_blob(on, "b")
        assert await found(on, "k >= '0'") == []
        assert len(await found(on, "k >= '0'", "versions")) == 3
        assert problems(on) == []
        await swept(on, sweeper)
        await drop_container(on)
        on.store.advance(DAY_S)
        await swept(on, sweeper)
        assert [ref for ref, _ in do.left(on)[0] if ref.partition.keyspace != keys.SERVICES] == []

    run(test)


async def found(
    on: Services, where: str, *words: str
) -> list[tuple[str, int, bool, tuple[tuple[str, str], ...]]]:
    given = FindBlobs(tag_queries.parse(where), include=frozenset(words))
    page = await find_blobs.find_blobs(on, await placed(on, given, rule=tag.FIND_BLOBS.rule))
    rows = [(one.name, one.version, one.is_current, one.tags) for one in page.items]
    return sorted(rows)


def test_a_lease_guards_the_blob_and_not_its_previous_versions() -> None:
    """B-VER-18."""

    async def test() -> None:
        on, _ = await ver.versioned()
        first = await ver.put(on, "b", b"1")
        second = await ver.put(on, "b", b"2")
        lease_id = await do.acquire(on, "b")
        assert await refused(ver.put(on, "b", b"3")) == (412, "LeaseIdMissing")
        await ver.delete(on, "b", first)
        await do.run(on, blob.SET_BLOB_METADATA, "b", attributes.SetMetadata(), lease_id=lease_id)
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None, version=second)
        assert view.past is not None and view.blob.lease is None
        head = await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None)
        assert head.blob.lease is not None

    run(test)


def test_the_blocks_of_a_version_can_be_listed() -> None:
    """B-VER-04: without the blocks that are staged on the blob."""

    async def test() -> None:
        on, _ = await ver.versioned()
        await put_listed(on, "b", b"d" * BIG)
        (version,) = await ver.ids(on, "b")
        await do.put(on, "b", b"x")
        await do.stage(on, "b", "3", b"staged")
        given = blocks.GetBlockList(committed=True, uncommitted=True)
        lists = await do.run(on, block.GET_BLOCK_LIST, "b", given, version=version)
        assert len(lists.committed) == 2
        assert lists.uncommitted == ()

    run(test)


def test_the_pages_of_a_version_can_be_listed() -> None:
    """B-VER-04: and, as changes, since an older snapshot only."""

    async def test() -> None:
        on, _ = await ver.versioned()
        await put_pages(on, "p", b"d" * 4 * PAGE)
        before = await do.snapshot(on, "p")
        await page_calls.clear(on, "p", 0, PAGE)
        await do.metadata(on, "p", "version")
        version = (await ver.ids(on, "p"))[-2]
        await page_calls.clear(on, "p", PAGE, PAGE)
        after = await do.snapshot(on, "p")
        assert await page_calls.ranges(on, "p", version=version) == [(PAGE, 4 * PAGE, False)]
        assert await page_calls.changes(on, "p", before, version) == [(0, PAGE, True)]
        newer = (400, "PreviousSnapshotCannotBeNewer")
        assert await refused(page_calls.changes(on, "p", after, version)) == newer

    run(test)


def test_the_pages_of_a_deleted_blob_with_versions_cannot_be_changed() -> None:
    """B-VER-04: the record that it leaves behind has no pages."""

    async def test() -> None:
        on, _ = await ver.versioned()
        await put_pages(on, "p", b"d" * 4 * PAGE)
        await do.delete(on, "p")
        missing = (404, "BlobNotFound")
        assert await refused(page_calls.write(on, "p", 0, b"n" * PAGE)) == missing
        assert await refused(page_calls.clear(on, "p", 0, PAGE)) == missing
        assert await refused(page_calls.resize(on, "p", PAGE)) == missing

    run(test)
