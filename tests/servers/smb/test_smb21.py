"""Dialect 2.1: served beside SMB 3 where encryption is not required, with every message signed.

Sources: [MS-SMB2] sections 3.1.4.1, 3.3.5.4, 3.3.5.5.3, 3.3.5.9.8 to 3.3.5.9.12 and 3.3.5.15.12.
"""

from __future__ import annotations

import hmac
import logging
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strongroom.errors.file import STATUS_ACCESS_DENIED
from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import (
    ALL_ONES,
    FILE_ID,
    HEADER_BYTES,
    REPLAY_OPERATION,
    FileId,
    read_header,
)
from strongroom.wire.smb.requests import create_contexts, transfers
from strongroom.wire.smb.requests.create import CreateRequest
from strongroom.wire.smb.requests.create_contexts import LeaseContext
from strongroom.wire.smb.requests.ioctl import Fsctl, IoctlRequest
from strongroom.wire.smb.statuses import STATUS_LOGON_FAILURE, STATUS_NOT_SUPPORTED
from tests.servers.smb import client_codecs
from tests.servers.smb.client import Client, Closed, Reply, listener
from tests.servers.smb.messages import CLIENT_GUID, EXCHANGED_KEY, PLAIN, negotiate_body
from tests.servers.smb.test_conversations import run
from tests.servers.smb.test_cycles import serving
from tests.services import container_calls, file_calls

SMB_21 = (0x0202, 0x0210)
SMB_3 = (0x0210, 0x0300, 0x0302)
KEY = bytes(range(16))
GUID = bytes(range(32, 48))
SMB1 = b"\xffSMB\x72" + bytes(27) + b"\0"


async def negotiated(server: Any = None) -> Client:
    client = Client(listener(requires_encryption=False) if server is None else server)
    assert not (await client.negotiate(dialects=SMB_21)).status
    client.protects = "signed"
    return client


async def logged_on() -> Client:
    client = await negotiated()
    assert not (await client.log_on()).status
    return client


async def on_share(server: Any = None) -> Client:
    """Return a client with a tree connect to a share with files."""
    if server is None:
        server = serving(await file_calls.services(), requires_encryption=False)
    client = await negotiated(server)
    assert not (await client.log_on(user=container_calls.ACCOUNT)).status
    assert not (await client.connect(file_calls.SHARE)).status
    return client


async def created(client: Client, *contexts: tuple[bytes, bytes], **fields: Any) -> Reply:
    values: dict[str, Any] = {"oplock_level": 0xFF, "access": 0x1F01FF, "share": 7}
    level = fields.pop("level", 0xFF)
    request = CreateRequest(
        **(values | {"oplock_level": level}), disposition=Disposition.OPEN_IF, name="file"
    )
    body = client_codecs.write_create(request, create_contexts.write_chain(list(contexts)))
    return await client.call(Command.CREATE, body, **fields)


def answered(reply: Reply) -> dict[bytes, bytes]:
    """Return the contexts of an answer to CREATE, by their names."""
    offset, length = struct.unpack_from("<II", reply.body, 80)
    found, at = {}, offset - HEADER_BYTES
    while length:
        step, name_at, name_size, data_at, data_size = struct.unpack_from(
            "<IHH2xHI", reply.body, at
        )
        name = reply.body[at + name_at :][:name_size]
        found[name] = reply.body[at + data_at :][:data_size]
        if not step:
            break
        at += step
    return found


def test_it_is_agreed_on_where_encryption_is_not_required() -> None:
    async def conversation() -> None:
        reply = await Client(listener(requires_encryption=False)).negotiate(dialects=SMB_21)
        mode, dialect = struct.unpack_from("<HH", reply.body, 2)
        (capabilities,) = struct.unpack_from("<I", reply.body, 24)
        # Signing is enabled and required; leases and large messages, no encryption.
        assert (mode, dialect, capabilities) == (3, 0x0210, 0x6)

    run(conversation())


