"""Histories of REST and SMB clients on one file, over sockets of both, are linearizable.

The same is tested on services in memory, step by step, by
tests/services/handles/test_handle_histories.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pytest

from strongroom.errors.file import STATUS_SHARING_VIOLATION
from strongroom.semantics.file import accesses
from strongroom.semantics.file.oplocks import Caching
from strongroom.servers.smb.refusals import SmbError
from strongroom.testing.history import History, check
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.create_contexts import (
    LEASE,
    LeaseContext,
    chain,
    lease_data,
    write_chain,
)
from strongroom.wire.smb.requests.oplock_break import LeaseBreakNotice
from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client
from tests.conformance.running import Running
from tests.conformance.smb_shares import BothProtocols, is_refused, run
from tests.effort import scaled
from tests.servers.smb.sockets import SmbMount
from tests.services.handle_calls import LEASES
from tests.services.handles.test_handle_histories import SIZE, Looked, Register, Wrote, text

HISTORIES: Final = scaled(24)
STEPS: Final = 8
REST_CLIENTS, SMB_CLIENTS = 3, 3
VIOLATION: Final = (409, "SharingViolation")
PUT: Final = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{SIZE - 1}"}
READ_WRITE: Final = accesses.READ_DATA | accesses.WRITE_DATA
BY_LEASE: Final = 0xFF
EVERYTHING, NOTHING = 7, 0


@pytest.fixture(scope="module", params=["memory", "embedded"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BothProtocols]:
    """A server of each engine."""
    data = tmp_path_factory.mktemp("histories") / "data"
    found = BothProtocols(Running(data if request.param == "embedded" else None, smb=True))
    yield found
    found.close()


@dataclass
class Numbers:
    """The written numbers, the read numbers, and the client with exclusive access."""

    chance: random.Random
    share: str
    history: History = field(default_factory=History)
    last: int = 0
    exclusive: set[int] = field(default_factory=set)

    def next(self) -> int:
        self.last += 1
        return self.last


async def rest_client(numbers: Numbers, name: str, rest: Client) -> None:
    """Writes and reads whole, each as one request."""
    target = f"{numbers.share}/f"
    for _ in range(STEPS):
        if numbers.chance.randrange(2):
            number = numbers.next()
            seen = numbers.history.invoke(name, "f", Wrote(number))
            data = text(number)
            expect(await not_denied(partial(rest.put, f"{target}?comp=range", PUT, data)), 201)
            seen.returned(None)
        else:
            seen = numbers.history.invoke(name, "f", Looked())
            seen.returned(int((await not_denied(partial(rest.get, target))).body))


async def not_denied(send: Callable[[], Answer]) -> Answer:
    """The answer to a request, once no open denies it any more."""
    while True:
        answer = await asyncio.to_thread(send)
        if not is_refused(answer, VIOLATION):
            return answer
        await asyncio.sleep(0.001)


class CachingClient:
    """A client of SMB that writes when it must: when its lease is broken, or when it closes.

    It answers reads itself as long as it may cache writes. A lease that only reads is taken away
    without waiting for the client, so that what it caches may be old; it is not used here.
    """

    def __init__(self, mount: SmbMount, number: int) -> None:
        self._mount, self._key = mount, bytes((number,)) * 16
        self._file_id: FileId | None = None
        self._lock = asyncio.Lock()
        self._may_cache = False
        self._cached: int | None = None
        self._is_dirty = False
        mount.on_notice = self._give_back

    async def open(self, state: str | None, share: int) -> None:
        """Open `f`, with a lease if a state is given. Raises: SmbError."""
        contexts, level = b"", 0
        if state is not None:
            wanted = LeaseContext(self._key, int(LEASES[state]), is_v2=True)
            contexts, level = write_chain([(LEASE, lease_data(wanted))]), BY_LEASE
        opened = await self._mount.open(
            "f", chain=contexts, access=READ_WRITE, share=share, oplock_level=level
        )
        granted = [data for name, data in chain(memoryview(opened.contexts)) if name == LEASE]
        self._file_id, self._cached, self._is_dirty = opened.file_id, None, False
        self._may_cache = bool(granted and granted[0][16] & Caching.WRITE)

    async def read(self) -> int:
        async with self._lock:
            assert self._file_id is not None
            if self._cached is not None:
                return self._cached
            found = int(await self._mount.read(self._file_id, 0, SIZE))
            if self._may_cache:
                self._cached = found
            return found

    async def write(self, number: int) -> None:
        async with self._lock:
            assert self._file_id is not None
            if self._may_cache:
                self._cached, self._is_dirty = number, True
            else:
                await self._mount.write(self._file_id, 0, text(number))

    async def close(self) -> None:
        async with self._lock:
            assert self._file_id is not None
            await self._flush()
            gone, self._file_id, self._may_cache = self._file_id, None, False
            await self._mount.close(gone)

    async def _flush(self) -> None:
        if self._is_dirty:
            assert self._file_id is not None and self._cached is not None
            await self._mount.write(self._file_id, 0, text(self._cached))
        self._is_dirty, self._cached = False, None

    async def _give_back(self, notice: LeaseBreakNotice) -> None:
        async with self._lock:
            if self._file_id is None:
                return  # the handle was closed, which is an answer too
            await self._flush()
            self._may_cache = bool(notice.new & Caching.WRITE)
            if notice.must_acknowledge:
                await self._mount.acknowledge_lease(notice)


async def smb_client(numbers: Numbers, number: int, mount: SmbMount) -> None:
    """Opens with and without leases, to itself or not; writes, reads, closes."""
    chance, name, client = numbers.chance, f"smb {number}", CachingClient(mount, number)
    for _ in range(STEPS // 2):
        share = chance.choice((EVERYTHING, EVERYTHING, NOTHING))
        state = chance.choice((None, "RWH", "RWH", "RW", "RH", "R"))
        await until_shared(partial(client.open, state, share))
        if share == NOTHING:
            numbers.exclusive.add(number)
            assert numbers.exclusive == {number}, "two have the file to themselves"
        for _ in range(chance.randrange(5)):
            if chance.randrange(2):
                written = numbers.next()
                seen = numbers.history.invoke(name, "f", Wrote(written))
                await client.write(written)
                seen.returned(None)
            else:
                seen = numbers.history.invoke(name, "f", Looked())
                seen.returned(await client.read())
            await asyncio.sleep(chance.random() * 0.01)
        numbers.exclusive.discard(number)
        await client.close()


async def until_shared(attempt: Callable[[], Awaitable[None]]) -> None:
    """Retry the open until no share mode denies it."""
    while True:
        try:
            await attempt()
            return
        except SmbError as refused:
            if refused.status != STATUS_SHARING_VIOLATION:
                raise
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_histories_over_sockets_of_both_protocols_are_linearizable(
    both: BothProtocols, seed: int
) -> None:
    async def scenario() -> None:
        numbers = Numbers(random.Random(seed), both.new_share())
        resized = {"x-ms-content-length": str(SIZE)}
        expect(both.rest.put(f"{numbers.share}/f?comp=properties", resized), 200)
        expect(both.rest.put(f"{numbers.share}/f?comp=range", PUT, text(0)), 201)
        clients = [both.running.files() for _ in range(REST_CLIENTS)]
        mounts = [both.mount(numbers.share) for _ in range(SMB_CLIENTS)]
        for mount in mounts:
            await mount.__aenter__()
        await asyncio.gather(
            *(rest_client(numbers, f"rest {at}", one) for at, one in enumerate(clients)),
            *(smb_client(numbers, at, one) for at, one in enumerate(mounts)),
        )
        for mount in mounts:
            await mount.__aexit__(None, None, None)
        for client in clients:
            client.close()
        verdict = check(numbers.history, Register())
        assert verdict.linearizable, verdict

    run(scenario())
