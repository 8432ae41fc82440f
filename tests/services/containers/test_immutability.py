"""Immutable blobs and the deletion of their container: which wins, and that nothing is lost.

The errors of single requests are tested in tests/conformance/protection/test_immutability.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from strongroom.account_switches import Switches
from strongroom.auth.request import Service
from strongroom.errors.blob import CONTAINER_PROTECTED_FROM_DELETION
from strongroom.errors.core import StorageError
from strongroom.operations.blob import blob, immutability, tag
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.services.blob import blobs
from strongroom.services.blob.attributes import SetMetadata
from strongroom.services.blob.containers import containers, deleting, list_containers
from strongroom.services.blob.containers.list_containers import ListContainers
from strongroom.services.blob.states.immutability import SetHold, SetPolicy
from strongroom.services.blob.tags.tagging import SetTags
from strongroom.services.core.runner import Services
from strongroom.values import TICKS_PER_S
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import ACCOUNT, call, create, placed, refused, run
from tests.services.sweeps import fresh, swept

DAY = 24 * 60 * 60 * TICKS_PER_S
HELD = Immutability(hold=True)
PROTECTED = (409, "ContainerProtectedFromDeletion")
METADATA = SetMetadata(())


async def switched_on() -> Services:
    on, _ = await fresh()
    on.switches = lambda account: Switches(immutability=True)
    return on


async def delete_container(on: Services) -> None:
    await containers.delete_container(on, await placed(on))


async def hold(on: Services, name: str, is_held: bool = True) -> None:
    await do.run(on, immutability.SET_HOLD, name, SetHold(is_held))


async def policy(on: Services, name: str, days: int, locked: bool = False) -> None:
    until = await on.store.now() + days * DAY
    await do.run(on, immutability.SET_POLICY, name, SetPolicy(Immutability(until, locked)))


async def deletes_halfway(on: Services, monkeypatch: pytest.MonkeyPatch, then: Any) -> None:
    """Run `then` once, between the search for blobs and the deletion."""
    real, left = deleting._has_blobs, iter([then])

    async def look(*given: Any) -> bool:
        found = await real(*given)
        for one in left:
            await one()
            break
        return found

    monkeypatch.setattr(deleting, "_has_blobs", look)


def test_a_container_with_blobs_is_not_deleted() -> None:
    """B-IMM-19: a blob or a snapshot counts; staged blocks and deleted blobs do not."""

    async def test() -> None:
        on = await switched_on()
        await do.stage(on, "staged", "1", b"x")
        await do.put(on, "b", b"b")
        assert await refused(delete_container(on)) == PROTECTED
        await do.delete(on, "b")
        await delete_container(on)
        assert await on.place(Service.BLOB, ACCOUNT, "photos") is None
        await create(on)
        await do.put(on, "b", b"b")
        on.switches = lambda account: Switches()
        await delete_container(on)

    run(test)


@pytest.mark.parametrize("kind", ["put", "hold"])
def test_a_blob_that_is_protected_during_a_deletion_stays(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """B-IMM-19: it is protected after the search for blobs and before the deletion."""

    async def test() -> None:
        on = await switched_on()
        if kind == "hold":
            await do.put(on, "b", b"b")

        async def protect() -> None:
            if kind == "put":
                await do.run(on, blob.PUT_BLOB, "b", blobs.PutBlob(immutability=HELD), b"b")
            else:
                await hold(on, "b")

        if kind == "hold":
            # The search does not see the blob, as if it were written after the search.
            async def look(*given: Any) -> bool:
                seen.append(1)
                if len(seen) == 1:
                    await protect()
                    return False
                return True

            seen: list[int] = []
            monkeypatch.setattr(deleting, "_has_blobs", look)
        else:
            await deletes_halfway(on, monkeypatch, protect)
        assert await refused(delete_container(on)) == PROTECTED
        assert await do.read(on, "b") == b"b"

    run(test)


def test_a_plain_write_does_not_disturb_a_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without immutability: a blob written during the deletion is deleted with the container."""

    async def test() -> None:
        on = await switched_on()
        await deletes_halfway(on, monkeypatch, lambda: do.put(on, "b", b"b"))
        await delete_container(on)
        assert await on.place(Service.BLOB, ACCOUNT, "photos") is None

    run(test)