def test_a_greater_dialect_is_preferred() -> None:
    async def conversation() -> None:
        client = Client(listener(requires_encryption=False))
        await client.negotiate(dialects=SMB_3)
        assert client.dialect == 0x0302

    run(conversation())


def test_messages_are_signed_by_the_session_key_itself() -> None:
    async def conversation() -> None:
        client = await logged_on()
        assert client.keys is not None and client.keys.signing == EXCHANGED_KEY
        client.send(client.message(Command.ECHO, PLAIN))
        frame = await client.frame()
        assert not read_header(frame).status
        bare = frame[:48] + bytes(16) + frame[64:]
        assert frame[48:64] == hmac.digest(EXCHANGED_KEY, bare, "sha256")[:16]

    run(conversation())


def test_the_end_of_the_logon_is_signed_and_claims_no_encryption() -> None:
    async def conversation() -> None:
        client = await negotiated()
        reply = await client.log_on()
        assert reply.header.signature != bytes(16)
        assert client.session_flags == 0

    run(conversation())


@pytest.mark.parametrize("spoils", [False, True])
def test_what_is_not_signed_is_refused(*, spoils: bool) -> None:
    async def conversation() -> None:
        client = await logged_on()
        message = client.message(Command.ECHO, PLAIN)
        if spoils:
            message = client.signed(message)
            message = message[:-1] + bytes((message[-1] ^ 1,))
        client.send(message, protects="")
        payload = await client.frame()
        assert read_header(payload).status == STATUS_ACCESS_DENIED

    run(conversation())


@pytest.mark.parametrize(("user", "key"), [("", b""), ("guest", b""), ("account", b"wrong")])
def test_nobody_logs_on_without_a_key(user: str, key: bytes) -> None:
    async def conversation() -> None:
        client = await negotiated()
        assert (await client.log_on(user=user, key=key)).status == STATUS_LOGON_FAILURE

    run(conversation())


def _smb1(*names: bytes) -> bytes:
    listed = b"".join(b"\2" + name + b"\0" for name in names)
    return SMB1 + struct.pack("<H", len(listed)) + listed


def test_a_start_in_smb1_leads_to_it() -> None:
    async def conversation() -> None:
        client = Client(listener(requires_encryption=False))
        client.send_frame(_smb1(b"NT LM 0.12", b"SMB 2.002", b"SMB 2.???"))
        payload = await client.frame()
        assert struct.unpack_from("<H", payload, HEADER_BYTES + 4) == (0x02FF,)
        client.next_id = 1
        await client.negotiate(dialects=SMB_21)
        assert client.dialect == 0x0210
        client.protects = "signed"
        assert not (await client.log_on()).status
        assert not (await client.call(Command.ECHO, PLAIN)).status

    run(conversation())


# What is too old.

Offer = Callable[[Client], Coroutine[Any, Any, None]]


async def _offer_202(client: Client) -> None:
    assert (await client.negotiate(dialects=(0x0202,))).status == STATUS_NOT_SUPPORTED


async def _offer_21(client: Client) -> None:
    assert (await client.negotiate(dialects=SMB_21)).status == STATUS_NOT_SUPPORTED


async def _offer_202_in_smb1(client: Client) -> None:
    client.send_frame(_smb1(b"NT LM 0.12", b"SMB 2.002"))
    with pytest.raises(Closed):
        await client.frame()


async def _offer_smb1(client: Client) -> None:
    client.send_frame(_smb1(b"NT LM 0.12"))
    with pytest.raises(Closed):
        await client.frame()


