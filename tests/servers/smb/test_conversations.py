"""Whole conversations: every dialect, cipher and signing algorithm leads to a share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from strongroom.errors.file import STATUS_ACCESS_DENIED, STATUS_BAD_NETWORK_NAME
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import SIGNED, read_header
from strongroom.wire.smb.setup.session_setup import ENCRYPT_DATA
from strongroom.wire.smb.statuses import (
    STATUS_LOGON_FAILURE,
    STATUS_NETWORK_NAME_DELETED,
    STATUS_NOT_SUPPORTED,
    STATUS_USER_SESSION_DELETED,
)
from tests.servers.smb.client import (
    OTHER_KEY,
    SHARE,
    Client,
    Closed,
    connected,
    listener,
)
from tests.servers.smb.messages import PLAIN


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100):
            await work

    asyncio.run(bounded())


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("cipher", [1, 2, 3, 4])
def test_every_cipher_leads_to_a_share(cipher: int, wraps: bool) -> None:
    async def conversation() -> None:
        client = Client(listener())
        await client.negotiate(ciphers=(cipher,))
        assert (client.dialect, client.cipher_id) == (0x0311, cipher)
        assert (await client.log_on(wraps=wraps)).status == 0
        assert client.session_flags == ENCRYPT_DATA
        reply = await client.connect()
        assert reply.is_encrypted and reply.status == 0
        assert (await client.call(Command.ECHO, PLAIN)).body == PLAIN
        assert (await client.call(Command.TREE_DISCONNECT, PLAIN)).status == 0
        gone = await client.call(Command.TREE_DISCONNECT, PLAIN)
        assert gone.status == STATUS_NETWORK_NAME_DELETED
        assert (await client.call(Command.LOGOFF, PLAIN)).status == 0

    run(conversation())


def test_a_connection_outlives_its_last_session() -> None:
    async def conversation() -> None:
        client = Client(listener(requires_encryption=False))
        await client.negotiate(signings=(1,))
        client.protects = "signed"
        assert (await client.log_on()).status == 0
        assert (await client.call(Command.LOGOFF, PLAIN)).status == 0
        client.protects = ""
        client.session_id = 0
        assert (await client.call(Command.ECHO, PLAIN)).status == 0

    run(conversation())


def test_an_answer_about_an_unknown_session_says_signed_and_has_no_signature() -> None:
    # A client that must sign takes no answer without the flag, and there is no key to sign with.
    async def conversation() -> None:
        client = Client(listener(requires_encryption=False))
        await client.negotiate()
        client.protects = "signed"
        assert (await client.log_on()).status == 0
        client.send(client.message(Command.ECHO, PLAIN, session_id=client.session_id ^ 1))
        header = read_header(await client.frame())
        assert (header.status, header.signature) == (STATUS_USER_SESSION_DELETED, bytes(16))
        assert header.flags & SIGNED
        client.send(
            client.message(Command.ECHO, PLAIN, session_id=client.session_id ^ 1), protects=""
        )
        assert not read_header(await client.frame()).flags & SIGNED

    run(conversation())


@pytest.mark.parametrize("dialect", [0x0300, 0x0302])
def test_older_dialects_encrypt_with_ccm(dialect: int) -> None:
    async def conversation() -> None:
        client = Client(listener())
        await client.negotiate(dialects=(0x0202, 0x0210, dialect))
        assert (client.dialect, client.cipher_id) == (dialect, 1)
        assert (await client.log_on()).status == 0
        reply = await client.connect()
        assert reply.is_encrypted and reply.status == 0

    run(conversation())


@pytest.mark.parametrize("dialect", [0x0300, 0x0302, 0x0311])
@pytest.mark.parametrize("signing", [0, 1, 2])
def test_where_encryption_is_offered_a_client_may_sign(signing: int, dialect: int) -> None:
    async def conversation() -> None:
        client = Client(listener(requires_encryption=False))
        await client.negotiate(dialects=(dialect,), signings=(signing,))
        assert client.signing_id == (signing if dialect == 0x0311 else 1)
        client.protects = "signed"
        assert (await client.log_on()).status == 0
        assert client.session_flags == 0
        reply = await client.connect()
        assert not reply.is_encrypted and reply.status == 0
        assert reply.header.flags & 8
        client.protects = "encrypted"
        assert (await client.call(Command.ECHO, PLAIN)).is_encrypted

    run(conversation())


@pytest.mark.parametrize("key", [OTHER_KEY])
def test_either_key_logs_on(key: bytes) -> None:
    async def conversation() -> None:
        client = Client(listener())
        await client.negotiate()
        assert (await client.log_on(key=key, domain="", user="ACCOUNT")).status == 0

    run(conversation())


@pytest.mark.parametrize(
    ("user", "key"), [("account", b"wrong"), ("nobody", OTHER_KEY), ("", OTHER_KEY)]
)
def test_who_knows_no_key_is_refused_alike(user: str, key: bytes) -> None:
    async def conversation() -> None:
        server = listener()
        client = Client(server)
        await client.negotiate()
        reply = await client.log_on(user=user, key=key)
        assert reply.status == STATUS_LOGON_FAILURE
        assert not server.shared.sessions
        gone = await client.call(Command.LOGOFF, PLAIN)
        assert gone.status == STATUS_USER_SESSION_DELETED

    run(conversation())


def test_a_client_that_cannot_encrypt_is_refused() -> None:
    async def conversation() -> None:
        for dialects in ((0x0300,), (0x0311,)):
            client = Client(listener())
            await client.negotiate(dialects=dialects, ciphers=(), can_encrypt=False)
            assert (await client.log_on()).status == STATUS_ACCESS_DENIED

    run(conversation())


def test_without_a_common_dialect_nothing_is_agreed_on() -> None:
    async def conversation() -> None:
        client = Client(listener())
        reply = await client.negotiate(dialects=(0x0202, 0x0210))
        assert reply.status == STATUS_NOT_SUPPORTED
        client.send(client.message(Command.ECHO, PLAIN))
        with pytest.raises(Closed):
            await client.reply()

    run(conversation())


def test_a_share_is_found_by_its_name_in_any_case() -> None:
    async def conversation() -> None:
        client = await connected(listener())
        assert (await client.connect(SHARE.upper())).status == 0
        assert (await client.connect("ipc$")).body[2] == 2
        for unknown in ("other", "a" * 81):
            assert (await client.connect(unknown)).status == STATUS_BAD_NETWORK_NAME

    run(conversation())
