"""The order of checks: each message that breaks one rule gets the answer of that rule."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from strongroom.auth.accounts import Account
from strongroom.errors.file import (
    STATUS_ACCESS_DENIED,
    STATUS_FILE_NOT_AVAILABLE,
    STATUS_INVALID_PARAMETER,
)
from strongroom.servers.smb.messages.checks import CHECKS
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import REPLAY_OPERATION, SIGNED, FileId, read_header, write_header
from strongroom.wire.smb.statuses import (
    STATUS_FILE_CLOSED,
    STATUS_LOGON_FAILURE,
    STATUS_NETWORK_NAME_DELETED,
    STATUS_NETWORK_SESSION_EXPIRED,
    STATUS_NOT_SUPPORTED,
    STATUS_USER_SESSION_DELETED,
)
from tests.servers.smb.client import (
    ACCOUNT,
    KEY,
    OTHER_KEY,
    Client,
    Closed,
    OneAccount,
    Reply,
    connected,
    listener,
)
from tests.servers.smb.commands import TestCommands, create, file_id_of, of_open, transfer
from tests.servers.smb.messages import PLAIN, negotiate_body, tree_connect_body
from tests.servers.smb.test_conversations import run

PATH = tree_connect_body(r"\\server\share")


async def opened(**settings: Any) -> tuple[Client, FileId]:
    client = await connected(listener(TestCommands().table(), **settings))
    return client, file_id_of((await client.call(Command.CREATE, create())).body)


def test_the_rows_are_in_the_order_of_the_document() -> None:
    numbers = [row.number for row in CHECKS]
    assert numbers == sorted(numbers)


# What is sent over an encrypted connection, and its status; None = the connection is ended.
ENCRYPTED: dict[str, tuple[Callable[[Client, FileId], tuple[int, bytes, dict[str, Any]]], Any]]
ENCRYPTED = {
    "a command that is not served": (
        lambda client, file_id: (Command.LOCK, of_open(file_id), {}),
        STATUS_NOT_SUPPORTED,
    ),
    "a number that no command has": (
        lambda client, file_id: (255, of_open(file_id), {}),
        STATUS_INVALID_PARAMETER,
    ),
    "a small command that is large": (
        lambda client, file_id: (Command.FLUSH, of_open(file_id) + bytes(69 * 1024), {}),
        None,
    ),
    "too few credits": (
        lambda client, file_id: (Command.READ, transfer(file_id, 65_537), {}),
        STATUS_INVALID_PARAMETER,
    ),
    "no charge for more than one": (
        lambda client, file_id: (
            Command.READ,
            transfer(file_id, 65_537),
            {"credit_charge": 0, "message_id": client.next_id},
        ),
        STATUS_INVALID_PARAMETER,
    ),
    "a body that is cut off": (
        lambda client, file_id: (Command.READ, transfer(file_id, 1)[:-1], {}),
        STATUS_INVALID_PARAMETER,
    ),
    "another structure size": (
        lambda client, file_id: (Command.FLUSH, b"\x15" + of_open(file_id)[1:], {}),
        STATUS_INVALID_PARAMETER,
    ),
    "no body at all": (lambda client, file_id: (Command.FLUSH, b"", {}), STATUS_INVALID_PARAMETER),
    "a tree that is not there": (
        lambda client, file_id: (Command.FLUSH, of_open(file_id), {"tree_id": 99}),
        STATUS_NETWORK_NAME_DELETED,
    ),
    "an open that is not there": (
        lambda client, file_id: (Command.FLUSH, of_open(FileId(file_id.persistent, 9)), {}),
        STATUS_FILE_CLOSED,
    ),
    "another persistent half": (
        lambda client, file_id: (Command.FLUSH, of_open(FileId(9, file_id.volatile)), {}),
        STATUS_FILE_CLOSED,
    ),
    "a second negotiate": (
        lambda client, file_id: (Command.NEGOTIATE, negotiate_body((0x0311,), (2,), (2,)), {}),
        None,
    ),
    "another session inside": (
        lambda client, file_id: (Command.FLUSH, of_open(file_id), {"session_id": 99}),
        None,
    ),
    "a message id that was used": (
        lambda client, file_id: (Command.FLUSH, of_open(file_id), {"message_id": 0}),
        None,
    ),
    "a message id far ahead": (
        lambda client, file_id: (Command.FLUSH, of_open(file_id), {"message_id": 1 << 40}),
        None,
    ),
    "a charge beyond the window": (
        lambda client, file_id: (Command.FLUSH, of_open(file_id), {"credit_charge": 60_000}),
        None,
    ),
    "a handler that ends the connection": (
        lambda client, file_id: (Command.CREATE, create(b"cut!"), {}),
        None,
    ),
}


@pytest.mark.parametrize("name", ENCRYPTED)
def test_over_an_encrypted_connection(name: str) -> None:
    async def conversation() -> None:
        make, expected = ENCRYPTED[name]
        client, file_id = await opened()
        command, body, fields = make(client, file_id)
        if expected is None:
            with pytest.raises(Closed):
                await client.call(command, body, **fields)
            await client.closed()
        else:
            assert (await client.call(command, body, **fields)).status == expected

    run(conversation())


async def _in_the_clear(client: Client, command: Command, body: bytes, **fields: Any) -> Reply:
    client.send(client.message(command, body, **fields), protects="")
    return await client.reply()


def test_what_must_be_encrypted_is_refused_in_the_clear() -> None:
    async def conversation() -> None:
        client, file_id = await opened()
        reply = await _in_the_clear(client, Command.FLUSH, of_open(file_id))
        assert (reply.status, reply.is_encrypted) == (STATUS_ACCESS_DENIED, False)
        client.send(client.message(Command.FLUSH, of_open(file_id)), protects="signed")
        assert (await client.reply()).status == STATUS_ACCESS_DENIED

    run(conversation())


def test_what_must_be_signed_is_refused_without_and_with_a_false_signature() -> None:
    async def conversation() -> None:
        client, file_id = await opened(requires_encryption=False)
        client.protects = "signed"
        assert (await client.call(Command.FLUSH, of_open(file_id))).status == 0
        reply = await _in_the_clear(client, Command.FLUSH, of_open(file_id))
        assert reply.status == STATUS_ACCESS_DENIED
        message = client.signed(client.message(Command.FLUSH, of_open(file_id)))
        header = read_header(message)
        spoilt = msgspec.structs.replace(header, signature=bytes(16))
        client.send(write_header(spoilt) + message[64:], protects="")
        assert (await client.reply()).status == STATUS_ACCESS_DENIED

    run(conversation())


@pytest.mark.parametrize("size", [10, 200_000])
def test_large_messages_are_signed_too(size: int) -> None:
    async def conversation() -> None:
        client, file_id = await opened(requires_encryption=False)
        client.protects = "signed"
        body = transfer(file_id, size) + bytes(size)
        charge = {"credit_charge": size // 65_536 + 1}
        assert (await client.call(Command.WRITE, body, **charge)).status == 0
        reply = await client.call(Command.READ, transfer(file_id, size), **charge)
        assert len(reply.body) == size + 4 and reply.header.flags & SIGNED
        message = bytearray(client.signed(client.message(Command.WRITE, body, **charge)))
        message[-1] ^= 1
        client.send(bytes(message), protects="")
        assert (await client.reply()).status == STATUS_ACCESS_DENIED

    run(conversation())


def test_a_signer_that_is_not_known_is_refused() -> None:
    async def conversation() -> None:
        client, _ = await opened(requires_encryption=False)
        for session in (0, 99):
            message = client.message(Command.TREE_CONNECT, PATH, session_id=session)
            client.send(client.signed(message), protects="")
            reply = await client.reply()
            assert reply.status == STATUS_USER_SESSION_DELETED
            # Samba's client takes an answer without the flag for a forged one.
            assert reply.header.flags & SIGNED and not any(reply.header.signature)

    run(conversation())


def test_a_negotiate_is_not_signed() -> None:
    async def conversation() -> None:
        client = Client(listener())
        body = negotiate_body((0x0311,), (2,), (2,))
        reply = await _in_the_clear(client, Command.NEGOTIATE, body, flags=SIGNED)
        assert reply.status == STATUS_INVALID_PARAMETER
        assert not reply.header.flags & SIGNED

    run(conversation())


def test_a_tree_connect_that_nothing_protects_ends_a_connection_of_311() -> None:
    async def conversation() -> None:
        client, _ = await opened()
        with pytest.raises(Closed):
            await _in_the_clear(client, Command.TREE_CONNECT, PATH)

    run(conversation())


def test_before_a_session_there_is_no_echo_and_nothing_else() -> None:
    async def conversation() -> None:
        client = Client(listener())
        await client.negotiate()
        reply = await _in_the_clear(client, Command.LOGOFF, PLAIN)
        assert reply.status == STATUS_USER_SESSION_DELETED
        with pytest.raises(Closed):
            await _in_the_clear(client, Command.ECHO, PLAIN)

    run(conversation())


def test_an_echo_may_name_no_session() -> None:
    async def conversation() -> None:
        client, _ = await opened()
        assert (await _in_the_clear(client, Command.ECHO, PLAIN, session_id=0)).status == 0
        assert (await _in_the_clear(client, Command.ECHO, PLAIN)).status == STATUS_ACCESS_DENIED

    run(conversation())


def test_an_echo_is_answered_after_the_last_session_has_ended() -> None:
    async def conversation() -> None:
        client, _ = await opened()
        assert (await client.call(Command.LOGOFF, PLAIN)).status == 0
        assert (await _in_the_clear(client, Command.ECHO, PLAIN, session_id=0)).status == 0

    run(conversation())


def test_an_expired_session_may_only_close_and_log_on_again() -> None:
    async def conversation() -> None:
        client, file_id = await opened()
        (session,) = client.server.shared.sessions.values()
        session[1].is_expired = True
        reply = await client.call(Command.FLUSH, of_open(file_id))
        assert reply.status == STATUS_NETWORK_SESSION_EXPIRED
        assert (await client.log_on()).status == 0
        assert (await client.call(Command.FLUSH, of_open(file_id))).status == 0
        session[1].is_expired = True
        assert (await client.call(Command.CLOSE, of_open(file_id))).status == 0
        assert (await client.call(Command.LOGOFF, PLAIN)).status == 0

    run(conversation())


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_a_session_expires_with_the_key_by_which_it_was_authenticated(key: bytes) -> None:
    async def conversation() -> None:
        commands, accounts = TestCommands(), OneAccount()
        client = await connected(listener(commands.table(), accounts), key=key)
        file_id = file_id_of((await client.call(Command.CREATE, create())).body)

        async def flush() -> int:
            return (await client.call(Command.FLUSH, of_open(file_id))).status

        accounts.account = Account(ACCOUNT.name, (b"a new key", key))
        assert await flush() == 0
        accounts.account = Account(ACCOUNT.name, (b"a new key",))
        assert await flush() == STATUS_NETWORK_SESSION_EXPIRED
        assert (await client.log_on(key=b"a new key")).status == 0
        assert await flush() == 0
        accounts.account = Account("another", (b"a new key",))
        assert await flush() == STATUS_NETWORK_SESSION_EXPIRED
        assert (await client.log_on(key=b"a new key")).status == STATUS_LOGON_FAILURE
        assert not client.server.shared.sessions

    run(conversation())


def test_a_request_from_before_a_reconnection_changes_nothing() -> None:
    async def conversation() -> None:
        client, file_id = await opened()

        async def call(command: Command, sequence: int, flags: int = 0) -> int:
            body = transfer(file_id, 1)
            return (await client.call(command, body, status=sequence, flags=flags)).status

        assert await call(Command.WRITE, 0) == 0
        assert await call(Command.WRITE, 5) == 0
        assert await call(Command.WRITE, 4) == STATUS_FILE_NOT_AVAILABLE
        assert await call(Command.READ, 4) == 0
        repeated = await call(Command.WRITE, 4, REPLAY_OPERATION)
        assert repeated == STATUS_FILE_NOT_AVAILABLE == 0xC000_0467
        assert await call(Command.WRITE, 5, REPLAY_OPERATION) == 0
        assert await call(Command.WRITE, 5 + 0x7FFF) == 0
        assert await call(Command.WRITE, 5) == STATUS_FILE_NOT_AVAILABLE

    run(conversation())


@pytest.mark.parametrize("start", [b"\xfcSMB", b"\xffSMB", b"HTTP", b"\xfeSMc"])
def test_frames_of_other_protocols_end_the_connection(start: bytes) -> None:
    async def conversation() -> None:
        client, _ = await opened()
        client.send_frame(start + bytes(100))
        await client.closed()

    run(conversation())


def test_a_defect_of_a_handler_is_answered_and_logged_and_the_connection_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def conversation() -> None:
        client, file_id = await opened()
        reply = await client.call(Command.CREATE, create(b"crsh"))
        assert reply.status == 0xC000_00E5
        (line,) = caplog.records
        assert line.levelno == logging.ERROR
        assert line.getMessage() == "127.0.0.1:40000: a request of SMB failed: CREATE"
        assert line.exc_info is not None and "a defect" in repr(line.exc_info[1])
        assert (await client.call(Command.FLUSH, of_open(file_id))).status == 0

    run(conversation())