@pytest.mark.parametrize(
    ("offers", "required", "text", "advice"),
    [
        (_offer_202, False, "SMB 2.0.2 at most", "SMB 2.1 or later; update the client"),
        (_offer_202_in_smb1, False, "SMB 2.0.2 at most", "SMB 2.1 or later; update the client"),
        (_offer_smb1, False, "SMB 1 at most", "SMB 2.1 or later; update the client"),
        (_offer_202, True, "SMB 2.0.2 at most", "SMB 3.0 or later; update the client"),
        (_offer_21, True, "SMB 2.1 at most", "by --smb-encryption offered"),
    ],
)
def test_a_client_that_is_too_old_is_named_once(
    offers: Offer, text: str, advice: str, caplog: pytest.LogCaptureFixture, *, required: bool
) -> None:
    async def conversation() -> None:
        server = listener(requires_encryption=required)
        for address in ("127.0.0.1", "127.0.0.1", "127.0.0.2"):
            await offers(Client(server, address))

    with caplog.at_level(logging.WARNING):
        run(conversation())
    assert [
        f"a client at {one} offers {text}" in line
        for one, line in zip(("127.0.0.1", "127.0.0.2"), caplog.messages, strict=True)
    ] == [True, True]
    assert all(line.endswith(advice) for line in caplog.messages)


def test_a_flood_of_old_clients_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    old = listener().shared.old_clients
    for number in range(3_000):
        old.refused(f"10.0.{number // 256}.{number % 256}", 0x0202)
    assert len(caplog.messages) == 1024


# A middle man.


class MiddleMan(Client):
    """A client whose NEGOTIATE is changed on its way."""

    def __init__(
        self, server: SmbListener, dialects: tuple[int, ...], *, can_encrypt: bool
    ) -> None:
        super().__init__(server)
        self._arriving = negotiate_body(dialects, (), (), can_encrypt=can_encrypt)

    def send_frame(self, payload: bytes) -> None:
        if read_header(payload).command == Command.NEGOTIATE:
            payload = payload[:HEADER_BYTES] + self._arriving
        super().send_frame(payload)


async def validated(client: Client, dialects: tuple[int, ...], capabilities: int) -> Reply:
    given = struct.pack("<I16sHH", capabilities, CLIENT_GUID, 1, len(dialects))
    given += struct.pack(f"<{len(dialects)}H", *dialects)
    everywhere = FileId(ALL_ONES, ALL_ONES)
    request = IoctlRequest(Fsctl.VALIDATE_NEGOTIATE_INFO, everywhere, memoryview(given), 24)
    return await client.call(Command.IOCTL, client_codecs.write_ioctl(request))


async def cheated(
    offered: tuple[int, ...], arriving: tuple[int, ...], *, can_encrypt: bool
) -> MiddleMan:
    """Return a client with a session of 2.1 that has offered more than has arrived."""
    server = serving(await file_calls.services(), requires_encryption=False)
    client = MiddleMan(server, arriving, can_encrypt=can_encrypt)
    await client.negotiate(dialects=offered)
    assert client.dialect == 0x0210
    client.protects = "signed"
    assert not (await client.log_on(user=container_calls.ACCOUNT)).status
    assert not (await client.connect("ipc$")).status
    return client


@pytest.mark.parametrize("arriving", [SMB_21, (0x0210,)])
@pytest.mark.parametrize("can_encrypt", [False, True])
def test_a_downgrade_is_noticed(arriving: tuple[int, ...], *, can_encrypt: bool) -> None:
    """The client offers SMB 3 and encryption. Somebody on the way takes both out of its message."""

    async def conversation() -> None:
        client = await cheated(SMB_3, arriving, can_encrypt=can_encrypt)
        # The client's own offer, signed, does not match what has arrived.
        with pytest.raises(Closed):
            await validated(client, SMB_3, 0x40)

    run(conversation())


def test_a_taken_out_capability_is_noticed() -> None:
    async def conversation() -> None:
        client = await cheated((0x0210,), (0x0210,), can_encrypt=False)
        with pytest.raises(Closed):
            await validated(client, (0x0210,), 0x40)

    run(conversation())


def test_a_middle_man_cannot_change_the_question() -> None:
    async def conversation() -> None:
        client = await cheated(SMB_3, SMB_21, can_encrypt=True)
        client.protects = ""
        assert (await validated(client, SMB_21, 0x40)).status == STATUS_ACCESS_DENIED

    run(conversation())


