"""Information classes: sizes, truncation, and classes that cannot be queried or set."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from strongroom.errors import file as file_errors
from strongroom.wire.smb import statuses
from strongroom.wire.smb.information import file_information as info
from strongroom.wire.smb.information import filesystem_information as volumes
from strongroom.wire.smb.information.directory_entries import (
    DirectoryClass,
    DirectoryEntry,
    EntryBuffer,
    check_directory_class,
)
from strongroom.wire.smb.information.file_information import FileClass, Information
from strongroom.wire.smb.refusals import SmbRefusal
from tests.servers.smb import client_codecs

NODE = info.NodeInformation(
    creation=1,
    last_access=2,
    last_write=3,
    change=4,
    allocation=4096,
    size=10,
    attributes=0x20,
    file_id=77,
    is_directory=False,
    is_delete_pending=True,
    access=0x12019F,
    mode=2,
    path="d\\ä.txt",
    volume_serial=5,
)
VOLUME = volumes.VolumeInformation("shäre", 9, 0xABCD, 10 * 4096, 4097)
PATH = "\\d\\ä.txt".encode("utf-16-le")

SIZES = {
    FileClass.BASIC: (40, 0), FileClass.STANDARD: (24, 0), FileClass.INTERNAL: (8, 0),
    FileClass.EA: (4, 0), FileClass.ACCESS: (4, 0), FileClass.POSITION: (8, 0),
    FileClass.MODE: (4, 0), FileClass.ALIGNMENT: (4, 0), FileClass.ALL: (100, len(PATH)),
    FileClass.STREAM: (24, 14), FileClass.COMPRESSION: (16, 0), FileClass.NETWORK_OPEN: (56, 0),
    FileClass.ATTRIBUTE_TAG: (8, 0), FileClass.NORMALIZED_NAME: (4, len(PATH) - 2),
    FileClass.ID: (24, 0),
}  # fmt: skip


@pytest.mark.parametrize("kind", SIZES)
def test_each_class_of_a_file_has_its_size(kind: FileClass) -> None:
    info.check_query(kind, has_normalized_names=True)
    found = info.query(kind, NODE)
    assert (len(found.fixed), len(found.variable)) == SIZES[kind]


def test_all_information_is_the_classes_one_behind_the_other() -> None:
    found = info.query(FileClass.ALL, NODE)
    parts = (
        FileClass.BASIC, FileClass.STANDARD, FileClass.INTERNAL, FileClass.EA, FileClass.ACCESS,
        FileClass.POSITION, FileClass.MODE, FileClass.ALIGNMENT,
    )  # fmt: skip
    whole = b"".join(info.query(kind, NODE).fixed for kind in parts)
    assert found.fixed == whole + struct.pack("<I", len(PATH))
    assert found.variable == PATH
    standard = info.query(FileClass.STANDARD, NODE).fixed
    assert standard == struct.pack("<QQIBBH", 4096, 10, 0, 1, 0, 0)


def test_a_directory_has_no_stream() -> None:
    found = info.query(FileClass.STREAM, info.NodeInformation(
        creation=0, last_access=0, last_write=0, change=0, allocation=0, size=0, attributes=16,
        file_id=1, is_directory=True,
    ))  # fmt: skip
    assert found.truncated(0) == (0, b"")


SERVED_VOLUMES = {1: (18, 10), 3: (24, 0), 4: (8, 0), 5: (12, 8), 7: (32, 0), 11: (28, 0)}


@pytest.mark.parametrize("kind", SERVED_VOLUMES)
def test_each_class_of_a_volume_has_its_size(kind: int) -> None:
    volumes.check_volume_query(kind)
    found = volumes.query_volume(kind, VOLUME)
    assert (len(found.fixed), len(found.variable)) == SERVED_VOLUMES[kind]


def test_space_is_counted_in_units_of_4_kib() -> None:
    assert volumes.query_volume(7, VOLUME).fixed == struct.pack("<QQQII", 10, 8, 8, 8, 512)
    full = volumes.VolumeInformation("s", 0, 0, 4096, 1 << 40)
    assert volumes.query_volume(3, full).fixed == struct.pack("<QQII", 1, 0, 8, 512)


@pytest.mark.parametrize(("kind", "buffer_bytes_min"), [(1, 24), (5, 16), (7, 32)])
def test_volumes_want_room_for_their_structures(kind: int, buffer_bytes_min: int) -> None:
    found = volumes.query_volume(kind, VOLUME)
    assert _refused(found.truncated, buffer_bytes_min - 1) == statuses.STATUS_INFO_LENGTH_MISMATCH
    assert len(found.truncated(buffer_bytes_min)[1]) <= buffer_bytes_min


def test_a_volume_offers_neither_streams_nor_links_nor_attributes_of_its_own() -> None:
    (flags,) = struct.unpack_from("<I", volumes.query_volume(5, VOLUME).fixed)
    assert flags == 6


@pytest.mark.parametrize("found", [info.query(kind, NODE) for kind in SIZES])
def test_what_does_not_fit_is_cut_or_refused(found: Information) -> None:
    whole = found.fixed + found.variable
    for room in range(len(whole) + 2):
        if room < len(found.fixed):
            with pytest.raises(SmbRefusal) as refused:
                found.truncated(room)
            assert refused.value.status == statuses.STATUS_INFO_LENGTH_MISMATCH
        elif room < len(whole):
            assert found.truncated(room) == (statuses.STATUS_BUFFER_OVERFLOW, whole[:room])
        else:
            assert found.truncated(room) == (0, whole)


def _refused(function: Any, *given: Any, **named: Any) -> int:
    with pytest.raises(SmbRefusal) as refused:
        function(*given, **named)
    return refused.value.status


def test_classes_that_do_not_exist_here_are_refused_each_in_its_way() -> None:
    expected = {
        FileClass.FULL_EA: statuses.STATUS_NO_EAS_ON_FILE,
        FileClass.ALTERNATE_NAME: file_errors.STATUS_OBJECT_NAME_NOT_FOUND,
        FileClass.NORMALIZED_NAME: statuses.STATUS_NOT_SUPPORTED,
    }
    for kind in range(256):
        if kind in SIZES and kind != FileClass.NORMALIZED_NAME:
            info.check_query(kind, has_normalized_names=False)
        else:
            status = expected.get(FileClass(kind)) if kind in set(FileClass) else None
            found = _refused(info.check_query, kind, has_normalized_names=False)
            assert found == (status or statuses.STATUS_INVALID_INFO_CLASS)
    for kind in range(256):
        if kind not in SERVED_VOLUMES:
            other = statuses.STATUS_INVALID_INFO_CLASS
            status = statuses.STATUS_NOT_SUPPORTED if kind == 8 else other
            assert _refused(volumes.check_volume_query, kind) == status


CHANGES: dict[FileClass, tuple[bytes, info.FileChange]] = {
    FileClass.BASIC: (
        struct.pack("<qqqqII", 0, -1, -2, 5, 0x80, 0),
        info.BasicInformation(0, -1, -2, 5, 0x80),
    ),
    FileClass.RENAME: (
        client_codecs.write_rename(info.RenameChange("d\\b", True)),
        info.RenameChange("d\\b", True),
    ),
    FileClass.DISPOSITION: (b"\1", info.DispositionChange(True)),
    FileClass.POSITION: (struct.pack("<q", 7), info.PositionChange(7)),
    FileClass.MODE: (struct.pack("<I", 0x36), info.ModeChange(0x36)),
    FileClass.ALLOCATION: (struct.pack("<q", 9), info.AllocationChange(9)),
    FileClass.END_OF_FILE: (struct.pack("<q", 9), info.EndOfFileChange(9)),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_changes_are_read_and_short_ones_refused(kind: FileClass) -> None:
    data, change = CHANGES[kind]
    assert info.read_change(kind, memoryview(data)) == change
    size = 20 if kind is FileClass.RENAME else len(data)
    for cut in range(size):
        status = _refused(info.read_change, kind, memoryview(data[:cut]))
        assert status == statuses.STATUS_INFO_LENGTH_MISMATCH


@pytest.mark.parametrize("mode", [0x1, 0x8, 0x1000, 1 << 31])
def test_a_mode_is_of_the_bits_that_can_be_set(mode: int) -> None:
    data = memoryview(struct.pack("<I", mode | 0x2))
    status = _refused(info.read_change, FileClass.MODE, data)
    assert status == file_errors.STATUS_INVALID_PARAMETER


def test_other_classes_cannot_be_set() -> None:
    expected = {
        FileClass.LINK: statuses.STATUS_NOT_SUPPORTED,
        FileClass.FULL_EA: statuses.STATUS_EAS_NOT_SUPPORTED,
        FileClass.VALID_DATA_LENGTH: statuses.STATUS_NOT_SUPPORTED,
        FileClass.SHORT_NAME: statuses.STATUS_NOT_SUPPORTED,
    }
    for kind in range(256):
        if kind not in CHANGES:
            status = expected.get(FileClass(kind)) if kind in set(FileClass) else None
            found = _refused(info.read_change, kind, memoryview(bytes(100)))
            assert found == (status or statuses.STATUS_INVALID_INFO_CLASS)


@pytest.mark.parametrize(
    ("root", "length", "name"),
    [(1, 2, b"a\0"), (0, 0, b"a\0"), (0, 3, b"a\0b"), (0, 4, b"a\0"), (0, 0xFFFFFFFE, b"a\0")],
)
def test_a_new_name_lies_within_its_change(root: int, length: int, name: bytes) -> None:
    data = struct.pack("<B7xQI", 0, root, length) + name
    status = _refused(info.read_change, FileClass.RENAME, memoryview(data))
    assert status == file_errors.STATUS_INVALID_PARAMETER


@pytest.mark.parametrize("kind", [FileClass.ALLOCATION, FileClass.END_OF_FILE, FileClass.POSITION])
def test_sizes_are_not_negative(kind: FileClass) -> None:
    status = _refused(info.read_change, kind, memoryview(struct.pack("<q", -1)))
    assert status == file_errors.STATUS_INVALID_PARAMETER


ENTRY = DirectoryEntry("ab", 1, 2, 3, 4, size=5, allocation=4096, attributes=0x20, file_id=9)
NAME_AT = {1: 64, 2: 68, 3: 94, 12: 12, 37: 104, 38: 80, 60: 88}


@pytest.mark.parametrize("kind", DirectoryClass)
def test_entries_have_their_names_where_the_class_says(kind: DirectoryClass) -> None:
    check_directory_class(kind)
    buffer = EntryBuffer(kind, 4096)
    assert buffer.add(ENTRY)
    assert buffer.data[NAME_AT[kind] :] == b"a\0b\0"
    length_at = 8 if kind is DirectoryClass.NAMES else 60
    assert struct.unpack_from("<I", buffer.data, length_at) == (4,)
    if kind is not DirectoryClass.NAMES:
        times_and_sizes = struct.pack("<QQQQQQI", 1, 2, 3, 4, 5, 4096, 0x20)
        assert buffer.data[8:60] == times_and_sizes
    if kind in (37, 38, 60):
        at = {37: 96, 38: 72, 60: 72}[kind]
        assert struct.unpack_from("<Q", buffer.data, at) == (9,)


@pytest.mark.parametrize("kind", DirectoryClass)
def test_entries_are_chained_and_the_last_is_not_padded(kind: DirectoryClass) -> None:
    one = NAME_AT[kind] + 4
    aligned = (one + 7) // 8 * 8
    for room in range(one, aligned + 2 * one):
        buffer = EntryBuffer(kind, room)
        taken = 0
        while buffer.add(ENTRY):
            taken += 1
        assert len(buffer.data) == aligned * (taken - 1) + one
        assert len(buffer.data) <= room
        at = 0
        for index in range(taken):
            (following,) = struct.unpack_from("<I", buffer.data, at)
            assert following == (aligned if index < taken - 1 else 0)
            at += following


@pytest.mark.parametrize("kind", DirectoryClass)
def test_a_buffer_for_less_than_one_entry_is_refused(kind: DirectoryClass) -> None:
    for room in (0, NAME_AT[kind] - 1, NAME_AT[kind] + 3):
        buffer = EntryBuffer(kind, room)
        assert _refused(buffer.add, ENTRY) == statuses.STATUS_INFO_LENGTH_MISMATCH


def test_other_classes_list_nothing() -> None:
    for kind in set(range(256)) - {int(one) for one in DirectoryClass}:
        assert _refused(check_directory_class, kind) == statuses.STATUS_INVALID_INFO_CLASS
