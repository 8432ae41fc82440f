"""Copies within the server: keys, rights, limits, and the progress of a failed copy."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable

import pytest

from strongroom.errors import file as file_errors
from strongroom.servers.smb.commands import ioctl as ioctl_command
from strongroom.wire.smb import statuses
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests import ioctl
from strongroom.wire.smb.requests.ioctl import CopyChunk, CopyChunks
from tests.servers.smb import client_codecs
from tests.servers.smb import command_calls as smb
from tests.servers.smb.command_calls import SmbCaller
from tests.services import container_calls as given
from tests.services import file_calls

KEY = 0x140078
COPY = 0x1440F2
COPY_TO_WRITE_ONLY = 0x1480F2
ALLOCATED = 0x940CF
READ, WRITE, EXECUTE = 0x1, 0x2, 0x20


def run(scenario: Callable[[SmbCaller], Awaitable[None]]) -> None:
    async def started() -> None:
        await scenario(await smb.caller(await file_calls.services()))

    given.run(started)


async def copied(
    ann: SmbCaller, target: FileId, key: bytes, *chunks: CopyChunk, code: int = COPY
) -> tuple[int, tuple[int, ...]]:
    """The status of a copy, and the three numbers of its answer."""
    data = client_codecs.write_copy_chunks(CopyChunks(key, chunks))
    request = ioctl.IoctlRequest(code, target, memoryview(data), 12)
    answer = await ann.send(Command.IOCTL, client_codecs.write_ioctl(request))
    output = client_codecs.read_ioctl_answer(smb.message_of(answer))
    return answer.status, struct.unpack("<III", output)


def test_ranges_are_copied_in_their_order() -> None:
    async def scenario(ann: SmbCaller) -> None:
        source = await ann.create("source", b"0123456789")
        key = (await ann.control(KEY, source))[:24]
        target = await ann.create("target")
        chunks = (CopyChunk(2, 0, 3), CopyChunk(0, 3, 2))
        assert await copied(ann, target, key, *chunks) == (0, (2, 0, 5))
        assert await file_calls.read(ann.on, "target") == b"23401"
        assert await copied(ann, source, key, CopyChunk(0, 5, 5)) == (0, (1, 0, 5))
        assert await file_calls.read(ann.on, "source") == b"0123401234"

    run(scenario)


def test_a_range_behind_the_source_ends_the_copy() -> None:
    async def scenario(ann: SmbCaller) -> None:
        source = await ann.create("source", b"01234")
        key = (await ann.control(KEY, source))[:24]
        target = await ann.create("target")
        for too_far in (CopyChunk(3, 9, 3), CopyChunk(5, 9, 1)):
            found = await copied(ann, target, key, CopyChunk(0, 0, 5), too_far)
            assert found == (statuses.STATUS_INVALID_VIEW_SIZE, (1, 0, 5))

    run(scenario)


def test_a_copy_beyond_the_limits_is_answered_with_them() -> None:
    async def scenario(ann: SmbCaller) -> None:
        source = await ann.create("source", b"01234")
        key = (await ann.control(KEY, source))[:24]
        found = await copied(ann, source, key, CopyChunk(0, 0, 0))
        limits = (256, 1 << 20, 16 << 20)
        assert found == (file_errors.STATUS_INVALID_PARAMETER, limits)

    run(scenario)


def test_a_key_is_good_as_long_as_its_open() -> None:
    async def scenario(ann: SmbCaller) -> None:
        source = await ann.create("source", b"01234")
        key = (await ann.control(KEY, source))[:24]
        target = await ann.create("target")
        small = ann.control(KEY, source, room=31)
        assert await smb.status(small) == file_errors.STATUS_INVALID_PARAMETER
        await ann.close(source)
        for gone in (key, bytes(24)):
            outcome = copied(ann, target, gone, CopyChunk(0, 0, 1))
            assert await smb.status(outcome) == file_errors.STATUS_OBJECT_NAME_NOT_FOUND

    run(scenario)


@pytest.mark.parametrize(
    ("source_access", "target_access", "code", "expected"),
    [
        (READ, READ | WRITE, COPY, 0), (EXECUTE, READ | WRITE, COPY, 0),
        (WRITE, READ | WRITE, COPY, file_errors.STATUS_ACCESS_DENIED),
        (READ, READ, COPY, file_errors.STATUS_ACCESS_DENIED),
        (READ, WRITE, COPY, file_errors.STATUS_ACCESS_DENIED),
        (READ, WRITE | EXECUTE, COPY, file_errors.STATUS_ACCESS_DENIED),
        (READ, WRITE, COPY_TO_WRITE_ONLY, 0),
    ],
)  # fmt: skip
def test_a_copy_needs_rights_to_both_files(
    source_access: int, target_access: int, code: int, expected: int
) -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.create("source", b"01234"))
        await ann.close(await ann.create("target"))
        source = (await ann.open("source", access=source_access)).file_id
        target = (await ann.open("target", access=target_access)).file_id
        key = (await ann.control(KEY, source))[:24]
        outcome = copied(ann, target, key, CopyChunk(0, 0, 1), code=code)
        assert await smb.status(outcome) == expected

    run(scenario)


def test_ranges_that_are_too_many_for_an_answer_are_not_said_to_be_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that copies only what is allocated would lose the rest."""
    monkeypatch.setattr(ioctl_command, "_RANGES_MAX", 2)

    async def scenario(ann: SmbCaller) -> None:
        await file_calls.create(ann.on, "f", 1 << 20)
        for number in range(3):
            await file_calls.put(ann.on, "f", number << 18, b"x" * 512)
        source = (await ann.open("f")).file_id
        ranges = [(number << 18, 512) for number in range(3)]
        for first, status in ((0, statuses.STATUS_BUFFER_OVERFLOW), (1 << 18, 0)):
            data = struct.pack("<qq", first, (1 << 20) - first)
            request = ioctl.IoctlRequest(ALLOCATED, source, memoryview(data), 4096)
            answer = await ann.send(Command.IOCTL, client_codecs.write_ioctl(request))
            output = client_codecs.read_ioctl_answer(smb.message_of(answer))
            found = list(struct.iter_unpack("<qq", output))
            assert (answer.status, found) == (status, ranges[first >> 18 :][:2])

    run(scenario)
