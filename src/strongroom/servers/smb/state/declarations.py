"""The interface between the connection and the commands: a handler's input and its answer.

Lives here: the rule of a command, one element of a compound as its handler sees it, the answer.
Source: [MS-SMB2] section 3.3.5; smb.md 1.3 to 1.7.

A handler raises SmbError, StorageError (its row's `ntstatus` is answered) or MalformedMessage
(INVALID_PARAMETER is answered). CloseConnection ends the connection without an answer.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import msgspec

from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.sessions import SmbOpen, SmbSession, TreeConnect
from strongroom.services.core.runner import Services
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import HEADER_BYTES, FileId, Header
from strongroom.wire.smb.setup.negotiate import DIALECT_300
from strongroom.wire.smb.statuses import STATUS_CANCELLED, STATUS_FILE_CLOSED, STATUS_SUCCESS
from strongroom.wire.smb.structures import Piece

T = TypeVar("T")


class Needs(enum.IntEnum):
    """How far the checks of a message must go; each level includes those before it."""

    NOTHING = 0
    SESSION = 1
    TREE = 2
    OPEN = 3


class SmbAnswer(msgspec.Struct, frozen=True):
    """A handler's answer.

    Attributes:
        body: the bytes behind the header. Pieces are sent in order, so the handler need not join
            large ones, such as the data of a READ.
        status: of an answer with a body of its own: SUCCESS, BUFFER_OVERFLOW, NOTIFY_ENUM_DIR.
        file_id: the open that the next element of a chain inherits; None = the element's own.
        tree_id: the TreeId of the answer's header; None = the request's.
    """

    body: bytes | tuple[Piece, ...]
    status: int = STATUS_SUCCESS
    file_id: FileId | None = None
    tree_id: int | None = None


class Negotiated(msgspec.Struct, frozen=True):
    """The outcome of a connection's NEGOTIATE. Ids are those of [MS-SMB2] section 2.2.3.1.

    Attributes:
        dialect: 0x0210, 0x0300, 0x0302 or 0x0311.
        client_guid: 16 bytes; leases and durable handles belong to it.
        dialects: those that the client offered, as VALIDATE_NEGOTIATE_INFO repeats them.
        cipher: the id of the cipher; 0 = none.
        signing: the id of the signing algorithm.
    """

    dialect: int
    client_guid: bytes
    client_capabilities: int
    client_security_mode: int
    dialects: tuple[int, ...]
    server_guid: bytes
    capabilities: int
    security_mode: int
    cipher: int
    signing: int

    @property
    def is_smb3(self) -> bool:
        """Whether the dialect is of the SMB 3 family, which 2.1 is not."""
        return self.dialect >= DIALECT_300


class SmbConnection(Protocol):
    """The part of a connection that handlers may use."""

    @property
    def services(self) -> Services: ...

    @property
    def negotiated(self) -> Negotiated:
        """The outcome of NEGOTIATE. A handler runs only after that."""
        ...

    @property
    def peer(self) -> str:
        """The client's address and port."""
        ...

    @property
    def is_alive(self) -> bool:
        """Whether the connection can still send."""
        ...

    @property
    def io_bytes_max(self) -> int:
        """The value of MaxTransactSize, MaxReadSize and MaxWriteSize."""
        ...

    def send_break(self, session: SmbSession, body: bytes, *, of_lease: bool) -> None:
        """Send a break notification: its message id is all ones, it is not signed, and it is
        encrypted if the session requires that.

        Arguments:
            of_lease: whether it is a lease's; its header then names no session.
        """
        ...


class SmbElement:
    """One element of a compound, as its handler sees it.

    Its session, tree and open may end during each `await`, so handlers check them again.

    Attributes:
        message: from the first byte of the header on, without the chain's next element.
        session: the caller; a handler runs only with one.
        tree: None where the rule needs none.
        open: the open that the FileId or the chain names; None where the rule needs none.
        cancelled: done once CANCEL or the end of the connection cancels the request.
    """

    __slots__ = (
        "_chain_file_id",
        "_interim",
        "cancelled",
        "connection",
        "header",
        "is_encrypted",
        "message",
        "open",
        "session",
        "tree",
    )

    def __init__(
        self,
        header: Header,
        message: memoryview,
        connection: SmbConnection,
        *,
        is_encrypted: bool,
        interim: Callable[[SmbElement], None],
        chain_file_id: FileId | None = None,
    ) -> None:
        self.header = header
        self.message = message
        self.connection = connection
        self.is_encrypted = is_encrypted
        self.session: SmbSession = _NO_SESSION
        self.tree: TreeConnect | None = None
        self.open: SmbOpen | None = None
        self.cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._interim = interim
        self._chain_file_id = chain_file_id

    @property
    def services(self) -> Services:
        return self.connection.services

    @property
    def body(self) -> memoryview:
        """The message behind its header."""
        return self.message[HEADER_BYTES:]

    def find_open(self, file_id: FileId) -> SmbOpen:
        """In a chain, the predecessor's FileId replaces it. Raises: SmbError(FILE_CLOSED)."""
        chained = self._chain_file_id
        named = file_id if chained is None else chained
        opened = self.session.find_open(named, is_inherited=chained is not None)
        if opened.tree is not self.tree:
            raise SmbError(STATUS_FILE_CLOSED)
        return opened

    async def pending(self) -> None:
        """Send the interim answer, once; the client can then cancel by its AsyncId. In the middle
        of a chain, nothing is sent."""
        self._interim(self)

    async def wait_or_cancel(self, waiting: Awaitable[T]) -> T:
        """Return the result of `waiting`. If CANCEL comes first, `waiting` is cancelled.

        Raises: SmbError(CANCELLED); what `waiting` raises.
        """
        task = asyncio.ensure_future(waiting)
        first: set[asyncio.Future[Any]] = {task, self.cancelled}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            # The traceback of an error has this frame, and the task has the error: a cycle.
            del waiting, task, first
        raise SmbError(STATUS_CANCELLED)


Handler = Callable[[SmbElement], Awaitable[SmbAnswer]]
PayloadSizes = Callable[[memoryview], int]


def no_payload(body: memoryview) -> int:
    """Return 0: the payload size of a command for which one credit always suffices."""
    return 0


@dataclass(frozen=True, slots=True)
class CommandRule:
    """The connection's checks of a command, and its handler.

    Attributes:
        request_size: StructureSize of the request; the body has that many bytes at least, or one
            fewer if the number is odd.
        alternative_request_size: of OPLOCK_BREAK, whose acknowledgments have two forms.
        needs: how far the checks go.
        file_id_offset: the offset of the FileId in the body, for Needs.OPEN.
        payload: returns how many bytes the request carries or its answer may carry, whichever is
            more. It gets a body of at least `request_size` bytes. One credit pays for 64 KiB.
        is_large: whether its messages may exceed 68 KiB.
        has_large_answer: whether it is answered at once, by an answer that may carry the payload.
        checks_channel_sequence: whether an old ChannelSequence refuses it: WRITE, SET_INFO, IOCTL.
        allowed_when_expired: whether an expired session may still send it.
    """

    command: Command
    request_size: int
    needs: Needs
    handler: Handler
    file_id_offset: int | None = None
    alternative_request_size: int | None = None
    payload: PayloadSizes = no_payload
    is_large: bool = False
    has_large_answer: bool = False
    checks_channel_sequence: bool = False
    allowed_when_expired: bool = False


CommandTable = Mapping[Command, CommandRule]

_NO_SESSION: Final[Any] = None
