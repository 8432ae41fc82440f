"""Clients that lose their connections and reconnect, beside REST: histories of one file."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest

from strongroom.errors.core import RESOURCE_NOT_FOUND, StorageError
from strongroom.semantics.file.accesses import Use
from strongroom.semantics.file.oplocks import CachingKind
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import durable
from strongroom.services.file.handles.model import Handle, RequestedDurability, RequestedReconnect
from strongroom.services.file.opens.opens import Opens
from strongroom.testing.history import History, check
from tests.effort import scaled
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import ALL, Mount, mounted
from tests.services.handles.test_handle_histories import (
    SIZE,
    Looked,
    Register,
    Wrote,
    _pause,
    _until_shared,
    text,
)


class Recorded:
    """One file with a number, and the history of its operations.

    Attributes:
        alone: the connected clients with exclusive access: at most one.
    """

    def __init__(self, on: Services, seed: int) -> None:
        self.on = on
        self.chance = random.Random(seed)
        self.record = History()
        self.alone: set[int] = set()
        self.returns = 0
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last

    async def rest(self, client: int, steps: int) -> None:
        for _ in range(steps):
            await _pause(self.chance)
            number = self.next()
            seen = self.record.invoke(f"rest {client}", "f", Wrote(number))
            await _until_shared(partial(file_calls.put, self.on, "f", 0, text(number)))
            seen.returned(None)

    async def smb(self, client: int, steps: int) -> None:
        """Open durably, work, lose the connection, and reconnect or open again."""
        name = f"client {client}"
        mount = await mounted(self.on, name)
        for _ in range(steps):
            await _pause(self.chance)
            share = self.chance.choice((ALL, Use.NONE))
            wanted = self.chance.choice(("RWH", "RH"))
            found = await _until_shared(
                partial(
                    mount.open, "f", share=share, lease=name, wanted=wanted,
                    durable=RequestedDurability(),
                )
            )  # fmt: skip
            handle: Handle | None = found.handle
            for _ in range(self.chance.randrange(4)):
                assert handle is not None
                self.enter(client, share)
                await self.work(client, mount, handle)
                self.alone.discard(client)
                await mount.leave()
                await _pause(self.chance)
                mount = await mounted(self.on, name)
                handle = await self.back(mount, handle)
                if handle is None:
                    break
            if handle is not None:
                await mount.close(handle)

    def enter(self, client: int, share: Use) -> None:
        if share is Use.NONE:
            self.alone.add(client)
            assert self.alone == {client}, "two have the file to themselves"

    async def work(self, client: int, mount: Mount, handle: Handle) -> None:
        for _ in range(self.chance.randrange(3)):
            await _pause(self.chance)
            if self.chance.randrange(2):
                number = self.next()
                seen = self.record.invoke(f"smb {client}", "f", Wrote(number))
                await mount.write(handle, 0, text(number))
                seen.returned(None)
            else:
                seen = self.record.invoke(f"smb {client}", "f", Looked())
                seen.returned(int(await mount.read(handle, 0, SIZE)))

    async def back(self, mount: Mount, handle: Handle) -> Handle | None:
        """Reconnect. Return the handle, unless it was closed because another client needed the
        file."""
        key = handle.key
        assert isinstance(key, tuple)
        wanted = RequestedReconnect(handle.id, None, key[1], CachingKind.LEASE_V2, ("f",))
        try:
            found = await durable.reconnect(self.on, mount.access, wanted, mount)
        except StorageError as error:
            if error.row is not RESOURCE_NOT_FOUND:
                raise
            return None
        self.returns += 1
        return found.handle


async def history(seed: int) -> int:
    """Run one history. Return how often a client got its handle back."""
    on = await file_calls.services()
    await file_calls.write(on, "f", text(0))
    recorded = Recorded(on, seed)
    smb = [recorded.smb(client, 4) for client in range(3)]
    await asyncio.gather(recorded.rest(0, 4), *smb)
    verdict = check(recorded.record, Register())
    assert verdict.linearizable, verdict
    await on.held.of(Opens).tasks.wait()
    assert do.nothing_is_left(on)
    return recorded.returns


@pytest.mark.parametrize("seed", range(scaled(60)))
def test_histories_with_lost_connections_are_linearizable(seed: int) -> None:
    given.run(lambda: history(seed))


def test_clients_of_the_histories_do_come_back() -> None:
    async def scenario() -> None:
        assert sum([await history(seed) for seed in range(5)]) > 0

    given.run(scenario)
