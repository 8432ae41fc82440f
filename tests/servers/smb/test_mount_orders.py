"""The requests of clients that mount and use a share, in their order, over the wire.

Lives here: the orders of Linux's cifs, of Windows and of macOS, and the answers that each needs.
Source: smb.md 6.4. That of cifs was read in the kernel's source (smb2ops.c, smb2pdu.c,
cached_dir.c). Those of Windows and macOS are general knowledge, not recordings.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.auth.accounts import Account
from strongroom.clock import ManualClock
from strongroom.errors import file as file_errors
from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.commands.table import FILE_COMMANDS
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.services.file.handles.opening import connect_share
from strongroom.wire.smb import statuses
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import (
    HEADER_BYTES,
    PLACEHOLDER,
    RELATED_OPERATIONS,
    FileId,
)
from strongroom.wire.smb.requests import (
    change_notify,
    create_contexts,
    query_directory,
    query_info,
    transfers,
)
from strongroom.wire.smb.requests.create import CreateAnswer, CreateRequest
from strongroom.wire.smb.requests.create_contexts import LeaseContext, lease_data, write_chain
from strongroom.wire.smb.requests.ioctl import Fsctl
from strongroom.wire.smb.setup.negotiate_contexts import NegotiateContext
from tests.servers.smb import client_codecs
from tests.servers.smb.client import KEY, Client, OneAccount, Reply
from tests.servers.smb.command_calls import SmbCalls
from tests.services import container_calls, file_calls
from tests.wire.smb.test_pipe import NDR, SRVSVC, WKSSVC, bind, call, enum_stub, text

SHARE = file_calls.SHARE
READ_ATTRIBUTES, ALL, DELETE = 0x80, 0x1F01FF, 0x10000
DIRECTORY, DELETE_ON_CLOSE = 0x1, 0x1000
BATCH, BY_LEASE = 9, 0xFF
RWH = 7
FILE, VOLUME, SECURITY = 1, 2, 3
# The minimum size of each class that clients need for volumes.
VOLUME_BYTES = {1: 18, 3: 24, 4: 8, 5: 20, 7: 32, 11: 28}
NEEDED_ALL_BYTES = 101
# An answer that tells a client that there is only one channel.
ONE_CHANNEL = (0, statuses.STATUS_INVALID_DEVICE_REQUEST, statuses.STATUS_NOT_SUPPORTED)
LARGE = bytes(range(256)) * 4096
ROOM = 65536
COMPRESSION = NegotiateContext(3, struct.pack("<HHIH", 1, 0, 0, 1))
NETNAME = NegotiateContext(5, "127.0.0.1".encode("utf-16-le"))
POSIX = NegotiateContext(0x100, bytes.fromhex("93ad25509cb411e7b42383de968bcd7c"))
Step = tuple[Command, bytes]


class Caller(SmbCalls):
    """Commands over a client's connection, alone and in chains."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def send(self, command: Command, body: bytes) -> SmbAnswer:
        reply = await self.reply(command, body)
        if reply.status >= 0xC000_0000:
            raise SmbError(reply.status)
        return SmbAnswer(reply.body, reply.status)

    async def reply(self, command: Command, body: bytes, charge: int = 1) -> Reply:
        """Any answer, a refusal too, that is not PENDING."""
        await asyncio.sleep(0)
        found = await self.client.call(command, body, credit_charge=charge, credits=charge + 8)
        while found.status == statuses.STATUS_PENDING:
            found = await self.client.reply()
        return found

    async def chain(self, *steps: Step) -> list[Reply]:
        """Related messages in one frame; the answers come in one frame too."""
        messages = [
            self.client.message(command, body, flags=RELATED_OPERATIONS if number else 0)
            for number, (command, body) in enumerate(steps)
        ]
        self.client.send(*messages)
        found = await self.client.replies()
        assert [one.header.command for one in found] == [command for command, _ in steps]
        assert [one.header.is_related for one in found] == [
            number > 0 for number in range(len(found))
        ]
        return found

    async def tree(self, share: str) -> int:
        """Connect to a share; requests go to it from now on."""
        reply = await self.client.connect(share)
        assert reply.status == 0
        return reply.header.tree_id


def opening(name: str, access: int, chain: bytes = b"", **more: int) -> Step:
    """A CREATE."""
    values: dict[str, Any] = {"share": 7, "disposition": Disposition.OPEN} | more
    return Command.CREATE, client_codecs.write_create(
        CreateRequest(access=access, name=name, **values), chain
    )


