"""Connections and requests of SMB are freed as soon as they end, without the garbage collector.

The collector's full pass is rare: it comes after some 100,000 connections, and each keeps a buffer
of 64 KiB until then.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from strongroom.auth.accounts import Account
from strongroom.clock import ManualClock
from strongroom.engines.embedded import open_store
from strongroom.operations.file import share
from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.commands.table import FILE_COMMANDS
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.opening import connect_share
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.shares.shares import CreateShare
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FILE_ID, FileId
from strongroom.wire.smb.requests import query_info
from strongroom.wire.smb.requests.create import CreateRequest
from strongroom.wire.smb.requests.create_contexts import write_chain
from strongroom.wire.smb.statuses import STATUS_DISK_FULL
from tests.fuzz.smb_frames import Changes
from tests.fuzz.test_smb_frames import fuzz_connection
from tests.servers.smb import client_codecs
from tests.servers.smb.client import KEY, Client, OneAccount
from tests.services import container_calls, file_calls

CONNECTIONS = 1_000
# What the test itself and the interpreter may add meanwhile, such as an abstract class's cache of
# the classes that it has seen. One object a connection would be 1,000.
OBJECTS_MAX = 500
BLOCKS_MAX = 3_000
FRAMES = 3_000
FILE_BYTES_MAX = 1 << 42


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def found_in_cycles() -> Counter[str]:
    """Return what only the collector can free, by type."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return Counter(type(one).__name__ for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def serving(services: Services, **settings: Any) -> SmbListener:
    return SmbListener(
        services,
        OneAccount(Account(container_calls.ACCOUNT, (KEY,))),
        ManualClock(),
        SmbSettings(connections_max=100_000, connections_per_address_max=100_000, **settings),
        connect_share=connect_share,
        commands=FILE_COMMANDS,
    )


async def opened(server: SmbListener, **durable: bytes) -> tuple[Client, FileId]:
    """Return a client with a session, a tree connect and a handle."""
    client = Client(server)
    await client.negotiate()
    assert not (await client.log_on(user=container_calls.ACCOUNT)).status
    assert not (await client.connect(file_calls.SHARE)).status
    request = CreateRequest(
        oplock_level=9 if durable else 0,
        access=0x1F01FF,
        share=7,
        disposition=Disposition.OPEN_IF,
        name="file",
    )
    chain = write_chain([(name.encode(), data) for name, data in durable.items()])
    reply = await client.call(Command.CREATE, client_codecs.write_create(request, chain))
    assert not reply.status
    return client, FILE_ID.read(reply.body, 64)


async def end(client: Client) -> None:
    client.transport.close()
    await client.closed()
    for _ in range(5):  # the end of the connection is still on the stack
        await asyncio.sleep(0)


def run(conversation: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with without_collector():
        asyncio.run(asyncio.wait_for(conversation(), 300))


def test_a_thousand_closed_connections_leave_no_object() -> None:
    async def conversation() -> None:
        server = serving(await file_calls.services())
        for _ in range(10):
            await end((await opened(server))[0])
        gc.collect()
        before = Counter(map(type, gc.get_objects()))
        blocks = sys.getallocatedblocks()
        for _ in range(CONNECTIONS):
            await end((await opened(server))[0])
        more = Counter(map(type, gc.get_objects())) - before
        assert more.total() < OBJECTS_MAX, more.most_common(10)
        assert sys.getallocatedblocks() < blocks + BLOCKS_MAX
        # Tests before this one may leave a connection that is dropped only now.
        found = found_in_cycles()
        assert found.total() < CONNECTIONS / 10, found

    run(conversation)


def test_a_handle_that_waits_for_its_client_keeps_nothing_of_the_connection() -> None:
    async def conversation() -> None:
        server = serving(await file_calls.services())
        await end((await opened(server))[0])
        client, _ = await opened(server, DHnQ=bytes(16))
        await end(client)
        assert server.shared.services.held.of(Opens).durable.waiting_count == 1
        del client
        kinds = Counter(type(one).__name__ for one in gc.get_objects())
        for kind in ("SmbServerConnection", "ConnectionState", "SmbSession", "SessionOwner"):
            assert not kinds[kind], kind

    run(conversation)


@pytest.mark.parametrize("on_disk", [False, True])
def test_no_request_leaves_a_cycle(tmp_path: Path, *, on_disk: bool) -> None:
    async def conversation() -> None:
        clock, store = ManualClock(), None
        if on_disk:
            store = await open_store(tmp_path / "data", clock, test_clock=True)
        services = container_calls.services(store)
        await file_calls.run(services, share.CREATE_SHARE, "", CreateShare(quota_gib=1))
        server = serving(services)
        client, file_id = await opened(server)
        assert not found_in_cycles()
        # The share's quota refuses the commit.
        size = memoryview(FILE_BYTES_MAX.to_bytes(8, "little"))
        growth = query_info.SetInfoRequest(1, 20, file_id, size, 0)
        reply = await client.call(Command.SET_INFO, client_codecs.write_set_info(growth))
        assert reply.status == STATUS_DISK_FULL
        await end(client)
        changes, sent = Changes(3), 0
        while sent < FRAMES:
            sent += await fuzz_connection(server, changes)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not found_in_cycles()
        if store is not None:
            await server.close()
            await store.close()

    run(conversation)
