"""Histories of clients that use several gateways of one store in turn, while those pause, die and
start.

Blobs, leases, entities and messages are judged by the shipped models. The sweepers of all gateways
do their jobs at the same time. Used by the short test here and the long one in tests/proof.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Any, Final

from strongroom.clock import ManualClock
from strongroom.engines.base import EngineError
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.blob import blob
from strongroom.semantics.core.conditions import Conditions
from strongroom.semantics.table.entities import EntityChange
from strongroom.services.blob import blobs, leasing
from strongroom.services.blob.states.snapshots import DeleteBlob
from strongroom.services.core.leasing import AcquireLease, ReleaseLease, RenewLease
from strongroom.services.core.runner import Services
from strongroom.services.queue.messages import MessageView
from strongroom.services.sweeper import Sweeper
from strongroom.services.table import entities
from strongroom.testing.histories.queue_model import (
    DeleteStep,
    GetStep,
    Got,
    MessageModel,
    PutStep,
    QueueHistory,
    UpdateStep,
)
from strongroom.testing.history import History, Verdict, check
from strongroom.testing.models import (
    Acquire,
    BlobModel,
    DeleteContent,
    DeleteIfMatch,
    GetContent,
    LeaseAnswer,
    LeaseModel,
    Observation,
    Put,
    PutIfAbsent,
    PutIfMatch,
    Release,
    Renew,
)
from strongroom.values import etag_text
from tests.services import blob_calls, container_calls, queue_calls
from tests.services.container_calls import placed
from tests.services.purity import WatchedClock
from tests.services.service_engine import ServiceEngine
from tests.services.table import test_entities

LATE_S: Final = 6
DEAD_S: Final = 11
SKEW_S: Final = 0.2
HIDDEN_S: Final = 100_000
CLIENTS: Final = 6

Act = Callable[[Services, random.Random, int], Awaitable[None]]


class Gateways:
    """Two gateways of one store, and their faults.

    Arguments:
        chance: makes all random choices.

    Attributes:
        root: a third gateway, without faults.
        serving: the services of the two.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._root = ServiceEngine(ManualClock())
        self.root = container_calls.services(self._root)
        self._sweeping: dict[ServiceEngine, asyncio.Task[None]] = {}
        self.serving = [self._started(self._root.second(skew)) for skew in (0.0, SKEW_S)]

    def any(self) -> Services:
        """Return the gateway for a client's next call."""
        return self._chance.choice(self.serving)

    def _started(self, store: ServiceEngine) -> Services:
        # The ids must differ, as those of a system clock do.
        on = Services(store, WatchedClock(seed=store.gateways.incarnation))
        store.before_commit = self._slow
        self._sweeping[store] = asyncio.create_task(Sweeper(on).run())
        return on

    async def _slow(self) -> None:
        """Delay some commits."""
        for _ in range(self._chance.choice((0, 0, 1, 3, 12))):
            await asyncio.sleep(0)

    async def fault(self) -> None:
        """Cause a fault in one of them; afterwards two gateways serve."""
        at = self._chance.randrange(len(self.serving))
        store = self.serving[at].store
        assert isinstance(store, ServiceEngine)
        store.stop_heartbeats()
        if self._chance.randrange(2):
            # It pauses, and continues before it is declared dead.
            self._root.advance(LATE_S)
            await _turns(30)
            store.resume_heartbeats()
        else:
            self._root.advance(DEAD_S)
            await _turns(30)
            self.serving[at] = self._started(self._root.second(self._chance.choice((0.0, SKEW_S))))
            await self._stop(store)

    async def _stop(self, store: ServiceEngine) -> None:
        sweeping = self._sweeping.pop(store)
        sweeping.cancel()
        with suppress(asyncio.CancelledError, EngineError):
            await sweeping

    async def stop(self) -> None:
        for store in list(self._sweeping):
            await self._stop(store)


async def _turn(on: Services) -> None:
    await asyncio.sleep(0)


async def until(done: Callable[[], bool]) -> None:
    while True:
        if done():
            return
        await asyncio.sleep(0)


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def played(
    seed: int,
    prepare: Callable[[Services], Awaitable[object]],
    make: Callable[[int], Act],
    steps: int,
    faults: int,
    after: Callable[[Services], Awaitable[object]] = _turn,
) -> None:
    """Let clients act, each `steps` times, each time at another gateway.

    Arguments:
        prepare: is awaited before, at a gateway without faults; `after` at the end.
        make: a client's number -> its actions.
    """
    gateways = Gateways(random.Random(seed))
    left = [steps] * CLIENTS

    async def client(number: int, act: Act) -> None:
        chance = random.Random(seed * 1000 + number)
        while left[number]:
            left[number] -= 1
            await act(gateways.any(), chance, number)
            await _turns(chance.randrange(3))

    try:
        await prepare(gateways.root)
        clients = [asyncio.create_task(client(number, make(number))) for number in range(CLIENTS)]
        for fault in range(faults):
            # Spread the faults over the clients' work.
            share = CLIENTS * steps * (faults - fault) // (faults + 1)
            # Binds the loop's value.
            await until(lambda share=share: sum(left) <= share)  # type: ignore[misc]
            await gateways.fault()
        await asyncio.gather(*clients)
        await after(gateways.root)
    finally:
        await gateways.stop()


