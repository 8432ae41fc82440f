"""One SMB connection: it reads frames from a socket, has them carried out, and sends the answers.

Lives here: the translation of the socket's callbacks into events, and the execution of the table's
actions. Must not live here: the table (life.py), the content of frames (intake.py). Source:
[MS-SMB2] section 3.3.5.1; smb.md 1.1, 5.1.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.connections.budget import WaitingConnection
from strongroom.servers.connections.idle_sockets import is_quiet
from strongroom.servers.smb.messages.intake import FrameIntake
from strongroom.servers.smb.refusals import CloseConnection
from strongroom.servers.smb.state.connections import ConnectionState, SmbShared
from strongroom.servers.smb.state.settings import ON_LOOP_BYTES_MAX
from strongroom.servers.smb.transport import life
from strongroom.servers.smb.transport.in_progress import RequestsInProgress, SharedMemory
from strongroom.servers.smb.transport.life import SmbAction, SmbEvent, SmbPhase
from strongroom.servers.smb.transport.pacing import SmbPacing
from strongroom.wire.smb.framing import FrameAssembler, prefix
from strongroom.wire.smb.structures import MalformedMessage, Piece

_log: Final = logging.getLogger("strongroom.smb")
_WRITE_HIGH_BYTES: Final = 1024 * 1024
# How long the end of a connection waits for its requests before they are cancelled.
_CLOSE_TIMEOUT_S: Final = 10.0
# Six probes, ten seconds apart, after a minute of silence.
_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
# Module constants, since an attribute access on an enumeration costs a call in Python 3.11.
_MEMORY_FULL, _MEMORY_FREE = SmbEvent.MEMORY_FULL, SmbEvent.MEMORY_FREE


def _keep_alive(transport: asyncio.Transport) -> None:
    """Enable TCP keep-alive. A client that loses its power or its network never closes its
    connection, and would otherwise hold its opens and locks for ever."""
    client: socket.socket | None = transport.get_extra_info("socket")
    if client is None or client.family not in (socket.AF_INET, socket.AF_INET6):
        return
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):  # macOS lacks some
            client.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class SmbOwner(SharedMemory, Protocol):
    """Counts connections and the memory of their requests (listener.py)."""

    shared: SmbShared

    def admit(self, connection: SmbServerConnection, address: str) -> bool: ...

    def forget(self, connection: SmbServerConnection, address: str) -> None: ...


class SmbServerConnection(asyncio.BufferedProtocol):
    """One connection.

    Arguments:
        owner: counts connections and their memory, and has what all connections share.

    Attributes:
        state: what handlers know of the connection.
        pacing: its times.
    """

    # connection_made sets these, and FORGET removes those that refer to this connection.
    _transport: asyncio.Transport
    _requests: RequestsInProgress
    _intake: FrameIntake
    state: ConnectionState
    pacing: SmbPacing

    def __init__(self, owner: SmbOwner) -> None:
        self._owner = owner
        self._frames = FrameAssembler(owner.shared.settings.first_frames_bytes_max)
        self._phase = SmbPhase.READING
        self._ending: asyncio.Task[None] | None = None  # a task that nobody refers to may vanish

    # Events of the socket.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        shared, settings = self._owner.shared, self._owner.shared.settings
        address, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        self.state = ConnectionState(
            shared, address, port, transmit=self._transmit, authenticated=self._authenticated
        )
        requests = self._requests = RequestsInProgress(
            self._owner, settings.busy_bytes_max, self._on, self.check_memory
        )
        self._intake = FrameIntake(
            self.state, requests.spawn, requests.add_busy_bytes, self._may_begin
        )
        transport.set_write_buffer_limits(high=_WRITE_HIGH_BYTES)
        _keep_alive(transport)
        self.pacing = SmbPacing(settings, asyncio.get_running_loop().time())
        if not self._owner.admit(self, address):
            self._on(SmbEvent.REFUSED, "there are too many connections")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._phase not in life.RECEIVING:
            return
        pacing, shared = self.pacing, self._owner.shared
        now = pacing.progress_at = asyncio.get_running_loop().time()
        if not self._frames.is_frame_incomplete:
            pacing.frame_began_at = now
        try:
            for frame in self._frames.received(nbytes):
                pacing.frame_began_at = now
                shared.counts.received_bytes += len(frame)
                self._intake.receive_frame(frame)
        except (MalformedMessage, CloseConnection) as error:
            self._on(SmbEvent.RULE_BROKEN, str(error))

    def pause_writing(self) -> None:
        self._on(SmbEvent.WRITE_BLOCKED)

    def resume_writing(self) -> None:
        self._on(SmbEvent.WRITABLE)

    def eof_received(self) -> bool:
        self._on(SmbEvent.EOF)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._on(SmbEvent.LOST)

    # Events, and their actions.

    def _on(self, event: SmbEvent, reason: str = "") -> None:
        """`reason` is why the connection may have to end, for the log."""
        row = life.TABLE[self._phase].get(event)
        if row is None:
            return
        self._phase, actions = row
        for action in actions:
            _ACTIONS[action](self, reason)

    def check_memory(self) -> None:
        """Pause or resume reading, and begin frames that wait, as the memory allows."""
        if self._phase in life.BEGINNING:
            self._on(_MEMORY_FULL if self._requests.is_memory_full else _MEMORY_FREE)

    # For the listener.

    def waiting(self) -> WaitingConnection | None:
        """A connection with an authenticated session never gives way. Its client would lose its
        opens and locks."""
        if self._phase not in life.RECEIVING or not self._requests.is_none:
            return None
        state = self.state
        if any(session.is_valid for session in state.sessions.values()):
            return None
        # A logon has begun with NEGOTIATE. It has ended if there is no session after it.
        is_logging_on = state.sessions or (state.agreed and not state.was_authenticated)
        has_begun = bool(is_logging_on) or self._frames.is_frame_incomplete
        since = self.pacing.waits_since(has_begun=has_begun)
        return WaitingConnection(has_begun, since, self, self.give_way)

    def give_way(self, since: float) -> bool:
        waiting = self.waiting()
        if waiting is None or waiting.since != since:
            return False
        if self._transport.get_write_buffer_size() or not is_quiet(self._transport):
            return False
        self._on(SmbEvent.GIVE_WAY, "a newcomer needs its place")
        return True

    def abort(self) -> None:
        self._on(SmbEvent.ABORT)

    def close_if_idle(self) -> None:
        """End the connection unless it has a session or a request in progress."""
        if self._phase in life.ANSWERING and not self._requests and not self.state.sessions:
            self._on(SmbEvent.ABORT)

    def finish(self) -> None:
        """Read no more requests, and close the connection when those in progress are answered."""
        self._on(SmbEvent.STOP)

    def sweep(self, now: float) -> None:
        """`now` is of the loop's clock."""
        frames = self._frames
        bytes_max = frames.frame_bytes_max if frames.is_frame_incomplete else None
        for event, reason in self.pacing.late(now, bytes_max):
            self._on(event, reason)

    # For the frames and their answers.

    def _may_begin(self) -> bool:
        """Return whether another frame may be carried out. One may always run, whatever memory
        other connections hold, unless the client does not read its answers. Requests that were
        answered PENDING do not count, since CHANGE_NOTIFY may wait for ever."""
        if self._phase not in life.BEGINNING:
            return False
        is_working = len(self._requests) > self.state.pending.waiting_count
        return not is_working or not self._requests.is_memory_full

    def _transmit(self, pieces: list[Piece]) -> None:
        transport = self._transport
        # A transport closes itself after an error, one turn of the loop before it is LOST.
        if self._phase not in life.ANSWERING or transport.is_closing():
            return
        size = sum(map(len, pieces))
        self._owner.shared.counts.sent_bytes += size
        self.pacing.progress_at = asyncio.get_running_loop().time()
        if size <= ON_LOOP_BYTES_MAX:
            transport.write(b"".join((prefix(size), *pieces)))
        else:
            transport.write(b"".join((prefix(size), *pieces[:-1])))
            transport.write(pieces[-1])
        # A request that got an interim answer only waits, so another frame may begin.
        self.check_memory()

    def _authenticated(self) -> None:
        self.pacing.logged_on()
        self._frames.frame_bytes_max = self._owner.shared.settings.frames_bytes_max

    # Actions of the table.

    async def _end(self) -> None:
        """Wait for the requests in progress, and end all sessions."""
        try:
            await _end_sessions(self.state)
            await self._requests.end(_CLOSE_TIMEOUT_S)
            # Requests in progress may have added sessions meanwhile.
            await _end_sessions(self.state)
        finally:
            self._on(SmbEvent.ENDED)

    def _forget(self) -> None:
        self._requests.free_memory()
        address = self.state.address
        # All refer to this connection. Without the cycles, its memory is freed at once.
        del self.state, self._intake, self._requests, self._transport
        self._owner.forget(self, address)


