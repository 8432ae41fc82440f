"""The checks of every message before its command is carried out, in this order.

Lives here: the checks as one table. Must not live here: checks of a whole frame (intake.py), checks
that only one command needs (commands/). Source: [MS-SMB2] sections 3.3.5.2 to 3.3.5.2.11; smb.md
1.3, whose numbers the rows carry, and 1.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from strongroom.errors.file import (
    STATUS_ACCESS_DENIED,
    STATUS_FILE_NOT_AVAILABLE,
    STATUS_INVALID_PARAMETER,
)
from strongroom.servers.smb.refusals import CloseConnection, SmbError
from strongroom.servers.smb.security.signing import has_valid_signature
from strongroom.servers.smb.state.declarations import CommandRule, Needs
from strongroom.servers.smb.state.sessions import SmbOpen, SmbSession, TreeConnect
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import (
    FILE_ID,
    HEADER_BYTES,
    SIGNED,
    FileId,
    Header,
)
from strongroom.wire.smb.setup.negotiate import DIALECT_300, DIALECT_311
from strongroom.wire.smb.statuses import (
    STATUS_FILE_CLOSED,
    STATUS_NETWORK_NAME_DELETED,
    STATUS_NETWORK_SESSION_EXPIRED,
    STATUS_NOT_SUPPORTED,
    STATUS_USER_SESSION_DELETED,
)

# Only commands that carry data may be longer.
SMALL_MESSAGE_BYTES_MAX: Final = 68 * 1024
_CREDIT_BYTES: Final = 64 * 1024
_SEQUENCE_BEHIND: Final = 0x8000
_CLOSE: Final = -1
_NO_RULE: Final[Any] = None
_COMMANDS: Final = frozenset(Command)
_ALLOWED_UNENCRYPTED: Final = frozenset({Command.NEGOTIATE, Command.SESSION_SETUP})


class IncomingMessage:
    """A message during its checks, and what the checks find: its session, tree connect and open.

    Arguments:
        session_id, tree_id: of the header, or of the chain's predecessor.
        file_id: of the chain's predecessor; None = the message's own.
        is_encrypted: whether it came in an encrypted frame.
        sessions: those of the connection, by their ids.
        was_authenticated: whether the connection has, or had, an authenticated session.
        dialect, signing: what was negotiated; 0 before that.

    Attributes:
        has_rule: whether the server supports the command.
        rule: of its command; it is read only after the check that there is one.
        body: the message behind its header.
        is_signed: whether it has a signature to check; in encrypted frames signatures are ignored.
        is_whole: whether the body has the size that its command requires.
    """

    def __init__(
        self,
        rule: CommandRule | None,
        header: Header,
        message: memoryview,
        sessions: Mapping[int, SmbSession],
        *,
        session_id: int,
        tree_id: int,
        file_id: FileId | None = None,
        is_encrypted: bool = False,
        was_authenticated: bool = True,
        dialect: int = DIALECT_311,
        signing: int = 0,
    ) -> None:
        self.header = header
        self.message = message
        self.dialect = dialect
        self.signing = signing
        self.is_encrypted = is_encrypted
        self.was_authenticated = was_authenticated
        self.session = sessions.get(session_id)
        self.names_session = session_id != 0
        self.has_rule = rule is not None
        self.rule: CommandRule = _NO_RULE if rule is None else rule
        self.body = message[HEADER_BYTES:]
        self.is_signed = bool(header.flags & SIGNED) and not is_encrypted
        self.is_whole = rule is not None and _is_whole(rule, self.body)
        self.tree: TreeConnect | None = None
        self.open: SmbOpen | None = None
        self.signature_is_valid: bool | None = None  # None = not computed yet
        self._tree_id = tree_id
        self._chain_file_id = file_id

    @property
    def needs(self) -> Needs:
        """How far the checks go. ECHO may name a session, which is then checked."""
        if self.rule.command == Command.ECHO and self.names_session:
            return Needs.SESSION
        return self.rule.needs

    def find_tree(self) -> bool:
        assert self.session is not None
        self.tree = self.session.trees.get(self._tree_id)
        return self.tree is not None

    def find_open(self) -> bool:
        """Look up the message's open. Returns whether it exists and belongs to its tree connect."""
        assert self.session is not None and self.rule.file_id_offset is not None
        file_id, is_inherited = self._chain_file_id, self._chain_file_id is not None
        if file_id is None:
            file_id = FILE_ID.read(self.body, self.rule.file_id_offset)
        try:
            self.open = self.session.find_open(file_id, is_inherited=is_inherited)
        except SmbError:
            return False
        return self.open.tree is self.tree


class Check(msgspec.Struct, frozen=True):
    """One row of the table. A message that fails it is answered with `failure`, or its connection
    is closed."""

    number: int
    passes: Callable[[IncomingMessage], bool]
    failure: int = _CLOSE


def _is_command(incoming: IncomingMessage) -> bool:
    return incoming.has_rule or incoming.header.command in _COMMANDS


def _is_served(incoming: IncomingMessage) -> bool:
    return incoming.has_rule


def _is_of_allowed_size(incoming: IncomingMessage) -> bool:
    return incoming.rule.is_large or len(incoming.message) <= SMALL_MESSAGE_BYTES_MAX


def _echo_follows_a_session(incoming: IncomingMessage) -> bool:
    return incoming.rule.command != Command.ECHO or incoming.was_authenticated


def _negotiate_is_unsigned(incoming: IncomingMessage) -> bool:
    return incoming.rule.command != Command.NEGOTIATE or not incoming.is_signed


def _signer_is_known(incoming: IncomingMessage) -> bool:
    if not incoming.is_signed or _names_session_elsewhere(incoming):
        return True
    return incoming.session is not None and incoming.session.is_valid


