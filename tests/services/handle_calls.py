"""Handles of SMB on services in memory: clients with a connection, and their calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, oplocks
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.semantics.file.oplocks import BreakNotice, Caching, CachingKind
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import (
    breaking,
    closing,
    durable,
    enumerating,
    information,
    opening,
    renaming,
    transfers,
)
from strongroom.services.file.handles.model import (
    EnumeratedNode,
    Handle,
    NodeInfo,
    OpenedHandle,
    RequestedCaching,
    RequestedEnumeration,
    RequestedOpen,
)
from strongroom.services.file.opens.open_handle import ShareAccess
from strongroom.services.file.opens.opens import Opens
from tests.services import container_calls as given
from tests.services import file_calls

R, W, D = Use.READ, Use.WRITE, Use.DELETE
ALL = R | W | D
FULL = accesses.EVERYTHING
STAT = accesses.READ_ATTRIBUTES
LEASES = {"-": Caching.NONE, "R": oplocks.R, "RH": oplocks.RH, "RW": oplocks.RW, "RWH": oplocks.RWH}


class WaitingRequest:
    """A request that waits until it is answered, or cancelled by the test."""

    def __init__(self) -> None:
        self.cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.has_waited = asyncio.Event()
        self.interims = 0

    async def pending(self) -> None:
        self.interims += 1
        self.has_waited.set()


class Mount:
    """A client that has mounted the share, and the notices that it was sent.

    Arguments:
        answers: whether it acknowledges each notice at once, as requested.
    """

    def __init__(self, on: Services, access: ShareAccess, name: str, *, answers: bool) -> None:
        self.on = on
        self.access = access
        self.client_guid = name.encode().ljust(16, b"-")
        self.session_id = 1
        self.peer = "127.0.0.1:50000"
        self.user = given.ACCOUNT
        self.protocol = "SMB 3.1.1"
        self.alive = True
        self.answers = answers
        self.notices: list[tuple[Handle, BreakNotice]] = []
        self.told = asyncio.Event()

    def notify_break(self, handle: Handle, notice: BreakNotice) -> None:
        self.notices.append((handle, notice))
        self.told.set()
        if self.answers and notice.needs_answer:
            # Answer like a client: not inside the operation that has broken its cache.
            asyncio.get_running_loop().call_soon(self._answer_if_open, handle, notice)

    def _answer_if_open(self, handle: Handle, notice: BreakNotice) -> None:
        if not handle.is_closed:
            self.answer(handle, notice)

    def answer(self, handle: Handle, notice: BreakNotice) -> None:
        if notice.kind is CachingKind.OPLOCK:
            level = next(one for one, held in oplocks.LEVELS.items() if held == notice.to)
            breaking.acknowledge_oplock(self.on, handle, level)
        else:
            assert isinstance(notice.key, tuple)
            breaking.acknowledge_lease(self.on, *notice.key, int(notice.to))

    async def open(
        self,
        path: str,
        access: int = FULL,
        share: Use = ALL,
        disposition: Disposition = Disposition.OPEN,
        *,
        request: WaitingRequest | None = None,
        lease: str | None = None,
        wanted: Caching | str = Caching.NONE,
        kind: CachingKind = CachingKind.LEASE_V2,
        **more: Any,
    ) -> OpenedHandle:
        """Open a file or directory: with a lease of the given name, or with an oplock."""
        state = LEASES[wanted] if isinstance(wanted, str) else wanted
        lease_key = None if lease is None else lease.encode().ljust(16, b"-")
        cache = RequestedCaching(
            CachingKind.OPLOCK if lease is None else kind, int(state), lease_key
        )
        asked = RequestedOpen(
            path=parts(path), access=access, share=share, disposition=disposition, cache=cache,
            **more,
        )  # fmt: skip
        return await opening.open_node(
            self.on, self.access, asked, self, request or WaitingRequest()
        )

    async def handle(self, path: str, *args: Any, **more: Any) -> Handle:
        return (await self.open(path, *args, **more)).handle

    async def create(self, path: str, **more: Any) -> Handle:
        return await self.handle(path, disposition=Disposition.CREATE, **more)

    async def mkdir(self, path: str, **more: Any) -> Handle:
        return await self.create(path, must_be_directory=True, **more)

    async def read(self, handle: Handle, offset: int = 0, length: int = 1 << 20) -> bytes:
        return b"".join(await transfers.read(self.on, handle, offset, length, WaitingRequest()))

    async def write(self, handle: Handle, offset: int, data: bytes) -> None:
        await transfers.write(self.on, handle, offset, data, WaitingRequest())

    async def close(self, handle: Handle, **more: Any) -> NodeInfo | None:
        return await closing.close(self.on, handle, **more)

    async def info(self, handle: Handle) -> NodeInfo:
        return await information.attributes(self.on, handle)

    async def dispose(self, handle: Handle, *, delete: bool = True) -> None:
        await renaming.set_disposition(self.on, handle, delete=delete, request=WaitingRequest())

    async def leave(self) -> None:
        self.alive = False
        handles = self.on.held.of(Opens).handles.values()
        own = [one for one in handles if one.owner is self]
        await durable.disconnect(self.on, own, DisconnectReason.DISCONNECTED)


async def mounted(on: Services, name: str = "ann", *, answers: bool = True) -> Mount:
    access = await opening.connect_share(on, given.ACCOUNT, file_calls.SHARE.upper())
    return Mount(on, access, name, answers=answers)


async def listed(
    on: Services, handle: Handle, pattern: str = "*", room: int = 1 << 20, **flags: Any
) -> tuple[list[str], bool]:
    """Run one QUERY_DIRECTORY with room for so many rows."""
    rows: list[EnumeratedNode] = []

    def accept(row: EnumeratedNode) -> bool:
        if len(rows) < room:
            rows.append(row)
            return True
        return False

    wanted = RequestedEnumeration(pattern, **flags)
    count, is_first = await enumerating.enumerate_names(on, handle, wanted, accept)
    assert count == len(rows)
    return [row.name for row in rows], is_first


def parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")) if path else ()


async def status(outcome: Awaitable[object]) -> int:
    """Return the NTSTATUS of an error; 0 = success."""
    try:
        await outcome
    except StorageError as error:
        if error.row.ntstatus is None:
            raise
        return error.row.ntstatus
    return 0


async def status_over_rest(outcome: Awaitable[object]) -> int:
    """Return the status of an error over REST; 0 = success."""
    try:
        await outcome
    except StorageError as error:
        return error.row.status
    return 0


def nothing_is_left(on: Services) -> bool:
    """Return whether no handle, no entry and no timer is left, after all was closed."""
    held = on.held.of(Opens)
    durable = held.durable
    waiting = durable._waiting or durable._per_account or durable._creates
    tables = held._nodes or held.leases
    return not (held.handles or tables or waiting)
