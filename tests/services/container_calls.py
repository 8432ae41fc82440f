"""Services on a store in memory, and calls as requests would make them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.base import Commit, Ref, Step, Write
from strongroom.engines.memory import MemoryStore
from strongroom.errors import StorageError
from strongroom.semantics.core.conditions import NONE, Conditions
from strongroom.services.blob import containers
from strongroom.services.blob.containers import ContainerWritten, CreateContainer
from strongroom.services.core.calls import Call, Place, Rule
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import BlobRecord
from strongroom.values import BlobKind, ContentProperties

T = TypeVar("T")

ACCOUNT = "account"
VERSION = "2021-12-02"


class NoBody:
    """The body of a request that has none."""

    size_bytes: int | None = 0
    is_held_back = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        nothing: tuple[bytes, ...] = ()
        for chunk in nothing:
            yield chunk


def services(store: Any = None) -> Services:
    clock = ManualClock()
    return Services(MemoryStore(clock) if store is None else store, clock)


def run(test: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a test with an event loop, for a bounded time."""
    return asyncio.run(asyncio.wait_for(test(), 60))


def allow(place: Place | None) -> None:
    """Authorization that permits everything."""


def call(
    given: Any = None,
    *,
    container: str = "photos",
    blob: str = "",
    place: Place | None = None,
    rule: Rule = Rule(),  # noqa: B008 - frozen
    snapshot: int | None = None,
    lease_id: str | None = None,
    conditions: Conditions = NONE,
    wait_s: int = 0,
    authorize: Callable[[Place | None], None] = allow,
) -> Call[Any]:
    return Call(
        rule=rule,
        account=ACCOUNT,
        container=container,
        blob=blob,
        snapshot=snapshot,
        place=place,
        authorize=authorize,
        may_overwrite=True,
        lease_id=lease_id,
        conditions=conditions,
        wait_s=wait_s,
        version=VERSION,
        body=NoBody(),
        input=given,
    )


async def create(on: Services, container: str = "photos") -> ContainerWritten:
    return await containers.create_container(on, call(CreateContainer(), container=container))


async def placed(on: Services, given: Any = None, **more: Any) -> Call[Any]:
    """A call on a container that is there, authorized as it is now."""
    place = await on.place(Service.BLOB, ACCOUNT, more.get("container", "photos"))
    return call(given, place=place, **more)


def blob_record(stamp: int, committed: bool = True, **more: Any) -> BlobRecord:
    return BlobRecord(
        kind=BlobKind.BLOCK,
        committed=committed,
        etag=stamp,
        modified=stamp,
        created=stamp,
        size_bytes=0,
        body=None,
        properties=ContentProperties(),
        **more,
    )


async def put_blob(
    on: Services, generation: int, name: str, snapshots: tuple[int, ...] = (), **more: Any
) -> int:
    """Put a blob's records; returns their stamp."""
    partition = keys.blob(generation, name)

    def decide(found: object, stamp: int) -> Commit[int]:
        value = records.BLOB.encode(blob_record(stamp, **more))
        writes = [Write(keys.HEAD_KEY, value)]
        writes += [Write(keys.snapshot(ticks), value) for ticks in snapshots]
        return Commit(stamp, (Step(partition, tuple(writes)),))

    return await on.store.update(partition, [], decide)


async def delete_blob(on: Services, generation: int, name: str) -> None:
    partition = keys.blob(generation, name)
    step = Step(partition, (Write(keys.HEAD_KEY, None),))
    await on.store.update(partition, [], lambda found, stamp: Commit(None, (step,)))


async def head_of(on: Services, generation: int, name: str) -> BlobRecord | None:
    (found,) = await on.store.read([Ref(keys.blob(generation, name), keys.HEAD_KEY)])
    return records.BLOB.of(found)


async def settle() -> None:
    """Let every task run until it waits for something."""
    for _ in range(50):
        await asyncio.sleep(0)


async def refused(attempt: Awaitable[Any]) -> tuple[int, str]:
    """(status, code) of the refusal that an attempt ends with."""
    try:
        result = await attempt
    except StorageError as error:
        return error.row.status, error.row.code
    raise AssertionError(f"it was not refused: {result!r}")
