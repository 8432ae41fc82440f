"""Previous versions: the snapshots of a share in SMB's lists, opens and information."""

from __future__ import annotations

import struct

import pytest

from strongroom.errors import file as file_errors
from strongroom.semantics.file import previous_versions
from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.refusals import SmbError
from strongroom.wire.smb import statuses
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.create_contexts import (
    SNAPSHOT,
    write_chain,
)
from strongroom.wire.smb.requests.ioctl import Fsctl
from strongroom.wire.smb.requests.query_directory import QueryDirectoryRequest
from tests.servers.smb import client_codecs
from tests.servers.smb import command_calls as smb
from tests.servers.smb.command_calls import SmbCaller
from tests.servers.smb.past_calls import READS, open_in_snapshot, past, run, snapshot_context, take
from tests.services import file_calls as do

PROTECTED = file_errors.STATUS_MEDIA_WRITE_PROTECTED
NOT_FOUND = file_errors.STATUS_OBJECT_NAME_NOT_FOUND


async def enumerated(ann: SmbCaller, room: int = 4096) -> tuple[int, int, int, list[str]]:
    root = (await ann.open("", access=READS)).file_id
    data = await ann.control(Fsctl.SRV_ENUMERATE_SNAPSHOTS, root, room=room)
    names = data[12:].decode("utf-16-le").rstrip("\0").split("\0")
    return (*struct.unpack_from("<III", data), names)


def test_the_snapshots_are_listed_newest_first() -> None:
    async def scenario(ann: SmbCaller) -> None:
        assert await enumerated(ann) == (0, 0, 2, [""])
        stamps = []
        for _ in range(3):
            stamps.append(await take(ann.on))
            ann.on.store.advance(5)
        tokens = [previous_versions.token(stamp) for stamp in reversed(stamps)]
        assert await enumerated(ann) == (3, 3, 152, tokens)

    run(scenario)


@pytest.mark.parametrize(("room", "returned"), [(16, 0), (12 + 101, 0), (12 + 102, 2)])
def test_snapshots_are_listed_all_or_not_at_all(room: int, returned: int) -> None:
    async def scenario(ann: SmbCaller) -> None:
        await take(ann.on)
        await take(ann.on)
        total, found, size, names = await enumerated(ann, room)
        assert (total, found, size) == (2, returned, 102)
        assert len(names) == max(1, returned) and all(names) == bool(returned)

    run(scenario)


def test_a_list_of_snapshots_needs_room_for_its_numbers() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await take(ann.on)
        invalid = file_errors.STATUS_INVALID_PARAMETER
        assert await smb.status(enumerated(ann, 15)) == invalid

    run(scenario)


def test_a_file_of_a_snapshot_is_read_as_it_was() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.write(ann.on, "f", bytes(range(256)) * 1000)
        stamp = await take(ann.on)
        await do.write(ann.on, "f", b"AFTER")
        file_id = await open_in_snapshot(ann, stamp, "F")
        assert await ann.read(file_id, 255_000, 1 << 20) == (bytes(range(256)) * 1000)[255_000:]
        assert await ann.read(file_id, 1, 2) == b"\1\2"
        end = statuses.STATUS_END_OF_FILE
        assert await smb.status(ann.read(file_id, 256_000, 1)) == end
        node = await ann.close(file_id, wants_attributes=True)
        assert node.size == 256_000
        present = (await ann.open("f")).file_id
        assert await ann.read(present, 0, 100) == b"AFTER"

    run(scenario)


def test_two_snapshots_of_one_second_are_both_reached_by_token_and_by_stamp() -> None:
    async def scenario(ann: SmbCaller) -> None:
        contents, stamps = [b"one", b"two", b"three"], []
        for content in contents:
            await do.write(ann.on, "f", content)
            stamps.append(await take(ann.on))
        assert len({previous_versions.token(stamp) for stamp in stamps}) == 1
        await do.delete(ann.on, "f")
        _, _, _, tokens = await enumerated(ann)
        for content, stamp, token in zip(contents, stamps, reversed(tokens), strict=True):
            by_stamp = await open_in_snapshot(ann, stamp, "f")
            assert await ann.read(by_stamp, 0, 100) == content
            by_token = (await ann.open(rf"{token}\f", access=READS)).file_id
            assert await ann.read(by_token, 0, 100) == content

    run(scenario)


@pytest.mark.parametrize("path", [r"{}\d\f", r"d\{}\f", r"d\f\{}"])
def test_a_token_may_be_any_component_of_a_path(path: str) -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.mkdir(ann.on, "d")
        await do.write(ann.on, "d/f", b"before")
        token = previous_versions.token(await take(ann.on))
        await do.delete(ann.on, "d/f")
        file_id = (await ann.open(path.format(token), access=READS)).file_id
        assert await ann.read(file_id, 0, 100) == b"before"

    run(scenario)


