"""Rounds of requests to a server whose disk loses power, and the checks after its restart.

Lives here: a server without sockets on a simulated disk, its two lives, and the doctor's check of
the data. Must not live here: the requests and the expected state (power_cut_tables.py,
power_cut_queues.py). The tests of the engine alone are in tests/engines/power_cut_rounds.py.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import os
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final, Protocol

from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_KEY,
    DEVELOPMENT_ACCOUNT_NAME,
    Account,
    development_account,
)
from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.base import EngineError
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.servers.requests.admission import ServiceContext
from strongroom.servers.requests.pipeline import respond
from strongroom.servers.service_listeners import ENDPOINTS
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.integrity import Integrity
from strongroom.values import Piece, rfc1123
from strongroom.wire.core.http import Headers, Request, Response
from tests.conformance.answer import Answer
from tests.conformance.client import Client, Credential
from tests.conformance.table_client import TableClient
from tests.engines.disks.disk import Disk
from tests.engines.disks.sqlite import DiskVfs
from tests.engines.embedded_stores import options_on

BALLAST_BYTES: Final = 64 * 1024
_LARGE_BODY_BYTES: Final = 32 * 1024
WORKERS: Final = 6
_CREDENTIAL: Final = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
_vfs_numbers = itertools.count()


class NoAnswer(Exception):
    """The server failed: the request may or may not have been applied."""


class _Body:
    """The body of a request, in memory."""

    def __init__(self, content: bytes) -> None:
        self.size_bytes: int | None = len(content)
        self.is_held_back = False
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content

    async def read_all(self, max_bytes: int) -> bytes:
        assert len(self._content) <= max_bytes
        return self._content


class _OneAccount:
    def get(self, name: str) -> Account | None:
        return development_account() if name == DEVELOPMENT_ACCOUNT_NAME else None


class SocketlessClient:
    """The whole path of a request to one service, without a socket.

    Arguments:
        services: the services on the tested store.
        clock: gives the dates of requests.
    """

    def __init__(self, services: Services, clock: ManualClock, service: Service) -> None:
        kind = TableClient if service is Service.TABLE else Client
        self.signing_client = kind(1, _CREDENTIAL)
        self.services = services
        self.clock = clock
        self._context = ServiceContext(
            services, ENDPOINTS[service], _OneAccount(), clock, strict=True
        )

    async def ask(
        self,
        method: str,
        target: str,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Send a signed request. Raises NoAnswer if the server could not serve it."""
        full = self.signing_client.prefix + target
        given = {**(headers or {}), "x-ms-date": rfc1123(self.clock.wall_ticks())}
        fields = self.signing_client.fields(method, full, given, body, "SharedKey")
        request = Request(method, full, Headers(fields), _Body(body))
        response = await respond(self._context, request)
        if response.status >= 500:
            raise NoAnswer(response.reason)
        content = await _read(response)
        found = tuple(response.headers)
        return Answer(method, response.status, response.reason or "", found, content)


async def _read(response: Response) -> bytes:
    """Return the whole body of an answer."""
    content = response.body
    try:
        if not isinstance(content, bytes):
            content = b"".join([_in_memory(piece) async for piece in content])
    finally:
        if response.finished is not None:
            response.finished()
    return content


def _in_memory(piece: Piece) -> bytes:
    if isinstance(piece, bytes):
        return piece
    return os.pread(piece.file.fileno(), piece.length, piece.offset)


class Play(Protocol):
    """Requests of several clients, and a record of every state that their answers have shown."""

    service: Service

    async def prepare(self, client: SocketlessClient) -> None:
        """Create what the clients need; called again after each cut."""

    async def act(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        """Send one request, or a few, of one client."""

    async def judge(self, client: SocketlessClient) -> None:
        """Check after a cut that every shown state is there, and that nothing is torn.

        The found state is the start of the next life.
        """


async def _live(disk: Disk, clock: ManualClock, play: Play, seed: int, rounds: int) -> None:
    """Open a store on the disk and serve until the rounds or the power end."""
    with DiskVfs(disk, f"strongroom-served-{next(_vfs_numbers)}") as vfs:
        options = options_on(disk, vfs, _LARGE_BODY_BYTES, BALLAST_BYTES)
        try:
            store = await open_store(f"{disk.root}/data", clock, options=options)
        except Exception:
            if not disk.lost_power:
                raise
            return
        try:
            client = SocketlessClient(Services(store, clock), clock, play.service)
            await _serve(client, disk, play, seed, rounds)
        finally:
            await store.close()


async def _serve(client: SocketlessClient, disk: Disk, play: Play, seed: int, rounds: int) -> None:
    async def work(worker: int) -> None:
        chance = random.Random(seed * 100 + worker)
        for _ in range(rounds):
            await play.act(client, worker, chance)

    async def sweep() -> None:
        for _ in range(rounds):
            client.clock.advance(1)
            await Sweeper(client.services).run_once()
            await asyncio.sleep(0.005)

    async def all_of_it() -> None:
        await play.prepare(client)
        working = [asyncio.create_task(work(worker)) for worker in range(WORKERS)]
        working.append(asyncio.create_task(sweep()))
        for outcome in await asyncio.gather(*working, return_exceptions=True):
            if outcome is not None:
                unexpected.append(outcome)

    unexpected: list[BaseException] = []
    try:
        await all_of_it()
    except NoAnswer as error:
        unexpected.append(error)
    for one in unexpected:
        if not (disk.lost_power and isinstance(one, NoAnswer | EngineError)):
            raise one


async def _judge(root: Path, clock: ManualClock, play: Play) -> None:
    options = EmbeddedOptions(ballast_bytes=BALLAST_BYTES)
    store = await open_store(root / "data", clock, options=options)
    try:
        await play.judge(SocketlessClient(Services(store, clock), clock, play.service))
    finally:
        await store.close()
    with Inspection(root / "data") as inspection:
        findings = [*inspection.findings(), *Integrity(inspection).findings(None)]
    assert not findings, findings


def run_round(directory: Path, seed: int, rounds: int, make: Callable[[], Play]) -> int:
    """Run two lives of a server on one disk; each ends by a power cut and is then judged.

    Arguments:
        rounds: how often each client acts in a life.
        make: returns the play.

    Returns: the number of disk operations.
    """
    chance = random.Random(seed)
    clock, play = ManualClock(), make()
    operations = 0
    for life in range(2):
        root = directory / f"life-{life}"
        root.mkdir(exist_ok=True)
        disk = Disk(root)
        # The cut may come while the directory is created, opened or closed.
        disk.cut_at = chance.choice((chance.randrange(1, 80), *(chance.randrange(80, 700),) * 4))
        asyncio.run(_live(disk, clock, play, seed + life, rounds))
        operations += disk.operations
        clock.step_wall(chance.choice((-3600.0, 30.0)))
        for variant in (0, 1, chance.randrange(2, 1 << 30)):
            target = directory / f"life-{life + 1}"
            if target.exists():
                target.rename(directory / f"before-{life}-{variant}")
            target.mkdir()
            disk.after_power_cut(target, variant)
            judged = copy.deepcopy(play)
            asyncio.run(_judge(target, clock, judged))
        play = judged
    return operations
