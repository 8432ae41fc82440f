"""Compounds: the inherited fields of an element, the grouping of answers, and waiting requests."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.errors.file import STATUS_ACCESS_DENIED, STATUS_INVALID_PARAMETER
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import ASYNC_COMMAND, RELATED_OPERATIONS
from strongroom.wire.smb.statuses import (
    STATUS_BUFFER_OVERFLOW,
    STATUS_CANCELLED,
    STATUS_FILE_CLOSED,
    STATUS_INSUFFICIENT_RESOURCES,
    STATUS_INTERNAL_ERROR,
    STATUS_NETWORK_NAME_DELETED,
    STATUS_NOTIFY_CLEANUP,
    STATUS_PENDING,
    STATUS_USER_SESSION_DELETED,
)
from tests.servers.smb.client import Client, Reply, connected, listener
from tests.servers.smb.commands import TestCommands, create, file_id_of, of_open
from tests.servers.smb.messages import PLAIN, tree_connect_body
from tests.servers.smb.test_conversations import run

Step = tuple[Command, bytes]
CREATE = (Command.CREATE, create())
FAILED = (Command.CREATE, create(b"fail"))
FLUSH = (Command.FLUSH, of_open())
CLOSE = (Command.CLOSE, of_open())
QUERY = (Command.QUERY_INFO, of_open())
NOTIFY = (Command.CHANGE_NOTIFY, of_open())
ECHO = (Command.ECHO, PLAIN)


async def started(**settings: Any) -> tuple[Client, TestCommands]:
    commands = TestCommands()
    return await connected(listener(commands.table(), **settings)), commands


def send(client: Client, steps: tuple[Step, ...], related: str) -> None:
    """Steps as one frame; `related` has an `r` for each that is related."""
    client.send(
        *(
            client.message(command, body, flags=RELATED_OPERATIONS if flag == "r" else 0)
            for (command, body), flag in zip(steps, related, strict=True)
        )
    )


@pytest.mark.parametrize("protects", ["encrypted", "signed"])
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((CREATE, FLUSH, CLOSE), (0, 0, 0)),
        ((CREATE, CLOSE, FLUSH), (0, 0, STATUS_FILE_CLOSED)),
        ((FAILED, FLUSH, CLOSE), (STATUS_ACCESS_DENIED,) * 3),
        ((CREATE, FAILED, CLOSE), (0, STATUS_ACCESS_DENIED, STATUS_ACCESS_DENIED)),
        ((CREATE, QUERY, CLOSE), (0, STATUS_BUFFER_OVERFLOW, 0)),
        ((CREATE, NOTIFY, CLOSE), (0, STATUS_INTERNAL_ERROR, 0)),
        ((CREATE, ECHO, CLOSE), (0, 0, 0)),
        ((ECHO, FLUSH), (0, STATUS_INVALID_PARAMETER)),
        ((ECHO, CREATE), (0, STATUS_INVALID_PARAMETER)),
        (
            ((Command.CREATE, b""), FLUSH),
            (STATUS_INVALID_PARAMETER, STATUS_INVALID_PARAMETER),
        ),
    ],
)
def test_what_a_related_element_inherits(
    steps: tuple[Step, ...], expected: tuple[int, ...], protects: str
) -> None:
    async def conversation() -> None:
        client, _ = await started(requires_encryption=False)
        client.protects = protects
        send(client, steps, "-" + "r" * (len(steps) - 1))
        replies = await client.replies()
        assert tuple(one.status for one in replies) == expected
        assert all(one.header.flags & RELATED_OPERATIONS for one in replies[1:])
        # The last answer gives all credits.
        assert [one.header.credits > 0 for one in replies] == [False] * (len(steps) - 1) + [True]
        assert client.protocol.state is not None
        await client.call(*ECHO)

    run(conversation())


def test_a_predecessor_without_an_open_leaves_none() -> None:
    async def conversation() -> None:
        client, _ = await started()
        file_id = file_id_of((await client.call(*CREATE)).body)
        steps = ((Command.TREE_CONNECT, b""), FLUSH)
        send(client, steps, "-r")
        assert [one.status for one in await client.replies()] == [STATUS_INVALID_PARAMETER] * 2
        send(client, ((Command.FLUSH, of_open(file_id)), FLUSH, CLOSE), "-rr")
        assert [one.status for one in await client.replies()] == [0, 0, 0]

    run(conversation())


def test_elements_fail_as_the_one_before_that_named_no_open() -> None:
    async def conversation() -> None:
        client, _ = await started()
        send(client, (CLOSE, FLUSH, CLOSE), "-rr")
        assert [one.status for one in await client.replies()] == [STATUS_FILE_CLOSED] * 3

    run(conversation())


def test_a_tree_connect_passes_its_tree_on() -> None:
    async def conversation() -> None:
        client, _ = await started()
        connect = (Command.TREE_CONNECT, tree_connect_body(r"\\server\share"))
        send(client, (connect, CREATE, CLOSE), "-rr")
        replies = await client.replies()
        assert [one.status for one in replies] == [0, 0, 0]
        assert {one.header.tree_id for one in replies} == {2}
        send(client, (connect, FLUSH), "-r")
        assert [one.status for one in await client.replies()] == [0, STATUS_FILE_CLOSED]

    run(conversation())


@pytest.mark.parametrize("protects", ["encrypted", "signed"])
def test_an_answer_names_the_session_as_its_request_does(protects: str) -> None:
    async def conversation() -> None:
        client, _ = await started(requires_encryption=False)
        client.protects = protects
        nobody = 2**64 - 1
        client.send(
            client.message(*CREATE),
            client.message(*FLUSH, flags=RELATED_OPERATIONS, session_id=nobody),
        )
        replies = await client.replies()
        assert [one.status for one in replies] == [0, 0]
        assert [one.header.session_id for one in replies] == [client.session_id, nobody]

    run(conversation())


@pytest.mark.parametrize("is_there", [True, False])
def test_a_frame_of_one_session_carries_nothing_of_another(is_there: bool) -> None:
    async def conversation() -> None:
        client, commands = await started()
        session_id, cipher = client.session_id, client.cipher
        other = 99
        if is_there:
            client.session_id, client.keys = 0, None
            assert not (await client.log_on()).status
            other = client.session_id
            assert not (await client.connect()).status
        client.session_id, client.cipher = session_id, cipher
        client.send(
            client.message(*CREATE),
            client.message(*CREATE, session_id=other),
            client.message(*CREATE, session_id=other, flags=RELATED_OPERATIONS),
            client.message(*ECHO, session_id=other, flags=RELATED_OPERATIONS),
        )
        found = [[one.status for one in await client.replies()] for _ in range(2)]
        refused = [STATUS_USER_SESSION_DELETED, STATUS_INVALID_PARAMETER, STATUS_INVALID_PARAMETER]
        assert sorted(found, key=len) == [[0], refused]
        assert commands.handled == [Command.CREATE]

    run(conversation())


@pytest.mark.parametrize("protects", ["encrypted", "signed"])
def test_a_compound_that_begins_with_a_related_element_is_refused(protects: str) -> None:
    async def conversation() -> None:
        client, commands = await started(requires_encryption=False)
        client.protects = protects
        send(client, (CREATE, CLOSE), "rr")
        assert [one.status for one in await client.replies()] == [STATUS_INVALID_PARAMETER] * 2
        assert not commands.handled

    run(conversation())


def test_elements_that_are_not_related_are_answered_by_themselves() -> None:
    async def conversation() -> None:
        client, _ = await started()
        send(client, (CREATE, ECHO, FAILED, CREATE, CLOSE), "----r")
        found = [[one.status for one in await client.replies()] for _ in range(4)]
        assert sorted(found, key=len) == [[0], [0], [STATUS_ACCESS_DENIED], [0, 0]]

    run(conversation())


async def _waiting(client: Client, file_id: Any) -> tuple[int, Reply]:
    """A request that waits: its message id, and the interim answer."""
    message_id = client.next_id
    interim = await client.call(Command.CHANGE_NOTIFY, of_open(file_id))
    assert interim.status == STATUS_PENDING
    assert interim.header.flags & ASYNC_COMMAND and interim.header.async_id
    assert interim.header.credits > 0 and interim.is_encrypted
    return message_id, interim


def _check_final(final: Reply, message_id: int, interim: Reply, status: int) -> None:
    assert final.status == status
    assert final.header.message_id == message_id
    assert final.header.async_id == interim.header.async_id
    assert final.header.flags & ASYNC_COMMAND and final.header.credits == 0


@pytest.mark.parametrize("by", ["async id", "message id"])
def test_a_request_that_waits_is_cancelled(by: str) -> None:
    async def conversation() -> None:
        client, _ = await started()
        file_id = file_id_of((await client.call(*CREATE)).body)
        message_id, interim = await _waiting(client, file_id)
        fields: dict[str, Any] = {"message_id": message_id}
        if by == "async id":
            whole = interim.header.async_id
            fields = {
                "message_id": 0,
                "flags": ASYNC_COMMAND,
                "process_id": whole & 0xFFFF_FFFF,
                "tree_id": whole >> 32,
            }
        client.send(client.message(Command.CANCEL, PLAIN, **fields))
        _check_final(await client.reply(), message_id, interim, STATUS_CANCELLED)
        # Once more without a recipient: neither is answered.
        for number in (message_id, 99_999):
            client.send(client.message(Command.CANCEL, PLAIN, message_id=number))
        assert (await client.call(*ECHO)).header.command == Command.ECHO

    run(conversation())


def test_a_cancel_in_the_clear_cancels_nothing_that_is_encrypted() -> None:
    async def conversation() -> None:
        client, _ = await started()
        file_id = file_id_of((await client.call(*CREATE)).body)
        message_id, interim = await _waiting(client, file_id)
        cancel = client.message(Command.CANCEL, PLAIN, message_id=message_id)
        client.send(cancel, protects="")
        assert (await client.call(*ECHO)).status == 0
        client.send(cancel)
        _check_final(await client.reply(), message_id, interim, STATUS_CANCELLED)

    run(conversation())


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        (Command.TREE_DISCONNECT, DisconnectReason.TREE_DISCONNECTED),
        (Command.LOGOFF, DisconnectReason.LOGGED_OFF),
    ],
)
def test_the_end_of_a_tree_or_session_ends_what_waits(
    command: Command, ending: DisconnectReason
) -> None:
    async def conversation() -> None:
        client, commands = await started()
        file_id = file_id_of((await client.call(*CREATE)).body)
        message_id, interim = await _waiting(client, file_id)
        client.send(client.message(Command.CREATE, create(b"wait")))
        assert (await client.reply()).status == STATUS_PENDING
        client.send(client.message(command, PLAIN))
        found = {one.header.command: one for one in [await client.reply() for _ in range(3)]}
        _check_final(found[Command.CHANGE_NOTIFY], message_id, interim, STATUS_NOTIFY_CLEANUP)
        assert found[Command.CREATE].status == STATUS_CANCELLED
        assert found[command].status == 0
        assert commands.targets[0].reasons == [ending]
        client.send(client.message(Command.FLUSH, of_open(file_id)))
        if command == Command.LOGOFF:
            await client.closed()  # nothing can decrypt the session's frames any more
        else:
            assert (await client.reply()).status == STATUS_NETWORK_NAME_DELETED

    run(conversation())


def test_how_many_may_wait_is_bounded() -> None:
    async def conversation() -> None:
        client, _ = await started(pending_max=2)
        file_id = file_id_of((await client.call(*CREATE)).body)
        for _ in range(2):
            await _waiting(client, file_id)
        refused = await client.call(Command.CHANGE_NOTIFY, of_open(file_id))
        assert refused.status == STATUS_INSUFFICIENT_RESOURCES
        assert not refused.header.flags & ASYNC_COMMAND

    run(conversation())


def test_a_create_in_a_chain_waits_and_what_follows_is_answered_with_it() -> None:
    async def conversation() -> None:
        client, commands = await started()
        send(client, (ECHO, (Command.CREATE, create(b"wait")), CLOSE), "--r")
        assert (await client.reply()).header.command == Command.ECHO
        interim = await client.reply()
        assert interim.status == STATUS_PENDING
        commands.release.set()
        final, closed = await client.replies()
        assert (final.status, closed.status) == (0, 0)
        assert final.header.flags & ASYNC_COMMAND
        assert final.header.async_id == interim.header.async_id
        assert not closed.header.flags & ASYNC_COMMAND

    run(conversation())


def test_in_the_middle_of_a_chain_nobody_waits_for_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def conversation() -> None:
        client, _ = await started()
        file_id = file_id_of((await client.call(*CREATE)).body)
        send(client, ((Command.CHANGE_NOTIFY, of_open(file_id)), FLUSH), "-r")
        replies = await client.replies()
        assert [one.status for one in replies] == [STATUS_INTERNAL_ERROR, 0]
        (line,) = caplog.messages
        assert "CHANGE_NOTIFY in the middle of a compound" in line
        assert line.startswith("127.0.0.1:40000: ")

    run(conversation())


def test_a_lost_connection_ends_all_and_cancels_all() -> None:
    async def conversation() -> None:
        client, commands = await started()
        file_id = file_id_of((await client.call(*CREATE)).body)
        await _waiting(client, file_id)
        client.transport.close()
        await client.closed()
        assert commands.targets[0].reasons == [DisconnectReason.DISCONNECTED]
        assert not client.server.shared.sessions
        assert client.server._busy_bytes == 0

    run(conversation())


def test_a_server_that_drains_lets_what_is_in_work_finish() -> None:
    async def conversation() -> None:
        client, commands = await started()
        idle = await connected(client.server)
        file_id = file_id_of((await client.call(*CREATE)).body)
        message_id, interim = await _waiting(client, file_id)
        assert await client.server.drain(60.0)
        _check_final(await client.reply(), message_id, interim, STATUS_CANCELLED)
        assert commands.targets[0].reasons == [DisconnectReason.DISCONNECTED]
        await idle.closed()
        await client.server.close()

    run(conversation())