def asking(info_type: int, kind: int, room: int = ROOM, additional: int = 0) -> Step:
    """A QUERY_INFO on what the chain has opened."""
    wanted = query_info.QueryInfoRequest(info_type, kind, PLACEHOLDER, room, additional)
    return Command.QUERY_INFO, client_codecs.write_query_info(wanted)


def listing(kind: int, file_id: FileId = PLACEHOLDER, flags: int = 1) -> Step:
    """A QUERY_DIRECTORY."""
    wanted = query_directory.QueryDirectoryRequest(kind, flags, file_id, "*", ROOM)
    return Command.QUERY_DIRECTORY, client_codecs.write_query_directory(wanted)


CLOSING: Step = (
    Command.CLOSE,
    client_codecs.write_close(transfers.CloseRequest(PLACEHOLDER, True)),
)


def lease(key: bytes, state: int = RWH) -> tuple[bytes, bytes]:
    """A request for a lease of version 2."""
    return create_contexts.LEASE, lease_data(LeaseContext(key * 16, state, is_v2=True))


def durable() -> tuple[bytes, bytes]:
    """A request for a durable handle of version 2."""
    return create_contexts.DURABLE_REQUEST_V2, struct.pack("<II8x16s", 0, 0, b"guid" * 4)


def opened(reply: Reply) -> CreateAnswer:
    """The answer to a CREATE."""
    assert reply.status == 0, hex(reply.status)
    return client_codecs.read_create_answer(memoryview(bytes(HEADER_BYTES) + reply.body))


def buffer(reply: Reply) -> bytes:
    """Return the result of a query."""
    assert reply.status == 0, hex(reply.status)
    message = memoryview(bytes(HEADER_BYTES) + reply.body)
    return bytes(client_codecs.read_buffer_answer(message))


def granted(answer: CreateAnswer) -> int | None:
    """The state of the lease that came with an open; None = there is none."""
    for name, data in create_contexts.chain(memoryview(answer.contexts)):
        if name == create_contexts.LEASE:
            return int.from_bytes(data[16:20], "little")
    return None


def names_of(data: bytes, name_at: int) -> dict[str, int]:
    """The names of a listing, and their attributes."""
    found, at = {}, 0
    while True:
        following, length = struct.unpack_from("<I", data, at)[0], data[at + 60]
        attributes = struct.unpack_from("<I", data, at + 56)[0]
        found[data[at + name_at : at + name_at + length].decode("utf-16-le")] = attributes
        if not following:
            return found
        assert following % 8 == 0
        at += following


