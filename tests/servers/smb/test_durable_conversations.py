"""Durable handles in whole conversations: contexts, lost connections, and repeated requests."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from strongroom.auth.accounts import Account
from strongroom.clock import ManualClock
from strongroom.errors import file as file_errors
from strongroom.semantics.file.accesses import Disposition
from strongroom.semantics.file.oplocks import OplockLevel
from strongroom.servers.smb.commands.table import FILE_COMMANDS
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.servers.smb.transport.serving import SmbMetrics
from strongroom.services.file.handles.opening import connect_share
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import HEADER_BYTES, REPLAY_OPERATION, FileId
from strongroom.wire.smb.requests import create_contexts as contexts
from strongroom.wire.smb.requests import ioctl, lock, query_info, transfers
from strongroom.wire.smb.requests.create import CreateAnswer, CreateRequest
from strongroom.wire.smb.requests.create_contexts import LeaseContext
from strongroom.wire.smb.statuses import STATUS_FILE_CLOSED
from tests.servers.smb import client_codecs
from tests.servers.smb.client import KEY, Client, OneAccount, Reply
from tests.servers.smb.messages import PLAIN
from tests.servers.smb.test_conversations import run
from tests.servers.smb.test_serving import _values
from tests.services import container_calls, file_calls

FULL = 0x1F01FF
GUID, NO_GUID = b"guid".ljust(16, b"-"), bytes(16)
NOT_FOUND = file_errors.STATUS_OBJECT_NAME_NOT_FOUND
INVALID = file_errors.STATUS_INVALID_PARAMETER
LEASE = LeaseContext(b"lease".ljust(16, b"-"), 7, is_v2=True)
RQLS = (contexts.LEASE, contexts.lease_data(LEASE))
DHNQ = (contexts.DURABLE_REQUEST, bytes(16))


def dh2q(guid: bytes = GUID, timeout_ms: int = 0, flags: int = 0) -> tuple[bytes, bytes]:
    return contexts.DURABLE_REQUEST_V2, struct.pack("<II8x16s", timeout_ms, flags, guid)


def dhnc(file_id: FileId) -> tuple[bytes, bytes]:
    data = struct.pack("<QQ", file_id.persistent, file_id.volatile)
    return contexts.DURABLE_RECONNECT, data


def dh2c(file_id: FileId, guid: bytes = GUID) -> tuple[bytes, bytes]:
    data = struct.pack("<QQ16sI", file_id.persistent, file_id.volatile, guid, 0)
    return contexts.DURABLE_RECONNECT_V2, data


async def server(**settings: Any) -> SmbListener:
    """A listener of all commands, on services in memory."""
    return SmbListener(
        await file_calls.services(),
        OneAccount(Account(container_calls.ACCOUNT, (KEY,))),
        ManualClock(),
        SmbSettings(**settings),
        connect_share=connect_share,
        commands=FILE_COMMANDS,
    )


class Caller(Client):
    """A client that opens and closes files."""

    @classmethod
    async def start(cls, of: SmbListener, **log_on: Any) -> Caller:
        client = cls(of)
        await client.negotiate()
        assert not (await client.log_on(**log_on)).status
        assert not (await client.connect(file_calls.SHARE)).status
        return client

    async def create(
        self,
        *chain: tuple[bytes, bytes],
        level: int = OplockLevel.BATCH,
        flags: int = 0,
        sequence: int = 0,
        **more: Any,
    ) -> Reply:
        fields: dict[str, Any] = {
            "access": FULL,
            "share": 7,
            "disposition": Disposition.OPEN_IF,
            "name": "f",
        }
        request = CreateRequest(oplock_level=level, **(fields | more))
        body = client_codecs.write_create(request, contexts.write_chain(chain))
        return await self.call(Command.CREATE, body, flags=flags, status=sequence)

    async def opened(self, *chain: tuple[bytes, bytes], **more: Any) -> CreateAnswer:
        reply = await self.create(*chain, **more)
        assert not reply.status, hex(reply.status)
        return answer_of(reply)

    async def lose(self) -> None:
        """The connection is lost."""
        self.transport.close()
        await self.closed()

    async def write(self, file_id: FileId, data: bytes = b"x", **fields: Any) -> int:
        request = transfers.WriteRequest(file_id, 0, memoryview(data), False, False)
        return (await self.call(Command.WRITE, client_codecs.write_write(request), **fields)).status

    async def lock(self, file_id: FileId, flags: int, number: int = 0, bucket: int = 0) -> int:
        request = lock.LockRequest(file_id, (lock.LockElement(0, 1, flags),), number, bucket)
        return (await self.call(Command.LOCK, client_codecs.write_lock(request))).status

    async def close(self, file_id: FileId) -> int:
        body = client_codecs.write_close(transfers.CloseRequest(file_id, False))
        return (await self.call(Command.CLOSE, body)).status


def answer_of(reply: Reply) -> CreateAnswer:
    return client_codecs.read_create_answer(memoryview(bytes(HEADER_BYTES) + reply.body))


def answered(found: CreateAnswer) -> dict[bytes, bytes]:
    return {name: bytes(data) for name, data in contexts.chain(memoryview(found.contexts))}


@pytest.mark.parametrize(
    ("asked", "level", "expected"),
    [
        (DHNQ, OplockLevel.BATCH, (contexts.DURABLE_REQUEST, bytes(8))),
        (DHNQ, OplockLevel.EXCLUSIVE, None),
        (dh2q(), OplockLevel.BATCH, (contexts.DURABLE_REQUEST_V2, struct.pack("<II", 60_000, 0))),
        # Persistent handles are not offered: such a handle is durable, with flags 0.
        (
            dh2q(timeout_ms=0xFFFF_FFFF, flags=2),
            OplockLevel.BATCH,
            (contexts.DURABLE_REQUEST_V2, struct.pack("<II", 300_000, 0)),
        ),
        (dh2q(), OplockLevel.II, None),
        (dh2q(), OplockLevel.NONE, None),
    ],
)
def test_what_a_request_for_a_durable_handle_is_answered(
    asked: tuple[bytes, bytes], level: int, expected: tuple[bytes, bytes] | None
) -> None:
    async def conversation() -> None:
        ann = await Caller.start(await server())
        found = await ann.opened(asked, level=level)
        assert found.oplock_level == level
        assert answered(found) == ({} if expected is None else dict([expected]))

    run(conversation())


def test_a_client_comes_back_to_its_handle() -> None:
    async def conversation() -> None:
        listening = await server()
        ann = await Caller.start(listening)
        first = await ann.opened(RQLS, dh2q(), level=OplockLevel.LEASE)
        file_id = first.file_id
        assert await ann.write(file_id, b"before") == 0
        await ann.lose()
        waiting = ("strongroom_smb_disconnected_handles",)
        assert _values(SmbMetrics(listening).collect())[waiting] == 1
        ann = await Caller.start(listening)
        # Nothing but the contexts and the name counts.
        odd: dict[str, Any] = {
            "impersonation": 99, "access": 0, "attributes": 0xFFFF, "share": 99,
            "disposition": 99, "options": 0xFFFF_FFFF, "level": 0x78,
        }  # fmt: skip
        empty = (contexts.LEASE, contexts.lease_data(LeaseContext(LEASE.key, 0, is_v2=True)))
        again = await ann.opened(dh2c(file_id), empty, (contexts.DISK_ID, b""), **odd)
        assert again.file_id.persistent == file_id.persistent
        assert again.file_id.volatile != file_id.volatile
        assert (again.action, again.node.size) == (1, 6)
        assert again.oplock_level == OplockLevel.LEASE
        assert answered(again) == {contexts.LEASE: answered(first)[contexts.LEASE]}
        assert await ann.write(file_id) == STATUS_FILE_CLOSED
        assert await ann.write(again.file_id, b"behind") == 0
        assert _values(SmbMetrics(listening).collect())[waiting] == 0
        assert await ann.close(again.file_id) == 0
        assert (await ann.create(dh2c(file_id), empty)).status == NOT_FOUND

    run(conversation())


@pytest.mark.parametrize(
    ("others", "status"),
    [
        ((), NOT_FOUND),
        ((DHNQ,), INVALID),
        ((dh2q(),), INVALID),
        ((dhnc(FileId(1, 1)),), INVALID),
        ((RQLS,), NOT_FOUND),
    ],
)
def test_contexts_that_a_reconnect_of_version_2_cannot_have(
    others: tuple[tuple[bytes, bytes], ...], status: int
) -> None:
    async def conversation() -> None:
        ann = await Caller.start(await server())
        found = await ann.create(dh2c(FileId(1, 1)), *others)
        assert found.status == status

    run(conversation())


@pytest.mark.parametrize(
    ("others", "status"), [((DHNQ,), NOT_FOUND), ((dh2q(),), INVALID), ((RQLS,), NOT_FOUND)]
)
def test_contexts_that_a_reconnect_of_version_1_cannot_have(
    others: tuple[tuple[bytes, bytes], ...], status: int
) -> None:
    async def conversation() -> None:
        ann = await Caller.start(await server())
        found = await ann.create(dhnc(FileId(1, 1)), *others)
        assert found.status == status

    run(conversation())


def test_there_is_nothing_durable_in_pipes() -> None:
    async def conversation() -> None:
        ann = await Caller.start(await server())
        assert not (await ann.connect("IPC$")).status
        assert (await ann.create(dhnc(FileId(1, 1)), name="srvsvc")).status == NOT_FOUND

    run(conversation())


@pytest.mark.parametrize("guid", [NO_GUID, GUID])
def test_zeros_are_the_guid_of_a_handle_of_version_1(guid: bytes) -> None:
    async def conversation() -> None:
        listening = await server()
        ann = await Caller.start(listening)
        file_id = (await ann.opened(DHNQ)).file_id
        await ann.lose()
        ann = await Caller.start(listening)
        expected = 0 if guid == NO_GUID else NOT_FOUND
        assert (await ann.create(dh2c(file_id, guid), name="other")).status == expected

    run(conversation())


@pytest.mark.parametrize("ends", ["logoff", "new session", "tree disconnect"])
def test_a_handle_outlives_its_session_but_not_its_tree_connect(ends: str) -> None:
    async def conversation() -> None:
        listening = await server()
        ann = await Caller.start(listening)
        file_id = (await ann.opened(DHNQ)).file_id
        previous = 0
        if ends == "new session":
            previous = ann.session_id
        else:
            command = Command.LOGOFF if ends == "logoff" else Command.TREE_DISCONNECT
            assert not (await ann.call(command, PLAIN)).status
        again = await Caller.start(listening, previous=previous)
        expected = NOT_FOUND if ends == "tree disconnect" else 0
        assert (await again.create(dhnc(file_id))).status == expected

    run(conversation())


def test_a_create_is_repeated_until_its_file_id_is_used() -> None:
    async def conversation() -> None:
        ann = await Caller.start(await server())
        first = await ann.opened(dh2q(), disposition=Disposition.CREATE)
        replay = {"flags": REPLAY_OPERATION, "disposition": Disposition.CREATE}
        assert await ann.opened(dh2q(), **replay) == first
        weaker = await ann.opened(dh2q(), level=OplockLevel.NONE, **replay)
        assert weaker.file_id == first.file_id and weaker.oplock_level == OplockLevel.NONE
        assert not weaker.contexts
        taken = (await ann.create(dh2q(), disposition=Disposition.CREATE)).status
        assert taken == file_errors.STATUS_DUPLICATE_OBJECTID
        leased = await ann.create(dh2q(), RQLS, level=OplockLevel.LEASE, **replay)
        assert leased.status == file_errors.STATUS_ACCESS_DENIED
        assert await ann.write(first.file_id) == 0
        again = (await ann.create(dh2q(), **replay)).status
        assert again == file_errors.STATUS_OBJECT_NAME_COLLISION

    run(conversation())


def test_a_chain_does_not_know_its_file_id_yet() -> None:
    """The client has no answer to the CREATE when the later elements are run."""

    async def conversation() -> None:
        ann = await Caller.start(await server())
        request = CreateRequest(
            oplock_level=OplockLevel.BATCH, access=FULL, share=7, disposition=2, name="f"
        )
        body = client_codecs.write_create(request, contexts.write_chain([dh2q()]))
        every = FileId(2**64 - 1, 2**64 - 1)
        inquiry = query_info.QueryInfoRequest(1, 4, every, 64)
        ann.send(
            ann.message(Command.CREATE, body),
            ann.message(Command.QUERY_INFO, client_codecs.write_query_info(inquiry), flags=4),
        )
        made, asked = await ann.replies()
        assert (made.status, asked.status) == (0, 0)
        again = await ann.opened(dh2q(), flags=REPLAY_OPERATION, disposition=2)
        assert again.file_id == answer_of(made).file_id

    run(conversation())


@pytest.mark.parametrize("flags", [0, REPLAY_OPERATION])
def test_what_was_sent_before_a_reconnection_changes_nothing(flags: int) -> None:
    async def conversation() -> None:
        listening = await server()
        ann = await Caller.start(listening)
        file_id = (await ann.opened(DHNQ)).file_id
        await ann.lose()
        ann = await Caller.start(listening)
        file_id = (await ann.opened(dhnc(file_id), sequence=1)).file_id
        request = ioctl.IoctlRequest(0x980C8, file_id, memoryview(struct.pack("<QQ", 0, 1)), 0)
        zero = client_codecs.write_ioctl(request)
        late = file_errors.STATUS_FILE_NOT_AVAILABLE
        for sequence, expected in ((0, late), (1, 0), (2, 0), (1, late)):
            assert await ann.write(file_id, status=sequence, flags=flags) == expected
            reply = await ann.call(Command.IOCTL, zero, status=sequence, flags=flags)
            assert reply.status == expected

    run(conversation())


def test_a_lock_that_was_carried_out_is_not_repeated_after_a_reconnection() -> None:
    async def conversation() -> None:
        listening = await server()
        ann = await Caller.start(listening)
        file_id = (await ann.opened(DHNQ)).file_id
        take, free = lock.EXCLUSIVE | lock.FAIL_IMMEDIATELY, lock.UNLOCK
        assert await ann.lock(file_id, take, 5, 1) == 0
        await ann.lose()
        ann = await Caller.start(listening)
        file_id = (await ann.opened(dhnc(file_id))).file_id
        assert await ann.lock(file_id, take, 5, 1) == 0
        assert await ann.lock(file_id, take, 6, 1) == file_errors.STATUS_LOCK_NOT_GRANTED
        assert await ann.lock(file_id, free, 7, 1) == 0
        assert await ann.lock(file_id, free, 7, 1) == 0
        assert await ann.lock(file_id, free, 8, 1) == file_errors.STATUS_RANGE_NOT_LOCKED

    run(conversation())
