"""The commands that set a connection up and take it down.

Lives here: NEGOTIATE, SESSION_SETUP, LOGOFF, TREE_CONNECT, TREE_DISCONNECT, ECHO. Must not live
here: the proof of the caller's identity (authentication.py), the choices of NEGOTIATE
(negotiation.py). Source: [MS-SMB2] sections 3.3.5.4 to 3.3.5.8, 3.3.5.15; smb.md 2.1 to 2.3.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.auth.smb_keys import extended_hash, session_keys
from strongroom.errors.file import (
    STATUS_ACCESS_DENIED,
    STATUS_BAD_NETWORK_NAME,
)
from strongroom.semantics.file.attributes import filetime
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.smb.messages.negotiation import (
    NO_CIPHER,
    answer_contexts,
    binding_refusal,
    negotiated,
)
from strongroom.servers.smb.refusals import CloseConnection, SmbError
from strongroom.servers.smb.security.authentication import (
    Authentication,
    ContinueLogon,
    LoggedOn,
    LogonFailed,
)
from strongroom.servers.smb.security.encryption import SessionCipher
from strongroom.servers.smb.state.connections import ConnectionState
from strongroom.servers.smb.state.declarations import CommandRule, Needs, SmbAnswer, SmbElement
from strongroom.servers.smb.state.sessions import SmbSession
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.requests import bodies
from strongroom.wire.smb.setup import (
    negotiate,
    session_setup,
    spnego,
    tree_connect,
)
from strongroom.wire.smb.setup.session_setup import SessionSetup
from strongroom.wire.smb.setup.tree_connect import TreeConnected
from strongroom.wire.smb.statuses import (
    STATUS_INSUFFICIENT_RESOURCES,
    STATUS_LOGON_FAILURE,
    STATUS_MORE_PROCESSING_REQUIRED,
    STATUS_NOT_SUPPORTED,
    STATUS_USER_SESSION_DELETED,
)
from strongroom.wire.smb.structures import MalformedMessage

_PIPES: Final = "IPC$"
_FULL_ACCESS: Final = 0x1F_01FF
_EMPTY_ANSWER: Final = SmbAnswer(bodies.PLAIN_BODY)
_SALT_BYTES: Final = 32
_CHALLENGE_BYTES: Final = 8


def _state(element: SmbElement) -> ConnectionState:
    assert isinstance(element.connection, ConnectionState)
    return element.connection


def negotiate_answer(state: ConnectionState, dialect: int) -> negotiate.NegotiateResponse:
    """Return an answer to NEGOTIATE without contexts."""
    shared = state.shared
    agreed = state.agreed
    return negotiate.NegotiateResponse(
        security_mode=negotiate.SIGNING_ENABLED | negotiate.SIGNING_REQUIRED,
        dialect=dialect,
        server_guid=shared.server_guid,
        capabilities=negotiate.CAN_USE_LARGE_MTU if agreed is None else agreed.capabilities,
        io_bytes_max=state.io_bytes_max,
        system_time=filetime(shared.clock.wall_ticks()),
        token=spnego.write_offer(),
    )


async def _negotiate(element: SmbElement) -> SmbAnswer:
    state = _state(element)
    if state.agreed is not None:
        raise CloseConnection("a second NEGOTIATE")
    request = negotiate.read_negotiate(element.message)
    shared = state.shared
    requires_encryption = shared.settings.requires_encryption
    try:
        agreed = negotiated(request, shared.server_guid, requires_encryption=requires_encryption)
    except SmbError as refused:
        if refused.status == STATUS_NOT_SUPPORTED:
            shared.old_clients.refused(state.address, max(request.dialects))
        raise
    salt = shared.clock.random_bytes(_SALT_BYTES)
    contexts = answer_contexts(request, agreed, salt)
    state.agreed = agreed
    state.preauth = extended_hash(state.preauth, element.message)
    answer = negotiate_answer(state, agreed.dialect)
    return SmbAnswer(negotiate.write_negotiate(answer.with_contexts(contexts)))


async def _session_setup(element: SmbElement) -> SmbAnswer:
    state = _state(element)
    request = session_setup.read_session_setup(element.message)
    if state.shared.settings.requires_encryption and state.negotiated.cipher == NO_CIPHER:
        raise SmbError(STATUS_ACCESS_DENIED)
    # This comes before any session is looked up: a refused binding must not change one.
    if request.is_binding:
        raise SmbError(_binding_refusal(element, state))
    session = _session_of(element, state)
    element.session = session
    if not session.is_valid:
        session.preauth = extended_hash(session.preauth, element.message)
    authentication = session.authentication
    # The authentication takes no other token until this one is answered.
    session.authentication = None
    if authentication is None:
        authentication = _new_authentication(state)
    try:
        result = await _process_token(element, state, authentication, request.token)
        if isinstance(result, ContinueLogon):
            session.authentication = authentication
            body = session_setup.write_session_setup(result.token)
            return SmbAnswer(body, STATUS_MORE_PROCESSING_REQUIRED)
        return await _finish_logon(state, session, request, result)
    except (LogonFailed, MalformedMessage, SmbError) as error:
        await state.end_session(session, DisconnectReason.LOGGED_OFF)
        if isinstance(error, LogonFailed):
            now = asyncio.get_running_loop().time()
            state.shared.counts.logon_failed(authentication.user.lower(), state.address, now)
            raise SmbError(STATUS_LOGON_FAILURE) from None
        raise


def _binding_refusal(element: SmbElement, state: ConnectionState) -> int:
    ours = state.negotiated.signing
    bound = state.shared.sessions.get(element.header.session_id)
    return binding_refusal(ours if bound is None else bound[0].negotiated.signing, ours)


def _session_of(element: SmbElement, state: ConnectionState) -> SmbSession:
    session_id = element.header.session_id
    if session_id:
        session = state.sessions.get(session_id)
        if session is None or (not session.is_valid and session.authentication is None):
            raise SmbError(STATUS_USER_SESSION_DELETED)
        return session
    if len(state.sessions) >= state.shared.settings.sessions_max:
        raise SmbError(STATUS_INSUFFICIENT_RESOURCES)
    return state.add_session()


def _new_authentication(state: ConnectionState) -> Authentication:
    clock = state.shared.clock
    return Authentication(
        state.shared.settings.server_name,
        clock.random_bytes(_CHALLENGE_BYTES),
        filetime(clock.wall_ticks()),
    )


async def _process_token(
    element: SmbElement, state: ConnectionState, authentication: Authentication, token: bytes
) -> ContinueLogon | LoggedOn:
    """Process a token. A proof waits for the delay of its address's failures, whatever name it
    tries. Raises: LogonFailed; MalformedMessage; SmbError(CANCELLED)."""
    shared = state.shared
    if not authentication.is_last_step:
        return authentication.step(token, shared.accounts)
    wait_s = shared.delays.reserve(state.address, asyncio.get_running_loop().time())
    if wait_s is None:
        raise LogonFailed
    if wait_s:
        await element.wait_or_cancel(asyncio.sleep(wait_s))
    result = authentication.step(token, shared.accounts)
    shared.delays.succeeded(state.address)
    return result


async def _finish_logon(
    state: ConnectionState, session: SmbSession, request: SessionSetup, result: LoggedOn
) -> SmbAnswer:
    if not state.has_session(session):
        raise SmbError(STATUS_USER_SESSION_DELETED)
    if session.is_valid:
        # Reauthentication keeps keys, tree connects and opens, so the caller must be the same.
        if session.account != result.account.name:
            raise LogonFailed
        session.account_key, session.is_expired = result.account_key, False
    else:
        _begin_session(state, session, request, result)
        await _end_previous(state, session, request.previous_session_id)
    flags = session_setup.ENCRYPT_DATA if session.must_encrypt else 0
    return SmbAnswer(session_setup.write_session_setup(result.token, flags))


def _begin_session(
    state: ConnectionState, session: SmbSession, request: SessionSetup, result: LoggedOn
) -> None:
    agreed = state.negotiated
    keys = session_keys(result.key, agreed.dialect, agreed.cipher, session.preauth)
    session.account, session.account_key = result.account.name, result.account_key
    session.workstation = result.workstation
    session.keys = keys
    if agreed.cipher != NO_CIPHER:
        session.cipher = SessionCipher(agreed.cipher, keys, session.id)
    session.must_encrypt = state.shared.settings.requires_encryption
    session.must_sign = not session.must_encrypt
    state.was_authenticated = True
    state.authenticated()


async def _end_previous(state: ConnectionState, session: SmbSession, previous_id: int) -> None:
    """End the client's session of before it lost its connection, if it is of the same account."""
    registered = state.shared.sessions.get(previous_id)
    if registered is None or registered[1] is session or registered[1].account != session.account:
        return
    other_state, previous = registered
    if previous.is_valid:
        await other_state.end_session(previous, DisconnectReason.DISCONNECTED)


