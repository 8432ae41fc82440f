"""Commands on files and directories: opens, bytes, names, and every kind of information."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

from strongroom.errors import file as file_errors
from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.refusals import SmbError
from strongroom.services.file.names.permissions import DEFAULT_TEXT
from strongroom.wire.smb import statuses
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.information.sddl import parse_sddl
from strongroom.wire.smb.information.security_descriptors import (
    DACL,
    GROUP,
    OWNER,
    read_descriptor,
    write_descriptor,
)
from strongroom.wire.smb.requests.change_notify import ChangeNotifyRequest
from strongroom.wire.smb.requests.create_contexts import (
    DISK_ID,
    LEASE,
    MAXIMAL_ACCESS,
    chain,
    write_chain,
)
from tests.servers.smb import client_codecs
from tests.servers.smb import command_calls as smb
from tests.servers.smb.command_calls import SmbCaller
from tests.services import container_calls as given
from tests.services import file_calls

NOT_FOUND = file_errors.STATUS_OBJECT_NAME_NOT_FOUND
INVALID = file_errors.STATUS_INVALID_PARAMETER
NAME_INVALID = file_errors.STATUS_OBJECT_NAME_INVALID
DENIED = file_errors.STATUS_ACCESS_DENIED

Scenario = Callable[[SmbCaller], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def started() -> None:
        await scenario(await smb.caller(await file_calls.services()))

    given.run(started)


def test_what_is_written_is_read_by_both_protocols() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("Bericht.txt", b"hello")
        assert await ann.read(file_id, 1, 100) == b"ello"
        await ann.write(file_id, 5, b" world")
        node = await ann.close(file_id, wants_attributes=True)
        assert (node.size, node.attributes) == (11, 0x20)
        assert await file_calls.read(ann.on, "Bericht.txt") == b"hello world"

    run(scenario)


def test_a_short_read_is_an_end_of_file_only_below_the_minimum() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a", b"1234")
        assert await ann.read(file_id, 2, 10, minimum=2) == b"34"
        end = statuses.STATUS_END_OF_FILE
        assert await smb.status(ann.read(file_id, 2, 10, minimum=3)) == end
        assert await smb.status(ann.read(file_id, 4, 10)) == end
        assert await ann.read(file_id, 4, 0) == b""

    run(scenario)


def test_a_closed_file_id_means_nothing() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a")
        assert await ann.close(file_id) is None
        assert await smb.status(ann.close(file_id)) == statuses.STATUS_FILE_CLOSED
        assert await smb.status(ann.read(file_id, 0, 1)) == statuses.STATUS_FILE_CLOSED

    run(scenario)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("\\a", INVALID), ("a\\", 0), ("none", NOT_FOUND), ("a:b", NAME_INVALID),
        ("a::$DATA", NAME_INVALID), ("a/b", NAME_INVALID), ("a*", NAME_INVALID),
        ("d\\\\f", NAME_INVALID), ("d\\..\\a", file_errors.STATUS_OBJECT_PATH_SYNTAX_BAD),
        (".", file_errors.STATUS_OBJECT_PATH_SYNTAX_BAD), ("\ud800", NAME_INVALID),
        ("x" * 256, NAME_INVALID), ("none\\f", file_errors.STATUS_OBJECT_PATH_NOT_FOUND),
        ("a\\f", file_errors.STATUS_OBJECT_PATH_NOT_FOUND), ("D\\F", 0), ("", 0),
        ("a\0", NAME_INVALID),
    ],
)  # fmt: skip
def test_names_of_opens(name: str, expected: int) -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.create("a"))
        await ann.close(await ann.mkdir("d"))
        await ann.close(await ann.create("d\\f"))
        assert await smb.status(ann.open(name)) == expected

    run(scenario)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"disposition": 6}, INVALID), ({"share": 8}, INVALID), ({"options": 0x0100_0000}, INVALID),
        ({"options": 0x80}, statuses.STATUS_NOT_SUPPORTED), ({"options": 0x41}, INVALID),
        ({"options": 0x2000}, statuses.STATUS_NOT_SUPPORTED),
        ({"options": 0x10_0000}, statuses.STATUS_NOT_SUPPORTED),
        ({"options": 0x00EF_CF7E & ~0x1041}, 0),
        ({"impersonation": 4}, statuses.STATUS_BAD_IMPERSONATION_LEVEL), ({"access": 0}, DENIED),
        ({"access": 0x10_0000}, 0),
        ({"options": 1}, statuses.STATUS_NOT_A_DIRECTORY), ({"attributes": 0x8}, INVALID),
        ({"access": 0x0100_0000}, statuses.STATUS_PRIVILEGE_NOT_HELD),
        ({"chain": write_chain([(b"TWrp", bytes(8))])}, NOT_FOUND),
        ({"chain": write_chain([(b"DHnC", bytes(16))])}, NOT_FOUND),
        ({"chain": write_chain([(b"DH2C", bytes(36))])}, NOT_FOUND),
        ({"chain": write_chain([(b"RqLs", bytes(31))])}, INVALID),
    ],
)  # fmt: skip
def test_opens_that_are_refused_for_their_fields(more: dict[str, int], expected: int) -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.create("a"))
        asked = {"disposition": int(Disposition.OPEN), **more}
        opening = ann.open("a", **asked)  # type: ignore[arg-type]  # keywords of a table
        assert await smb.status(opening) == expected

    run(scenario)


def test_a_file_is_no_name_that_ends_in_a_separator() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.create("a"))
        assert await smb.status(ann.open("a\\", options=0x40)) == NAME_INVALID

    run(scenario)


@pytest.mark.parametrize(("first", "second"), [(32, 52), (52, 32), (32, 32), (52, 52)])
def test_a_lease_is_answered_in_the_version_of_its_first_open(first: int, second: int) -> None:
    """smbtorture, lease.v2_epoch2 and v2_epoch3; version 2 has 52 bytes, version 1 has 32."""

    async def scenario(ann: SmbCaller) -> None:
        for size, state in ((first, 1), (second, 3)):
            data = b"k" * 16 + struct.pack("<I", state).ljust(32, b"\0") + struct.pack("<HH", 7, 0)
            asked = write_chain([(LEASE, data[:size])])
            made = await ann.open("a", Disposition.OPEN_IF, asked, oplock_level=0xFF)
            answered = bytes(dict(chain(memoryview(made.contexts)))[LEASE])
            assert len(answered) == first
            assert struct.unpack_from("<II", answered, 16) == (state, 0)
            if first == 52:
                assert struct.unpack_from("<H", answered, 48) == ({1: 8, 3: 9}[state],)

    run(scenario)


def test_an_open_answers_what_its_contexts_ask() -> None:
    async def scenario(ann: SmbCaller) -> None:
        asked = write_chain([(MAXIMAL_ACCESS, b""), (DISK_ID, b"")])
        made = await ann.open("a", Disposition.CREATE, asked)
        answered = dict(chain(memoryview(made.contexts)))
        assert bytes(answered[MAXIMAL_ACCESS]) == struct.pack("<II", 0, smb.FULL)
        (file_id,) = struct.unpack_from("<Q", answered[DISK_ID])
        assert struct.pack("<Q", file_id) == (await ann.query(made.file_id, 1, 6))[1]
        known = write_chain([(MAXIMAL_ACCESS, struct.pack("<Q", made.node.change))])
        again = await ann.open("a", chain=known)
        found = bytes(dict(chain(memoryview(again.contexts)))[MAXIMAL_ACCESS])
        assert found == struct.pack("<II", 0xC0000073, 0)

    run(scenario)


def test_a_security_descriptor_of_a_creation_is_stored_and_shown() -> None:
    async def scenario(ann: SmbCaller) -> None:
        text = "O:BAG:SYD:P(A;;FA;;;WD)"
        asked = write_chain([(b"SecD", write_descriptor(parse_sddl(text)))])
        made = await ann.open("a", Disposition.CREATE, asked)
        wanted = OWNER | GROUP | DACL
        _, data = await ann.query(made.file_id, 3, 0, additional=wanted)
        assert read_descriptor(memoryview(data)) == parse_sddl(text)
        small = ann.query(made.file_id, 3, 0, room=len(data) - 1, additional=wanted)
        with pytest.raises(SmbError) as refused:
            await small
        assert refused.value.status == statuses.STATUS_BUFFER_TOO_SMALL
        assert refused.value.data == struct.pack("<I", len(data))

    run(scenario)


def test_setting_a_part_of_a_descriptor_keeps_the_others() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a")
        given_dacl = write_descriptor(parse_sddl("O:WDG:WDD:P(D;;FA;;;AN)"))
        await ann.change(file_id, 0, given_dacl, info_type=3, additional=DACL)
        _, data = await ann.query(file_id, 3, 0, additional=OWNER | GROUP | DACL)
        owner = parse_sddl(DEFAULT_TEXT).owner
        found = read_descriptor(memoryview(data))
        assert found.owner == owner
        assert found.dacl == parse_sddl("O:WDG:WDD:P(D;;FA;;;AN)").dacl

    run(scenario)


@pytest.mark.parametrize(
    ("access", "additional", "reads", "writes"),
    [
        (0x20000, DACL, 0, DENIED), (0x40000, DACL, DENIED, 0), (0x80000, OWNER, DENIED, 0),
        (0x80, OWNER | GROUP | DACL, DENIED, DENIED), (smb.FULL, 8, DENIED, DENIED),
    ],
)  # fmt: skip
def test_descriptors_need_rights(access: int, additional: int, reads: int, writes: int) -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.create("a"))
        file_id = (await ann.open("a", access=access)).file_id
        assert await smb.status(ann.query(file_id, 3, 0, additional=additional)) == reads
        data = write_descriptor(parse_sddl(DEFAULT_TEXT))
        found = await smb.status(ann.change(file_id, 0, data, 3, additional))
        assert found == writes

    run(scenario)


def test_names_are_listed_in_parts_by_the_pattern_of_the_first_query() -> None:
    async def scenario(ann: SmbCaller) -> None:
        for index in range(30):
            await ann.close(await ann.create(f"file-{index:02}"))
        await ann.close(await ann.create("other"))
        root = (await ann.open("")).file_id
        found: list[str] = []
        while len(found) < 30:
            found += await ann.names(root, "file*" if not found else "o*", room=100)
        assert await smb.status(ann.names(root)) == statuses.STATUS_NO_MORE_FILES
        assert found == [f"file-{index:02}" for index in range(30)]
        assert await ann.names(root, "o*", flags=1) == ["other"]
        assert await ann.names(root, "*", flags=0x13) == ["."]
        assert await ann.names(root, "*", flags=2) == [".."]

    run(scenario)


def test_a_pattern_without_a_match_is_no_such_file_at_first() -> None:
    async def scenario(ann: SmbCaller) -> None:
        root = (await ann.open("")).file_id
        assert await smb.status(ann.names(root, "none")) == statuses.STATUS_NO_SUCH_FILE
        assert await smb.status(ann.names(root, "none")) == statuses.STATUS_NO_MORE_FILES
        mismatch = statuses.STATUS_INFO_LENGTH_MISMATCH
        assert await smb.status(ann.names(root, "*", flags=1, room=13)) == mismatch
        assert await ann.names(root, "*", flags=1, room=14) == ["."]
        assert await smb.status(ann.names(root, "a\\b", flags=1)) == NAME_INVALID

    run(scenario)


def test_information_shows_the_handle_and_the_file() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.mkdir("d"))
        file_id = await ann.create("d\\File", b"12345")
        status, data = await ann.query(file_id, 1, 18)
        assert status == 0
        assert data[100:].decode("utf-16-le") == "\\d\\File"
        allocation, size, links, pending, is_directory = struct.unpack_from("<QQIBB", data, 40)
        assert (allocation, size, links, pending, is_directory) == (4096, 5, 1, 0, 0)
        assert struct.unpack_from("<I", data, 76) == (smb.FULL,)
        await ann.dispose(file_id)
        _, pending_data = await ann.query(file_id, 1, 5)
        assert struct.unpack_from("<IBB", pending_data, 16) == (0, 1, 0)
        await ann.dispose(file_id, deletes=False)
        status, cut = await ann.query(file_id, 1, 18, room=104)
        assert (status, len(cut)) == (statuses.STATUS_BUFFER_OVERFLOW, 104)
        assert await smb.status(ann.query(file_id, 1, 18, room=99)) == (
            statuses.STATUS_INFO_LENGTH_MISMATCH
        )
        assert (await ann.query(file_id, 1, 48))[1][4:].decode("utf-16-le") == "d\\File"
        assert await smb.status(ann.query(file_id, 1, 200)) == statuses.STATUS_INVALID_INFO_CLASS
        assert await smb.status(ann.query(file_id, 4, 32)) == statuses.STATUS_NOT_SUPPORTED

    run(scenario)


def test_the_attributes_of_a_handle_need_a_right() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.create("a"))
        file_id = (await ann.open("a", access=0x20000)).file_id
        for kind in range(64):
            found = await smb.status(ann.query(file_id, 1, kind))
            assert (found == DENIED) == (kind in (4, 15, 18, 34, 35)), kind
        eas = (await ann.open("a", access=0x8)).file_id
        assert await smb.status(ann.query(eas, 1, 15)) == statuses.STATUS_NO_EAS_ON_FILE

    run(scenario)


def test_a_share_is_a_volume_of_its_quota() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.create("a", bytes(5000))
        root = (await ann.open("")).file_id
        total, free, _, sectors, size = struct.unpack("<QQQII", (await ann.query(root, 2, 7))[1])
        unit = sectors * size
        assert (total - free) * unit == 8192
        assert total * unit % (1 << 30) == 0
        label = (await ann.query(root, 2, 1))[1][18:].decode("utf-16-le")
        assert label == file_calls.SHARE
        assert await smb.status(ann.query(root, 2, 8)) == statuses.STATUS_NOT_SUPPORTED

    run(scenario)


def test_sizes_times_and_attributes_are_set() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a", b"12345")
        await ann.change(file_id, 20, struct.pack("<q", 3))
        assert await ann.read(file_id, 0, 10) == b"123"
        await ann.change(file_id, 20, struct.pack("<q", 4))
        assert await ann.read(file_id, 0, 10) == b"123\0"
        await ann.change(file_id, 19, struct.pack("<q", 2))
        assert await ann.read(file_id, 0, 10) == b"12"
        written = 132_000_000_000_000_000
        basic = struct.pack("<qqqqII", 0, 0, written, 0, 2, 0)
        await ann.change(file_id, 4, basic)
        _, found = await ann.query(file_id, 1, 4)
        assert struct.unpack_from("<Q", found, 16) == (written,)
        assert struct.unpack_from("<I", found, 32) == (2,)
        await ann.change(file_id, 16, struct.pack("<I", 6))
        assert (await ann.query(file_id, 1, 16))[1] == struct.pack("<I", 6)
        await ann.change(file_id, 16, bytes(4))
        assert (await ann.query(file_id, 1, 16))[1] == bytes(4)
        assert await smb.status(ann.change(file_id, 20, b"\xff" * 8)) == INVALID
        assert await smb.status(ann.change(file_id, 64, bytes(4))) == (
            statuses.STATUS_INVALID_INFO_CLASS
        )
        assert await smb.status(ann.change(file_id, 8, bytes(8), info_type=2)) == (
            statuses.STATUS_NOT_SUPPORTED
        )

    run(scenario)


def test_ranges_are_zeroed_and_the_rest_is_listed() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a", b"x" * (1 << 20))
        await ann.control(0x980C8, file_id, struct.pack("<qq", 65536, 131072))
        assert await ann.read(file_id, 65535, 3) == b"x\0\0"
        data = await ann.control(0x940CF, file_id, struct.pack("<qq", 0, 1 << 20))
        assert data == struct.pack("<qqqq", 0, 65536, 131072, (1 << 20) - 131072)

    run(scenario)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0x60194, statuses.STATUS_FS_DRIVER_REQUIRED),
        (0x1401D4, statuses.STATUS_NOT_SUPPORTED),
        (0x900A8, statuses.STATUS_NOT_A_REPARSE_POINT),
        (0x900A4, statuses.STATUS_INVALID_DEVICE_REQUEST),
        (0x11C017, statuses.STATUS_INVALID_DEVICE_REQUEST),
        (0xDEAD, statuses.STATUS_INVALID_DEVICE_REQUEST),
    ],
)
def test_control_codes_that_are_refused(code: int, expected: int) -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a")
        assert await smb.status(ann.control(code, file_id)) == expected

    run(scenario)


def test_an_object_id_is_of_the_file_and_the_share() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a")
        found = await ann.control(0x900C0, file_id)
        again = (await ann.open("a")).file_id
        assert await ann.control(0x900C0, again) == found
        assert found[:8] == (await ann.query(file_id, 1, 6))[1]
        assert len(found) == 64
        assert await smb.status(ann.control(0x900C0, file_id, room=63)) == INVALID
        await ann.close(file_id)
        assert await smb.status(ann.control(0x900C0, file_id)) == statuses.STATUS_FILE_CLOSED

    run(scenario)


def test_a_share_without_snapshots_lists_none() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a")
        found = await ann.control(0x144064, file_id)
        assert found == struct.pack("<IIIH", 0, 0, 2, 0)

    run(scenario)


def test_an_open_shows_where_its_last_read_ended() -> None:
    async def scenario(ann: SmbCaller) -> None:
        file_id = await ann.create("a", b"12345")
        await ann.read(file_id, 1, 2)
        assert (await ann.query(file_id, 1, 14))[1] == struct.pack("<Q", 3)
        await ann.change(file_id, 14, struct.pack("<Q", 9))
        assert (await ann.query(file_id, 1, 18))[1][80:88] == struct.pack("<Q", 9)

    run(scenario)


ADDED, MODIFIED = 1, 3


async def _watched(ann: SmbCaller, directory: FileId, room: int = 4096) -> tuple[int, bytes]:
    """The status and the entries of one answer."""
    request = ChangeNotifyRequest(directory, room, 0x1F, watches_tree=False)
    answer = await ann.send(Command.CHANGE_NOTIFY, client_codecs.write_change_notify(request))
    return answer.status, bytes(client_codecs.read_buffer_answer(smb.message_of(answer)))


def _entry(action: int, name: str) -> bytes:
    data = name.encode("utf-16-le")
    return struct.pack("<III", 0, action, len(data)) + data


def test_a_watched_directory_shows_what_happens_and_when_it_is_closed() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.mkdir("d"))
        directory = (await ann.open("d")).file_id
        first = asyncio.ensure_future(_watched(ann, directory))
        await ann.waits.wait()
        made = await ann.create("d\\New")
        assert await first == (0, _entry(ADDED, "New"))
        await ann.write(made, 0, b"text")
        assert await _watched(ann, directory) == (0, _entry(MODIFIED, "New"))
        await ann.close(await ann.create("d\\Other"))
        room = len(_entry(ADDED, "Other")) - 1
        assert await _watched(ann, directory, room) == (statuses.STATUS_NOTIFY_ENUM_DIR, b"")
        ann.waits.clear()
        last = asyncio.ensure_future(_watched(ann, directory))
        await ann.waits.wait()
        await ann.close(directory)
        assert await last == (statuses.STATUS_NOTIFY_CLEANUP, b"")

    run(scenario)


@pytest.mark.parametrize("by_close", [False, True])
def test_a_watched_directory_that_is_to_be_deleted_is_watched_no_more(by_close: bool) -> None:
    async def scenario(ann: SmbCaller) -> None:
        await ann.close(await ann.mkdir("d"))
        directory = (await ann.open("d")).file_id
        waiting = asyncio.ensure_future(_watched(ann, directory))
        await ann.waits.wait()
        other = (await ann.open("d", options=0x1000 if by_close else 0)).file_id
        if by_close:
            await ann.close(other)
        else:
            await ann.dispose(other)
        assert await smb.status(waiting) == file_errors.STATUS_DELETE_PENDING

    run(scenario)


def test_only_directories_are_watched_and_by_a_right() -> None:
    async def scenario(ann: SmbCaller) -> None:
        assert await smb.status(_watched(ann, await ann.create("a"))) == INVALID
        root = (await ann.open("", access=0x80)).file_id
        assert await smb.status(_watched(ann, root)) == DENIED

    run(scenario)
