"""Permanent deletion: bodies that other states share stay, and the space of the rest is freed."""

from __future__ import annotations

import pytest

from strongroom.operations.blob import blob
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.service_properties import RetentionPolicy, ServiceProperties
from strongroom.services.blob.states.snapshots import DeleteBlob
from strongroom.services.core import account
from strongroom.services.core.account import SetServiceProperties
from strongroom.services.core.runner import Services
from strongroom.store.core.extents.model import LEAF_BYTES
from tests.services import blob_calls as do
from tests.services import page_calls
from tests.services import version_calls as ver
from tests.services.blob.test_versions import BODIES
from tests.services.container_calls import call, run
from tests.services.queue_calls import problems
from tests.services.sweeps import fresh, swept

DAY_S = 24 * 60 * 60


async def retain(on: Services, days: int = 7) -> None:
    policy = RetentionPolicy(True, days, allow_permanent_delete=True)
    sections = SetServiceProperties(ServiceProperties(delete_retention=policy))
    await account.set_properties(on, call(sections, container=""))


async def purge(on: Services, name: str, **past: int) -> None:
    deleted = await do.run(on, blob.DELETE_PERMANENTLY, name, DeleteBlob(), b"", **past)
    assert deleted.is_permanent


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("goes", [0, 1])
def test_what_shares_a_body_stays_whole(kind: str, replaced: bool, goes: int) -> None:
    """B-PRM-06: of two snapshots one is deleted, the other and the blob can be read, and nothing
    else is left."""

    async def test() -> None:
        on, sweeper = await fresh()
        await retain(on)
        make, size_bytes = BODIES[kind]
        content = b"x" * size_bytes
        await make(on, "b", content)
        taken = [await do.snapshot(on, "b") for _ in range(2)]
        for ticks in taken:
            await do.delete(on, "b", ticks=ticks)
        if replaced:
            await do.put(on, "b", b"new")
        await purge(on, "b", snapshot=taken[goes])
        await swept(on, sweeper)
        assert problems(on) == []
        await ver.undelete(on, "b")
        stays = taken[1 - goes]
        assert await do.read(on, "b", taken[goes]) is None
        assert await do.read(on, "b", stays) == content
        assert await do.read(on, "b") == (b"new" if replaced else content)
        await do.delete(on, "b", DeleteSnapshots.INCLUDE)
        await purge(on, "b", snapshot=stays)
        on.store.advance(8 * DAY_S)
        await swept(on, sweeper)
        assert problems(on) == []
        assert [ref for ref, _ in do.left(on)[0] if ref.partition.keyspace[:1] == b"b"] == []

    run(test)


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("stands", [False, True])
def test_versions_of_a_blob_that_is_there_or_not(kind: str, stands: bool) -> None:
    """B-PRM-01, B-PRM-06."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        await retain(on)
        make, size_bytes = BODIES[kind]
        content = b"x" * size_bytes
        await make(on, "b", content)
        first = (await ver.ids(on, "b"))[0]
        await do.metadata(on, "b", "second")
        second = (await ver.ids(on, "b"))[-1]
        await do.metadata(on, "b", "third")
        if not stands:
            await ver.delete_blob(on, "b")
        for version in (first, second):
            await ver.delete(on, "b", version)
        await purge(on, "b", version=first)
        await swept(on, sweeper)
        assert problems(on) == []
        await ver.undelete(on, "b")
        assert await ver.read(on, "b", first) is None
        assert await ver.read(on, "b", second) == content
        assert await do.read(on, "b") == (content if stands else None)
        await ver.delete(on, "b", second)
        await purge(on, "b", version=second)
        await swept(on, sweeper)
        assert problems(on) == []

    run(test)


@pytest.mark.parametrize("is_permanent", [True, False])
def test_a_deleted_blob_knows_that_its_newest_snapshot_is_gone(is_permanent: bool) -> None:
    """B-DEL-05: else a change after its restoration leaves a content behind that nothing names."""

    async def test() -> None:
        on, sweeper = await fresh()
        await retain(on)
        await page_calls.create(on, "p", LEAF_BYTES)
        await page_calls.write(on, "p", 0, b"1" * LEAF_BYTES)
        ticks = await do.snapshot(on, "p")
        await page_calls.write(on, "p", 0, b"2" * 512)
        await do.delete(on, "p", ticks=ticks)
        await retain(on, 30)
        await do.delete(on, "p")
        if is_permanent:
            await purge(on, "p", snapshot=ticks)
        else:
            on.store.advance(8 * DAY_S)
        await swept(on, sweeper)
        await ver.undelete(on, "p")
        await page_calls.write(on, "p", 0, b"3" * LEAF_BYTES)
        await swept(on, sweeper)
        assert problems(on) == []

    run(test)
