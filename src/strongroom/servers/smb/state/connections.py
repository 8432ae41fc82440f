"""The state that the connections of a listener share, and the state of one connection.

Lives here: both as plain state. Must not live here: sockets (connection.py). Source: [MS-SMB2]
sections 3.3.1.5, 3.3.1.7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Any

from strongroom.auth.accounts import Accounts
from strongroom.auth.smb_keys import NO_PREAUTH_HASH, extended_hash
from strongroom.clock import Clock
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.observers import RequestObserver
from strongroom.servers.smb.security.logon_delays import LogonDelays
from strongroom.servers.smb.security.old_clients import OldClients
from strongroom.servers.smb.state.declarations import CommandTable, Negotiated
from strongroom.servers.smb.state.message_ids import MessageIds
from strongroom.servers.smb.state.observing import SmbCounts
from strongroom.servers.smb.state.pending import PendingRequests
from strongroom.servers.smb.state.sessions import ALL_TREES_MAX, SharedLimit, SmbSession
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.services.core.runner import Services
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import ALL_ONES, SERVER_TO_REDIR, Header, write_header
from strongroom.wire.smb.statuses import STATUS_MORE_PROCESSING_REQUIRED, STATUS_SUCCESS
from strongroom.wire.smb.structures import Piece

ConnectShare = Callable[[Services, str, str], Awaitable[Any]]
"""Returns the ShareAccess of a share. The arguments are the services, the account's name and the
share's name."""


class SmbShared:
    """The state that the connections of a listener share.

    Arguments:
        threads: runs encryption and signatures of large messages.
        observers: are told of each message.

    Attributes:
        sessions: of all connections, by their ids.
        trees: the tree connects that may still be added.
    """

    def __init__(
        self,
        services: Services,
        accounts: Accounts,
        clock: Clock,
        settings: SmbSettings,
        *,
        connect_share: ConnectShare,
        commands: CommandTable,
        threads: Executor,
        observers: Sequence[RequestObserver] = (),
    ) -> None:
        self.services = services
        self.accounts = accounts
        self.clock = clock
        self.settings = settings
        self.connect_share = connect_share
        self.commands = {int(command): rule for command, rule in commands.items()}
        self.threads = threads
        self.observers = observers
        self.server_guid = clock.random_bytes(16)
        self.delays = LogonDelays()
        self.old_clients = OldClients(requires_encryption=settings.requires_encryption)
        self.counts = SmbCounts()
        self.sessions: dict[int, tuple[ConnectionState, SmbSession]] = {}
        self.trees = SharedLimit(ALL_TREES_MAX)

    def random_id(self) -> int:
        """Return 64 unpredictable bits."""
        return int.from_bytes(self.clock.random_bytes(8), "little")

    def new_session_id(self) -> int:
        while True:
            session_id = self.random_id()
            if session_id not in (0, ALL_ONES) and session_id not in self.sessions:
                return session_id


class ConnectionState:
    """The state of one connection; handlers get it as their SmbConnection.

    Arguments:
        peer: the client's address and port.
        transmit: sends a frame, given in pieces and without its length.
        authenticated: is called when a session is authenticated.

    Attributes:
        preauth: the hash over the messages of NEGOTIATE.
        was_authenticated: whether the connection has, or had, an authenticated session.
    """

    def __init__(
        self,
        shared: SmbShared,
        address: str,
        port: int,
        *,
        transmit: Callable[[list[Piece]], None],
        authenticated: Callable[[], None],
    ) -> None:
        self.shared = shared
        self.address = address
        self.peer = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        self.transmit = transmit
        self.authenticated = authenticated
        self.ids = MessageIds()
        self.pending = PendingRequests(shared.settings.pending_max)
        self.sessions: dict[int, SmbSession] = {}
        self.agreed: Negotiated | None = None
        self.preauth = NO_PREAUTH_HASH
        self.is_alive = True
        self.was_authenticated = False

    @property
    def services(self) -> Services:
        return self.shared.services

    @property
    def negotiated(self) -> Negotiated:
        assert self.agreed is not None
        return self.agreed

    @property
    def dialect(self) -> int:
        """The dialect that was agreed on; 0 before that."""
        return 0 if self.agreed is None else self.agreed.dialect

    @property
    def io_bytes_max(self) -> int:
        return self.shared.settings.io_bytes_max

    def add_session(self) -> SmbSession:
        """Return a new session that is yet to be authenticated."""
        session = SmbSession(self.shared.new_session_id(), self.shared.random_id, self.shared.trees)
        session.preauth = self.preauth
        self.sessions[session.id] = session
        self.shared.sessions[session.id] = (self, session)
        return session

    def has_session(self, session: SmbSession) -> bool:
        """Return whether a session of this connection has not ended."""
        return self.sessions.get(session.id) is session

    def expire_without_key(self, session: SmbSession) -> None:
        """Let a session expire if its account has no longer the key by which it was authenticated.
        A client that has another key can authenticate it again."""
        if session.is_valid and not session.is_expired:
            account = self.shared.accounts.get(session.account)
            session.is_expired = account is None or session.account_key not in account.keys

    async def end_session(self, session: SmbSession, reason: DisconnectReason) -> None:
        """Remove a session, and end its tree connects and opens. Idempotent."""
        if self.has_session(session):
            del self.sessions[session.id]
            del self.shared.sessions[session.id]
        self.pending.cancel_without_open(session)
        await session.end(reason)

    def hash_answer(self, header: Header, pieces: Sequence[Piece]) -> None:
        """Add an answer to the preauthentication hash, which binds keys to what was negotiated.
        This concerns the answer of NEGOTIATE, and those of a first authentication except the
        last."""
        if header.command == Command.NEGOTIATE and header.status == STATUS_SUCCESS:
            self.preauth = extended_hash(self.preauth, b"".join(pieces))
        elif header.status == STATUS_MORE_PROCESSING_REQUIRED:
            session = self.sessions.get(header.session_id)
            if session is not None and not session.is_valid:
                session.preauth = extended_hash(session.preauth, b"".join(pieces))

    def send_break(self, session: SmbSession, body: bytes, *, of_lease: bool) -> None:
        if not self.is_alive:
            return
        header = Header(
            command=Command.OPLOCK_BREAK,
            flags=SERVER_TO_REDIR,
            message_id=ALL_ONES,
            session_id=0 if of_lease else session.id,
        )
        pieces: list[Piece] = [write_header(header), body]
        if session.must_encrypt and session.cipher is not None:
            pieces = session.cipher.seal(session.cipher.next_nonce(), pieces)
        self.shared.counts.breaks += 1
        self.transmit(pieces)