async def blob_history(seed: int, steps: int, faults: int) -> Verdict:
    """Run a history of blobs: written, read and deleted with and without conditions."""
    return await _registers(seed, container_calls.create, _send_to_blob, steps, faults)


async def entity_history(seed: int, steps: int, faults: int) -> Verdict:
    """Run the same history with entities in a table."""
    return await _registers(seed, test_entities.table, _send_to_entity, steps, faults)


Send = Callable[[Services, str, Hashable], Awaitable[Observation]]


async def _registers(
    seed: int,
    prepare: Callable[[Services], Awaitable[object]],
    send: Send,
    steps: int,
    faults: int,
) -> Verdict:
    history = History()

    def make(client: int) -> Act:
        etags: dict[str, str] = {}

        async def act(on: Services, chance: random.Random, number: int) -> None:
            name = chance.choice("ab")
            content = number * 1_000_000 + len(history.operations())
            call = next_call(chance, content, etags.get(name))
            record = history.invoke(f"client {number}", name, call)
            try:
                answer = await send(on, name, call)
            except EngineError:
                record.unknown()
                return
            record.returned(answer)
            if answer.etag is not None:
                etags[name] = answer.etag

        return act

    await played(seed, prepare, make, steps, faults)
    return check(history, BlobModel())


def next_call(chance: random.Random, content: int, etag: str | None) -> Hashable:
    """Return a client's next call; `etag` is the last one that it saw."""
    kinds: list[Hashable] = [
        GetContent(),
        GetContent(),
        Put(content),
        PutIfAbsent(content),
        DeleteContent(),
    ]
    if etag is not None:
        kinds += [PutIfMatch(content, etag)] * 3 + [DeleteIfMatch(etag)]
    return chance.choice(kinds)


async def _send_to_blob(on: Services, name: str, call: Hashable) -> Observation:
    conditions = Conditions()
    if isinstance(call, PutIfMatch | DeleteIfMatch):
        conditions = Conditions(if_match=(call.etag,))
    elif isinstance(call, PutIfAbsent):
        conditions = Conditions(if_none_match=("*",))
    try:
        match call:
            case GetContent():
                found = await blob_calls.run(on, blob.GET_BLOB, name, blobs.GetBlob())
                data = await blob_calls.received(found)
                return Observation(200, etag_text(found.view.blob.etag), int(data))
            case Put(content) | PutIfMatch(content, _) | PutIfAbsent(content):
                # Some bodies are in the record, some in a record beside it, some in a content of
                # their own.
                body = str(content).encode() + b" " * (0, 2_000, 20_000)[hash(content) % 3]
                given = blobs.PutBlob()
                written = await blob_calls.run(
                    on, blob.PUT_BLOB, name, given, body, conditions=conditions
                )
                return Observation(201, etag_text(written.etag))
            case _:
                deletion = DeleteBlob(None)
                await blob_calls.run(on, blob.DELETE_BLOB, name, deletion, conditions=conditions)
                return Observation(202)
    except StorageError as error:
        return Observation(status_of(error))


async def _send_to_entity(on: Services, name: str, call: Hashable) -> Observation:
    try:
        match call:
            case GetContent():
                asked = await test_entities.placed(on, entity=("p", name))
                found = await entities.get_entity(on, asked)
                content = int(found.fragment.split(b'"')[3])
                return Observation(200, str(found.timestamp), content)
            case Put(content):
                change, match, values = EntityChange.INSERT_OR_REPLACE, None, {"N": str(content)}
            case PutIfMatch(content, etag):
                change, match, values = EntityChange.UPDATE, int(etag), {"N": str(content)}
            case PutIfAbsent(content):
                change, match, values = EntityChange.INSERT, None, {"N": str(content)}
            case DeleteContent():
                change, match, values = EntityChange.DELETE, None, {}
            case DeleteIfMatch(etag):
                change, match, values = EntityChange.DELETE, int(etag), {}
            case _:
                raise TypeError(call)
        stamp = await test_entities.write(on, change, match=match, row=name, **values)
        return Observation(201, str(stamp)) if stamp else Observation(202)
    except StorageError as error:
        status = status_of(error)
        # An update of a deleted entity: the model of blobs expects the status of an ETag mismatch.
        return Observation(412 if status == 404 and isinstance(call, PutIfMatch) else status)


def status_of(error: StorageError) -> int:
    """Return the status of an error. Raises: the error itself if it is a failure of the server."""
    if error.row is errors.INTERNAL_ERROR:
        raise error
    return error.row.status