async def _logoff(element: SmbElement) -> SmbAnswer:
    await _state(element).end_session(element.session, DisconnectReason.LOGGED_OFF)
    return _EMPTY_ANSWER


async def _tree_connect(element: SmbElement) -> SmbAnswer:
    state, session = _state(element), element.session
    path = tree_connect.read_tree_connect(element.message)
    name = path.share
    if len(name) > tree_connect.SHARE_CHARS_MAX:
        raise SmbError(STATUS_BAD_NETWORK_NAME)
    access, kind = None, tree_connect.PIPE
    if name.upper() != _PIPES:
        shared = state.shared
        kind = tree_connect.DISK
        access = await shared.connect_share(shared.services, session.account, name.lower())
        if not state.has_session(session):
            raise SmbError(STATUS_USER_SESSION_DELETED)
    tree = session.add_tree(name, access)
    flags = tree_connect.NO_CACHING if kind == tree_connect.DISK else 0
    flags |= tree_connect.ENCRYPT_DATA if session.must_encrypt else 0
    body = tree_connect.write_tree_connected(TreeConnected(kind, flags, _FULL_ACCESS))
    return SmbAnswer(body, tree_id=tree.id)


async def _tree_disconnect(element: SmbElement) -> SmbAnswer:
    assert element.tree is not None
    _state(element).pending.cancel_without_open(element.session, element.tree)
    await element.session.end_tree(element.tree)
    return _EMPTY_ANSWER


async def _echo(element: SmbElement) -> SmbAnswer:
    return _EMPTY_ANSWER


SETUP_RULES: Final = (
    CommandRule(Command.NEGOTIATE, negotiate.REQUEST_SIZE, Needs.NOTHING, _negotiate),
    CommandRule(Command.SESSION_SETUP, session_setup.REQUEST_SIZE, Needs.NOTHING, _session_setup),
    CommandRule(
        Command.LOGOFF,
        bodies.PLAIN_STRUCTURE_SIZE,
        Needs.SESSION,
        _logoff,
        allowed_when_expired=True,
    ),
    CommandRule(Command.TREE_CONNECT, tree_connect.REQUEST_SIZE, Needs.SESSION, _tree_connect),
    CommandRule(Command.TREE_DISCONNECT, bodies.PLAIN_STRUCTURE_SIZE, Needs.TREE, _tree_disconnect),
    CommandRule(Command.ECHO, bodies.PLAIN_STRUCTURE_SIZE, Needs.NOTHING, _echo),
)