def _names_session_elsewhere(incoming: IncomingMessage) -> bool:
    """Return whether a SESSION_SETUP names no session of this connection. Its handler refuses it
    with the right status. This connection has no key to check its signature."""
    is_setup = incoming.rule.command == Command.SESSION_SETUP
    return is_setup and incoming.names_session and incoming.session is None


def _signature_is_valid(incoming: IncomingMessage) -> bool:
    if not incoming.is_signed or _names_session_elsewhere(incoming):
        return True
    if incoming.signature_is_valid is not None:
        return incoming.signature_is_valid
    assert incoming.session is not None and incoming.session.keys is not None
    return has_valid_signature(
        incoming.signing, incoming.session.keys.signing, incoming.header, incoming.message
    )


def _is_protected(incoming: IncomingMessage) -> bool:
    must_sign = incoming.session is not None and incoming.session.must_sign
    return not must_sign or incoming.is_signed or incoming.is_encrypted


def _tree_connect_is_protected(incoming: IncomingMessage) -> bool:
    return (
        incoming.rule.command != Command.TREE_CONNECT
        or incoming.dialect != DIALECT_311
        or incoming.is_signed
        or incoming.is_encrypted
    )


def _credits_pay(incoming: IncomingMessage) -> bool:
    if not incoming.is_whole:
        return True  # the next check refuses this message
    payload = incoming.rule.payload(incoming.body)
    return max(incoming.header.credit_charge, 1) >= (max(payload, 1) - 1) // _CREDIT_BYTES + 1


def _body_is_whole(incoming: IncomingMessage) -> bool:
    return incoming.is_whole


def _is_whole(rule: CommandRule, body: memoryview) -> bool:
    size = int.from_bytes(body[:2], "little")
    if size not in (rule.request_size, rule.alternative_request_size):
        return False
    # An odd size counts the first byte of a variable part, which may be missing.
    return len(body) >= size & ~1


def _session_is_known(incoming: IncomingMessage) -> bool:
    return incoming.needs < Needs.SESSION or (
        incoming.session is not None and incoming.session.is_valid
    )


def _session_has_not_expired(incoming: IncomingMessage) -> bool:
    if incoming.needs < Needs.SESSION or incoming.rule.allowed_when_expired:
        return True
    return incoming.session is not None and not incoming.session.is_expired


def _is_encrypted_as_it_must(incoming: IncomingMessage) -> bool:
    if incoming.is_encrypted or incoming.rule.command in _ALLOWED_UNENCRYPTED:
        return True
    return incoming.session is None or not incoming.session.must_encrypt


def _tree_is_known(incoming: IncomingMessage) -> bool:
    return incoming.needs < Needs.TREE or incoming.find_tree()


def _open_is_known(incoming: IncomingMessage) -> bool:
    return incoming.needs < Needs.OPEN or incoming.find_open()


def _sequence_is_current(incoming: IncomingMessage) -> bool:
    """Check the ChannelSequence ([MS-SMB2] 3.3.5.2.10), with one channel. A request with an old
    sequence was sent before the client lost its connection. It may not change anything any more,
    repeated or not. Headers of 2.1 have no ChannelSequence.

    Operations of the lost connection have ended before its opens are given back. So the counts of
    requests under way, which the section compares, are always 0.
    """
    if incoming.dialect < DIALECT_300:
        return True
    if incoming.open is None and incoming.rule.checks_channel_sequence and not incoming.find_open():
        # IOCTL needs no open.
        incoming.open = None
    if incoming.open is None:
        return True
    ahead = (incoming.header.channel_sequence - incoming.open.channel_sequence) & 0xFFFF
    if ahead < _SEQUENCE_BEHIND:
        incoming.open.channel_sequence = incoming.header.channel_sequence
        return True
    return not incoming.rule.checks_channel_sequence


# Row 16 of smb.md is missing: sessions require encryption, single shares do not.
CHECKS: Final = (
    # Row 3 would close the connection; Windows and Samba answer an unknown command number.
    Check(3, _is_command, STATUS_INVALID_PARAMETER),
    Check(3, _is_served, STATUS_NOT_SUPPORTED),
    Check(3, _is_of_allowed_size),
    Check(4, _echo_follows_a_session),
    Check(6, _negotiate_is_unsigned, STATUS_INVALID_PARAMETER),
    Check(7, _signer_is_known, STATUS_USER_SESSION_DELETED),
    Check(8, _signature_is_valid, STATUS_ACCESS_DENIED),
    Check(9, _is_protected, STATUS_ACCESS_DENIED),
    Check(9, _tree_connect_is_protected),
    Check(10, _credits_pay, STATUS_INVALID_PARAMETER),
    Check(11, _body_is_whole, STATUS_INVALID_PARAMETER),
    Check(12, _session_is_known, STATUS_USER_SESSION_DELETED),
    Check(13, _session_has_not_expired, STATUS_NETWORK_SESSION_EXPIRED),
    Check(14, _is_encrypted_as_it_must, STATUS_ACCESS_DENIED),
    Check(15, _tree_is_known, STATUS_NETWORK_NAME_DELETED),
    Check(17, _open_is_known, STATUS_FILE_CLOSED),
    Check(18, _sequence_is_current, STATUS_FILE_NOT_AVAILABLE),
)


def check(incoming: IncomingMessage) -> None:
    """Check a message by all rows. Raises: SmbError; CloseConnection."""
    for row in CHECKS:
        if not row.passes(incoming):
            if row.failure == _CLOSE:
                raise CloseConnection(f"{row.passes.__name__} is false")
            raise SmbError(row.failure)
