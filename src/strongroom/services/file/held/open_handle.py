"""A handle of SMB, as the table of opens knows it: what it has open, and who holds it.

Lives here: `Handle`, its owner, its share. Must not live here: what is asked for and answered
(handles/model.py), what operations do (handles/). Source: [MS-SMB2] section 3.3.1.10.

A handle is held state: it dies with the process. Its entry in the table of opens has the same id.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from strongroom.engines.base import Partition
from strongroom.semantics.file.accesses import Use
from strongroom.semantics.file.attributes import TimeField
from strongroom.semantics.file.oplocks import BreakNotice, CachingKey, CachingKind
from strongroom.store.core import keys


class ShareAccess(msgspec.Struct, frozen=True):
    """A share as a tree is connected to it, or a snapshot of it as a handle sees it.

    Who connects has the account's key: full access.

    Attributes:
        snapshot: the stamp of the snapshot; None = the share as it is now.
    """

    account: str
    share: str
    generation: int
    snapshot: int | None = None

    def opens_of(self, node_id: int) -> Partition:
        """The key of the table of opens of a file or directory.

        A file in a snapshot has a table of its own. No record lies where its key points.
        """
        file = keys.file(self.generation, node_id)
        if self.snapshot is None:
            return file
        return Partition(file.keyspace, file.name + keys.number(self.snapshot))


class HandleOwner(Protocol):
    """A session that holds handles. Two are the same owner if they are the same object.

    Attributes:
        client_guid: of its client; leases are looked up by it.
        session_id: as List Handles shows it.
        peer: the client's address, with its port.
        user: who is signed in: durable handles are given back to nobody else.
        alive: whether notices can reach its client.
    """

    client_guid: bytes
    session_id: int
    peer: str
    user: str

    @property
    def alive(self) -> bool: ...

    def notify_break(self, handle: Handle, notice: BreakNotice) -> None:
        """Send an OPLOCK_BREAK notification. It must not wait.

        Arguments:
            handle: the open of an oplock, or any open of a lease.
        """
        ...


@dataclass(slots=True)
class Enumeration:
    """Where QUERY_DIRECTORY stands in a directory.

    Attributes:
        pattern: what the names are compared with; None = nothing was asked yet.
        dots: how many of `.` and `..` were given or passed over.
        after: the key of the last name that was given or passed over.
        has_ended: whether a query has ended: only the first one can find that no name matches.
    """

    pattern: str | None = None
    dots: int = 0
    after: bytes | None = None
    has_ended: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class DurableState:
    """The state of an open that its client may come back to, or whose CREATE it may repeat.

    Attributes:
        client_guid: of the client that opened it.
        create_guid: of DH2Q; None = version 1.
        timeout_ms: how long it waits for its client; 0 = it is not durable.
        action: what the open has done, by its number on the wire.
        lock_numbers: of the last LOCK of each bucket that succeeded.
    """

    client_guid: bytes
    create_guid: bytes | None
    user: str
    timeout_ms: int
    action: int
    lock_numbers: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Handle:
    """An open of a file or directory by SMB.

    Attributes:
        id: 63 bits, random, never 0; the id of its entry in the table of opens, and what List
            Handles shows. SMB's persistent and volatile ids are the server's own.
        owner: whose it is; None while a durable one waits for its client.
        node_id, parent_id: of the file or directory; the root's parent is 0.
        path: its names from the root down, as they are now. Renames keep it.
        mask: the access that was granted, without generic rights.
        key: of its oplock or lease.
        frozen: the times that its operations do not change (FILETIME -1, or set by it).
        opened, reconnected: store time, in ticks; None = its client never came back to it.
        durable: None = it ends with its connection, and its CREATE cannot be repeated.
        position: where its last READ ended, or what SET_INFO has said; it shows, and does nothing.
        is_closed: no operation begins any more.
        under_way: operations that its close waits for.
        ending: done when it is to be closed, or loses its client: what waits for it gives up.
    """

    id: int
    owner: HandleOwner | None
    access: ShareAccess
    node_id: int
    parent_id: int
    path: tuple[str, ...]
    is_directory: bool
    mask: int
    share: Use
    mode: int
    key: CachingKey
    kind: CachingKind
    opened: int
    peer: str
    session_id: int
    ending: asyncio.Future[None]
    frozen: set[TimeField] = field(default_factory=set)
    enumeration: Enumeration = field(default_factory=Enumeration)
    is_closed: bool = False
    under_way: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    reconnected: int | None = None
    durable: DurableState | None = None
    position: int = 0

    @property
    def partition(self) -> Partition:
        """The key of its table of opens. Of the present share it is also where its attributes and
        bytes are."""
        return self.access.opens_of(self.node_id)

    @property
    def is_root(self) -> bool:
        """Whether it is the share's root directory."""
        return not self.path

    def may(self, mask: int) -> bool:
        """Whether any of these rights was granted."""
        return bool(self.mask & mask)