async def lease_history(seed: int, steps: int, faults: int, wait_s: Any = 0) -> Verdict:
    """Run a history of leases of two blobs that do not end by themselves.

    Arguments:
        wait_s: how long an acquisition waits for the lease.
    """
    history = History()

    async def prepare(on: Services) -> None:
        await container_calls.create(on)
        for name in "ab":
            await blob_calls.put(on, name, b"x")

    def make(client: int) -> Act:
        held: dict[str, str] = {}

        async def act(on: Services, chance: random.Random, number: int) -> None:
            name = chance.choice("ab")
            proposed = f"{number:08x}-0000-4000-8000-{len(history.operations()):012x}"
            call, given = _next_of_lease(chance, held.get(name), proposed)
            record = history.invoke(f"client {number}", name, call)
            if isinstance(call, Acquire):
                # With any answer, or without one, the client may hold the lease from now on.
                held[name] = proposed
            elif isinstance(call, Release):
                del held[name]
            more: dict[str, Any] = {"wait_s": wait_s}
            if not isinstance(call, Acquire):
                more = {"lease_id": call.lease_id}
            try:
                asked = await placed(on, given, blob=name, rule=blob_calls.LEASES, **more)
                leased = await leasing.lease_blob(on, asked)
            except StorageError as error:
                if more.get("wait_s"):
                    # Its time was over before its turn, whether the lease was free or not.
                    record.unknown()
                else:
                    record.returned(LeaseAnswer(status_of(error)))
            except EngineError:
                record.unknown()
            else:
                got = isinstance(call, Acquire)
                record.returned(LeaseAnswer(201, leased.lease_id) if got else LeaseAnswer(200))

        return act

    await played(seed, prepare, make, steps, faults)
    return check(history, LeaseModel())


def _next_of_lease(
    chance: random.Random, held: str | None, proposed: str
) -> tuple[Acquire | Renew | Release, Any]:
    if held is None or not chance.randrange(4):
        return Acquire(proposed), AcquireLease(-1, proposed)
    if chance.randrange(2):
        return Renew(held), RenewLease()
    return Release(held), ReleaseLease()


async def message_history(seed: int, steps: int, faults: int, wait_s: Any = 0) -> Verdict:
    """Run a history of messages: put, got, updated, deleted. At the end all remaining messages are
    got.

    A call that ends with Unavailable has changed nothing, so it is not part of the history.

    Arguments:
        wait_s: how long a retrieval waits for a message.
    """
    history = QueueHistory()
    put: set[str] = set()
    deleted: set[str] = set()

    def make(client: int) -> Act:
        held: list[MessageView] = []

        async def act(on: Services, chance: random.Random, number: int) -> None:
            begun = history.begin()
            with suppress(EngineError):
                seen = await _act_on_queue(on, chance, held, wait_s)
                put.update(key for key, (call, _) in seen.items() if isinstance(call, PutStep))
                deleted.update(key for key, (_, result) in seen.items() if result is True)
                history.end(f"client {number}", begun, seen)

        return act

    async def drain(on: Services) -> None:
        begun = history.begin()
        on.store.advance(HIDDEN_S + 1)
        history.time_passed("clock", begun)
        there: set[str] = set()
        while views := await queue_calls.get(on, 32, HIDDEN_S):
            there |= {view.message.id for view in views}
        assert there == put - deleted, "messages are lost, or came back"

    await played(seed, queue_calls.create, make, steps, faults, drain)
    return check(history.operations(), MessageModel())


async def _act_on_queue(
    on: Services, chance: random.Random, held: list[MessageView], wait_s: Any
) -> dict[str, tuple[Hashable, Hashable]]:
    """Run one random operation. Return (call, result) for each message that it concerns."""
    kind = chance.choice(("put", "get", "get", *(("delete", "update") if held else ())))
    if kind == "put":
        view = await queue_calls.put(on, "x" * chance.choice((10, 30_000)))
        return {view.message.id: (PutStep(), view.receipt)}
    if kind == "get":
        views = await queue_calls.get(on, chance.randrange(1, 5), HIDDEN_S, wait_s)
        held.extend(views)
        return {
            one.message.id: (GetStep(), Got(one.receipt or "", one.message.dequeued))
            for one in views
        }
    # A stale receipt may be used again: it must be refused then.
    at = chance.randrange(len(held))
    view = held[at] if not chance.randrange(4) else held.pop(at)
    receipt, result = view.receipt or "", None if kind == "update" else False
    call: Hashable = UpdateStep(receipt) if kind == "update" else DeleteStep(receipt)
    try:
        if kind == "update":
            return {view.message.id: (call, (await queue_calls.update(on, view)).receipt)}
        await queue_calls.delete(on, view)
    except StorageError as error:
        if status_of(error) != 404:
            raise
        return {view.message.id: (call, result)}
    return {view.message.id: (call, True)}
