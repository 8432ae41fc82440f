"""One SMB connection: bytes from a socket become chains that are carried out; answers go back.

Lives here: the socket's events, decryption, checks of whole frames, flow control. Must not live
here: checks of one message (checks.py), commands. Source: [MS-SMB2] sections 3.3.5.1, 3.3.5.2.1 to
3.3.5.2.3; smb.md 1.1, 1.3 (rows 1 to 5), 1.5, 5.1.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from strongroom.servers.smb.elements import ChainRun
from strongroom.servers.smb.refusals import CloseConnection
from strongroom.servers.smb.sessions import Ending, SmbSession
from strongroom.servers.smb.settings import ON_LOOP_BYTES_MAX
from strongroom.servers.smb.setup_commands import negotiate_answer
from strongroom.servers.smb.state import ConnectionState, SmbShared
from strongroom.wire.smb import compounds
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.compounds import CompoundElement
from strongroom.wire.smb.framing import (
    ENCRYPTED_MARK,
    SMB1_MARK,
    SMB2_MARK,
    FrameAssembler,
    prefix,
)
from strongroom.wire.smb.header import SERVER_TO_REDIR, Header, write_header
from strongroom.wire.smb.setup.negotiate import WILDCARD, offers_smb2, write_negotiate
from strongroom.wire.smb.structures import MalformedMessage, Piece
from strongroom.wire.smb.transform import TransformHeader, read_transform

_log: Final = logging.getLogger("strongroom.smb")
_MARK_BYTES: Final = 4
_WRITE_HIGH_BYTES: Final = 1024 * 1024
# Where requests that wait for something else than their client's CANCEL are given up.
_END_PATIENCE_S: Final = 10.0


class SmbOwner(Protocol):
    """Counts connections and the memory of their requests (listener.py)."""

    draining: bool

    @property
    def is_full(self) -> bool: ...

    def admit(self, connection: SmbServerConnection, address: str) -> bool: ...

    def forget(self, connection: SmbServerConnection) -> None: ...

    def busy(self, more: int) -> None: ...


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
        self._waiting: deque[memoryview] = deque()  # frames that come after one in a thread
        self._is_decrypting = False
        self._running: set[asyncio.Task[None]] = set()
        self._busy_bytes = 0
        self._is_stuck = False  # the client does not read its answers
        self._is_first = True
        self._authenticate_by: float | None = None
        self._progress_at = 0.0
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
        transport.set_write_buffer_limits(high=_WRITE_HIGH_BYTES)
        now = asyncio.get_running_loop().time()
        self._authenticate_by = now + self._shared.settings.authenticate_s
        self._progress_at = now
        if not self._owner.admit(self, address):
            self._close("there are too many connections")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._progress_at = asyncio.get_running_loop().time()
        try:
            for frame in self._frames.received(nbytes):
                self._shared.counts.received_bytes += len(frame)
                self._arrived(frame)
        except (MalformedMessage, CloseConnection) as error:
            self._close(str(error))

    def pause_writing(self) -> None:
        self._is_stuck = True
        self._pace()

    def resume_writing(self) -> None:
        self._is_stuck = False
        self._pace()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        assert self.state is not None
        self.state.is_alive = False
        self._waiting.clear()
        self.state.pending.cancel_all()
        self._ending = asyncio.get_running_loop().create_task(self._end())

    # For the listener.

    @property
    def is_idle(self) -> bool:
        """Whether nobody is authenticated and nothing is in work."""
        return not (self._running or self._waiting or (self.state and self.state.sessions))

    @property
    def busy_bytes(self) -> int:
        """The bytes of requests in work."""
        return self._busy_bytes

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def finish(self) -> None:
        """Take no more requests, and end when those in work are answered."""
        if self._transport is not None:
            self._transport.pause_reading()
        self._waiting.clear()
        if self.state is not None:
            self.state.pending.cancel_waiting()
        if not self._running and not self._is_decrypting and self._transport is not None:
            self._transport.close()

    def sweep(self, now: float) -> None:
        """End the connection if it is late.

        Arguments:
            now: of the loop's clock.
        """
        if self._authenticate_by is not None and now > self._authenticate_by:
            self._close("nobody was authenticated in time")
        stalls = self._frames.is_inside and not self._is_paused()
        limit_s = self._shared.settings.stalled_s
        if (stalls or self._is_stuck) and now > self._progress_at + limit_s:
            self._close("the client has stalled")

    def pace(self) -> None:
        """Read, or do not read, from the socket, as there is memory."""
        self._pace()

    # Frames.

    def _arrived(self, frame: memoryview) -> None:
        self._busy(len(frame))
        if self._is_decrypting or self._waiting:
            self._waiting.append(frame)
        else:
            self._begin(frame)

    def _begin(self, frame: memoryview) -> None:
        """Start to work on a frame. Raises: MalformedMessage; CloseConnection."""
        mark = bytes(frame[:_MARK_BYTES])
        is_first, self._is_first = self._is_first, False
        if mark == SMB2_MARK:
            self._start(frame, None, len(frame))
        elif mark == ENCRYPTED_MARK:
            self._decrypt(frame)
        elif mark == SMB1_MARK and is_first:
            self._answer_smb1(frame)
        else:
            raise CloseConnection("a frame of another protocol")

    def _answer_smb1(self, frame: memoryview) -> None:
        assert self.state is not None
        if not offers_smb2(frame):
            raise CloseConnection("the client speaks no dialect of SMB 3")
        ids = self.state.ids
        ids.take(0, 1)
        header = Header(command=Command.NEGOTIATE, credits=ids.grant(1, 1), flags=SERVER_TO_REDIR)
        body = write_negotiate(negotiate_answer(self.state, WILDCARD))
        self._transmit([write_header(header), body])
        self._busy(-len(frame))

    def _decrypt(self, frame: memoryview) -> None:
        assert self.state is not None
        header = read_transform(frame)
        session = self.state.sessions.get(header.session_id)
        if session is None or session.cipher is None:
            raise CloseConnection("an encrypted frame of no session")
        if len(frame) <= ON_LOOP_BYTES_MAX:
            self._start(session.cipher.open(header, frame), session, len(frame))
            return
        self._is_decrypting = True
        self._spawn(self._decrypt_in_thread(header, frame, session))

    async def _decrypt_in_thread(
        self, header: TransformHeader, frame: memoryview, session: SmbSession
    ) -> None:
        assert session.cipher is not None
        loop = asyncio.get_running_loop()
        try:
            plain = await loop.run_in_executor(
                self._shared.threads, session.cipher.open, header, frame
            )
            self._start(plain, session, len(frame))
            self._is_decrypting = False
            while self._waiting and not self._is_decrypting:
                self._begin(self._waiting.popleft())
        except MalformedMessage as error:
            raise CloseConnection(str(error)) from None
        finally:
            self._is_decrypting = False

    def _start(
        self, frame: memoryview, encrypted_by: SmbSession | None, received_bytes: int
    ) -> None:
        assert self.state is not None
        if not self.state.is_alive:
            return
        elements = compounds.split(frame)
        self._check(elements, encrypted_by)
        for chain in compounds.chains(elements):
            size = received_bytes if chain[-1] is elements[-1] else 0
            self._spawn(self._carry_out(ChainRun(self.state, chain, encrypted_by), size))

    def _check(self, elements: Sequence[CompoundElement], encrypted_by: SmbSession | None) -> None:
        """The checks of a whole frame. Raises: CloseConnection."""
        assert self.state is not None
        negotiates = elements[0].header.command == Command.NEGOTIATE
        if self.state.agreed is None and (not negotiates or len(elements) > 1):
            raise CloseConnection("the first message is no NEGOTIATE")
        if encrypted_by is not None:
            _check_encrypted(elements, encrypted_by.id)
        for element in elements:
            header = element.header
            if header.command == Command.CANCEL:
                continue
            if not self.state.ids.take(header.message_id, header.credit_charge):
                raise CloseConnection(f"message id {header.message_id} is not to be used")

    async def _carry_out(self, run: ChainRun, size: int) -> None:
        try:
            await run.run()
        finally:
            self._busy(-size)

    # Tasks.

    def _spawn(self, work: asyncio._CoroutineLike[None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            error = task.exception()
            if isinstance(error, CloseConnection):
                self._close(str(error))
            elif error is not None:
                _log.error("a chain of SMB messages failed", exc_info=error)
                self.abort()
        if self._owner.draining and not self._running:
            self.finish()

    # Memory and pace.

    def _busy(self, more: int) -> None:
        self._busy_bytes += more
        self._owner.busy(more)
        self._pace()

    def _is_paused(self) -> bool:
        limit = self._shared.settings.busy_bytes_max
        is_full = self._owner.is_full and self._busy_bytes > 0
        return self._is_stuck or self._busy_bytes > limit or is_full

    def _pace(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or self._owner.draining:
            return
        if self._is_paused():
            transport.pause_reading()
        else:
            transport.resume_reading()

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
        """Wait for what is in work, and end all sessions."""
        assert self.state is not None
        try:
            for session in list(self.state.sessions.values()):
                await self.state.end_session(session, Ending.DISCONNECTED)
            if self._running:
                await asyncio.wait(self._running, timeout=_END_PATIENCE_S)
            left = list(self._running)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            # What began before the end may have made more of them.
            for session in list(self.state.sessions.values()):
                await self.state.end_session(session, Ending.DISCONNECTED)
        finally:
            self._owner.forget(self)


def _check_encrypted(elements: Sequence[CompoundElement], session_id: int) -> None:
    """All messages of an encrypted frame are of its session. Raises: CloseConnection."""
    for number, element in enumerate(elements):
        is_related = element.header.is_related
        if is_related and number:
            continue
        if is_related or element.header.session_id != session_id:
            raise CloseConnection("an encrypted message of another session")
