"""Handles of a share's snapshot: their permitted operations, and their end."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.errors import file as file_errors
from strongroom.operations.file import handle
from strongroom.services.file.handles.listing import CloseHandles, ListHandles
from strongroom.services.file.opens.opens import Opens
from strongroom.wire.smb import statuses
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.change_notify import ChangeNotifyRequest
from strongroom.wire.smb.requests.create_contexts import (
    DISK_ID,
    DURABLE_REQUEST,
    LEASE,
    MAXIMAL_ACCESS,
    LeaseContext,
    chain,
    lease_data,
)
from strongroom.wire.smb.requests.ioctl import Fsctl, IoctlRequest
from strongroom.wire.smb.requests.lock import EXCLUSIVE, FAIL_IMMEDIATELY
from tests.servers.smb import client_codecs
from tests.servers.smb import command_calls as smb
from tests.servers.smb.command_calls import SmbCaller
from tests.servers.smb.past_calls import (
    READS,
    drop,
    open_in_snapshot,
    past,
    run,
    snapshot_context,
    take,
)
from tests.services import file_calls as do

PROTECTED = file_errors.STATUS_MEDIA_WRITE_PROTECTED
NOT_FOUND = file_errors.STATUS_OBJECT_NAME_NOT_FOUND
CLOSED = file_errors.STATUS_FILE_CLOSED
VIOLATION = file_errors.STATUS_SHARING_VIOLATION


CHANGES: dict[str, Callable[[SmbCaller, FileId], Awaitable[Any]]] = {
    "write": lambda ann, file: ann.write(file, 0, b"x"),
    "zero data": lambda ann, file: ann.control(Fsctl.SET_ZERO_DATA, file, struct.pack("<qq", 0, 1)),
    "basic": lambda ann, file: ann.change(file, 4, struct.pack("<qqqqII", 0, 0, 0, 0, 1, 0)),
    "end of file": lambda ann, file: ann.change(file, 20, bytes(8)),
    "allocation": lambda ann, file: ann.change(file, 19, bytes(8)),
    "disposition": lambda ann, file: ann.dispose(file),
    "rename": lambda ann, file: ann.rename(file, "g"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_handle_of_a_snapshot_changes_nothing(name: str) -> None:
    async def scenario(ann: SmbCaller) -> None:
        _, file_id = await past(ann)
        assert await smb.status(CHANGES[name](ann, file_id)) == PROTECTED
        assert await ann.read(file_id, 0, 100) == b"before"
        await ann.close(file_id)
        assert await do.read(ann.on, "f") == b"AFTER"
        assert await do.names(ann.on) == ["f"]

    run(scenario)


def test_security_of_a_snapshot_is_shown_and_stays() -> None:
    async def scenario(ann: SmbCaller) -> None:
        _, file_id = await past(ann)
        _, descriptor = await ann.query(file_id, 3, 0, additional=7)
        changing = ann.change(file_id, 0, descriptor, info_type=3, additional=4)
        assert await smb.status(changing) == PROTECTED

    run(scenario)


def test_the_access_that_is_granted_in_a_snapshot_is_that_of_reading() -> None:
    async def scenario(ann: SmbCaller) -> None:
        stamp, _ = await past(ann)
        contexts = snapshot_context(stamp, (MAXIMAL_ACCESS, b""), (DISK_ID, b""))
        opened = await ann.open("f", access=0x0200_0000, chain=contexts)
        answers = {name: bytes(data) for name, data in chain(memoryview(opened.contexts))}
        assert answers[MAXIMAL_ACCESS] == struct.pack("<II", 0, READS)
        _, data = await ann.query(opened.file_id, 1, 8)
        assert int.from_bytes(data, "little") == READS
        denied = file_errors.STATUS_ACCESS_DENIED
        assert await smb.status(ann.write(opened.file_id, 0, b"x")) == denied

    run(scenario)


def test_nothing_is_cached_of_a_snapshot() -> None:
    async def scenario(ann: SmbCaller) -> None:
        stamp, _ = await past(ann)
        lease = LeaseContext(b"k" * 16, 7, 0, bytes(16), 0, is_v2=True)
        contexts = snapshot_context(stamp, (LEASE, lease_data(lease)))
        opened = await ann.open("f", access=READS, oplock_level=0xFF, chain=contexts)
        assert (opened.oplock_level, bytes(opened.contexts)) == (0, b"")
        durable = snapshot_context(stamp, (DURABLE_REQUEST, bytes(16)))
        opened = await ann.open("f", access=READS, oplock_level=9, chain=durable)
        assert (opened.oplock_level, bytes(opened.contexts)) == (0, b"")

    run(scenario)


def test_handles_end_when_their_snapshot_is_deleted() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.mkdir(ann.on, "d")
        stamp, file_id = await past(ann)
        other = await take(ann.on)
        directory = await open_in_snapshot(ann, stamp, "d")
        await drop(ann.on, other)
        assert await ann.read(file_id, 0, 100) == b"before"
        await drop(ann.on, stamp)
        assert await smb.status(ann.read(file_id, 0, 100)) == CLOSED
        assert await smb.status(ann.names(directory)) == CLOSED
        assert await smb.status(ann.query(file_id, 1, 5)) == CLOSED
        assert await smb.status(open_in_snapshot(ann, stamp, "f")) == NOT_FOUND
        # They are closed like others, without attributes in the answer.
        assert await ann.close(file_id, wants_attributes=True) is None
        await ann.close(directory)
        assert not ann.on.held.of(Opens).handles

    run(scenario)


def test_share_modes_hold_within_a_snapshot_and_not_beyond_it() -> None:
    async def scenario(ann: SmbCaller) -> None:
        stamp, file_id = await past(ann)
        await ann.close(file_id)
        alone = await open_in_snapshot(ann, stamp, "f", share=0)
        assert await smb.status(open_in_snapshot(ann, stamp, "f")) == VIOLATION
        await ann.write((await ann.open("f", share=0)).file_id, 0, b"x")
        other = await open_in_snapshot(ann, await take(ann.on), "f")
        assert await ann.read(other, 0, 1) == b"x"
        await ann.close(alone)
        await open_in_snapshot(ann, stamp, "f")

    run(scenario)


def test_locks_hold_within_a_snapshot_and_not_beyond_it() -> None:
    async def scenario(ann: SmbCaller) -> None:
        stamp, first = await past(ann)
        second = await open_in_snapshot(ann, stamp, "f")
        now = EXCLUSIVE | FAIL_IMMEDIATELY
        await ann.lock(first, (0, 10, now))
        conflict = file_errors.STATUS_FILE_LOCK_CONFLICT
        assert await smb.status(ann.read(second, 0, 1)) == conflict
        await ann.lock((await ann.open("f")).file_id, (0, 10, now))

    run(scenario)


def test_the_present_file_may_go_while_its_past_is_open() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.mkdir(ann.on, "d")
        await do.write(ann.on, "d/f", b"before")
        stamp = await take(ann.on)
        file_id = await open_in_snapshot(ann, stamp, r"d\f")
        await ann.rename((await ann.open("d")).file_id, "e")
        await do.delete(ann.on, "e/f")
        assert await ann.read(file_id, 0, 100) == b"before"
        _, name = await ann.query(file_id, 1, 48)
        assert name[4:].decode("utf-16-le") == r"d\f"

    run(scenario)


def test_a_file_is_restored_by_a_copy_on_the_server() -> None:
    async def scenario(ann: SmbCaller) -> None:
        _, source = await past(ann)
        key = (await ann.control(Fsctl.SRV_REQUEST_RESUME_KEY, source))[:24]
        target = await ann.create("restored")
        chunks = key + struct.pack("<II", 1, 0) + struct.pack("<QQII", 0, 0, 6, 0)
        await ann.control(Fsctl.SRV_COPYCHUNK_WRITE, target, chunks)
        assert await ann.read(target, 0, 100) == b"before"
        back = (await ann.control(Fsctl.SRV_REQUEST_RESUME_KEY, target))[:24]
        chunks = back + struct.pack("<II", 1, 0) + struct.pack("<QQII", 0, 0, 6, 0)
        request = IoctlRequest(Fsctl.SRV_COPYCHUNK_WRITE, source, memoryview(chunks), 4096)
        assert (
            await ann.send(Command.IOCTL, client_codecs.write_ioctl(request))
        ).status == PROTECTED

    run(scenario)


def test_allocated_ranges_of_a_snapshot_are_those_of_then() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.create(ann.on, "f", 1 << 20)
        await do.put(ann.on, "f", 0, bytes([1]) * 512)
        stamp = await take(ann.on)
        await do.put(ann.on, "f", 8192, bytes([1]) * 512)
        file_id = await open_in_snapshot(ann, stamp, "f")
        data = await ann.control(
            Fsctl.QUERY_ALLOCATED_RANGES, file_id, struct.pack("<qq", 0, 1 << 20)
        )
        assert data == struct.pack("<qq", 0, 512)

    run(scenario)


def test_nobody_is_told_of_changes_below_a_directory_of_a_snapshot() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.mkdir(ann.on, "d")
        directory = await open_in_snapshot(ann, await take(ann.on), "d")
        body = client_codecs.write_change_notify(ChangeNotifyRequest(directory, 0x1, 4096, True))
        watching = asyncio.ensure_future(ann.send(Command.CHANGE_NOTIFY, body))
        await ann.waits.wait()
        await do.create(ann.on, "d/new")
        await ann.create(r"d\newer")
        assert not watching.done()
        await ann.close(directory)
        assert (await watching).status == statuses.STATUS_NOTIFY_CLEANUP

    run(scenario)


def test_rest_lists_and_closes_the_handles_of_a_snapshot() -> None:
    """F-HDL-03."""

    async def scenario(ann: SmbCaller) -> None:
        stamp, file_id = await past(ann)
        present = (await ann.open("f")).file_id

        async def count(snapshot: int | None, path: str = "", **more: Any) -> int:
            wanted = ListHandles(**more)
            found = await do.run(ann.on, handle.LIST_HANDLES, path, wanted, snapshot=snapshot)
            return len(found.rows)

        assert await count(stamp, "f") == await count(stamp, is_recursive=True) == 1
        assert await count(None, "f") == await count(None, is_recursive=True) == 1
        closing = CloseHandles(is_recursive=True)
        await do.run(ann.on, handle.FORCE_CLOSE_HANDLES, "", closing, snapshot=stamp)
        assert await count(stamp, "f") == 0
        assert await smb.status(ann.read(file_id, 0, 1)) == CLOSED
        assert await ann.read(present, 0, 1) == b"A"

    run(scenario)
