"""A lease is judged at a time at which its record was the committed one: the read of the time may
take long, and a lease can be renewed during it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.engines.base import Ref
from strongroom.operations.blob import blob, container, lease, listings
from strongroom.services.blob import leasing, list_blobs
from strongroom.services.blob.containers import list_containers
from strongroom.services.blob.containers.list_containers import ListContainers
from strongroom.services.blob.decisions import views
from strongroom.services.blob.decisions.containers import view_container
from strongroom.services.blob.list_blobs import ListBlobs
from strongroom.services.core.calls import Call
from strongroom.services.core.leasing import AcquireLease, RenewLease, holds
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.core import keys
from tests.services import blob_calls as do
from tests.services.container_calls import call, placed, run
from tests.services.sweeps import fresh

ID = "11111111-1111-1111-1111-111111111111"
LEASE = {operation.id: operation for operation in lease.OPERATIONS}


async def leased(container_too: bool = False) -> Services:
    """Return services with a blob, or a container, whose lease of 15 seconds has almost expired."""
    on, _ = await fresh()
    await do.put(on, "b", b"x")
    if container_too:
        await leasing.lease_container(on, await placed(on, AcquireLease(15, ID)))
    else:
        await do.run(on, LEASE["blob_acquire_lease"], "b", AcquireLease(15, ID))
    on.store.advance(14.9)
    return on


def slow_time(on: Services, renew: Callable[[], Awaitable[Any]]) -> None:
    """Delay the next read of the time: during it the lease is renewed, and its old end passes."""
    real = on.store.now

    async def now() -> int:
        on.store.now = real  # type: ignore[method-assign]  # a double
        await renew()
        on.store.advance(0.2)
        return await real()

    on.store.now = now  # type: ignore[method-assign]  # a double


async def renew_blob(on: Services) -> None:
    await do.run(on, LEASE["blob_renew_lease"], "b", RenewLease(), lease_id=ID)


async def renew_container(on: Services) -> None:
    renewal = await placed(on, RenewLease(), lease_id=ID)
    await leasing.lease_container(on, renewal)


@pytest.mark.parametrize("wait_s", [0, 5])
def test_reads_of_a_blob(wait_s: int) -> None:
    async def test() -> None:
        on = await leased()
        slow_time(on, lambda: renew_blob(on))
        operation = blob.GET_BLOB_PROPERTIES
        view = await do.run(on, operation, "b", None, lease_id=ID, wait_s=wait_s)
        assert view.blob.lease is not None and view.blob.lease.id == ID

    run(test)


def test_checks_before_a_body_is_read() -> None:
    async def test() -> None:
        on = await leased()
        asked: Call[Any] = await placed(on, blob="b", rule=blob.PUT_BLOB.rule, lease_id=ID)
        slow_time(on, lambda: renew_blob(on))
        await views.check_blob(on, asked)
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None, lease_id=ID)
        assert view.blob.lease is not None and view.blob.lease.id == ID

    run(test)


def test_reads_of_a_container() -> None:
    async def test() -> None:
        on = await leased(container_too=True)
        rule = container.GET_CONTAINER_PROPERTIES.rule
        asked: Call[Any] = await placed(on, rule=rule, lease_id=ID)
        slow_time(on, lambda: renew_container(on))
        record, _ = await view_container(on, asked)
        assert record.lease is not None and record.lease.id == ID

    run(test)


def test_listings() -> None:
    """The renewal comes between the page and the time, or before both: never after it."""

    async def test() -> None:
        on = await leased()
        slow_time(on, lambda: renew_blob(on))
        page = await list_blobs.list_blobs(on, await placed(on, ListBlobs()))
        (row,) = page.items
        assert isinstance(row, list_blobs.BlobRow)
        item = listings._blob(row, page.now, frozenset())
        assert item.lease is not None and item.lease[:2] == ("locked", "leased")
        on = await leased(container_too=True)
        slow_time(on, lambda: renew_container(on))
        found = await list_containers.list_containers(on, call(ListContainers(), container=""))
        (one,) = found.items
        shown = listings._container(one, found, False)
        assert (shown.lease_status, shown.lease_state) == ("locked", "leased")

    run(test)


def test_rows_are_judged_no_later_than_they_were_read() -> None:
    """A row of a page is not judged at a time later than its read."""

    async def test() -> None:
        on = await leased()
        real = on.store.scan

        async def scan(*given: Any) -> Any:
            page = await real(*given)
            on.store.advance(20)
            return page

        on.store.scan = scan  # type: ignore[method-assign, assignment]  # a double
        page = await list_blobs.list_blobs(on, await placed(on, ListBlobs()))
        (row,) = page.items
        assert isinstance(row, list_blobs.BlobRow)
        item = listings._blob(row, page.now, frozenset())
        assert item.lease is not None and item.lease[:2] == ("locked", "leased")

    run(test)


def test_a_holder_that_renewed_in_time_is_the_holder() -> None:
    """A holder that renews its lease must not wait in the queue for its end."""

    async def test() -> None:
        on = await leased()
        asked: Call[Any] = await placed(on, AcquireLease(15, ID), blob="b", wait_s=5)
        slow_time(on, lambda: renew_blob(on))
        head = Ref(keys.blob(generation_of(asked), "b"), keys.HEAD_KEY)
        assert await holds(on, asked.input, head, leasing._blob_lease)

    run(test)
