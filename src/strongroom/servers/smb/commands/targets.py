"""The targets of opens: the handle of a file or directory, or a pipe; and the owners of handles.

Lives here: the links between the opens of a session and the handles of the services. Must not live
here: commands. Sources: [MS-SMB2] sections 3.3.1.10, 3.3.4.6 and 3.3.4.7.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Final

from strongroom.errors import file as file_errors
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.semantics.file.oplocks import (
    LEVELS,
    BreakNotice,
    Caching,
    CachingKind,
    OplockLevel,
)
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbConnection, SmbElement
from strongroom.servers.smb.state.sessions import SharedLimit, SmbOpen, SmbSession
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import closing, durable
from strongroom.services.file.handles.model import Handle
from strongroom.wire.smb import statuses
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.oplock_break import (
    LeaseBreakNotice,
    OplockBreak,
    write_lease_notice,
    write_oplock_break,
)
from strongroom.wire.smb.rpc.pipe import RpcPipe
from strongroom.wire.smb.setup.negotiate import (
    DIALECT_210,
    DIALECT_300,
    DIALECT_302,
    DIALECT_311,
)

_ALL_PIPES_MAX: Final = 256
_LEVEL_OF: Final = {caching: level for level, caching in LEVELS.items()}
_DIALECTS: Final = {
    DIALECT_210: "2.1",
    DIALECT_300: "3.0",
    DIALECT_302: "3.0.2",
    DIALECT_311: "3.1.1",
}


class FileTarget:
    __slots__ = ("_services", "handle")

    def __init__(self, services: Services, handle: Handle) -> None:
        self._services = services
        self.handle = handle

    @property
    def path(self) -> tuple[str, ...]:
        return self.handle.path

    def begin_wait(self, reason: DisconnectReason) -> bool:
        return durable.begin_wait(self._services, self.handle, reason)

    async def end(self) -> None:
        await closing.close_all(self._services, [self.handle])


class PipeLimit(SharedLimit):
    """The number of pipes that all sessions together may still open. A result may wait in each."""

    def __init__(self) -> None:
        super().__init__(_ALL_PIPES_MAX)


class PipeTarget:
    """An open of a pipe.

    Arguments:
        limit: counts the pipes of all sessions, this one included.

    Attributes:
        ended: whether the open has ended, so that its reads end too.
        written: set when there may be a result to read.
    """

    __slots__ = ("_limit", "ended", "name", "pipe", "written")

    def __init__(self, name: str, limit: SharedLimit) -> None:
        self._limit = limit
        self.name = name
        self.pipe = RpcPipe(name)
        self.ended = False
        self.written = asyncio.Event()

    @property
    def path(self) -> tuple[str, ...]:
        return (self.name,)

    def begin_wait(self, reason: DisconnectReason) -> bool:
        """No pipe is durable."""
        return False

    async def end(self) -> None:
        self.close()

    def close(self) -> None:
        """End the reads that wait, and count the pipe no more. Idempotent."""
        if not self.ended:
            self._limit.release()
        self.ended = True
        self.written.set()


class SessionOwner:
    """A session as the services see it: the owner of handles, which receives break notices.

    The session refers to its owner, so the owner refers to it weakly. A cycle would keep the whole
    connection until a full pass of the garbage collector.
    """

    def __init__(self, connection: SmbConnection, session: SmbSession) -> None:
        self._connection = connection
        self._session = weakref.ref(session)
        self._opens: dict[int, FileId] = {}
        self._early: dict[int, list[BreakNotice]] = {}
        self.client_guid = connection.negotiated.client_guid
        self.session_id = session.id
        self.peer = connection.peer
        self.user = session.account
        self.protocol = f"SMB {_DIALECTS[connection.negotiated.dialect]}"

    @property
    def alive(self) -> bool:
        """Whether notices can reach its client."""
        return self._connection.is_alive

    def opened(self, handle: Handle, file_id: FileId) -> None:
        """Register the FileId of a handle. Notices that came earlier follow the answer to its
        CREATE."""
        self._opens[handle.id] = file_id
        for notice in self._early.pop(handle.id, ()):
            asyncio.get_running_loop().call_soon(self.notify_break, handle, notice)

    def file_id_of(self, handle: Handle) -> FileId | None:
        return self._opens.get(handle.id)

    def closed(self, handle: Handle) -> None:
        self._opens.pop(handle.id, None)
        self._early.pop(handle.id, None)

    def notify_break(self, handle: Handle, notice: BreakNotice) -> None:
        if notice.kind is not CachingKind.OPLOCK:
            assert not isinstance(notice.key, int)
            body = write_lease_notice(
                LeaseBreakNotice(
                    notice.key[1],
                    int(notice.current),
                    int(notice.to),
                    notice.epoch,
                    must_acknowledge=notice.needs_answer,
                )
            )
            self._send(body, of_lease=True)
            return
        file_id = self._opens.get(handle.id)
        if file_id is None:
            self._early.setdefault(handle.id, []).append(notice)
            return
        body = write_oplock_break(OplockBreak(file_id, level_of(notice.to)))
        self._send(body, of_lease=False)

    def _send(self, body: bytes, *, of_lease: bool) -> None:
        session = self._session()
        if session is not None:  # else it has ended, and nobody waits for the notice
            self._connection.send_break(session, body, of_lease=of_lease)


def level_of(caching: Caching) -> OplockLevel:
    return _LEVEL_OF[caching]


def owner_of(element: SmbElement) -> SessionOwner:
    session = element.session
    if session.owner is None:
        session.owner = SessionOwner(element.connection, session)
    owner = session.owner
    assert isinstance(owner, SessionOwner)
    return owner


def open_of(element: SmbElement) -> SmbOpen:
    """Return the open of an element whose rule needs one."""
    assert element.open is not None, "the rule of the command needs an open"
    return element.open


def file_of(element: SmbElement) -> FileTarget:
    """Raises: SmbError INVALID_DEVICE_REQUEST for a pipe."""
    target = open_of(element).target
    if not isinstance(target, FileTarget):
        raise SmbError(statuses.STATUS_INVALID_DEVICE_REQUEST)
    return target


def handle_of(element: SmbElement) -> Handle:
    return file_of(element).handle


def check_may(handle: Handle, rights: int) -> None:
    """Check that one of the rights was granted. Raises: SmbError ACCESS_DENIED."""
    if not handle.may(rights):
        raise SmbError(file_errors.STATUS_ACCESS_DENIED)