async def _end_sessions(state: ConnectionState) -> None:
    for session in list(state.sessions.values()):
        await state.end_session(session, DisconnectReason.DISCONNECTED)


_Do = Callable[[SmbServerConnection, str], None]


def _resume_reading(connection: SmbServerConnection, reason: str) -> None:
    # Time during which reading was paused does not count as slow.
    connection.pacing.frame_began_at = asyncio.get_running_loop().time()
    connection._transport.resume_reading()


def _begin_frames(connection: SmbServerConnection, reason: str) -> None:
    if not connection._intake.has_waiting:
        return
    try:
        connection._intake.begin_frames()
    except (MalformedMessage, CloseConnection) as error:
        connection._on(SmbEvent.RULE_BROKEN, str(error))


def _check_answered(connection: SmbServerConnection, reason: str) -> None:
    if not connection._requests:
        connection._on(SmbEvent.ALL_ANSWERED)


def _abort_socket(connection: SmbServerConnection, reason: str) -> None:
    if reason:
        _log.debug("%s: the connection is ended: %s", connection.state.peer, reason)
    connection._transport.abort()


def _end_sessions_soon(connection: SmbServerConnection, reason: str) -> None:
    connection.state.is_alive = False
    connection._ending = asyncio.get_running_loop().create_task(connection._end())


_ACTIONS: Final[Mapping[SmbAction, _Do]] = {
    SmbAction.PAUSE_READING: lambda c, _: c._transport.pause_reading(),
    SmbAction.RESUME_READING: _resume_reading,
    SmbAction.CHECK_MEMORY: lambda c, _: c.check_memory(),
    SmbAction.BEGIN_FRAMES: _begin_frames,
    SmbAction.DROP_FRAMES: lambda c, _: c._intake.clear(),
    SmbAction.CANCEL_WAITING: lambda c, _: c.state.pending.cancel_waiting(),
    SmbAction.CANCEL_ALL: lambda c, _: c.state.pending.cancel_all(),
    SmbAction.CHECK_ANSWERED: _check_answered,
    SmbAction.CLOSE: lambda c, _: c._transport.close(),
    SmbAction.ABORT_SOCKET: _abort_socket,
    SmbAction.END_SESSIONS: _end_sessions_soon,
    SmbAction.FORGET: lambda c, _: c._forget(),
}
