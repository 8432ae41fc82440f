"""Bodies of requests: each side reads what the other writes, and truncated bodies are refused."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.smb.header import HEADER_BYTES, FileId
from strongroom.wire.smb.refusals import SmbRefusal
from strongroom.wire.smb.requests import (
    change_notify,
    create,
    ioctl,
    lock,
    oplock_break,
    query_directory,
    query_info,
    transfers,
)
from strongroom.wire.smb.requests.create_contexts import write_chain
from strongroom.wire.smb.statuses import STATUS_NOT_SUPPORTED
from strongroom.wire.smb.structures import MalformedMessage
from tests.servers.smb import client_codecs

MAX = 1 << 20
ID = FileId(0x1122334455667788, 0x99AABBCCDDEEFF00)


def message(body: bytes | bytearray) -> memoryview:
    """Return a body after a header, which codecs of bodies do not read."""
    return memoryview(bytes(HEADER_BYTES) + body)


def _create(name: str) -> create.CreateRequest:
    return create.CreateRequest(
        oplock_level=9,
        access=0x12019F,
        attributes=0x20,
        share=7,
        disposition=3,
        options=0x40,
        name=name,
    )


READERS: dict[str, tuple[bytes, Callable[[memoryview], Any]]] = {
    "create": (client_codecs.write_create(_create("a\\b")), create.read_create),
    "create with contexts": (
        client_codecs.write_create(
            _create(""), write_chain([(b"QFid", b""), (b"DHnQ", bytes(16))])
        ),
        create.read_create,
    ),
    "close": (client_codecs.write_close(transfers.CloseRequest(ID, True)), transfers.read_close),
    "flush": (client_codecs.write_flush(ID), transfers.read_flush),
    "read": (
        client_codecs.write_read(transfers.ReadRequest(ID, 7, 4096, 1, False)),
        lambda data: transfers.read_read(data, MAX),
    ),
    "write": (
        client_codecs.write_write(transfers.WriteRequest(ID, 9, memoryview(b"data"), True, True)),
        lambda data: transfers.read_write(data, MAX),
    ),
    "lock": (
        client_codecs.write_lock(
            lock.LockRequest(ID, (lock.LockElement(0, 1, 0x11), lock.LockElement(4, 2, 0x12)), 3, 5)
        ),
        lock.read_lock,
    ),
    "ioctl": (
        client_codecs.write_ioctl(ioctl.IoctlRequest(0x11C017, ID, memoryview(b"12345678"), 1024)),
        lambda data: ioctl.read_ioctl(data, MAX),
    ),
    "query directory": (
        client_codecs.write_query_directory(
            query_directory.QueryDirectoryRequest(37, 1, ID, "*.txt", 65536)
        ),
        lambda data: query_directory.read_query_directory(data, MAX),
    ),
    "query info": (
        client_codecs.write_query_info(query_info.QueryInfoRequest(1, 18, ID, 200, 0, b"in")),
        lambda data: query_info.read_query_info(data, MAX),
    ),
    "set info": (
        client_codecs.write_set_info(query_info.SetInfoRequest(1, 20, ID, memoryview(bytes(8)), 4)),
        lambda data: query_info.read_set_info(data, MAX),
    ),
    "change notify": (
        client_codecs.write_change_notify(change_notify.ChangeNotifyRequest(ID, 512, 0x17, True)),
        lambda data: change_notify.read_change_notify(data, MAX),
    ),
    "oplock acknowledgment": (
        oplock_break.write_oplock_break(oplock_break.OplockBreak(ID, 1)),
        oplock_break.read_acknowledgment,
    ),
    "lease acknowledgment": (
        oplock_break.write_lease_acknowledgment(oplock_break.LeaseBreakAck(b"k" * 16, 3)),
        oplock_break.read_acknowledgment,
    ),
}
_FIXED_BYTES = {
    "create": 56, "create with contexts": 56, "close": 24, "flush": 24, "read": 48, "write": 48,
    "lock": 48, "ioctl": 56, "query directory": 32, "query info": 40, "set info": 32,
    "change notify": 32, "oplock acknowledgment": 24, "lease acknowledgment": 36,
}  # fmt: skip


@pytest.mark.parametrize("kind", READERS)
def test_every_cut_within_what_a_request_names_is_refused(kind: str) -> None:
    body, read = READERS[kind]
    read(message(body))
    for size in range(_FIXED_BYTES[kind]):
        with pytest.raises(MalformedMessage):
            read(message(body[:size]))
    refused = 0
    for size in range(_FIXED_BYTES[kind], len(body)):
        try:
            read(message(body[:size]))
        except MalformedMessage:
            refused += 1
    assert refused in (0, len(body) - _FIXED_BYTES[kind]) or kind.startswith("create")


@pytest.mark.parametrize("kind", READERS)
def test_another_structure_size_is_refused(kind: str) -> None:
    body, read = READERS[kind]
    for size in (0, struct.unpack_from("<H", body)[0] ^ 1, 0xFFFF):
        with pytest.raises(MalformedMessage):
            read(message(struct.pack("<H", size) + body[2:]))


@pytest.mark.parametrize("kind", READERS)
def test_no_mutation_raises_anything_but_a_refusal(kind: str) -> None:
    body, read = READERS[kind]
    chance = random.Random(kind)
    extremes = (0, 1, 7, 63, 64, 119, 120, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
    for at in range(2, len(body) - 3):
        for value in extremes:
            changed = bytearray(body)
            struct.pack_into("<I", changed, at, value)
            _may_refuse(read, bytes(changed))
    for _ in range(300):
        changed = bytearray(body)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(2, len(body))] = chance.randrange(256)
        _may_refuse(read, bytes(changed[: chance.randint(2, len(body))]))


def _may_refuse(read: Callable[[memoryview], Any], body: bytes) -> None:
    try:
        read(message(body))
    except (MalformedMessage, SmbRefusal):
        pass


_U32 = st.integers(0, (1 << 32) - 1)
_U64 = st.integers(0, (1 << 64) - 1)
_IDS = st.builds(FileId, _U64, _U64)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(
    request=st.builds(
        create.CreateRequest,
        oplock_level=st.integers(0, 255),
        impersonation=_U32,
        access=_U32,
        attributes=_U32,
        share=_U32,
        disposition=_U32,
        options=_U32,
        name=_TEXT,
    )
)
def test_what_a_create_asks_for_is_read_again(request: create.CreateRequest) -> None:
    assert create.read_create(message(client_codecs.write_create(request))) == request


@given(file_id=_IDS, offset=st.integers(0, 1 << 60), length=st.integers(0, MAX), minimum=_U32)
def test_what_a_read_asks_for_is_read_again(
    file_id: FileId, offset: int, length: int, minimum: int
) -> None:
    request = transfers.ReadRequest(file_id, offset, length, minimum, True)
    assert transfers.read_read(message(client_codecs.write_read(request)), MAX) == request


@given(file_id=_IDS, offset=st.integers(0, 1 << 60), data=st.binary(max_size=100))
def test_what_a_write_carries_is_read_again(file_id: FileId, offset: int, data: bytes) -> None:
    request = transfers.WriteRequest(file_id, offset, memoryview(data), False, True)
    found = transfers.read_write(message(client_codecs.write_write(request)), MAX)
    assert (found.file_id, found.offset, bytes(found.data)) == (file_id, offset, data)
    assert (found.is_write_through, found.is_unbuffered) == (False, True)


_ELEMENTS = st.builds(lock.LockElement, _U64, _U64, st.sampled_from([0x11, 0x12]))


@given(file_id=_IDS, elements=st.lists(_ELEMENTS, min_size=1, max_size=64))
def test_the_ranges_of_a_lock_are_read_again(
    file_id: FileId, elements: list[lock.LockElement]
) -> None:
    request = lock.LockRequest(file_id, tuple(elements), 7, 64)
    assert lock.read_lock(message(client_codecs.write_lock(request))) == request


@given(pattern=_TEXT, room=st.integers(0, MAX), flags=st.integers(0, 255))
def test_a_query_of_a_directory_is_read_again(pattern: str, room: int, flags: int) -> None:
    request = query_directory.QueryDirectoryRequest(60, flags, ID, pattern, room)
    body = client_codecs.write_query_directory(request)
    assert query_directory.read_query_directory(message(body), MAX) == request
    assert request.restarts == bool(flags & 0x11)
    assert request.is_single == bool(flags & 2)


@pytest.mark.parametrize(
    ("offset", "length", "channel"),
    [(0, MAX + 1, 0), ((1 << 63) - 8, 8, 0), ((1 << 64) - 1, 0, 0), (0, 8, 1)],
)
def test_a_transfer_beyond_the_limits_is_refused(offset: int, length: int, channel: int) -> None:
    asked = transfers.ReadRequest(ID, offset, length, 0, False)
    read = bytearray(client_codecs.write_read(asked))
    struct.pack_into("<I", read, 36, channel)
    with pytest.raises(MalformedMessage):
        transfers.read_read(message(read), MAX)
    given = transfers.WriteRequest(ID, offset, memoryview(bytes(length)), False, False)
    write = bytearray(client_codecs.write_write(given))
    struct.pack_into("<I", write, 32, channel)
    with pytest.raises(MalformedMessage):
        transfers.read_write(message(write), MAX)


def test_the_data_of_a_write_begins_no_later_than_at_0x100() -> None:
    fixed = client_codecs.write_write(
        transfers.WriteRequest(ID, 0, memoryview(bytes(8)), False, False)
    )[:48]
    for offset, is_taken in ((0x100, True), (0x101, False)):
        body = bytearray(fixed + bytes(offset - HEADER_BYTES - 48) + b"12345678")
        struct.pack_into("<H", body, 2, offset)
        if is_taken:
            assert bytes(transfers.read_write(message(body), MAX).data) == b"12345678"
        else:
            with pytest.raises(MalformedMessage):
                transfers.read_write(message(body), MAX)


@pytest.mark.parametrize(
    ("flags", "is_taken"),
    [
        ([1], True), ([2], True), ([0x11], True), ([0x12], True), ([4], True), ([0], False),
        ([3], False), ([8], False), ([0x10], False), ([0x13], False), ([0x11, 0x12], True),
        ([1, 0x11], False), ([0x11, 1], False), ([0x11, 4], False), ([4, 4], True),
        ([4, 0x11], True), ([0x14], True),
    ],
)  # fmt: skip
def test_locks_are_judged_before_any_and_unlocks_one_by_one(
    flags: list[int], is_taken: bool
) -> None:
    elements = tuple(lock.LockElement(index, 1, flag) for index, flag in enumerate(flags))
    body = client_codecs.write_lock(lock.LockRequest(ID, elements))
    if is_taken:
        found = lock.read_lock(message(body))
        assert found.is_unlock == bool(flags[0] & 4)
        assert [element.is_unlock for element in found.elements] == [one == 4 for one in flags]
        assert found.fails_immediately == bool(flags[0] & 0x10)
    else:
        with pytest.raises(MalformedMessage):
            lock.read_lock(message(body))


@pytest.mark.parametrize("count", [0, 65, 0xFFFF])
def test_a_lock_has_between_one_and_64_ranges(count: int) -> None:
    elements = (lock.LockElement(0, 1, 0x11),) * 65
    body = bytearray(client_codecs.write_lock(lock.LockRequest(ID, elements)))
    struct.pack_into("<H", body, 2, count)
    with pytest.raises(MalformedMessage):
        lock.read_lock(message(body))


def test_a_control_code_that_is_no_fsctl_is_refused() -> None:
    body, _ = READERS["ioctl"]
    changed = bytearray(body)
    struct.pack_into("<I", changed, 48, 0)
    with pytest.raises(SmbRefusal) as refused:
        ioctl.read_ioctl(message(changed), MAX)
    assert refused.value.status == STATUS_NOT_SUPPORTED


@pytest.mark.parametrize(
    ("at", "value"), [(24, 121), (28, MAX + 1), (44, MAX + 1), (24, 112)], ids=str
)
def test_an_ioctl_beyond_its_bounds_is_refused(at: int, value: int) -> None:
    body = bytearray(READERS["ioctl"][0])
    struct.pack_into("<I", body, at, value)
    with pytest.raises(MalformedMessage):
        ioctl.read_ioctl(message(body), MAX)


def test_a_listing_beyond_the_greatest_transaction_is_answered_in_part() -> None:
    body, read = bytearray(READERS["query directory"][0]), READERS["query directory"][1]
    for asked, expected in ((MAX - 1, MAX - 1), (MAX, MAX), (MAX + 1, MAX), (0xFFFF_FFFF, MAX)):
        struct.pack_into("<I", body, 28, asked)
        assert read(message(body)).output_bytes_max == expected


@pytest.mark.parametrize("kind", ["query info", "change notify"])
def test_an_answer_beyond_the_greatest_transaction_is_refused(kind: str) -> None:
    at = 4
    body, read = bytearray(READERS[kind][0]), READERS[kind][1]
    struct.pack_into("<I", body, at, MAX)
    read(message(body))
    struct.pack_into("<I", body, at, MAX + 1)
    with pytest.raises(MalformedMessage):
        read(message(body))


@pytest.mark.parametrize("info_type", [0, 5, 255])
def test_information_is_of_four_types(info_type: int) -> None:
    for kind in ("query info", "set info"):
        body, read = bytearray(READERS[kind][0]), READERS[kind][1]
        body[2] = info_type
        with pytest.raises(MalformedMessage):
            read(message(body))


@pytest.mark.parametrize("length", [0, MAX + 1])
def test_a_change_carries_data(length: int) -> None:
    body = bytearray(READERS["set info"][0])
    struct.pack_into("<I", body, 4, length)
    with pytest.raises(MalformedMessage):
        query_info.read_set_info(message(bytes(body) + bytes(MAX)), MAX)


def test_half_a_unit_of_a_name_is_refused() -> None:
    body = bytearray(client_codecs.write_create(_create("abc")))
    struct.pack_into("<H", body, 46, 5)
    with pytest.raises(MalformedMessage):
        create.read_create(message(body))


def test_contexts_begin_at_a_multiple_of_8() -> None:
    body = bytearray(client_codecs.write_create(_create("abcd"), write_chain([(b"QFid", b"")])))
    struct.pack_into("<I", body, 48, 132)
    with pytest.raises(MalformedMessage):
        create.read_create(message(body + bytes(8)))


def test_a_lone_surrogate_is_left_to_the_rules_of_names() -> None:
    assert (
        create.read_create(message(client_codecs.write_create(_create("\ud800")))).name == "\ud800"
    )
