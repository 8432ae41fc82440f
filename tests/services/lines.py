"""Requests at two gateways of one store that wait for the same thing.

Lives here: the kinds of things that are waited for, and waiters that arrive one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from strongroom.clock import ManualClock
from strongroom.operations.file import share
from strongroom.services.blob import leasing as blob_leasing
from strongroom.services.core.leasing import AcquireLease, ReleaseLease
from strongroom.services.core.runner import Services
from strongroom.services.file.shares.shares import CreateShare
from strongroom.store.core import line_keys
from tests.services import blob_calls, container_calls, file_calls, queue_calls
from tests.services.container_calls import placed
from tests.services.service_engine import ServiceEngine, settle

LONG_S = 60


class Held(NamedTuple):
    """One kind of thing that is waited for.

    Attributes:
        make: creates it; nobody has it.
        get: waits for it (gateway, seconds) and returns what `give` needs.
        give: gives it back, or makes the next one available.
    """

    make: Callable[[Services], Awaitable[object]]
    get: Callable[[Services, Any], Coroutine[Any, Any, Any]]
    give: Callable[[Services, Any], Awaitable[object]]


async def _make_blob(on: Services) -> None:
    await container_calls.create(on)
    await blob_calls.put(on, "b", b"x")


async def _lease_container(on: Services, wait_s: Any) -> str | None:
    call = await placed(on, AcquireLease(-1), wait_s=wait_s)
    return (await blob_leasing.lease_container(on, call)).lease_id


async def _release_container(on: Services, lease_id: str) -> None:
    await blob_leasing.lease_container(on, await placed(on, ReleaseLease(), lease_id=lease_id))


async def _lease_share(on: Services, wait_s: Any) -> str | None:
    found = await file_calls.run(on, "share_acquire_lease", "", AcquireLease(-1), wait_s=wait_s)
    lease_id: str | None = found.lease_id
    return lease_id


async def _release_share(on: Services, lease_id: str) -> None:
    await file_calls.run(on, "share_release_lease", "", ReleaseLease(), lease_id=lease_id)


async def _get_message(on: Services, wait_s: Any) -> str | None:
    views = await queue_calls.get(on, wait_s=wait_s)
    return views[0].text if views else None


HELD = {
    "blob": Held(
        _make_blob,
        lambda on, wait_s: blob_calls.acquire(on, "b", wait_s),
        lambda on, got: blob_calls.release(on, "b", got),
    ),
    "container": Held(container_calls.create, _lease_container, _release_container),
    "share": Held(
        lambda on: file_calls.run(on, share.CREATE_SHARE, "", CreateShare()),
        _lease_share,
        _release_share,
    ),
    "messages": Held(queue_calls.create, _get_message, lambda on, got: queue_calls.put(on, "x")),
}


class Gateways:
    """Gateways of one store, whose clock goes on between two arrivals."""

    def __init__(self, count: int = 2) -> None:
        self.clock = ManualClock()
        self._first = ServiceEngine(self.clock)
        self.all = [container_calls.services(self._first)]
        for _ in range(count - 1):
            self.join()

    def join(self) -> None:
        """Start a further gateway."""
        self.all.append(container_calls.services(self._first.second()))

    def lines(self) -> list[Any]:
        """The lines that are recorded."""
        records = self._first.records()
        return [record for ref, record in records if ref.partition.keyspace == line_keys.LINES]

    def store(self, at: int) -> ServiceEngine:
        store = self.all[at].store
        assert isinstance(store, ServiceEngine)
        return store

    async def arrive(self, held: Held, at: int, wait_s: Any = LONG_S) -> asyncio.Task[Any]:
        """Start a waiter, and return when it has settled in the line."""
        self.clock.advance(0.001)
        waiter = asyncio.create_task(held.get(self.all[at], wait_s))
        await settle()
        return waiter


async def served(waiters: list[asyncio.Task[Any]], held: Held, on: Services, got: Any) -> list[int]:
    """Give the thing back as often as there are waiters. Return who got it, in order."""
    order: list[int] = []
    for _ in waiters:
        await held.give(on, got)
        left = [one for number, one in enumerate(waiters) if number not in order]
        done, _ = await asyncio.wait(left, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        await settle()
        new = [number for number, one in enumerate(waiters) if one.done() and number not in order]
        assert len(new) == len(done) == 1, "several, or none, were served"
        order += new
        got = waiters[new[0]].result()
    return order