def test_a_mark_that_a_crash_left_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-IMM-19: blobs are written and protected, and the container can be deleted later."""

    async def test() -> None:
        on = await switched_on()
        await deleting.require_empty(on, await placed(on), CONTAINER_PROTECTED_FROM_DELETION)
        await do.put(on, "b", b"b")
        await hold(on, "b")
        assert await refused(delete_container(on)) == PROTECTED
        await hold(on, "b", False)
        await do.delete(on, "b")
        await delete_container(on)

    run(test)


def test_protection_of_a_container_that_is_deleted_meanwhile() -> None:
    """A write that would protect a blob is answered with 404, not stored without its container."""

    async def test() -> None:
        on = await switched_on()
        given = blobs.PutBlob(immutability=HELD)
        late = await placed(on, given, blob="b", rule=blob.PUT_BLOB.rule, body=b"b")
        await delete_container(on)
        assert await refused(blobs.put_blob(on, late)) == (404, "ContainerNotFound")

    run(test)


def test_deletions_and_protections_in_any_order() -> None:
    """B-IMM-19: if a protection was acknowledged, the container exists."""

    async def test() -> None:
        for turn in range(5):
            on = await switched_on()
            given = blobs.PutBlob(immutability=HELD)
            rule = blob.PUT_BLOB.rule
            calls = [await placed(on, given, blob=f"b{i}", rule=rule, body=b"b") for i in range(4)]
            work: list[Awaitable[object]] = [blobs.put_blob(on, one) for one in calls]
            work.insert(turn, containers.delete_container(on, await placed(on)))
            done = await asyncio.gather(*work, return_exceptions=True)
            unexpected = (one for one in done if isinstance(one, Exception))
            assert all(isinstance(one, StorageError) for one in unexpected)
            if any(isinstance(one, blobs.BlobWritten) for one in done):
                assert await on.place(Service.BLOB, ACCOUNT, "photos") is not None

    run(test)


def test_an_expired_policy_lets_the_blob_be_deleted_only() -> None:
    """B-IMM-11, B-IMM-13."""

    async def test() -> None:
        on = await switched_on()
        await do.put(on, "b", b"b")
        await policy(on, "b", 1, locked=True)
        immutable = (409, "BlobImmutableDueToPolicy")
        assert await refused(do.delete(on, "b")) == immutable
        on.store.advance(24 * 60 * 60 + 1)  # stamps run ahead of a clock that stands still
        assert await refused(do.put(on, "b", b"c")) == immutable
        assert await refused(do.metadata(on, "b", "c")) == immutable
        await do.delete(on, "b")
        assert await do.read(on, "b") is None

    run(test)


def test_a_deletion_of_many_snapshots_stops_at_a_protected_one() -> None:
    """B-IMM-15."""

    async def test() -> None:
        on = await switched_on()
        await do.put(on, "b", b"b")
        ticks = [await do.snapshot(on, "b") for _ in range(3)]
        await do.run(on, immutability.SET_HOLD, "b", SetHold(True), snapshot=ticks[1])
        held = (409, "BlobImmutableDueToLegalHold")
        for option in DeleteSnapshots:
            assert await refused(do.delete(on, "b", option)) == held
        assert await refused(do.delete(on, "b", ticks=ticks[1])) == held
        await do.delete(on, "b", ticks=ticks[0])
        assert [await do.read(on, "b", one) for one in ticks] == [None, b"b", b"b"]

    run(test)


def test_tags_and_their_index_stay_with_a_protected_blob() -> None:
    """B-IMM-14: protection is written to the head, which keeps its tags."""

    async def test() -> None:
        on, sweeper = await fresh()
        on.switches = lambda account: Switches(immutability=True)
        await do.put(on, "b", b"b")
        await do.run(on, tag.SET_BLOB_TAGS, "b", SetTags((("k", "v"),)))
        await hold(on, "b")
        await do.run(on, tag.SET_BLOB_TAGS, "b", SetTags((("k", "w"),)))
        await swept(on, sweeper)
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None)
        assert (view.blob.tags, view.blob.immutability) == ((("k", "w"),), HELD)

    run(test)


def test_a_list_of_containers_says_whether_blobs_may_be_immutable() -> None:
    """B-IMM-01."""

    async def test() -> None:
        on = await switched_on()
        view = await containers.get_container(on, await placed(on))
        page = await list_containers.list_containers(on, call(ListContainers(), container=""))
        assert view.immutability and page.immutability
        on.switches = lambda account: Switches()
        view = await containers.get_container(on, await placed(on))
        page = await list_containers.list_containers(on, call(ListContainers(), container=""))
        assert not (view.immutability or page.immutability)

    run(test)


IMMUTABLE = (409, "BlobImmutableDueToLegalHold")


def test_a_protected_blob_that_is_replaced_or_deleted_is_a_protected_version() -> None:
    """B-IMM-20: overwriting makes a version, which keeps the protection; the new blob has none. A
    hold forbids Delete Blob; a hold on the version that is left keeps that version."""

    async def test() -> None:
        on, sweeper = await fresh()
        on.switches = lambda account: Switches(immutability=True, versioning=True)
        first = await ver.put(on, "b", b"first")
        await hold(on, "b")
        second = await ver.put(on, "b", b"second")
        assert await refused(ver.delete(on, "b", first)) == IMMUTABLE
        await hold(on, "b")
        assert await refused(ver.delete_blob(on, "b")) == IMMUTABLE
        await do.run(on, immutability.SET_HOLD, "b", SetHold(False))
        await ver.delete_blob(on, "b")
        await do.run(on, immutability.SET_HOLD, "b", SetHold(True), version=second)
        for version in (first, second):
            assert await refused(ver.delete(on, "b", version)) == IMMUTABLE
        await swept(on, sweeper)
        assert await ver.read(on, "b", first) == b"first"
        assert await ver.read(on, "b", second) == b"second"
        await do.run(on, immutability.SET_HOLD, "b", SetHold(False), version=first)
        await ver.delete(on, "b", first)
        assert await refused(ver.delete(on, "b", second)) == IMMUTABLE

    run(test)


def test_the_new_blob_over_a_protected_one_is_not_protected() -> None:
    """B-IMM-20."""

    async def test() -> None:
        on, _ = await fresh()
        on.switches = lambda account: Switches(immutability=True, versioning=True)
        await ver.put(on, "b", b"first")
        await hold(on, "b")
        assert await refused(do.run(on, blob.SET_BLOB_METADATA, "b", METADATA)) == IMMUTABLE
        await ver.put(on, "b", b"second")
        await do.run(on, blob.SET_BLOB_METADATA, "b", METADATA)

    run(test)