def test_an_honest_agreement_on_it_is_confirmed() -> None:
    async def conversation() -> None:
        client = await on_share()
        reply = await validated(client, SMB_21, 0x40)
        assert not reply.status and reply.header.signature != bytes(16)
        output = client_codecs.read_ioctl_answer(memoryview(bytes(HEADER_BYTES) + reply.body))
        capabilities, guid, mode, dialect = struct.unpack("<I16sHH", output)
        assert (capabilities, guid, mode, dialect) == (
            6, client.server.shared.server_guid, 3, 0x0210
        )  # fmt: skip

    run(conversation())


# Contexts and header fields that belong to SMB 3.


def test_leases_and_durable_handles_of_version_1_are_granted() -> None:
    async def conversation() -> None:
        client = await on_share()
        lease = create_contexts.lease_data(LeaseContext(KEY, 7))
        reply = await created(client, (b"RqLs", lease), (b"DHnQ", bytes(16)))
        found = answered(reply)
        assert (reply.status, reply.body[2]) == (0, 0xFF)
        assert struct.unpack_from("<16sI", found[b"RqLs"]) == (KEY, 7)
        assert found[b"DHnQ"] == bytes(8)

    run(conversation())


def test_leases_and_durable_handles_of_version_2_are_ignored() -> None:
    async def conversation() -> None:
        client = await on_share()
        lease = create_contexts.lease_data(LeaseContext(KEY, 7, is_v2=True))
        reply = await created(client, (b"RqLs", lease), (b"DH2Q", bytes(16) + GUID))
        assert (reply.status, reply.body[2]) == (0, 0)
        assert answered(reply) == {}
        reconnect = bytes(16) + GUID + bytes(4)
        # The context alone would name an unknown handle; ignored, the file is opened anew.
        assert not (await created(client, (b"DH2C", reconnect))).status

    run(conversation())


def test_a_durable_handle_is_given_back_after_the_connection_was_lost() -> None:
    async def conversation() -> None:
        client = await on_share()
        reply = await created(client, (b"DHnQ", bytes(16)), level=9)
        file_id = FILE_ID.read(reply.body, 64)
        client.transport.close()
        await client.closed()
        again = await on_share(client.server)
        reply = await created(again, (b"DHnC", FILE_ID.write(file_id)), level=9)
        assert not reply.status
        assert FILE_ID.read(reply.body, 64).persistent == file_id.persistent

    run(conversation())


def test_the_channel_sequence_and_the_replay_flag_mean_nothing() -> None:
    async def conversation() -> None:
        client = await on_share()
        reply = await created(client, level=0, flags=REPLAY_OPERATION)
        file_id = FILE_ID.read(reply.body, 64)
        write = client_codecs.write_write(
            transfers.WriteRequest(file_id, 0, memoryview(b"bytes"), False, False)
        )
        for sequence in (5, 4, 0xFFFF):
            status = (await client.call(Command.WRITE, write, status=sequence)).status
            assert not status, sequence

    run(conversation())


def test_large_messages_are_signed_and_paid_for() -> None:
    async def conversation() -> None:
        client = await on_share()
        file_id = FILE_ID.read((await created(client, level=0)).body, 64)
        data = bytes(range(256)) * 1200
        write = transfers.WriteRequest(file_id, 0, memoryview(data), False, False)
        reply = await client.call(
            Command.WRITE, client_codecs.write_write(write), credit_charge=5, credits=64
        )
        assert not reply.status
        read = transfers.ReadRequest(file_id, 0, len(data), 0, False)
        reply = await client.call(Command.READ, client_codecs.write_read(read), credit_charge=5)
        found = client_codecs.read_read_answer(memoryview(bytes(HEADER_BYTES) + reply.body))
        assert bytes(found) == data

    run(conversation())
