"""Random histories of one protected blob: no request, however odd, loses protected content.

Lives here: the search, and the check after every step. The rules one by one are in
test_immutability.py, test_versions.py and test_blob_retention.py. The check: a content that a hold,
or a policy in force, protected before the step can be read after it. An append may have made it
longer, if the container permits that.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from strongroom.account_switches import ContainerProtection, Switches
from strongroom.auth.request import Service
from strongroom.errors.core import StorageError
from strongroom.operations.blob import append, blob, immutability
from strongroom.semantics.blob.container_protection import of_state
from strongroom.semantics.blob.immutability import Immutability, combined
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.service_properties import RetentionPolicy, ServiceProperties
from strongroom.services.blob import blobs
from strongroom.services.blob.containers import containers
from strongroom.services.blob.containers.list_containers import ListContainers, list_containers
from strongroom.services.blob.list_blobs import BlobRow
from strongroom.services.blob.states.immutability import SetHold, SetPolicy
from strongroom.services.blob.states.snapshots import DeleteBlob
from strongroom.services.blob.types.appends import CreateAppendBlob
from strongroom.services.core import account, soft_deleted_places
from strongroom.services.core.account import SetServiceProperties
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.values import TICKS_PER_S
from tests.effort import examples
from tests.services import append_calls
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import ACCOUNT, call, create, run
from tests.services.queue_calls import problems
from tests.services.sweeps import drop_container, fresh, swept

DAY_S = 24 * 60 * 60
DAY = DAY_S * TICKS_PER_S
STEPS = 40
NAME = "b"
SIZES = (3, 700, 20_000)


class World:
    """One container and its blob `b`, and the account's settings."""

    def __init__(self, on: Services, sweeper: Sweeper, rng: random.Random) -> None:
        self.on = on
        self.sweeper = sweeper
        self.rng = rng
        self.switches = Switches(immutability=True)
        self._contents = 0
        on.switches = lambda account: self.switches

    def content(self) -> bytes:
        """Return a content that no other write has."""
        self._contents += 1
        return b"%06d" % self._contents * self.rng.choice(SIZES)

    async def rows(self) -> list[BlobRow]:
        """Return every state that can be read."""
        if await self.on.place(Service.BLOB, ACCOUNT, "photos") is None:
            return []
        return await ver.listed(self.on, "versions", "snapshots")

    async def read(self, row: BlobRow) -> bytes:
        past = row.past
        if past is None:
            found = await do.read(self.on, row.name)
        elif past.is_version:
            found = await do.read(self.on, row.name, version=past.ticks)
        else:
            found = await do.read(self.on, row.name, past.ticks)
        assert found is not None, row
        return found

    async def contents(self) -> dict[bytes, Immutability]:
        """Return each content that can be read, with its protection."""
        return {await self.read(row): self.protection(row) for row in await self.rows()}

    def protection(self, row: BlobRow) -> Immutability:
        of_container = self.switches.containers.get("photos")
        record = row.blob
        if of_container is None:
            return record.immutability or Immutability()
        around = of_state(of_container, record.kind, record.created, record.modified)
        return combined(record.immutability, around) or around

    async def state(self) -> dict[str, Any]:
        """Return arguments for a snapshot or a version, as a request names it; or for the blob
        itself."""
        rows = await self.rows()
        if not rows or self.rng.random() < 0.3:
            return {}
        past = self.rng.choice(rows).past
        if past is None:
            return {}
        return {"version" if past.is_version else "snapshot": past.ticks}


async def put(world: World) -> None:
    await do.put(world.on, NAME, world.content())


async def put_block(world: World) -> None:
    await do.put_block(world.on, NAME, world.content())


async def put_held(world: World) -> None:
    given = blobs.PutBlob(immutability=Immutability(hold=True))
    await do.run(world.on, blob.PUT_BLOB, NAME, given, world.content())


async def create_log(world: World) -> None:
    await do.run(world.on, append.PUT_APPEND_BLOB, NAME, CreateAppendBlob())
    await add(world)


async def add(world: World) -> None:
    await append_calls.add(world.on, NAME, world.content())


async def metadata(world: World) -> None:
    await do.metadata(world.on, NAME, str(world.rng.random()))


async def snapshot(world: World) -> None:
    await do.snapshot(world.on, NAME)


async def delete(world: World) -> None:
    option = world.rng.choice([None, None, *DeleteSnapshots])
    await do.delete(world.on, NAME, option)


async def delete_past(world: World) -> None:
    state = await world.state()
    operation = blob.DELETE_VERSION if "version" in state else blob.DELETE_BLOB
    await do.run(world.on, operation, NAME, DeleteBlob(), **state)


