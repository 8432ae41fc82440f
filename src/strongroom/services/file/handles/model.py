"""The inputs and results of SMB's commands: opens, rows, information.

`Handle` is passed on from opens/open_handle.py. Sources: [MS-SMB2] section 2.2; smb.md 2.4 and
3.
"""

from __future__ import annotations

import asyncio
import enum
from typing import Final, Protocol

import msgspec

from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.semantics.file.oplocks import Caching, CachingKind
from strongroom.semantics.file.wildcards import EVERYTHING
from strongroom.services.file.opens.open_handle import Handle as Handle
from strongroom.store.file.file_records import FileRecord


class AsyncRequest(Protocol):
    """The request of a client that may have to wait. `cancelled` is done when the client has
    cancelled it."""

    cancelled: asyncio.Future[None]

    async def pending(self) -> None:
        """Send the client the interim answer that its request waits. It is called once at most."""
        ...


class RequestedCaching(msgspec.Struct, frozen=True):
    """The oplock or lease that an open asks for.

    Attributes:
        wanted: the bits of a lease, or `oplocks.LEVELS` of an oplock's level. They may be invalid.
        lease_key: of a lease; None = an oplock.
        epoch: of a lease of version 2, as the client has sent it.
    """

    kind: CachingKind = CachingKind.OPLOCK
    wanted: int = 0
    lease_key: bytes | None = None
    epoch: int = 0


NO_CACHING_REQUESTED: Final = RequestedCaching()


class RequestedDurability(msgspec.Struct, frozen=True):
    """The durability that DHnQ or DH2Q asks for.

    Attributes:
        create_guid: of DH2Q; None = version 1.
        timeout_ms: of DH2Q; 0 = the server's default.
        is_replay: SMB2_FLAGS_REPLAY_OPERATION: the client has received no answer to the same
            CREATE.
    """

    create_guid: bytes | None = None
    timeout_ms: int = 0
    is_replay: bool = False


class RequestedReconnect(msgspec.Struct, frozen=True):
    """DHnC or DH2C: the handle that a client wants back.

    Attributes:
        handle: its id, the persistent half of SMB's FileId.
        create_guid: of DH2C; None = version 1.
        lease_key, lease_kind: of RqLs; None = it was not sent.
        path: the path of the request; None = its name is no valid path.
    """

    handle: int
    create_guid: bytes | None = None
    lease_key: bytes | None = None
    lease_kind: CachingKind | None = None
    path: tuple[str, ...] | None = None


class RequestedOpen(msgspec.Struct, frozen=True, kw_only=True):
    """An SMB2 CREATE, decoded.

    Attributes:
        path: the names from the share's root down; none = the root.
        access: DesiredAccess as it was sent, generic rights and MAXIMUM_ALLOWED included.
        must_be_directory, must_be_file: FILE_DIRECTORY_FILE and FILE_NON_DIRECTORY_FILE.
        mode: the bits of CreateOptions that FileModeInformation shows.
        allocation_bytes: of AlSi; None = not sent.
        permission: the security descriptor of SecD as SDDL, for a file that is created.
        has_extended_attributes: whether ExtA was sent: a creation with it fails.
        at: the time of the share's snapshot, in ticks; None = the share as it is now.
    """

    path: tuple[str, ...]
    access: int
    share: Use
    disposition: Disposition
    attributes: int = 0
    must_be_directory: bool = False
    must_be_file: bool = False
    deletes_on_close: bool = False
    is_unbuffered: bool = False
    mode: int = 0
    cache: RequestedCaching = NO_CACHING_REQUESTED
    durable: RequestedDurability | None = None
    allocation_bytes: int | None = None
    permission: str | None = None
    has_extended_attributes: bool = False
    at: int | None = None


class CreateAction(enum.IntEnum):
    """The values are CreateAction's numbers on the wire."""

    SUPERSEDED = 0
    OPENED = 1
    CREATED = 2
    OVERWRITTEN = 3


class NodeInfo(msgspec.Struct, frozen=True):
    """The values that the information classes show of an open file or directory.

    Attributes:
        record: its attributes; times are ticks.
        path: its names, in their stored case.
        allocation_bytes: 0 for a directory.
        is_delete_pending: whether it is deleted when its last open leaves.
        mask, mode: of the handle.
        share_created: the stamp of the share's creation, for the volume.
    """

    node_id: int
    parent_id: int
    record: FileRecord
    path: tuple[str, ...]
    allocation_bytes: int
    is_delete_pending: bool
    mask: int
    mode: int
    share_created: int

    @property
    def is_directory(self) -> bool:
        return self.record.is_directory

    @property
    def size_bytes(self) -> int:
        """EndOfFile."""
        return self.record.size_bytes


class OpenedHandle(msgspec.Struct, frozen=True):
    """Result of an open.

    Attributes:
        caching: what the client may cache now.
        is_breaking: SMB2_LEASE_FLAG_BREAK_IN_PROGRESS.
        epoch: of a lease of version 2.
        maximal_access: for MxAc.
        durable_timeout_ms: None = it is not durable.
        is_repeated: whether this answers a CREATE again that was carried out before.
    """

    handle: Handle
    action: CreateAction
    info: NodeInfo
    caching: Caching = Caching.NONE
    kind: CachingKind = CachingKind.OPLOCK
    is_breaking: bool = False
    epoch: int = 0
    maximal_access: int = accesses.EVERYTHING
    durable_timeout_ms: int | None = None
    is_repeated: bool = False


class EnumeratedNode(msgspec.Struct, frozen=True):
    """`name` may be `.` or `..`."""

    name: str
    node_id: int
    record: FileRecord
    allocation_bytes: int


class RequestedEnumeration(msgspec.Struct, frozen=True):
    """The pattern, and the flags RESTART_SCANS, REOPEN and SINGLE_ENTRY."""

    pattern: str = EVERYTHING
    restarts: bool = False
    reopens: bool = False
    is_single: bool = False


class RequestedLock(msgspec.Struct, frozen=True):
    offset: int
    length: int
    is_exclusive: bool


class RequestedAttributes(msgspec.Struct, frozen=True):
    """FileBasicInformation: FILETIMEs as signed numbers (0 keeps, -1 freezes, -2 thaws), and
    attributes (0 keeps)."""

    creation: int = 0
    access: int = 0
    write: int = 0
    change: int = 0
    attributes: int = 0


class RequestedRename(msgspec.Struct, frozen=True):
    """FileRenameInformation: the new path from the root down; whether it may replace a file."""

    path: tuple[str, ...]
    replaces: bool = False
