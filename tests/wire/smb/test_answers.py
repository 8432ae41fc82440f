"""Bodies of answers: their exact bytes, and that a client can read them."""

from __future__ import annotations

import pytest

from strongroom.wire.smb.header import HEADER_BYTES, FileId
from strongroom.wire.smb.information.file_information import NetworkOpenInformation
from strongroom.wire.smb.refusals import SmbRefusal
from strongroom.wire.smb.requests import (
    change_notify,
    create,
    ioctl,
    oplock_break,
    query_directory,
    transfers,
)
from strongroom.wire.smb.requests.create_contexts import write_chain
from strongroom.wire.smb.statuses import STATUS_BUFFER_OVERFLOW, STATUS_BUFFER_TOO_SMALL
from strongroom.wire.smb.structures import MalformedMessage
from tests.servers.smb import client_codecs

ID = FileId(1, 2)
NODE = NetworkOpenInformation(1, 2, 3, 4, allocation=4096, size=10, attributes=0x20)


def message(body: bytes) -> memoryview:
    return memoryview(bytes(HEADER_BYTES) + body)


def test_the_answer_to_an_open_has_89_bytes_and_contexts() -> None:
    contexts = write_chain([(b"MxAc", bytes(8))])
    answer = create.CreateAnswer(
        oplock_level=0xFF, action=1, node=NODE, file_id=ID, contexts=contexts
    )
    body = create.write_create_answer(answer)
    assert body[:8].hex() == "5900ff0001000000"
    assert int.from_bytes(body[80:84], "little") == HEADER_BYTES + 88
    assert body[88:] == contexts
    assert client_codecs.read_create_answer(message(body)) == answer


@pytest.mark.parametrize("node", [None, NODE])
def test_the_answer_to_a_close_has_60_bytes(node: NetworkOpenInformation | None) -> None:
    body = transfers.write_close_answer(node)
    assert len(body) == 60
    assert client_codecs.read_close_answer(message(body)) == node
    assert node is not None or not any(body[2:])


def test_the_data_of_a_read_begins_at_80() -> None:
    body = transfers.write_read_answer(3) + b"abc"
    assert bytes(client_codecs.read_read_answer(message(body))) == b"abc"
    assert body[:8].hex() == "1100500003000000"
    assert transfers.write_read_answer(0)[16:] == b"\0"


def test_the_answer_to_a_write_has_16_bytes() -> None:
    body = transfers.write_write_answer(5)
    assert len(body) == 16
    assert client_codecs.read_write_answer(message(body)) == 5


def test_a_buffer_without_data_has_no_offset() -> None:
    assert query_directory.write_buffer_answer(b"").hex() == "090000000000000000"
    body = query_directory.write_buffer_answer(b"abc")
    assert body.hex() == "0900480003000000616263"
    assert bytes(client_codecs.read_buffer_answer(message(body))) == b"abc"


def test_an_ioctl_answer_repeats_code_and_file() -> None:
    request = ioctl.IoctlRequest(ioctl.Fsctl.SRV_REQUEST_RESUME_KEY, ID, memoryview(b""), 32)
    body = ioctl.write_ioctl_answer(request, ioctl.write_resume_key(b"k" * 24))
    assert bytes(client_codecs.read_ioctl_answer(message(body))) == b"k" * 24 + bytes(8)
    assert body[4:24] == (0x140078).to_bytes(4, "little") + b"\1" + bytes(7) + b"\2" + bytes(7)


def test_changes_are_aligned_to_4_and_all_or_none_fit() -> None:
    changes = [
        change_notify.ChangedName(change_notify.NotifyAction.RENAMED_OLD_NAME, "a"),
        change_notify.ChangedName(change_notify.NotifyAction.RENAMED_NEW_NAME, "bc"),
    ]
    data = change_notify.write_changes(changes, 100)
    assert data.hex() == (
        "100000000400000002000000" + "61000000" + "000000000500000004000000" + "62006300"
    )
    assert change_notify.write_changes(changes, len(data)) == data
    assert change_notify.write_changes(changes, len(data) - 1) == b""


def test_a_lease_notice_asks_for_an_answer_by_its_flag() -> None:
    notice = oplock_break.LeaseBreakNotice(b"k" * 16, 7, 3, 5, must_acknowledge=True)
    body = oplock_break.write_lease_notice(notice)
    assert len(body) == 44
    assert client_codecs.read_lease_notice(message(body)) == notice


