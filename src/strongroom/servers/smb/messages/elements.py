"""One chain of a compound: its elements are checked, carried out and answered, in order.

Lives here: what an element inherits from its predecessor, interim answers, how refusals become
answers. Must not live here: the checks themselves (checks.py). Source: [MS-SMB2] sections
3.3.5.2.7, 3.3.4.2, 3.3.4.4; smb.md 1.4, 1.7. A single message is a chain of one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from strongroom.errors.core import StorageError
from strongroom.errors.file import STATUS_INVALID_PARAMETER, STATUS_UNSUCCESSFUL
from strongroom.servers.smb.messages import answers
from strongroom.servers.smb.messages.answers import OutgoingMessage, Sealing, answer_header
from strongroom.servers.smb.messages.checks import IncomingMessage, check
from strongroom.servers.smb.messages.observed import observed
from strongroom.servers.smb.refusals import CloseConnection, SmbError
from strongroom.servers.smb.security.signing import has_valid_signature
from strongroom.servers.smb.state.connections import ConnectionState
from strongroom.servers.smb.state.declarations import Needs, SmbAnswer, SmbElement
from strongroom.servers.smb.state.sessions import SmbSession
from strongroom.servers.smb.state.settings import ON_LOOP_BYTES_MAX
from strongroom.wire.smb.commands import Command, name_of
from strongroom.wire.smb.compounds import CompoundElement
from strongroom.wire.smb.errors import NO_DATA, write_error
from strongroom.wire.smb.header import FILE_ID, FileId, Header
from strongroom.wire.smb.setup.negotiate import DIALECT_311
from strongroom.wire.smb.statuses import (
    STATUS_FILE_CLOSED,
    STATUS_INTERNAL_ERROR,
    STATUS_PENDING,
    STATUS_SUCCESS,
    STATUS_USER_SESSION_DELETED,
)
from strongroom.wire.smb.structures import MalformedMessage, Piece

_log: Final = logging.getLogger(__name__)
_NOTIFY_IN_THE_MIDDLE: Final = (
    "a CHANGE_NOTIFY in the middle of a compound is answered INTERNAL_ERROR: "
    "it may wait for ever, so it must be the last request of its compound"
)


class Chain:
    """The ids that elements inherit from their predecessors.

    Attributes:
        create_failure: the status of a CREATE that failed, or of an element that named no open. It
            applies until a later element names an open.
    """

    __slots__ = ("create_failure", "file_id", "has_tree", "session_id", "tree_id")

    def __init__(self, first: Header) -> None:
        self.session_id = first.session_id
        self.tree_id = first.tree_id
        self.has_tree = False
        self.file_id: FileId | None = None
        self.create_failure = STATUS_SUCCESS


class ChainRun:
    """Carries out one chain.

    Arguments:
        elements: its messages; the first may wrongly be related.
        encrypted_by: the session whose key encrypted their frame; None = it was not encrypted.
    """

    def __init__(
        self,
        state: ConnectionState,
        elements: Sequence[CompoundElement],
        encrypted_by: SmbSession | None,
    ) -> None:
        self._state = state
        self._elements = elements
        self._encrypted_by = encrypted_by
        self._chain = Chain(elements[0].header)
        self._answers: list[OutgoingMessage] = []
        self._ungranted: list[Header] = []
        self._async_ids: dict[int, int] = {}  # by number of an element that was answered PENDING

    async def run(self) -> None:
        """Carry out all elements and answer them. Raises: CloseConnection."""
        for number, element in enumerate(self._elements):
            if element.header.command == Command.CANCEL:
                if self._is_of_other_session:
                    continue
                is_encrypted = self._encrypted_by is not None
                self._state.pending.cancel(element.header, is_encrypted=is_encrypted)
            else:
                await self._run_element(number, element)
        await self._send()

    async def _run_element(self, number: int, element: CompoundElement) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        header = element.header
        for observer in self._state.shared.observers:
            observer.begin(None)
        self._ungranted.append(header)
        incoming = await self._incoming(element)
        running: SmbElement | None = None
        try:
            self._check(number, incoming)
            running = self._handler_element(number, element, incoming)
            answer = await self._run_handler(incoming, running)
        except SmbError as refused:
            answer = self._error_answer(refused.status, refused.data)
        except StorageError as refused:
            status = refused.row.ntstatus
            answer = self._error_answer(STATUS_UNSUCCESSFUL if status is None else status)
        except MalformedMessage as refused:
            _log.debug("%s: %s", self._state.peer, refused)
            answer = self._error_answer(STATUS_INVALID_PARAMETER)
        except CloseConnection:
            raise
        except Exception:
            name = name_of(header.command)
            _log.exception("%s: a request of SMB failed: %s", self._state.peer, name)
            answer = self._error_answer(STATUS_INTERNAL_ERROR)
        self._inherit(incoming, answer)
        session = incoming.session if running is None else running.session
        self._add(number, header, answer, session, is_signed=incoming.is_signed)
        seconds = loop.time() - began
        self._state.shared.counts.answered(self._state.peer, header, answer.status, seconds)
        if self._state.shared.observers:
            exchange = observed(self._state.peer, incoming, running, answer, seconds)
            for observer in self._state.shared.observers:
                observer.observe_smb(exchange)

    async def _incoming(self, element: CompoundElement) -> IncomingMessage:
        """Return the element, ready for its checks. A thread computes the signature of a large
        one."""
        state, header = self._state, element.header
        is_related = header.is_related
        incoming = IncomingMessage(
            state.shared.commands.get(header.command),
            header,
            element.message,
            state.sessions,
            session_id=self._chain.session_id if is_related else header.session_id,
            tree_id=self._chain.tree_id if is_related else header.tree_id,
            file_id=self._chain.file_id if is_related else None,
            is_encrypted=self._encrypted_by is not None,
            was_authenticated=state.was_authenticated,
            dialect=state.dialect,
            signing=0 if state.agreed is None else state.agreed.signing,
        )
        if incoming.is_signed and len(element.message) > ON_LOOP_BYTES_MAX:
            keys = None if incoming.session is None else incoming.session.keys
            if keys is not None:
                work = partial(
                    has_valid_signature, incoming.signing, keys.signing, header, element.message
                )
                loop = asyncio.get_running_loop()
                incoming.signature_is_valid = await loop.run_in_executor(state.shared.threads, work)
                if incoming.session is not None and not state.has_session(incoming.session):
                    # It has ended meanwhile, so nobody would end a new tree connect.
                    incoming.session = None
        return incoming

    def _check(self, number: int, incoming: IncomingMessage) -> None:
        """Check an element by itself and in its chain. Raises: SmbError; CloseConnection."""
        if self._elements[0].header.is_related:
            raise SmbError(STATUS_INVALID_PARAMETER)
        if self._is_of_other_session:
            # The frame's key proves nothing about the other session. The answer is the same
            # whether that session exists or not.
            raise SmbError(STATUS_INVALID_PARAMETER if number else STATUS_USER_SESSION_DELETED)
        if number and incoming.has_rule:
            self._check_inherited(incoming)
        if incoming.session is not None:
            self._state.expire_without_key(incoming.session)
        check(incoming)

    @property
    def _is_of_other_session(self) -> bool:
        frame = self._encrypted_by
        return frame is not None and self._elements[0].header.session_id != frame.id

    def _check_inherited(self, incoming: IncomingMessage) -> None:
        needs, chain = incoming.rule.needs, self._chain
        if needs >= Needs.SESSION and not chain.session_id:
            raise SmbError(STATUS_INVALID_PARAMETER)
        if needs >= Needs.TREE and not chain.has_tree:
            raise SmbError(STATUS_INVALID_PARAMETER)
        if needs >= Needs.OPEN and chain.file_id is None:
            raise SmbError(chain.create_failure or STATUS_FILE_CLOSED)

    def _handler_element(
        self, number: int, element: CompoundElement, incoming: IncomingMessage
    ) -> SmbElement:
        running = SmbElement(
            element.header,
            element.message,
            self._state,
            is_encrypted=incoming.is_encrypted,
            # Not with `running`: that cycle would keep the frame until a pass of the collector.
            interim=partial(self._send_interim, number),
            chain_file_id=self._chain.file_id if element.header.is_related else None,
        )
        if incoming.session is not None:
            running.session = incoming.session
        running.tree, running.open = incoming.tree, incoming.open
        return running

    async def _run_handler(self, incoming: IncomingMessage, running: SmbElement) -> SmbAnswer:
        if not self._state.is_alive:
            running.cancelled.set_result(None)
        self._state.pending.begin(running)
        try:
            return await incoming.rule.handler(running)
        finally:
            self._state.pending.end(running)

    def _error_answer(self, status: int, data: bytes = b"") -> SmbAnswer:
        return SmbAnswer(write_error(data, in_context=self._state.dialect == DIALECT_311), status)

    def _inherit(self, incoming: IncomingMessage, answer: SmbAnswer) -> None:
        chain, header = self._chain, incoming.header
        if incoming.session is not None:
            chain.session_id = incoming.session.id
        if answer.tree_id is not None or incoming.tree is not None:
            chain.tree_id = header.tree_id if answer.tree_id is None else answer.tree_id
            if incoming.tree is not None:
                chain.tree_id = incoming.tree.id
            chain.has_tree = True
        if answer.file_id is not None:
            chain.file_id, chain.create_failure = answer.file_id, STATUS_SUCCESS
        elif header.command == Command.CREATE:
            chain.file_id, chain.create_failure = None, answer.status
        elif (
            chain.file_id is None and incoming.has_rule and incoming.rule.file_id_offset is not None
        ):
            try:
                own = FILE_ID.read(incoming.body, incoming.rule.file_id_offset)
            except MalformedMessage:
                return  # the element was refused for the same reason
            if own.is_placeholder:
                # The element named no open itself, so the elements after it fail as it did.
                chain.create_failure = chain.create_failure or answer.status
            else:
                chain.file_id = own

    # Answers.

    def _send_interim(self, number: int, running: SmbElement) -> None:
        """Send the answers so far, and PENDING for this element. In the middle of a chain, only a
        CREATE gets an interim answer; the client waits for all others.

        Raises: SmbError for CHANGE_NOTIFY in the middle, which would delay the rest for ever.
        """
        header = running.header
        is_last = number == len(self._elements) - 1
        if header.command == Command.CHANGE_NOTIFY and not is_last:
            # The status is that of Windows. Any other answer to it is a defect of the server.
            _log.warning("%s: %s", self._state.peer, _NOTIFY_IN_THE_MIDDLE)
            raise SmbError(STATUS_INTERNAL_ERROR)
        if number in self._async_ids or not (is_last or header.command == Command.CREATE):
            return
        async_id = self._state.pending.register_pending(running)
        self._async_ids[number] = async_id
        pending = answer_header(
            header,
            STATUS_PENDING,
            async_id=async_id,
            session_id=_session_id(header, running.session),
        )
        self._answers.append(OutgoingMessage(pending, (NO_DATA,)))
        self._grant()
        ready, self._answers = self._answers, []
        self._state.transmit(answers.frame(ready, self._algorithm, self._sealing()))

    def _add(
        self,
        number: int,
        request: Header,
        answer: SmbAnswer,
        session: SmbSession | None,
        *,
        is_signed: bool,
    ) -> None:
        async_id = self._async_ids.get(number, 0)
        if async_id:
            self._state.pending.remove_pending(async_id)
        key = None
        if session is not None and session.keys is not None and self._encrypted_by is None:
            is_logon = request.command == Command.SESSION_SETUP and not answer.status
            key = session.keys.signing if is_signed or is_logon else None
        # A session that does not exist has no key. The answer to a signed request still claims a
        # signature, of zeros: clients treat any other answer as forged, and close.
        claims_signature = is_signed and request.command != Command.NEGOTIATE
        header = answer_header(
            request,
            answer.status,
            async_id=async_id,
            session_id=_session_id(request, session),
            tree_id=self._chain.tree_id if answer.tree_id is None else answer.tree_id,
            is_signed=key is not None or claims_signature,
        )
        body = answer.body if isinstance(answer.body, tuple) else (answer.body,)
        self._answers.append(OutgoingMessage(header, body, key))

    def _grant(self) -> None:
        """Grant the credits of all elements that got none yet, by the last answer."""
        if not self._ungranted:
            return
        credits = 0
        for request in self._ungranted:
            # Who has not logged on can send one request at a time (smb.md 1.5).
            requested = request.credits if self._state.was_authenticated else 1
            credits += self._state.ids.grant(request.credit_charge, requested)
        self._ungranted = []
        self._answers[-1] = self._answers[-1].with_credits(credits)

    @property
    def _algorithm(self) -> int:
        return 0 if self._state.agreed is None else self._state.agreed.signing

    def _sealing(self) -> Sealing | None:
        session = self._encrypted_by
        if session is None or session.cipher is None:
            return None
        return Sealing(session.cipher, session.cipher.next_nonce())

    async def _send(self) -> None:
        if not self._answers or not self._state.is_alive:
            return
        self._grant()
        ready, sealing = self._answers, self._sealing()
        if _is_long_work(ready, sealing):
            loop = asyncio.get_running_loop()
            pieces: list[Piece] = await loop.run_in_executor(
                self._state.shared.threads, answers.frame, ready, self._algorithm, sealing
            )
            # Many large answers may be ready at once, and sending one takes long too.
            await self._state.shared.services.turns.pause()
        else:
            pieces = answers.frame(ready, self._algorithm, sealing)
        self._state.hash_answer(ready[-1].header, pieces)
        if self._state.is_alive:
            self._state.transmit(pieces)


def _is_long_work(ready: Sequence[OutgoingMessage], sealing: Sealing | None) -> bool:
    size_bytes = sum([one.size_bytes for one in ready])
    if size_bytes <= ON_LOOP_BYTES_MAX:
        return False
    return sealing is not None or any(one.signing_key for one in ready)


def _session_id(request: Header, session: SmbSession | None) -> int:
    """Return the SessionId of an answer. It is the request's own, by which its client finds the
    key. Only SESSION_SETUP answers with a new one."""
    if session is not None and request.command == Command.SESSION_SETUP:
        return session.id
    return request.session_id
