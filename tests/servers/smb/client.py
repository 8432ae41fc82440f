"""An SMB client for tests, which calls a connection's protocol object in memory.

It builds messages with the codecs of the server, and checks signatures and tags itself. The codecs
are tested by test vectors, and by foreign clients.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from strongroom.auth.accounts import Account
from strongroom.auth.ntlm import TO_CLIENT, mechanisms_mic
from strongroom.auth.smb_keys import NO_PREAUTH_HASH, SessionKeys, extended_hash, session_keys
from strongroom.clock import ManualClock
from strongroom.engines.memory import MemoryEngine
from strongroom.errors.core import SHARE_NOT_FOUND, StorageError
from strongroom.errors.file import STATUS_INVALID_PARAMETER
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.smb.security.encryption import SessionCipher
from strongroom.servers.smb.security.signing import signature
from strongroom.servers.smb.state.declarations import CommandTable
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.connection import SmbServerConnection
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.services.core.runner import Services
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.compounds import padding
from strongroom.wire.smb.framing import TRANSFORM_PROTOCOL_ID, prefix
from strongroom.wire.smb.header import (
    HEADER_BYTES,
    SIGNED,
    Header,
    read_header,
    write_header,
)
from strongroom.wire.smb.setup import ntlm
from strongroom.wire.smb.setup.negotiate_contexts import NegotiateContext
from strongroom.wire.smb.statuses import (
    STATUS_MORE_PROCESSING_REQUIRED,
    STATUS_USER_SESSION_DELETED,
)
from strongroom.wire.smb.transform import read_transform
from tests.servers.smb.messages import (
    MECHANISMS,
    agreed,
    authenticate_message,
    first_token,
    last_token,
    negotiate_body,
    negotiate_message,
    session_setup_body,
    token_of,
    tree_connect_body,
)

KEY = b"a key of an account, of any length"
OTHER_KEY = b"the other key"
ACCOUNT = Account("account", (KEY, OTHER_KEY))
SHARE = "share"
PATIENCE_S = 60.0
# Statuses of answers to signed requests for which the server has no key.
NO_KEY = (STATUS_USER_SESSION_DELETED, STATUS_INVALID_PARAMETER)


class Access(msgspec.Struct, frozen=True):
    """The account and the share of a tree connect."""

    account: str
    share: str


async def connect_share(services: Services, account: str, share: str) -> Access:
    """Connect to the one share of every account."""
    if share != SHARE:
        raise StorageError(SHARE_NOT_FOUND)
    return Access(account, share)


class OneAccount:
    """Accounts with one account, which can be replaced."""

    def __init__(self, account: Account = ACCOUNT) -> None:
        self.account = account

    def get(self, name: str) -> Account | None:
        return self.account if name == self.account.name else None


def listener(
    commands: CommandTable | None = None,
    accounts: OneAccount | None = None,
    budget: ConnectionBudget | None = None,
    **settings: Any,
) -> SmbListener:
    """Return a listener that is bound to no socket."""
    clock = ManualClock()
    return SmbListener(
        Services(MemoryEngine(clock), clock),
        OneAccount() if accounts is None else accounts,
        clock,
        SmbSettings(**settings),
        connect_share=connect_share,
        commands={} if commands is None else commands,
        budget=budget,
    )


class MemoryTransport(asyncio.Transport):
    """The transport of a connection that a test drives."""

    def __init__(self, protocol: SmbServerConnection, address: str) -> None:
        super().__init__({"peername": (address, 40000)})
        self._protocol = protocol
        self._sent = bytearray()
        self._ended = False
        self.reads = True
        self.has_sent = asyncio.Event()

    def receive_frame(self) -> bytes | None:
        """Return a whole frame that the server has sent; None if there is none."""
        if len(self._sent) < 4:
            return None
        end = 4 + int.from_bytes(self._sent[1:4], "big")
        if len(self._sent) < end:
            return None
        found = bytes(self._sent[4:end])
        del self._sent[:end]
        return found

    def write(self, data: Any) -> None:
        self._sent += data
        self.has_sent.set()

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._ended

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)
        self.has_sent.set()

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class Closed(Exception):
    """The server has ended the connection."""


class Reply(msgspec.Struct, frozen=True):
    """One answer: its header, its body, and whether its frame was encrypted."""

    header: Header
    body: bytes
    is_encrypted: bool

    @property
    def status(self) -> int:
        return self.header.status


class Client:
    """One connection to a listener.

    Attributes:
        protects: the protection of requests after the logon: "encrypted", "signed" or "".
    """

    def __init__(self, server: SmbListener, address: str = "127.0.0.1") -> None:
        self.server = server
        self.protocol = SmbServerConnection(server)
        self.transport = MemoryTransport(self.protocol, address)
        self.protocol.connection_made(self.transport)
        self._begin()

    def _begin(self) -> None:
        """Reset everything that was negotiated."""
        self.dialect = 0
        self.cipher_id = self.signing_id = 0
        self.session_id = 0
        self.tree_id = 0
        self.keys: SessionKeys | None = None
        self.cipher: SessionCipher | None = None
        self.protects = "encrypted"
        self.next_id = 0
        self.preauth = NO_PREAUTH_HASH
        self.last_token = b""
        self.session_flags = 0

    # Frames.

    def send_raw(self, data: bytes) -> None:
        """Send bytes unchanged."""
        while data:
            buffer = self.protocol.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self.protocol.buffer_updated(count)

    def send_frame(self, payload: bytes) -> None:
        """Send a frame with its length."""
        self.send_raw(prefix(len(payload)) + payload)

    async def frame(self) -> bytes:
        """Return the next frame. Raises: Closed."""
        async with asyncio.timeout(PATIENCE_S):
            while (found := self.transport.receive_frame()) is None:
                if self.transport.is_closing():
                    raise Closed
                self.transport.has_sent.clear()
                await self.transport.has_sent.wait()
        return found

    async def closed(self) -> None:
        """Wait until the server has ended the connection and forgotten it."""
        for _ in range(1_000_000):
            if self.transport.is_closing() and self.protocol not in self.server._connections:
                return
            await asyncio.sleep(0)
        raise AssertionError("the connection has not ended")

    async def replies(self) -> list[Reply]:
        """Return the answers of the next frame, after a check of tags and signatures."""
        payload = await self.frame()
        is_encrypted = payload[:4] == TRANSFORM_PROTOCOL_ID
        if is_encrypted:
            assert self.cipher is not None
            view = memoryview(payload)
            payload = bytes(self.cipher.open(read_transform(view), view))
        found, at = [], 0
        while True:
            header = read_header(payload, at)
            end = at + header.next_command if header.next_command else len(payload)
            is_without_key = header.status in NO_KEY and header.signature == bytes(16)
            if header.flags & SIGNED and not (is_encrypted or is_without_key):
                self._check_signature(header, payload[at:end])
            found.append(Reply(header, payload[at + HEADER_BYTES : end], is_encrypted))
            if not header.next_command:
                return found
            at = end

    async def reply(self) -> Reply:
        """Return the only answer of the next frame."""
        (found,) = await self.replies()
        return found

    # Messages.

    def message(self, command: int, body: bytes, **fields: Any) -> bytes:
        """Return a message with the next id, unless `fields` of the header have another one."""
        values: dict[str, Any] = {
            "command": command,
            "credit_charge": 1,
            "credits": 32,
            "message_id": self.next_id,
            "session_id": self.session_id,
            "tree_id": self.tree_id,
        } | fields
        if "message_id" not in fields:
            self.next_id += max(values["credit_charge"], 1)
        return write_header(Header(**values)) + body

    def send(self, *messages: bytes, protects: str | None = None) -> None:
        """Send messages as one frame, with the client's protection unless `protects` is given."""
        how = self.protects if protects is None else protects
        whole = b""
        for number, message in enumerate(messages, 1):
            if number < len(messages):
                filled = message + padding(len(message))
                step = struct.pack("<I", len(filled))
                message = filled[:20] + step + filled[24:]
            whole += self.signed(message) if how == "signed" and self.keys else message
        if how == "encrypted" and self.cipher is not None:
            whole = b"".join(self.cipher.seal(self.cipher.next_nonce(), [whole]))
        self.send_frame(whole)

    def signed(self, message: bytes) -> bytes:
        """Return the same message with a signature."""
        assert self.keys is not None
        header = read_header(message)
        header = msgspec.structs.replace(header, flags=header.flags | SIGNED, signature=bytes(16))
        pieces = (write_header(header), message[HEADER_BYTES:])
        made = signature(self.signing_id, self.keys.signing, header, pieces, from_server=False)
        return write_header(msgspec.structs.replace(header, signature=made)) + pieces[1]

    async def call(self, command: int, body: bytes, **fields: Any) -> Reply:
        """Send one message, and wait for its answer."""
        self.send(self.message(command, body, **fields))
        return await self.reply()

    def _check_signature(self, header: Header, message: bytes) -> None:
        if header.signature == bytes(16):
            assert header.status in (STATUS_USER_SESSION_DELETED, STATUS_INVALID_PARAMETER)
            return
        keys = self.keys
        assert keys is not None, "signed before there are keys"
        bare = write_header(msgspec.structs.replace(header, signature=bytes(16)))
        expected = signature(
            self.signing_id, keys.signing, header, (bare, message[HEADER_BYTES:]), from_server=True
        )
        assert header.signature == expected

    # Conversations.

    async def negotiate(
        self,
        dialects: Sequence[int] = (0x0300, 0x0302, 0x0311),
        ciphers: Sequence[int] = (1, 2, 3, 4),
        signings: Sequence[int] = (0, 1, 2),
        *,
        can_encrypt: bool = True,
        more: Sequence[NegotiateContext] = (),
    ) -> Reply:
        """Negotiate a dialect.

        Arguments:
            more: contexts that the server may ignore.
        """
        body = negotiate_body(dialects, ciphers, signings, can_encrypt=can_encrypt, more=more)
        message = self.message(Command.NEGOTIATE, body, credits=1)
        self.send(message, protects="")
        payload = await self.frame()
        reply = Reply(read_header(payload), payload[HEADER_BYTES:], is_encrypted=False)
        if not reply.status:
            (self.dialect,) = struct.unpack_from("<H", reply.body, 4)
            self.preauth = extended_hash(extended_hash(NO_PREAUTH_HASH, message), payload)
            self.cipher_id, self.signing_id = agreed(reply.body, self.dialect, can_encrypt)
        return reply

    async def log_on(
        self,
        user: str = ACCOUNT.name,
        key: bytes = KEY,
        *,
        wraps: bool = False,
        previous: int = 0,
        **changes: Any,
    ) -> Reply:
        """Authenticate: NTLMSSP alone, or wrapped into SPNEGO.

        Arguments:
            changes: changes of the NTLM messages; see `authenticate_message`.
        """
        preauth = self.preauth
        first = negotiate_message()
        token = first_token(first) if wraps else first
        reply, preauth = await self._setup(token, preauth, previous)
        if reply.status != STATUS_MORE_PROCESSING_REQUIRED:
            return reply
        self.session_id = reply.header.session_id
        challenge = token_of(reply.body)
        if wraps:
            challenge = challenge[challenge.index(ntlm.SIGNATURE) :]
        last, shared = authenticate_message(first, challenge, user, key, **changes)
        if wraps:
            last = last_token(last, shared)
        is_new = self.keys is None
        message, preauth = self._setup_message(last, preauth, previous)
        if is_new:
            keys = session_keys(shared, self.dialect, self.cipher_id, preauth)
            self.keys = keys
            mirrored = SessionKeys(keys.signing, keys.encryption, keys.decryption, keys.application)
            self.cipher = (
                SessionCipher(self.cipher_id, mirrored, self.session_id) if self.cipher_id else None
            )
        self.send(message, protects="" if is_new else None)
        reply = await self.reply()
        if reply.status:
            if is_new:
                self.keys = self.cipher = None
            return reply
        self.session_flags = struct.unpack_from("<H", reply.body, 2)[0]
        self.last_token = token_of(reply.body)
        if wraps:
            mic = mechanisms_mic(shared, TO_CLIENT, MECHANISMS, exchanged=True)
            assert self.last_token.endswith(mic)
        return reply

    async def connect(self, share: str = SHARE) -> Reply:
        """Connect to a share."""
        reply = await self.call(Command.TREE_CONNECT, tree_connect_body(rf"\\server\{share}"))
        if not reply.status:
            self.tree_id = reply.header.tree_id
        return reply

    async def _setup(self, token: bytes, preauth: bytes, previous: int) -> tuple[Reply, bytes]:
        message, preauth = self._setup_message(token, preauth, previous)
        self.send(message, protects=None if self.keys else "")
        if self.keys is not None:
            return await self.reply(), preauth
        payload = await self.frame()
        reply = Reply(read_header(payload), payload[HEADER_BYTES:], is_encrypted=False)
        return reply, extended_hash(preauth, payload)

    def _setup_message(self, token: bytes, preauth: bytes, previous: int) -> tuple[bytes, bytes]:
        body = session_setup_body(token, previous=previous)
        message = self.message(Command.SESSION_SETUP, body)
        return message, extended_hash(preauth, message)


async def connected(server: SmbListener, address: str = "127.0.0.1", **log_on: Any) -> Client:
    """Return a client that has negotiated, logged on, and connected to a share."""
    client = Client(server, address)
    assert not (await client.negotiate()).status
    assert not (await client.log_on(**log_on)).status
    assert not (await client.connect()).status
    return client