async def purge(world: World) -> None:
    rows = await ver.listed(world.on, "versions", "snapshots", "deleted")
    gone = [row.past for row in rows if row.past is not None and row.blob.deletion is not None]
    if gone:
        past = world.rng.choice(gone)
        state: dict[str, Any] = {"version" if past.is_version else "snapshot": past.ticks}
        await do.run(world.on, blob.DELETE_PERMANENTLY, NAME, DeleteBlob(), **state)


async def undelete(world: World) -> None:
    await ver.undelete(world.on, NAME)


async def promote(world: World) -> None:
    state = await world.state()
    await do.start_copy(world.on, NAME, NAME, version=state.get("version"))


async def leave(world: World) -> None:
    """Delete the container; it is restored, since deleted ones are retained, or created again."""
    await drop_container(world.on)
    kept = await containers_kept(world)
    if kept and world.rng.random() < 0.7:
        version = soft_deleted_places.generation_version(kept[-1])
        given = soft_deleted_places.RestorePlace("photos", version)
        await containers.restore_container(world.on, call(given))
    else:
        await create(world.on)


async def containers_kept(world: World) -> list[int]:
    given = ListContainers(include=frozenset(("deleted",)))
    page = await list_containers(world.on, call(given, container=""))
    return [row.record.generation for row in page.items if row.deleted is not None]


async def hold(world: World) -> None:
    await do.run(world.on, immutability.SET_HOLD, NAME, SetHold(True), **await world.state())


async def policy(world: World) -> None:
    until = await world.on.store.now() + world.rng.choice((1, 3, 9)) * DAY
    given = SetPolicy(Immutability(until, world.rng.random() < 0.2))
    await do.run(world.on, immutability.SET_POLICY, NAME, given, **await world.state())


async def sweep(world: World) -> None:
    await swept(world.on, world.sweeper)


async def retention(world: World) -> None:
    days = world.rng.choice((0, 2, 5))
    given = RetentionPolicy(days > 0, days or None, allow_permanent_delete=True)
    sections = SetServiceProperties(ServiceProperties(delete_retention=given))
    await account.set_properties(world.on, call(sections, container=""))


KEEPING: tuple[Callable[[World], Awaitable[None]], ...] = (
    *(put, put_block, put_held, create_log, add, metadata, snapshot, delete, delete),
    *(delete_past, delete_past, purge, undelete, promote, leave, hold, policy, sweep, retention),
)
"""Steps that must not lose what is protected."""


async def clear_hold(world: World) -> None:
    await do.run(world.on, immutability.SET_HOLD, NAME, SetHold(False), **await world.state())


async def delete_policy(world: World) -> None:
    await do.run(world.on, immutability.DELETE_POLICY, NAME, None, **await world.state())


async def wait(world: World) -> None:
    world.on.store.advance(world.rng.choice((1, DAY_S, 4 * DAY_S)))


async def switch(world: World) -> None:
    """Change a setting of the account."""
    rng = world.rng
    of_container = ContainerProtection(
        rng.choice((0, 0, 2)), holds=rng.choice(((), (), ("case",))), appends=rng.random() < 0.5
    )
    world.switches = Switches(
        immutability=True,
        versioning=rng.random() < 0.5,
        last_access=rng.random() < 0.3,
        container_retention_days=rng.choice((0, 5)),
        containers={"photos": of_container} if rng.random() < 0.5 else {},
    )


FREEING: tuple[Callable[[World], Awaitable[None]], ...] = (clear_hold, delete_policy, wait, switch)
"""Steps that may end a protection."""


@given(st.integers(0, 2**32))
@examples(240)
def test_nothing_that_is_protected_is_lost(seed: int) -> None:
    """B-IMM-11, B-IMM-19, B-IMM-20, B-IMM-22, B-IMM-28: in any order of requests."""

    async def test() -> None:
        on, sweeper = await fresh()
        world = World(on, sweeper, random.Random(seed))
        await put(world)
        done = ["put"]
        for _ in range(STEPS):
            step = world.rng.choice((*KEEPING, *FREEING))
            before = await world.contents()
            try:
                await step(world)
                done.append(step.__name__)
            except StorageError as error:
                done.append(f"{step.__name__}: {error.row.code}")
            if step in KEEPING:
                there, now = await world.contents(), await on.store.now()
                lost = {
                    content
                    for content, protection in before.items()
                    if protection.hold or protection.until > now
                    if not any(found.startswith(content) for found in there)
                }
                assert not lost, done
        world.switches = Switches()
        on.store.advance(30 * DAY_S)
        await swept(on, sweeper)
        assert problems(on) == [], done

    run(test)
