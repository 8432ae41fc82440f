"""Mistakes of other SMB servers, each as a test (smb.md 5.3)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from strongroom.auth.accounts import Account
from strongroom.errors.file import (
    STATUS_ACCESS_DENIED,
    STATUS_INVALID_PARAMETER,
    STATUS_REQUEST_NOT_ACCEPTED,
)
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.smb.state.sessions import ALL_TREES_MAX
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.framing import TRANSFORM_PROTOCOL_ID
from strongroom.wire.smb.header import SIGNED, FileId, read_header
from strongroom.wire.smb.setup import ntlm
from strongroom.wire.smb.statuses import (
    STATUS_FILE_CLOSED,
    STATUS_LOGON_FAILURE,
    STATUS_NETWORK_NAME_DELETED,
    STATUS_NOT_SUPPORTED,
    STATUS_REQUEST_OUT_OF_SEQUENCE,
    STATUS_USER_SESSION_DELETED,
)
from tests.servers.smb.client import ACCOUNT, KEY, Client, Closed, OneAccount, connected, listener
from tests.servers.smb.commands import TestCommands, create, file_id_of, of_open
from tests.servers.smb.messages import NTLM_FLAGS, PLAIN, session_setup_body, tree_connect_body
from tests.servers.smb.test_conversations import run


async def opened(server: Any) -> tuple[Client, FileId]:
    client = await connected(server)
    return client, file_id_of((await client.call(Command.CREATE, create())).body)


@pytest.mark.parametrize("names", ["another connection's session", "its own", "none"])
def test_a_refused_binding_touches_no_session(names: str) -> None:
    async def conversation() -> None:
        server = listener(TestCommands().table())
        victim, file_id = await opened(server)
        attacker = Client(server)
        await attacker.negotiate()
        if names == "its own":
            assert (await attacker.log_on()).status == 0
        named = {"another connection's session": victim.session_id, "none": 99}
        body = session_setup_body(b"NTLMSSP\0anything", flags=1)
        message = attacker.message(
            Command.SESSION_SETUP, body, session_id=named.get(names, attacker.session_id)
        )
        attacker.send(message, protects="")
        assert (await attacker.reply()).status == STATUS_REQUEST_NOT_ACCEPTED
        assert (await victim.call(Command.FLUSH, of_open(file_id))).status == 0

    run(conversation())


@pytest.mark.parametrize(
    ("theirs", "ours", "status"),
    [
        (2, 2, STATUS_REQUEST_NOT_ACCEPTED),
        (1, 0, STATUS_REQUEST_NOT_ACCEPTED),
        (2, 1, STATUS_REQUEST_OUT_OF_SEQUENCE),
        (0, 2, STATUS_NOT_SUPPORTED),
    ],
)
def test_a_signed_binding_is_refused_with_its_reason(theirs: int, ours: int, status: int) -> None:
    async def conversation() -> None:
        server = listener(TestCommands().table(), requires_encryption=False)
        victim, attacker = Client(server), Client(server)
        await victim.negotiate(signings=(theirs,))
        assert (await victim.log_on()).status == 0
        await attacker.negotiate(signings=(ours,))
        for flags, refusal in ((1, status), (0, STATUS_USER_SESSION_DELETED)):
            body = session_setup_body(b"NTLMSSP\0anything", flags=flags)
            message = attacker.message(
                Command.SESSION_SETUP, body, session_id=victim.session_id, flags=SIGNED
            )
            attacker.send(message, protects="")
            header = read_header(await attacker.frame())
            assert (header.status, header.flags & SIGNED) == (refusal, SIGNED)
            assert header.signature == bytes(16)
        assert (await victim.call(Command.ECHO, PLAIN)).status == 0

    run(conversation())


def test_another_connection_s_session_is_no_session_of_this_one() -> None:
    async def conversation() -> None:
        server = listener(TestCommands().table())
        victim, file_id = await opened(server)
        attacker = Client(server)
        await attacker.negotiate()
        token = session_setup_body(b"NTLMSSP\0\1\0\0\0\1\0\x08\x20")
        message = attacker.message(Command.SESSION_SETUP, token, session_id=victim.session_id)
        attacker.send(message, protects="")
        assert (await attacker.reply()).status == STATUS_USER_SESSION_DELETED
        # Not even with the right keys: a session belongs to its connection.
        attacker.cipher, attacker.session_id = victim.cipher, victim.session_id
        attacker.send(attacker.message(Command.FLUSH, of_open(file_id)), protects="encrypted")
        await attacker.closed()
        assert (await victim.call(Command.FLUSH, of_open(file_id))).status == 0

    run(conversation())


def test_a_failed_reauthentication_ends_only_its_own_session() -> None:
    async def conversation() -> None:
        commands = TestCommands()
        server = listener(commands.table(), requires_encryption=False)
        victim, other_file = await opened(server)
        client, _ = await opened(server)
        client.protects = "signed"
        reply = await client.log_on(key=b"wrong")
        assert reply.status == STATUS_LOGON_FAILURE
        assert [target.reasons for target in commands.targets] == [
            [],
            [DisconnectReason.LOGGED_OFF],
        ]
        assert (await victim.call(Command.FLUSH, of_open(other_file))).status == 0

    run(conversation())


def test_a_response_whose_pairs_do_not_end_within_it_is_malformed() -> None:
    async def conversation() -> None:
        client = Client(listener(TestCommands().table()))
        await client.negotiate()
        blob = b"\1\1" + bytes(6) + bytes(8) + b"client's" + bytes(4) + b"\x11\xa2\x08\x81" * 8
        reply = await client.log_on(response=b"\xab" * 16 + blob)
        assert reply.status == STATUS_INVALID_PARAMETER
        assert (await Client(client.server).negotiate()).status == 0

    run(conversation())


def test_nobody_becomes_another_by_reauthentication() -> None:
    async def conversation() -> None:
        accounts = OneAccount()
        server = listener(TestCommands().table(), accounts)
        client, _ = await opened(server)
        accounts.account = Account("intruder", (KEY,))
        assert (await client.log_on(user="intruder")).status == STATUS_LOGON_FAILURE
        assert not server.shared.sessions

    run(conversation())


def test_a_reauthentication_keeps_keys_trees_and_opens() -> None:
    async def conversation() -> None:
        server = listener(TestCommands().table())
        client, file_id = await opened(server)
        keys = client.keys
        assert (await client.log_on(wraps=True)).status == 0
        assert client.keys is keys
        assert (await client.call(Command.FLUSH, of_open(file_id))).status == 0

    run(conversation())


@pytest.mark.parametrize("own", [True, False])
def test_a_previous_session_ends_only_for_its_own_account(own: bool) -> None:
    async def conversation() -> None:
        commands, accounts = TestCommands(), OneAccount()
        server = listener(commands.table(), accounts)
        first, file_id = await opened(server)
        user = "account"
        if not own:
            user = "intruder"
            accounts.account = Account(user, (KEY,))
        second = Client(server)
        await second.negotiate()
        assert (await second.log_on(user=user, previous=first.session_id)).status == 0
        if own:
            assert commands.targets[0].reasons == [DisconnectReason.DISCONNECTED]
            first.send(first.message(Command.FLUSH, of_open(file_id)))
            await first.closed()
        else:
            accounts.account = ACCOUNT
            assert (await first.call(Command.FLUSH, of_open(file_id))).status == 0

    run(conversation())


def test_a_session_that_ends_before_a_tree_connect_is_checked_gets_no_tree() -> None:
    async def conversation() -> None:
        server = listener(requires_encryption=False)
        client = await connected(server)
        client.protects = "signed"
        # A thread checks the signature of so long a message.
        long = tree_connect_body(r"\\server\IPC$") + bytes(66 * 1024)
        client.send(client.message(Command.TREE_CONNECT, long))
        client.send(client.message(Command.LOGOFF, PLAIN))
        replies = {reply.header.command: reply for reply in [await client.reply() for _ in "12"]}
        assert replies[Command.LOGOFF].status == 0
        assert replies[Command.TREE_CONNECT].status == STATUS_USER_SESSION_DELETED
        assert server.shared.trees.remaining == ALL_TREES_MAX

    run(conversation())


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (Command.TREE_DISCONNECT, STATUS_NETWORK_NAME_DELETED),
        (Command.CLOSE, STATUS_FILE_CLOSED),
    ],
)
def test_what_follows_the_end_of_an_open_in_one_frame_finds_it_gone(
    command: Command, status: int
) -> None:
    async def conversation() -> None:
        commands = TestCommands()
        client, file_id = await opened(listener(commands.table()))
        ends = PLAIN if command == Command.TREE_DISCONNECT else of_open(file_id)
        client.send(
            client.message(command, ends),
            client.message(Command.FLUSH, of_open(file_id)),
            client.message(command, ends),
        )
        found = [await client.reply() for _ in range(3)]
        assert sorted(one.status for one in found) == [0, status, status]
        assert all(len(target.reasons) <= 1 for target in commands.targets)

    run(conversation())


@pytest.mark.parametrize(
    "changes",
    [
        {"spoils_mic": True},
        {"response": bytes(24)},  # NTLM of version 1
        {"response": b""},  # nobody
        {"flags": NTLM_FLAGS & ~ntlm.EXTENDED_SESSION_SECURITY},
        {"flags": NTLM_FLAGS & ~ntlm.KEY_128},
        {"hashed_domain": "ANOTHER"},
    ],
)
def test_weak_or_spoilt_proofs_are_refused(changes: dict[str, Any]) -> None:
    async def conversation() -> None:
        client = Client(listener())
        await client.negotiate()
        assert (await client.log_on(**changes)).status == STATUS_LOGON_FAILURE

    run(conversation())


def test_signing_that_is_required_is_enforced_for_every_command() -> None:
    async def conversation() -> None:
        client, file_id = await opened(listener(TestCommands().table(), requires_encryption=False))
        bodies = {Command.LOGOFF: PLAIN, Command.TREE_DISCONNECT: PLAIN}
        for command in (*bodies, Command.CREATE, Command.FLUSH, Command.CLOSE):
            body = bodies.get(command, create() if command == Command.CREATE else of_open(file_id))
            client.send(client.message(command, body), protects="")
            assert (await client.reply()).status == STATUS_ACCESS_DENIED

    run(conversation())


@pytest.mark.parametrize(
    ("at", "value"), [(0, 0xFC), (42, 2), (36, 0), (44, 1), (4, 0xAA), (60, 0xAA)]
)
def test_a_spoilt_encrypted_frame_ends_the_connection(at: int, value: int) -> None:
    async def conversation() -> None:
        client, file_id = await opened(listener(TestCommands().table()))
        assert client.cipher is not None
        message = client.message(Command.FLUSH, of_open(file_id))
        frame = bytearray(b"".join(client.cipher.seal(client.cipher.next_nonce(), [message])))
        frame[at] ^= value or 0xFF
        client.send_frame(bytes(frame))
        await client.closed()

    run(conversation())


def test_an_encrypted_frame_within_another_ends_the_connection() -> None:
    async def conversation() -> None:
        client, file_id = await opened(listener(TestCommands().table()))
        assert client.cipher is not None
        inner = b"".join(
            client.cipher.seal(
                client.cipher.next_nonce(), [client.message(Command.FLUSH, of_open(file_id))]
            )
        )
        assert inner[:4] == TRANSFORM_PROTOCOL_ID
        client.send_frame(b"".join(client.cipher.seal(client.cipher.next_nonce(), [inner])))
        await client.closed()

    run(conversation())


def test_a_frame_that_is_sent_twice_ends_the_connection() -> None:
    async def conversation() -> None:
        client, file_id = await opened(listener(TestCommands().table()))
        assert client.cipher is not None
        message = client.message(Command.FLUSH, of_open(file_id))
        frame = b"".join(client.cipher.seal(client.cipher.next_nonce(), [message]))
        client.send_frame(frame)
        assert (await client.reply()).status == 0
        client.send_frame(frame)
        with pytest.raises(Closed):
            await client.reply()

    run(conversation())


def test_the_padding_of_answers_is_zero() -> None:
    async def conversation() -> None:
        client, file_id = await opened(listener(TestCommands().table()))
        query = client.message(Command.QUERY_INFO, of_open(file_id) + b"\xee" * 9)
        client.send(query, client.message(Command.FLUSH, of_open(), flags=4))
        first, _ = await client.replies()
        assert first.body == b"part" + bytes(4)

    run(conversation())


def test_nothing_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def conversation() -> None:
        client, _ = await opened(listener(TestCommands().table()))
        assert client.keys is not None
        secrets = [*msgspec.structs.astuple(client.keys), KEY]
        shown = [form for one in secrets for form in (one.hex(), repr(one), repr(one)[2:-1])]
        assert caplog.records
        assert not any(form in caplog.text for form in shown)

    with caplog.at_level(logging.DEBUG):
        run(conversation())


def test_a_flood_of_connections_before_authentication_leaves_nothing() -> None:
    async def conversation() -> None:
        server = listener()
        for number in range(200):
            client = Client(server)
            await client.negotiate()
            client.send_raw(bytes([number % 256]) * 50)
            client.transport.close()
            await client.closed()
        assert not server.shared.sessions and not server._busy_bytes and not server._per_address

    run(conversation())


def test_crypto_of_large_frames_does_not_hold_up_others() -> None:
    async def conversation() -> None:
        commands = TestCommands()
        server = listener(commands.table())
        (busy, file_id), other = await opened(server), await connected(server)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        body = b"\x18\0\0\0" + file_id.persistent.to_bytes(8, "little")
        body += file_id.volatile.to_bytes(8, "little") + (1 << 20).to_bytes(4, "little")
        reply = await busy.call(Command.WRITE, body + bytes(1 << 20), credit_charge=16)
        counting.cancel()
        assert reply.status == 0
        assert turns > 1
        assert (await other.call(Command.ECHO, PLAIN)).status == 0

    run(conversation())