@pytest.mark.parametrize("count", [0, 256, 257])
def test_copies_have_limits_that_are_answered(count: int) -> None:
    chunks = ioctl.CopyChunks(b"k" * 24, (ioctl.CopyChunk(0, 0, 1),) * count)
    found = ioctl.read_copy_chunks(memoryview(client_codecs.write_copy_chunks(chunks)))
    assert found == (chunks if count <= 256 else None)


@pytest.mark.parametrize(
    ("lengths", "is_taken"),
    [([1 << 20] * 16, True), ([1 << 20] * 17, False), ([0], False), ([(1 << 20) + 1], False)],
)
def test_chunks_have_a_greatest_length_and_sum(lengths: list[int], is_taken: bool) -> None:
    chunks = tuple(ioctl.CopyChunk(0, 0, length) for length in lengths)
    data = client_codecs.write_copy_chunks(ioctl.CopyChunks(b"k" * 24, chunks))
    assert (ioctl.read_copy_chunks(memoryview(data)) is not None) == is_taken


def test_chunks_that_are_cut_off_or_end_too_far_are_refused() -> None:
    data = client_codecs.write_copy_chunks(ioctl.CopyChunks(b"k" * 24, (ioctl.CopyChunk(0, 0, 1),)))
    for cut in range(len(data)):
        with pytest.raises(MalformedMessage):
            ioctl.read_copy_chunks(memoryview(data[:cut]))
    far = ioctl.CopyChunks(b"k" * 24, (ioctl.CopyChunk((1 << 63) - 1, 0, 1),))
    with pytest.raises(MalformedMessage):
        ioctl.read_copy_chunks(memoryview(client_codecs.write_copy_chunks(far)))


def test_as_many_ranges_as_fit_are_answered() -> None:
    ranges = [(0, 4096), (8192, 1)]
    status, data = ioctl.write_allocated_ranges(ranges, 32)
    assert (status, len(data)) == (0, 32)
    status, cut = ioctl.write_allocated_ranges(ranges, 31)
    assert (status, cut) == (STATUS_BUFFER_OVERFLOW, data[:16])
    with pytest.raises(SmbRefusal) as refused:
        ioctl.write_allocated_ranges(ranges, 15)
    assert refused.value.status == STATUS_BUFFER_TOO_SMALL
    assert ioctl.write_allocated_ranges([], 0) == (0, b"")


@pytest.mark.parametrize(("first", "second"), [(-1, 0), (0, -1), (5, 4)])
def test_ranges_of_files_are_not_negative(first: int, second: int) -> None:
    data = first.to_bytes(8, "little", signed=True) + second.to_bytes(8, "little", signed=True)
    with pytest.raises(MalformedMessage):
        ioctl.read_zero_data(memoryview(data))
    if second < 0 or first < 0:
        with pytest.raises(MalformedMessage):
            ioctl.read_allocated_ranges(memoryview(data))


def test_snapshots_are_counted_where_their_labels_do_not_fit() -> None:
    labels = ["@GMT-2026.01.01-00.00.00", "@GMT-2026.01.02-00.00.00"]
    whole = ioctl.write_snapshots(labels, 1000)
    assert whole[:12].hex() == "020000000200000066000000"
    assert whole[12:].decode("utf-16-le") == "\0".join(labels) + "\0\0"
    assert ioctl.write_snapshots(labels, 16)[:12].hex() == "020000000000000066000000"
    assert ioctl.write_snapshots([], 16).hex() == "0000000000000000020000000000"
    with pytest.raises(SmbRefusal):
        ioctl.write_snapshots(labels, 15)


def test_the_dialects_of_a_validation_lie_within_it() -> None:
    data = (4).to_bytes(4, "little") + b"g" * 16 + bytes((1, 0, 2, 0)) + bytes.fromhex("00030203")
    assert ioctl.read_validate_negotiate(memoryview(data)).dialects == (0x300, 0x302)
    for cut in range(len(data)):
        with pytest.raises(MalformedMessage):
            ioctl.read_validate_negotiate(memoryview(data[:cut]))
    assert len(ioctl.write_validate_answer(4, b"g" * 16, 1, 0x302)) == 24
