"""One SMB connection: it reads frames from a socket, has them carried out, and sends the answers.

Lives here: the socket's events, tasks, flow control, the end. Must not live here: the content of
frames (intake.py), commands. Source: [MS-SMB2] section 3.3.5.1; smb.md 1.1, 5.1.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.connections.budget import WaitingConnection
from strongroom.servers.connections.idle_sockets import is_quiet
from strongroom.servers.smb.messages.intake import FrameIntake
from strongroom.servers.smb.refusals import CloseConnection
from strongroom.servers.smb.state.connections import ConnectionState, SmbShared
from strongroom.servers.smb.state.settings import ON_LOOP_BYTES_MAX
from strongroom.wire.smb.framing import (
    FrameAssembler,
    prefix,
)
from strongroom.wire.smb.structures import MalformedMessage, Piece

_log: Final = logging.getLogger("strongroom.smb")
_WRITE_HIGH_BYTES: Final = 1024 * 1024
# How long the end of a connection waits for its requests before they are cancelled.
_CLOSE_TIMEOUT_S: Final = 10.0
# Six probes, ten seconds apart, after a minute of silence.
_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
# The lowest rate at which a frame may arrive, beside the time that it may stall.
_RATE_MIN_BYTES_PER_S: Final = 16 * 1024


def _keep_alive(transport: asyncio.Transport) -> None:
    """Enable TCP keep-alive. A client that loses its power or its network never closes its
    connection, and would otherwise hold its opens and locks for ever."""
    found: socket.socket | None = transport.get_extra_info("socket")
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):  # macOS lacks some
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class SmbOwner(Protocol):
    """Counts connections and the memory of their requests (listener.py)."""

    draining: bool

    @property
    def is_full(self) -> bool: ...

    def admit(self, connection: SmbServerConnection, address: str) -> bool: ...

    def forget(self, connection: SmbServerConnection) -> None: ...

    def add_busy_bytes(self, delta_bytes: int) -> None: ...


class SmbServerConnection(asyncio.BufferedProtocol):
    """One connection.

    Arguments:
        owner: counts connections and their memory.
        shared: what all connections share.
    """

    def __init__(self, owner: SmbOwner, shared: SmbShared) -> None:
        self._owner = owner
        self._shared = shared
        self._frames = FrameAssembler(shared.settings.first_frames_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._busy_bytes = 0
        self._is_write_blocked = False  # the client does not read its answers
        self._intake: FrameIntake | None = None
        self._authenticate_by: float | None = None
        self._progress_at = 0.0
        self._frame_began_at = 0.0
        self._is_reading = True
        self._ending: asyncio.Task[None] | None = None
        self.state: ConnectionState | None = None

    # Events of the socket.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        self.state = ConnectionState(
            self._shared,
            address,
            port,
            transmit=self._transmit,
            authenticated=self._authenticated,
        )
        self._intake = FrameIntake(self.state, self._spawn, self._add_busy_bytes, self._may_begin)
        transport.set_write_buffer_limits(high=_WRITE_HIGH_BYTES)
        _keep_alive(transport)
        now = asyncio.get_running_loop().time()
        self._authenticate_by = now + self._shared.settings.authenticate_s
        self._progress_at = now
        self._frame_began_at = now
        if not self._owner.admit(self, address):
            self._close("there are too many connections")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._progress_at = asyncio.get_running_loop().time()
        assert self._intake is not None
        if not self._frames.is_frame_incomplete:
            self._frame_began_at = self._progress_at
        try:
            for frame in self._frames.received(nbytes):
                self._frame_began_at = self._progress_at
                self._shared.counts.received_bytes += len(frame)
                self._intake.receive_frame(frame)
        except (MalformedMessage, CloseConnection) as error:
            self._close(str(error))

    def pause_writing(self) -> None:
        self._is_write_blocked = True
        self._update_reading()

    def resume_writing(self) -> None:
        self._is_write_blocked = False
        self._update_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        assert self.state is not None and self._intake is not None
        self.state.is_alive = False
        self._intake.clear()
        self.state.pending.cancel_all()
        self._ending = asyncio.get_running_loop().create_task(self._end())

    # For the listener.

    @property
    def is_idle(self) -> bool:
        """Whether the connection has no session and no request in progress."""
        return not self._running and self.state is not None and not self.state.sessions

    @property
    def busy_bytes(self) -> int:
        """The bytes of requests in progress."""
        return self._busy_bytes

    def waiting(self) -> WaitingConnection | None:
        """Return since when the connection waits for its client; None if it does not wait.

        A connection with an authenticated session never gives way. Its client would lose its opens
        and locks.
        """
        state = self.state
        if state is None or not state.is_alive or self._running or self._busy_bytes:
            return None
        if any(session.is_valid for session in state.sessions.values()):
            return None
        # A logon has begun with NEGOTIATE. It has ended if there is no session after it.
        is_logging_on = state.sessions or (state.agreed and not state.was_authenticated)
        has_begun = bool(is_logging_on) or self._frames.is_frame_incomplete
        since = self._progress_at
        if has_begun and self._authenticate_by is not None:
            # Progress does not count, or a logon in small pieces would never give way.
            since = self._authenticate_by - self._shared.settings.authenticate_s
        return WaitingConnection(has_begun, since, self, self.give_way)

    def give_way(self, since: float) -> bool:
        """End the connection for a newcomer, unless it no longer waits since then, or has bytes to
        receive or to send."""
        waiting, transport = self.waiting(), self._transport
        if waiting is None or waiting.since != since or transport is None:
            return False
        if transport.get_write_buffer_size() or not is_quiet(transport):
            return False
        self._close("a newcomer needs its place")
        return True

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def finish(self) -> None:
        """Read no more requests, and close the connection when those in progress are answered."""
        if self._transport is None or self.state is None or self._intake is None:
            return
        self._transport.pause_reading()
        self._intake.clear()
        self.state.pending.cancel_waiting()
        if not self._running:
            self._transport.close()

    def sweep(self, now: float) -> None:
        """Close the connection if it has exceeded a time limit.

        Arguments:
            now: of the loop's clock.
        """
        if self._authenticate_by is not None and now > self._authenticate_by:
            self._close("nobody was authenticated in time")
        stalls = self._frames.is_frame_incomplete and not self._is_paused()
        limit_s = self._shared.settings.stalled_s
        if (stalls or self._is_write_blocked) and now > self._progress_at + limit_s:
            self._close("the client has stalled")
        frame_s = limit_s + self._frames.frame_bytes_max / _RATE_MIN_BYTES_PER_S
        if stalls and now > self._frame_began_at + frame_s:
            self._close("a frame has come too slowly")

    def pause_or_resume_reading(self) -> None:
        """Pause or resume reading from the socket, depending on how much memory is free."""
        self._update_reading()

    # Tasks.

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._running.add(asyncio.get_running_loop().create_task(self._run(work)))

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work to its end in this task. A callback at the task's end would take a further turn
        of the loop."""
        try:
            await work
        except CloseConnection as error:
            self._close(str(error))
        except Exception:
            _log.exception("a chain of SMB messages failed")
            self.abort()
        finally:
            task = asyncio.current_task()
            assert task is not None, "it runs in a task of its own"
            self._running.discard(task)
            if self._owner.draining and not self._running:
                self.finish()
            else:
                self._update_reading()

    # Memory and pace.

    def _add_busy_bytes(self, delta_bytes: int) -> None:
        if not delta_bytes:
            return
        self._busy_bytes += delta_bytes
        self._owner.add_busy_bytes(delta_bytes)
        self._update_reading()

    def _is_paused(self) -> bool:
        limit = self._shared.settings.busy_bytes_max
        is_full = self._owner.is_full and self._busy_bytes > 0
        return self._is_write_blocked or self._busy_bytes > limit or is_full

    def _update_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or self._owner.draining:
            return
        if self._is_paused():
            transport.pause_reading()
            self._is_reading = False
        elif not self._is_reading:
            # Time during which reading was paused does not count as slow.
            self._frame_began_at = asyncio.get_running_loop().time()
            self._is_reading = True
            transport.resume_reading()
        assert self._intake is not None
        if not self._intake.has_waiting:
            return
        try:
            self._intake.begin_frames()
        except (MalformedMessage, CloseConnection) as error:
            self._close(str(error))

    def _may_begin(self) -> bool:
        """Return whether another frame may be carried out. One may always run, whatever memory
        other connections hold, unless the client does not read its answers. Requests that were
        answered PENDING do not count, since CHANGE_NOTIFY may wait for ever."""
        if self._is_write_blocked or self._transport is None or self._transport.is_closing():
            return False
        assert self.state is not None
        is_working = len(self._running) > self.state.pending.waiting_count
        return not is_working or not self._is_paused()

    # Answers and the end.

    def _transmit(self, pieces: list[Piece]) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        size = sum(map(len, pieces))
        self._shared.counts.sent_bytes += size
        self._progress_at = asyncio.get_running_loop().time()
        if size <= ON_LOOP_BYTES_MAX:
            self._transport.write(b"".join((prefix(size), *pieces)))
        else:
            self._transport.write(b"".join((prefix(size), *pieces[:-1])))
            self._transport.write(pieces[-1])
        # A request that got an interim answer only waits, so another frame may begin.
        self._update_reading()

    def _authenticated(self) -> None:
        self._authenticate_by = None
        self._frames.frame_bytes_max = self._shared.settings.frames_bytes_max

    def _close(self, reason: str) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        peer = "" if self.state is None else self.state.peer
        _log.debug("%s: the connection is ended: %s", peer, reason)
        self._transport.abort()

    async def _end(self) -> None:
        """Wait for the requests in progress, and end all sessions."""
        assert self.state is not None
        try:
            for session in list(self.state.sessions.values()):
                await self.state.end_session(session, DisconnectReason.DISCONNECTED)
            if self._running:
                await asyncio.wait(self._running, timeout=_CLOSE_TIMEOUT_S)
            left = list(self._running)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            # Requests in progress may have added sessions meanwhile.
            for session in list(self.state.sessions.values()):
                await self.state.end_session(session, DisconnectReason.DISCONNECTED)
        finally:
            # All refer to this connection. Without the cycles, its memory is freed at once.
            self.state = self._intake = self._transport = None
            self._owner.forget(self)
