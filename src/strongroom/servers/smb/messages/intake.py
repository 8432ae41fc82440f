"""The frames of one connection: decrypted, checked as a whole, and carried out as chains.

Lives here: the order of frames, checks of whole frames. Must not live here: sockets
(connection.py), checks of one message (checks.py). Source: [MS-SMB2] sections 3.3.5.2.1 to
3.3.5.2.3, 3.3.5.3.1; smb.md 1.3 (rows 1 to 5), 1.5.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from strongroom.servers.smb.messages.elements import ChainRun
from strongroom.servers.smb.messages.setup_commands import negotiate_answer
from strongroom.servers.smb.refusals import CloseConnection
from strongroom.servers.smb.state.connections import ConnectionState
from strongroom.servers.smb.state.sessions import SmbSession
from strongroom.servers.smb.state.settings import ON_LOOP_BYTES_MAX
from strongroom.wire.smb import compounds
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.compounds import CompoundElement
from strongroom.wire.smb.framing import SMB1_PROTOCOL_ID, SMB2_PROTOCOL_ID, TRANSFORM_PROTOCOL_ID
from strongroom.wire.smb.header import HEADER_BYTES, SERVER_TO_REDIR, Header, write_header
from strongroom.wire.smb.setup.negotiate import (
    DIALECT_202,
    WILDCARD,
    Smb1Offer,
    smb1_offer,
    write_negotiate,
)
from strongroom.wire.smb.structures import MalformedMessage
from strongroom.wire.smb.transform import TransformHeader, read_transform

_PROTOCOL_ID_BYTES: Final = 4


class FrameIntake:
    """Takes the frames of one connection, in their order.

    Arguments:
        spawn: runs work in a task of its own; a CloseConnection that it raises ends the connection.
        add_busy_bytes: counts the memory of frames in progress, and of their possible answers.
        may_begin: whether there is memory for another frame's answer.
    """

    def __init__(
        self,
        state: ConnectionState,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        add_busy_bytes: Callable[[int], None],
        may_begin: Callable[[], bool],
    ) -> None:
        self._state = state
        self._spawn = spawn
        self._add_busy_bytes = add_busy_bytes
        self._may_begin = may_begin
        self._waiting: deque[memoryview] = deque()  # for memory, or for a frame in a thread
        self._is_decrypting = False
        self._is_beginning = False
        self._is_first = True

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    @property
    def is_empty(self) -> bool:
        """Whether no frame waits to be carried out."""
        return not self._waiting and not self._is_decrypting

    def clear(self) -> None:
        self._waiting.clear()

    def receive_frame(self, frame: memoryview) -> None:
        """Take a frame. Raises: MalformedMessage; CloseConnection."""
        self._waiting.append(frame)
        self._add_busy_bytes(len(frame))
        self.begin_frames()

    def begin_frames(self) -> None:
        """Begin waiting frames while there is memory. A small request may have a large answer, and
        a client may send thousands and read none.

        Raises: MalformedMessage; CloseConnection.
        """
        if self._is_beginning:
            return
        self._is_beginning = True
        try:
            while self._waiting and not self._is_decrypting and self._may_begin():
                self._begin(self._waiting.popleft())
        finally:
            self._is_beginning = False

    def _begin(self, frame: memoryview) -> None:
        protocol_id = bytes(frame[:_PROTOCOL_ID_BYTES])
        is_first, self._is_first = self._is_first, False
        if protocol_id == SMB2_PROTOCOL_ID:
            self._start(frame, None, len(frame))
        elif protocol_id == TRANSFORM_PROTOCOL_ID:
            self._decrypt(frame)
        elif protocol_id == SMB1_PROTOCOL_ID and is_first:
            self._answer_smb1(frame)
        else:
            raise CloseConnection("a frame of another protocol")

    def _answer_smb1(self, frame: memoryview) -> None:
        offer = smb1_offer(frame)
        if offer is not Smb1Offer.LATER:
            dialect = DIALECT_202 if offer is Smb1Offer.SMB_202 else None
            self._state.shared.old_clients.refused(self._state.address, dialect)
            raise CloseConnection(f"the client offers {offer.value} at most")
        ids = self._state.ids
        ids.consume(0, 1)
        header = Header(command=Command.NEGOTIATE, credits=ids.grant(1, 1), flags=SERVER_TO_REDIR)
        body = write_negotiate(negotiate_answer(self._state, WILDCARD))
        self._state.transmit([write_header(header), body])
        self._add_busy_bytes(-len(frame))

    def _decrypt(self, frame: memoryview) -> None:
        header = read_transform(frame)
        session = self._state.sessions.get(header.session_id)
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
            try:
                plain = await loop.run_in_executor(
                    self._state.shared.threads, session.cipher.open, header, frame
                )
                self._start(plain, session, len(frame))
            finally:
                # This comes before the next frame begins, which may be decrypted in a thread too.
                self._is_decrypting = False
            self.begin_frames()
        except MalformedMessage as error:
            raise CloseConnection(str(error)) from None

    def _start(
        self, frame: memoryview, encrypted_by: SmbSession | None, received_bytes: int
    ) -> None:
        if not self._state.is_alive:
            return
        elements = compounds.split(frame)
        self._check(elements, encrypted_by)
        chains = [
            (chain, sum(map(self._answer_bytes, chain)))
            for chain in compounds.related_chains(elements)
        ]
        answer_bytes = sum([size for _, size in chains])
        if answer_bytes > self._state.shared.settings.busy_bytes_max:
            raise CloseConnection(f"a frame that asks for {answer_bytes} bytes")
        self._add_busy_bytes(answer_bytes)
        for chain, size in chains:
            size += received_bytes if chain[-1] is elements[-1] else 0
            self._spawn(self._carry_out(ChainRun(self._state, chain, encrypted_by), size))

    def _answer_bytes(self, element: CompoundElement) -> int:
        """Return how large the answer may be if it is made at once. Larger answers than permitted
        are refused."""
        shared, body = self._state.shared, element.message[HEADER_BYTES:]
        rule = shared.commands.get(element.header.command)
        if rule is None or not rule.has_large_answer or len(body) < rule.request_size & ~1:
            return 0
        return min(rule.payload(body), shared.settings.io_bytes_max)

    def _check(self, elements: Sequence[CompoundElement], encrypted_by: SmbSession | None) -> None:
        """Make the checks of a whole frame. Raises: CloseConnection."""
        negotiates = elements[0].header.command == Command.NEGOTIATE
        if self._state.agreed is None and (not negotiates or len(elements) > 1):
            raise CloseConnection("the first message is no NEGOTIATE")
        if encrypted_by is not None:
            _check_encrypted(elements[0].header, encrypted_by.id)
        for element in elements:
            header = element.header
            if header.command == Command.CANCEL:
                continue
            if not self._state.ids.consume(header.message_id, header.credit_charge):
                raise CloseConnection(f"message id {header.message_id} is not to be used")

    async def _carry_out(self, run: ChainRun, size: int) -> None:
        try:
            await run.run()
        finally:
            self._add_busy_bytes(-size)


def _check_encrypted(first: Header, session_id: int) -> None:
    """Check that the first message of an encrypted frame is of the frame's session.

    The specification also closes the connection for two more faults. These are a first message that
    is related, and a later chain of another session. Both are only refused here (elements.py), as
    Samba does, since the same frames are only refused without encryption.
    """
    if first.session_id != session_id:
        raise CloseConnection("an encrypted message of another session")