def test_a_path_that_names_two_times_is_refused() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.write(ann.on, "f", b"before")
        stamp = await take(ann.on)
        token = previous_versions.token(stamp)
        invalid = file_errors.STATUS_INVALID_PARAMETER
        assert await smb.status(ann.open(rf"{token}\f", chain=snapshot_context(stamp))) == invalid
        twice = ann.open(rf"{token}\{token}\f")
        assert await smb.status(twice) == file_errors.STATUS_OBJECT_NAME_INVALID

    run(scenario)


def test_a_time_without_a_snapshot_is_not_found() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.write(ann.on, "f", b"before")
        stamp = await take(ann.on)
        for other in (stamp + 1, stamp - 1, stamp + 10**9):
            assert await smb.status(open_in_snapshot(ann, other, "f")) == NOT_FOUND
        zero = write_chain([(SNAPSHOT, bytes(8))])
        latest = write_chain([(SNAPSHOT, b"\xff" * 8)])
        assert await smb.status(ann.open("f", chain=zero)) == NOT_FOUND
        assert await smb.status(ann.open("f", chain=latest)) == NOT_FOUND
        assert await smb.status(ann.open(r"@GMT-2001.01.01-00.00.00\f")) == NOT_FOUND

    run(scenario)


def test_what_a_snapshot_does_not_have_is_not_found_in_it() -> None:
    async def scenario(ann: SmbCaller) -> None:
        stamp = await take(ann.on)
        await do.mkdir(ann.on, "d")
        await do.write(ann.on, "d/new", b"x")
        path = file_errors.STATUS_OBJECT_PATH_NOT_FOUND
        assert await smb.status(open_in_snapshot(ann, stamp, "d")) == NOT_FOUND
        assert await smb.status(open_in_snapshot(ann, stamp, r"d\new")) == path

    run(scenario)


@pytest.mark.parametrize("disposition", [0, 4, 5])
def test_an_open_that_would_overwrite_is_refused(disposition: int) -> None:
    async def scenario(ann: SmbCaller) -> None:
        stamp, _ = await past(ann)
        opening = ann.open("f", disposition, chain=snapshot_context(stamp))
        assert await smb.status(opening) == PROTECTED

    run(scenario)


def test_an_open_that_would_create_or_delete_is_refused() -> None:
    async def scenario(ann: SmbCaller) -> None:
        stamp, _ = await past(ann)
        for disposition in (0, 2, 3, 5):
            opening = ann.open("new", disposition, chain=snapshot_context(stamp))
            assert await smb.status(opening) == PROTECTED
        assert await smb.status(ann.open("new", 4, chain=snapshot_context(stamp))) == NOT_FOUND
        exists = file_errors.STATUS_OBJECT_NAME_COLLISION
        assert await smb.status(ann.open("f", 2, chain=snapshot_context(stamp))) == exists
        deleting = ann.open("f", options=0x1000, chain=snapshot_context(stamp))
        assert await smb.status(deleting) == PROTECTED
        opened = await ann.open("f", Disposition.OPEN_IF, chain=snapshot_context(stamp))
        assert (opened.action, opened.node.size) == (1, 6)
        assert await do.names(ann.on) == ["f"]

    run(scenario)


def test_a_directory_of_a_snapshot_is_listed_as_it_was() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.mkdir(ann.on, "d")
        names = [f"f{number:03}" for number in range(300)]
        for name in names:
            await do.create(ann.on, f"d/{name}", 5)
        stamp = await take(ann.on)
        for name in names[::2]:
            await do.delete(ann.on, f"d/{name}")
        await do.create(ann.on, "d/new")
        await do.create(ann.on, "d/f001", 7)
        directory = await open_in_snapshot(ann, stamp, "d")
        found = await ann.names(directory, room=4096)
        while (more := await after(ann, directory)) is not None:
            found += more
        assert found == [".", "..", *names]
        assert await ann.names(directory, "F001", flags=0x10) == ["f001"]
        # With the attributes of then, though the file has another length now.
        info = await listed_sizes(ann, directory, "f001")
        assert info == [5]

    run(scenario)


async def after(ann: SmbCaller, directory: FileId) -> list[str] | None:
    """The next names of a directory; None = there are no more."""
    try:
        return await ann.names(directory, room=4096)
    except SmbError as ended:
        if ended.status != statuses.STATUS_NO_MORE_FILES:
            raise
        return None


async def listed_sizes(ann: SmbCaller, directory: FileId, pattern: str) -> list[int]:
    """Return EndOfFile of the matching entries, from FileDirectoryInformation."""
    request = QueryDirectoryRequest(1, 0x10, directory, pattern, 4096)
    answer = await ann.send(Command.QUERY_DIRECTORY, client_codecs.write_query_directory(request))
    data = client_codecs.read_buffer_answer(smb.message_of(answer))
    assert int.from_bytes(data[:4], "little") == 0, "one row"
    return [int.from_bytes(data[40:48], "little")]


def test_the_root_of_a_snapshot_is_opened_by_its_token_alone() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await do.mkdir(ann.on, "gone")
        token = previous_versions.token(await take(ann.on))
        await do.rmdir(ann.on, "gone")
        root = (await ann.open(token, access=READS, options=1)).file_id
        assert await ann.names(root) == [".", "..", "gone"]

    run(scenario)
