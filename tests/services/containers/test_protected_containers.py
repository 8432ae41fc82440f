"""Protected containers and their deletion: which wins, and that nothing is lost.

The errors of single requests are tested in
tests/conformance/protection/test_protected_containers.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.account_switches import ContainerProtection, Switches
from strongroom.auth.request import Service
from strongroom.errors.core import ErrorCode
from strongroom.operations.blob import blob
from strongroom.service_properties import RetentionPolicy, ServiceProperties
from strongroom.services.blob import blobs
from strongroom.services.blob.containers import containers, deleting
from strongroom.services.core.account import SetServiceProperties, set_properties
from strongroom.services.core.runner import Services
from tests.services import blob_calls as do
from tests.services.container_calls import ACCOUNT, placed, refused, run
from tests.services.containers.test_immutability import delete_container, deletes_halfway
from tests.services.sweeps import fresh, swept

POLICY = ContainerProtection(7)
PROTECTED = (409, "ContainerProtectedFromDeletion")


def protect(on: Services, protection: ContainerProtection | None) -> None:
    found = {} if protection is None else {"photos": protection}
    on.switches = lambda account: Switches(containers=found)


async def retain(on: Services) -> None:
    """Retain deleted blobs for a week."""
    given = ServiceProperties(delete_retention=RetentionPolicy(enabled=True, days=7))
    await set_properties(on, await placed(on, SetServiceProperties(given)))


async def _put(on: Services) -> None:
    await do.put(on, "b", b"b")


async def _list(on: Services) -> None:
    await do.put_block(on, "b", b"b")


async def _undelete(on: Services) -> None:
    await do.run(on, blob.UNDELETE_BLOB, "b", None)


@pytest.mark.parametrize("write", [_put, _list, _undelete])
def test_a_blob_that_is_written_during_a_deletion_stays(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[Services], Awaitable[None]]
) -> None:
    """B-IMM-28: it is protected from its creation on, so the deletion searches again."""

    async def test() -> None:
        on, _ = await fresh()
        await retain(on)
        await do.put(on, "b", b"b")
        await do.delete(on, "b")
        protect(on, POLICY)
        await deletes_halfway(on, monkeypatch, lambda: write(on))
        assert await refused(delete_container(on)) == PROTECTED
        assert await do.read(on, "b") == b"b"

    run(test)


def test_a_protection_that_comes_during_a_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-IMM-28: a blob written under it before the deletion's commit is not lost."""

    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "b", b"b")
        real, looks = deleting.error_if_not_empty, list[int]()

        def look(*given: Any) -> ErrorCode | None:
            found = real(*given)
            looks.append(1)
            if len(looks) == 1:
                protect(on, POLICY)
            return found

        monkeypatch.setattr(containers, "error_if_not_empty", look)
        assert await refused(delete_container(on)) == PROTECTED
        assert await do.read(on, "b") == b"b"

    run(test)


def test_a_write_to_a_container_that_is_deleted_meanwhile() -> None:
    """The write is answered with 404, not stored without its container."""

    async def test() -> None:
        on, _ = await fresh()
        protect(on, POLICY)
        late = await placed(on, blobs.PutBlob(), blob="b", rule=blob.PUT_BLOB.rule, body=b"b")
        await delete_container(on)
        assert await refused(blobs.put_blob(on, late)) == (404, "ContainerNotFound")

    run(test)


def test_what_is_protected_outlives_the_sweeper() -> None:
    """B-IMM-22: background work removes nothing, a week later too."""

    async def test() -> None:
        on, sweeper = await fresh()
        await do.put_block(on, "b", b"block")
        await do.put(on, "s", b"old")
        taken = await do.snapshot(on, "s")
        protect(on, ContainerProtection(holds=("case",)))
        assert await refused(do.put(on, "b", b"x")) == (409, "BlobImmutableDueToLegalHold")
        assert await refused(do.delete(on, "s", ticks=taken))
        on.store.advance(8 * 24 * 60 * 60)
        await swept(on, sweeper)
        assert await do.read(on, "b") == b"block"
        assert await do.read(on, "s", taken) == b"old"

    run(test)


def test_an_empty_protected_container_can_be_deleted() -> None:
    """B-IMM-28: staged blocks and deleted blobs do not count."""

    async def test() -> None:
        on, _ = await fresh()
        await do.stage(on, "staged", "1", b"x")
        protect(on, POLICY)
        call = await placed(on)
        await containers.delete_container(on, call)
        assert await on.place(Service.BLOB, ACCOUNT, "photos") is None

    run(test)
