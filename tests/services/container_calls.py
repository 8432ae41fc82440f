"""Services on a store in memory, and calls as requests would make them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from strongroom.auth.authorize import Grant, KeyRange
from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Ref, Step, Write
from strongroom.errors.core import StorageError
from strongroom.semantics.core.conditions import NONE, Conditions
from strongroom.services.blob.containers import containers
from strongroom.services.blob.containers.containers import ContainerWritten, CreateContainer
from strongroom.services.core.calls import (
    BodySource,
    Call,
    Caller,
    CallTarget,
    Place,
    RequestClient,
    Rule,
    Terms,
)
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.empty import EMPTY
from strongroom.store.core import keys
from strongroom.values import BlobKind, ContentProperties
from tests.over_postgres import keeps_in_postgres
from tests.services.alternating import Alternating, next_call
from tests.services.purity import WatchedClock, outside_of_decisions
from tests.services.service_engine import ServiceEngine

T = TypeVar("T")

ACCOUNT = "account"
VERSION = "2021-12-02"


class Bytes:
    """A body of bytes in memory, in pieces."""

    def __init__(self, data: bytes) -> None:
        self.size_bytes: int | None = len(data)
        self.is_held_back = False
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._data), 100_000):
            yield self._data[start : start + 100_000]


class Sender:
    """A client on this machine that sends a body, and stays connected."""

    def __init__(self, body: BodySource) -> None:
        self.body = body
        self.peer = "127.0.0.1"
        self.host = ""
        self.is_disconnected = False

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Ignore the callback: this client never disconnects."""


# How many gateways serve a store in memory; conftest.py sets it for each test.
gateways = 1


def services(store: Any = None) -> Services:
    clock = WatchedClock()
    if store is None:
        store = ServiceEngine(clock)
    if gateways == 2 and type(store) is ServiceEngine:
        return Alternating(store, clock)
    return Services(store, clock)


def run(test: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a test with an event loop, for a bounded time."""
    return asyncio.run(asyncio.wait_for(test(), 600 if keeps_in_postgres() else 60))


def allow(place: Place | None) -> None:
    """Authorize everything."""


def call(
    given: Any = None,
    *,
    service: Service = Service.BLOB,
    account: str = ACCOUNT,
    container: str = "photos",
    blob: str = "",
    entity: tuple[str, str] | None = None,
    snapshot: int | None = None,
    version: int | None = None,
    secondary: bool = False,
    place: Place | None = None,
    rule: Rule = Rule(),  # noqa: B008 - frozen
    lease_id: str | None = None,
    conditions: Conditions = NONE,
    wait_s: int = 0,
    authorize: Callable[[Place | None], None] = allow,
    key_range: KeyRange | None = None,
    body: bytes = b"",
    client: RequestClient | None = None,
) -> Call[Any]:
    next_call()

    def present() -> Callable[[Place | None], None]:
        outside_of_decisions("what the accounts say")
        return authorize

    return Call(
        rule=rule,
        target=CallTarget(service, account, container, blob, snapshot, entity, secondary, version),
        place=place,
        caller=Caller(present, Grant("", may_overwrite=True, key_range=key_range), VERSION),
        terms=Terms(conditions, lease_id, wait_s),
        client=client or Sender(Bytes(body)),
        input=given,
    )


async def create(on: Services, container: str = "photos") -> ContainerWritten:
    return await containers.create_container(on, call(CreateContainer(), container=container))


async def placed(on: Services, given: Any = None, **more: Any) -> Call[Any]:
    """Return a call on an existing container, authorized by its present state."""
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
        body=EMPTY,
        properties=ContentProperties(),
        **more,
    )


async def put_blob(
    on: Services, generation: int, name: str, snapshots: tuple[int, ...] = (), **more: Any
) -> int:
    """Write a blob's records, and return their stamp."""
    partition = keys.blob(generation, name)

    def decide(found: object, stamp: int) -> Commit[int]:
        value = blob_records.BLOB.encode(blob_record(stamp, **more))
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
    return blob_records.BLOB.of(found)


async def refused(attempt: Awaitable[Any]) -> tuple[int, str]:
    """Return (status, code) of the error that an attempt ends with."""
    try:
        result = await attempt
    except StorageError as error:
        return error.row.status, error.row.code
    raise AssertionError(f"it was not refused: {result!r}")