def run(scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def started() -> None:
        server = SmbListener(
            await file_calls.services(),
            OneAccount(Account(container_calls.ACCOUNT, (KEY,))),
            ManualClock(),
            SmbSettings(),
            connect_share=connect_share,
            commands=FILE_COMMANDS,
        )
        await scenario(Client(server))

    asyncio.run(asyncio.wait_for(started(), 100))


async def _volumes(ann: Caller, root: FileId, *classes: int) -> None:
    for kind in classes:
        status, data = await ann.query(root, VOLUME, kind)
        assert status == 0 and len(data) >= VOLUME_BYTES[kind], kind


@pytest.mark.parametrize("ciphers", [(2, 4, 1), (4, 2), (1,)])
@pytest.mark.parametrize("serial_numbers", [True, False])
def test_linux_cifs(ciphers: tuple[int, ...], serial_numbers: bool) -> None:
    """With `serverino`, the default, names are listed by class 38, otherwise by class 1."""
    kind, name_at = (38, 80) if serial_numbers else (1, 64)

    async def scenario(client: Client) -> None:
        ann = Caller(client)
        reply = await client.negotiate(
            (0x0210, 0x0300, 0x0302, 0x0311), ciphers, (2, 1, 0), more=(NETNAME, POSIX, COMPRESSION)
        )
        assert reply.status == 0 and client.dialect == 0x0311
        # cifs takes no other cipher than those that it has offered.
        assert client.cipher_id in ciphers and client.signing_id in (0, 1, 2)
        assert (await client.log_on(user=container_calls.ACCOUNT)).status == 0
        pipes = await ann.tree("IPC$")
        files = await ann.tree(SHARE)
        # The root, with a lease for directories: none is granted, and cifs does without.
        chain = write_chain([lease(b"r")])
        answers = await ann.chain(
            opening("", READ_ATTRIBUTES, chain, oplock_level=BY_LEASE), asking(FILE, 18)
        )
        root = opened(answers[0])
        assert granted(root) in (None, 0) and root.oplock_level in (0, BY_LEASE)
        everything = buffer(answers[1])
        assert len(everything) >= NEEDED_ALL_BYTES
        assert struct.unpack_from("<I", everything, 32)[0] & 0x10
        assert struct.unpack_from("<Q", everything, 64)[0]
        plain = opened((await ann.chain(opening("", READ_ATTRIBUTES)))[0])
        # cifs works without a list of interfaces, which is for several channels.
        refused = await _control(ann, Fsctl.QUERY_NETWORK_INTERFACE_INFO)
        assert refused in ONE_CHANNEL
        await _volumes(ann, plain.file_id, 5, 4, 1, 11)
        for one in (plain, root):
            await ann.close(one.file_id)
        await _cifs_files(ann)
        answers = await ann.chain(opening("", READ_ATTRIBUTES), asking(VOLUME, 7), CLOSING)
        assert len(buffer(answers[1])) == 32 and answers[2].status == 0
        answers = await ann.chain(opening("", 0x81, options=DIRECTORY), listing(kind))
        found = names_of(buffer(answers[1]), name_at)
        assert {".", "..", "d", "large"} <= found.keys() and found["d"] & 0x10
        directory = opened(answers[0]).file_id
        last = await ann.reply(*listing(kind, directory, flags=0))
        assert last.status == statuses.STATUS_NO_MORE_FILES
        await ann.close(directory)
        assert pipes != files

    run(scenario)


async def _control(ann: Caller, code: int) -> int:
    try:
        await ann.control(code, PLACEHOLDER)
    except SmbError as refused:
        return refused.status
    return 0


async def _cifs_files(ann: Caller) -> None:
    """stat, mkdir, create, write, read, rename, unlink."""
    answers = await ann.chain(opening("large", READ_ATTRIBUTES), asking(FILE, 18), CLOSING)
    missing = file_errors.STATUS_OBJECT_NAME_NOT_FOUND
    assert [one.status for one in answers] == [missing] * 3
    made = await ann.chain(
        opening("d", READ_ATTRIBUTES, disposition=Disposition.CREATE, options=DIRECTORY), CLOSING
    )
    assert [one.status for one in made] == [0, 0]
    chain = write_chain([lease(b"f"), durable()])
    command, body = opening(
        "large", ALL, chain, disposition=Disposition.OVERWRITE_IF, oplock_level=BY_LEASE
    )
    file = opened(await ann.reply(command, body))
    assert granted(file) == RWH and file.oplock_level == BY_LEASE
    await _large_io(ann, file.file_id)
    # The kernel sets times by a handle of its own, with the lease's key.
    times = struct.pack("<qqqqII", 0, -1, -1, 0, 0, 0)
    changed = query_info.SetInfoRequest(FILE, 4, PLACEHOLDER, memoryview(times), 0)
    setting = (Command.SET_INFO, client_codecs.write_set_info(changed))
    same_key = write_chain([lease(b"f")])
    answers = await ann.chain(
        opening("large", 0x100, same_key, oplock_level=BY_LEASE), setting, CLOSING
    )
    assert [one.status for one in answers] == [0, 0, 0]
    answers = await ann.chain(opening("large", READ_ATTRIBUTES), asking(FILE, 18), CLOSING)
    assert struct.unpack_from("<Q", buffer(answers[1]), 48) == (len(LARGE),)
    await ann.close(file.file_id)
    name = "small".encode("utf-16-le")
    renamed = struct.pack("<B7xQI", 1, 0, len(name)) + name
    changed = query_info.SetInfoRequest(FILE, 10, PLACEHOLDER, memoryview(renamed), 0)
    renaming = (Command.SET_INFO, client_codecs.write_set_info(changed))
    for answers in (
        await ann.chain(opening("large", DELETE | READ_ATTRIBUTES), renaming, CLOSING),
        await ann.chain(
            opening("small", DELETE | READ_ATTRIBUTES, options=DELETE_ON_CLOSE), CLOSING
        ),
    ):
        assert not any(one.status for one in answers)
    await ann.create("large")


async def _large_io(ann: Caller, file_id: FileId) -> None:
    """1 MiB in one request, which costs 16 credits."""
    wanted = transfers.WriteRequest(file_id, 0, memoryview(LARGE), False, False)
    written = await ann.reply(Command.WRITE, client_codecs.write_write(wanted), charge=16)
    assert written.status == 0
    request = transfers.ReadRequest(file_id, 0, len(LARGE), 0, False)
    reply = await ann.reply(Command.READ, client_codecs.write_read(request), charge=16)
    data = client_codecs.read_read_answer(memoryview(bytes(HEADER_BYTES) + reply.body))
    assert reply.status == 0 and bytes(data) == LARGE


async def _call_pipe(ann: Caller, name: str, interface: bytes, number: int, stub: bytes) -> bytes:
    """A call over a pipe by WRITE and READ, as srvsvc and wkssvc are asked."""
    pipe = (await ann.open(name, access=0x12019F)).file_id
    await ann.write(pipe, 0, bind(interface, NDR))
    assert (await ann.read(pipe, 0, 4096))[2] == 12
    answer = await ann.control(Fsctl.PIPE_TRANSCEIVE, pipe, call(number, stub), room=4096)
    assert answer[2] == 2
    await ann.close(pipe)
    return answer


SERVER_NAME = struct.pack("<I", 1) + text(r"\\127.0.0.1")


def test_windows() -> None:
    """General knowledge: multi-protocol start, SPNEGO, browsing, the root's contexts, Explorer."""

    async def scenario(client: Client) -> None:
        ann = Caller(client)
        await _multi_protocol_start(client)
        # Windows 11 offers ciphers in this order, and compression.
        reply = await client.negotiate(
            (0x0202, 0x0210, 0x0300, 0x0302, 0x0311),
            (4, 2, 3, 1),
            (2, 1, 0),
            more=(COMPRESSION, NETNAME),
        )
        assert reply.status == 0 and client.dialect == 0x0311
        assert (await client.log_on(user=container_calls.ACCOUNT, wraps=True)).status == 0
        pipes = await ann.tree("IPC$")
        assert await _control(ann, Fsctl.QUERY_NETWORK_INTERFACE_INFO) in (
            0,
            0xC0000010,
            0xC00000BB,
        )
        # Without DFS, Windows uses the path unchanged.
        no_dfs = (0xC0000225, 0xC000026C, 0xC000019C)
        assert await _control(ann, Fsctl.DFS_GET_REFERRALS) in no_dfs
        files = await ann.tree(SHARE)
        chain = write_chain([durable(), (b"MxAc", b""), (b"QFid", b""), lease(b"w")])
        root = await ann.open("", chain=chain, access=0x120081, oplock_level=BY_LEASE)
        contexts = dict(create_contexts.chain(memoryview(root.contexts)))
        assert struct.unpack("<II", contexts[b"MxAc"]) == (0, 0x1F01FF)
        assert len(contexts[b"QFid"]) == 32
        assert create_contexts.DURABLE_REQUEST_V2 not in contexts, "of a directory"
        await _volumes(ann, root.file_id, 1, 5, 11, 7, 3)
        await _explorer(ann, root.file_id)
        client.tree_id = pipes
        stub = SERVER_NAME + text(SHARE) + struct.pack("<I", 1)
        assert SHARE.encode("utf-16-le") in await _call_pipe(ann, "srvsvc", SRVSVC, 16, stub)
        assert SHARE.encode("utf-16-le") in await _call_pipe(
            ann, "srvsvc", SRVSVC, 15, enum_stub(1)
        )
        stub = SERVER_NAME + struct.pack("<I", 100)
        assert await _call_pipe(ann, "wkssvc", WKSSVC, 0, stub)
        client.tree_id = files
        assert (await client.call(Command.TREE_DISCONNECT, b"\4\0\0\0")).status == 0
        assert (await client.call(Command.LOGOFF, b"\4\0\0\0")).status == 0

    run(scenario)


async def _multi_protocol_start(client: Client) -> None:
    """NEGOTIATE of SMB 1 with the dialects of SMB 2; the answer says: any of them."""
    names = b"\2NT LM 0.12\0\2SMB 2.002\0\2SMB 2.???\0"
    client.send_frame(b"\xffSMB\x72" + bytes(27) + b"\0" + len(names).to_bytes(2, "little") + names)
    answer = await client.frame()
    assert struct.unpack_from("<H", answer, HEADER_BYTES + 4) == (0x02FF,)
    client.next_id = 1


async def _explorer(ann: Caller, root: FileId) -> None:
    """Send the requests of a file manager's window on the share, and of the actions in it."""
    # The watch stays pending while other requests are answered.
    watch = change_notify.ChangeNotifyRequest(root, 4096, 0x17, True)
    watching = ann.client.message(Command.CHANGE_NOTIFY, client_codecs.write_change_notify(watch))
    ann.client.send(watching)
    pending = await ann.client.reply()
    assert pending.status == statuses.STATUS_PENDING
    for name in ("desktop.ini", "AutoRun.inf"):
        missing = await ann.reply(*opening(name, 0x120089))
        assert missing.status == file_errors.STATUS_OBJECT_NAME_NOT_FOUND
    for kind, name_at in ((37, 104), (60, 88)):
        listed = await ann.reply(*listing(kind, root))
        assert {".", ".."} <= names_of(buffer(listed), name_at).keys()
        await ann.reply(*listing(kind, root, flags=0))
    assert (await ann.query(root, SECURITY, 0, additional=7))[0] == 0
    chain = write_chain([durable(), (b"MxAc", b""), (b"QFid", b""), lease(b"n")])
    command, body = opening(
        "New file.txt", 0x17019F, chain, disposition=Disposition.CREATE, oplock_level=BY_LEASE
    )
    ann.client.send(ann.client.message(command, body))
    answers = [await ann.client.reply(), await ann.client.reply()]
    (file,) = [opened(one) for one in answers if one.header.command == Command.CREATE]
    (seen,) = [one for one in answers if one.header.command == Command.CHANGE_NOTIFY]
    assert seen.status == 0 and "New file.txt".encode("utf-16-le") in seen.body
    assert granted(file) == RWH
    await _large_io(ann, file.file_id)
    # Windows tries the classes 65 and 64 first, and goes back to 10 and 13.
    for kind, older in ((65, _rename_to("Older.txt")), (64, None)):
        with pytest.raises(SmbError) as refused:
            await ann.change(file.file_id, kind, older or struct.pack("<I", 3))
        fall_back = (statuses.STATUS_INVALID_INFO_CLASS, statuses.STATUS_NOT_SUPPORTED)
        assert refused.value.status in (*fall_back, file_errors.STATUS_INVALID_PARAMETER)
    await ann.rename(file.file_id, "Older.txt")
    await ann.dispose(file.file_id)
    await ann.close(file.file_id)
    assert (await ann.reply(*opening("Older.txt", ALL))).status


def _rename_to(name: str) -> bytes:
    sent = name.encode("utf-16-le")
    return struct.pack("<I4xQI", 1, 0, len(sent)) + sent


COMPOSED, DECOMPOSED = "\u00e4.txt", "a\u0308.txt"


def test_macos() -> None:
    """General knowledge: browsing, AAPL, chains, `._` files in place of streams, FLUSH."""

    async def scenario(client: Client) -> None:
        ann = Caller(client)
        assert (await client.negotiate((0x0300, 0x0302, 0x0311), (2, 1), (2, 1))).status == 0
        assert (await client.log_on(user=container_calls.ACCOUNT, wraps=True)).status == 0
        await ann.tree("IPC$")
        assert SHARE.encode("utf-16-le") in await _call_pipe(
            ann, "srvsvc", SRVSVC, 15, enum_stub(1)
        )
        await ann.tree(SHARE)
        apple = (b"AAPL", struct.pack("<IIQQ", 1, 0, 7, 0))
        root = await ann.open("", chain=write_chain([apple]), access=READ_ATTRIBUTES)
        names = [name for name, _ in create_contexts.chain(memoryview(root.contexts))]
        assert b"AAPL" not in names
        for kind in (5, 7, 1):
            answers = await ann.chain(opening("", READ_ATTRIBUTES), asking(VOLUME, kind), CLOSING)
            data = buffer(answers[1])
            assert len(data) >= VOLUME_BYTES[kind] and answers[2].status == 0
            # Without streams, what belongs to a file goes into `._` files.
            assert kind != 5 or not struct.unpack_from("<I", data)[0] & 0x40000
        status, _ = await ann.query(root.file_id, FILE, 22)
        assert status == 0
        for name in (".DS_Store", "._.DS_Store", COMPOSED, DECOMPOSED):
            file = await ann.create(name, name.encode())
            assert (await ann.reply(Command.FLUSH, client_codecs.write_flush(file))).status == 0
            status, streams = await ann.query(file, FILE, 22)
            assert status == 0 and "::$DATA".encode("utf-16-le") in streams
            await ann.close(file)
        listed = await _listed(ann)
        assert {COMPOSED, DECOMPOSED, ".DS_Store", "._.DS_Store"} <= listed
        for name in (COMPOSED, DECOMPOSED):
            found = await ann.open(name)
            assert await ann.read(found.file_id, 0, 100) == name.encode()
            await ann.close(found.file_id)

    run(scenario)


async def _listed(ann: Caller) -> set[str]:
    answers = await ann.chain(opening("", 0x81, options=DIRECTORY), listing(37), CLOSING)
    return set(names_of(buffer(answers[1]), 104))
