"""A handle of SMB, as the table of opens knows it: its file or directory, and its owner.

Lives here: `Handle`, its owner, its share. Must not live here: the inputs and results of operations
(handles/model.py). Sources: [MS-SMB2] sections 3.3.1.10 and 3.3.5.2.10 (the open is verified).

A handle is held state: it is lost when the process ends. Its entry in the table of opens has the
same id.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from strongroom.engines.base import Partition
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file.accesses import Use
from strongroom.semantics.file.attributes import TimeField
from strongroom.semantics.file.oplocks import BreakNotice, CachingKey, CachingKind
from strongroom.store.core import keys


class ShareAccess(msgspec.Struct, frozen=True, weakref=True):
    """A share that a tree is connected to, or a snapshot of it that a handle reads.

    A client connects by the account's key, which gives full access. `snapshot` is a stamp; None =
    the share as it is now.
    """

    account: str
    share: str
    generation: int
    snapshot: int | None = None

    def opens_of(self, node_id: int) -> Partition:
        """The key of the table of opens of a file or directory. A file in a snapshot has a table of
        its own. No record is stored at its key."""
        file = keys.file(self.generation, node_id)
        if self.snapshot is None:
            return file
        return Partition(file.keyspace, file.name + keys.number(self.snapshot))


class HandleOwner(Protocol):
    """A session that holds handles. Owners are compared by identity.

    Attributes:
        client_guid: of its client; leases are looked up by it.
        session_id: as List Handles shows it.
        peer: the client's address, with its port.
        user: the authenticated user; durable handles are given back to nobody else.
        protocol: its dialect for people who look, like "SMB 3.1.1".
        alive: whether notices can reach its client.
    """

    client_guid: bytes
    session_id: int
    peer: str
    user: str
    protocol: str

    @property
    def alive(self) -> bool: ...

    def notify_break(self, handle: Handle, notice: BreakNotice) -> None:
        """Send an OPLOCK_BREAK notification. It must not wait. `handle`: the open of an oplock, or
        any open of a lease."""
        ...


@dataclass(slots=True)
class Enumeration:
    """The cursor of QUERY_DIRECTORY in a directory.

    Attributes:
        pattern: the pattern that names must match; None = there was no query yet.
        dots: how many of `.` and `..` were returned or passed over.
        after: the key of the last name that was returned or passed over.
    """

    pattern: str | None = None
    dots: int = 0
    after: bytes | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class DurableState:
    """The state of an open that its client may reconnect to, or whose CREATE it may repeat.

    Attributes:
        client_guid: of the client that opened it.
        create_guid: of DH2Q; None = version 1.
        timeout_ms: how long it waits for its client; 0 = it is not durable.
        action: the CreateAction of the open, by its number on the wire.
        lock_numbers: the number of the last LOCK that succeeded, by bucket.
    """

    client_guid: bytes
    create_guid: bytes | None
    user: str
    timeout_ms: int
    action: int
    lock_numbers: dict[int, int] = field(default_factory=dict)


class HandleClient(msgspec.Struct, frozen=True):
    """The client of a handle, as List Handles shows it; while a durable handle waits, the last one.
    `reconnected`: the store time of its last reconnect, in ticks; None = there was none."""

    peer: str
    session_id: int
    reconnected: int | None = None


class HandleLife:
    """The operations of a handle that are under way, and its end, which waits for them. As a
    context manager, it marks one operation.

    Attributes:
        is_closed: whether it is closed or being closed; no operation begins any more.
        ending: done when it is to be closed, or loses its client; its waiting requests then end.
    """

    __slots__ = ("_idle", "_under_way", "ending", "is_closed")

    def __init__(self) -> None:
        self.is_closed = False
        self.ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_idle(self) -> bool:
        return not self._under_way

    def __enter__(self) -> None:
        if self.is_closed:
            raise StorageError(file_errors.HANDLE_CLOSED)
        self._under_way += 1
        self._idle.clear()

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._idle.set()

    async def until_idle(self) -> None:
        if self._under_way:
            await self._idle.wait()

    def close(self) -> None:
        """Let no operation begin any more, and end the waiting requests. Call this once."""
        self.is_closed = True
        self.ending.set_result(None)

    def lose_client(self) -> None:
        """End the waiting requests with an error, since no client is left to be answered."""
        self.ending.set_result(None)
        self.ending = asyncio.get_running_loop().create_future()


@dataclass(slots=True, eq=False)
class Handle:
    """An open of a file or directory by SMB. What is `Final` is fixed when it is opened.

    Attributes:
        id: 63 random bits, never 0. It is also the id of the entry in the table of opens, and List
            Handles shows it. SMB's persistent and volatile ids are the server's own.
        owner: the session that holds it; None while a durable handle waits for its client.
        node_id, parent_id: of the file or directory; the root's parent is 0.
        path: its present names from the root down. A rename updates them.
        mask: the access that was granted, without generic rights.
        key: of its oplock or lease.
        kind: of its key, as it was admitted.
        opened: store time, in ticks.
        durable: None = it ends with its connection, and its CREATE cannot be repeated.
        frozen: the times that its operations do not change (FILETIME -1, or set by it).
        position: where its last READ ended, or what SET_INFO has set. It is shown, and has no
            effect.
        partition: the key of its table of opens. Outside snapshots this is also the partition of
            its attributes and bytes.
    """

    id: Final[int]
    owner: HandleOwner | None
    access: Final[ShareAccess]
    node_id: Final[int]
    parent_id: int
    path: tuple[str, ...]
    is_directory: Final[bool]
    mask: Final[int]
    share: Final[Use]
    mode: int
    key: Final[CachingKey]
    kind: CachingKind
    opened: Final[int]
    client: HandleClient
    frozen: Final[set[TimeField]] = field(default_factory=set)
    enumeration: Final[Enumeration] = field(default_factory=Enumeration)
    life: Final[HandleLife] = field(default_factory=HandleLife)
    durable: DurableState | None = None
    position: int = 0
    partition: Partition = field(init=False)

    def __post_init__(self) -> None:
        self.partition = self.access.opens_of(self.node_id)

    @property
    def is_root(self) -> bool:
        return not self.path

    @property
    def is_closed(self) -> bool:
        """Whether it is closed or being closed."""
        return self.life.is_closed

    @property
    def ending(self) -> asyncio.Future[None]:
        return self.life.ending

    def operating(self) -> HandleLife:
        """Mark an operation as under way while the block runs, else HANDLE_CLOSED is raised. The
        close waits for it, so that the entry in the table of opens outlives each commit."""
        return self.life

    def may(self, mask: int) -> bool:
        """Whether any of these rights was granted."""
        return bool(self.mask & mask)

    def move(self, parent_id: int, path: tuple[str, ...]) -> None:
        self.parent_id, self.path = parent_id, path

    def lose_client(self) -> None:
        self.owner = None
        self.life.lose_client()

    def return_to(self, owner: HandleOwner, now: int) -> None:
        """Give the handle to the client that has reconnected, at this store time."""
        self.owner = owner
        self.client = HandleClient(owner.peer, owner.session_id, now)
