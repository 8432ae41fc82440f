"""NEGOTIATE, SESSION_SETUP, TREE_CONNECT, errors: read within limits, and written as declared."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.smb.errors import NO_DATA, write_error
from strongroom.wire.smb.header import Header, write_header
from strongroom.wire.smb.setup import negotiate_contexts as contexts
from strongroom.wire.smb.setup.negotiate import (
    NegotiateResponse,
    Smb1Offer,
    read_negotiate,
    smb1_offer,
    write_negotiate,
)
from strongroom.wire.smb.setup.negotiate_contexts import NegotiateContext
from strongroom.wire.smb.setup.session_setup import (
    SessionSetup,
    read_session_setup,
    write_session_setup,
)
from strongroom.wire.smb.setup.tree_connect import (
    SharePath,
    TreeConnected,
    read_tree_connect,
    write_tree_connected,
)
from strongroom.wire.smb.structures import MalformedMessage
from strongroom.wire.smb.transform import TransformHeader, read_transform, write_transform
from tests.servers.smb.messages import (
    CLIENT_GUID,
    negotiate_body,
    session_setup_body,
    tree_connect_body,
)


def message(body: bytes) -> memoryview:
    return memoryview(write_header(Header()) + body)


def test_a_negotiate_with_contexts_is_read() -> None:
    found = read_negotiate(message(negotiate_body((0x0210, 0x0311), (2, 4), (1,))))
    assert (found.dialects, found.client_guid) == ((0x0210, 0x0311), CLIENT_GUID)
    assert found.contexts is not None
    assert [one.kind for one in found.contexts] == [1, 2, 8]
    assert contexts.read_hashes(found.contexts[0].data) == (1,)
    assert contexts.read_ids(found.contexts[1].data) == (2, 4)


def test_contexts_mean_nothing_in_older_dialects() -> None:
    assert read_negotiate(message(negotiate_body((0x0302,), (), ()))).contexts is None


@pytest.mark.parametrize("size", range(40))
def test_a_negotiate_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(MalformedMessage):
        read_negotiate(message(negotiate_body((0x0302, 0x0300), (), ())[:size]))


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [
        (2, "<H", 0),  # no dialects
        (2, "<H", 60),  # more than there are
        (28, "<I", 0),  # contexts before the dialects
        (28, "<I", 100),
        (28, "<I", 109),  # not aligned
        (28, "<I", 0xFFFF_FFF8),
        (32, "<H", 33),  # more contexts than allowed
        (32, "<H", 4),  # more than there are
    ],
)
def test_a_negotiate_that_points_outside_is_refused(at: int, form: str, value: int) -> None:
    body = bytearray(negotiate_body((0x0210, 0x0311), (2,), (1,)))
    struct.pack_into(form, body, at, value)
    with pytest.raises(MalformedMessage):
        read_negotiate(message(bytes(body)))


@pytest.mark.parametrize("data", ["", "0100", "010000", "01000000", "0200000001", "0100ff000100"])
def test_hashes_that_are_cut_off_are_refused(data: str) -> None:
    with pytest.raises(MalformedMessage):
        contexts.read_hashes(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["", "01", "0000", "0100", "010001", "02000100"])
def test_lists_of_algorithms_that_are_empty_or_cut_off_are_refused(data: str) -> None:
    with pytest.raises(MalformedMessage):
        contexts.read_ids(bytes.fromhex(data))


def test_the_answer_to_negotiate_has_its_parts_where_it_says() -> None:
    listed = (
        contexts.preauth_context(b"s" * 32),
        contexts.chosen_context(contexts.ENCRYPTION, 2),
    )
    answer = NegotiateResponse(3, 0x0311, b"g" * 16, 6, 65536, 7, b"token", listed)
    body = write_negotiate(answer)
    assert struct.unpack_from("<HHHH16s", body) == (65, 3, 0x0311, 2, b"g" * 16)
    assert struct.unpack_from("<IIIIQQ", body, 24) == (6, 65536, 65536, 65536, 7, 0)
    offset, length, at = struct.unpack_from("<HHI", body, 56)
    assert body[offset - 64 :][:length] == b"token"
    assert at % 8 == 0
    whole = message(body)
    assert contexts.read_contexts(whole, at, 2, after=offset) == listed
    plain = write_negotiate(NegotiateResponse(1, 0x0300, b"g" * 16, 6, 65536, 7, b"token"))
    assert struct.unpack_from("<I", plain, 60) == (0,)


def smb1(names: bytes, *, command: int = 0x72, words: int = 0) -> memoryview:
    head = b"\xffSMB" + bytes([command]) + bytes(27)
    return memoryview(head + bytes([words]) + struct.pack("<H", len(names)) + names)


def test_a_start_in_smb1_offers_smb2_or_not() -> None:
    both = b"\2NT LM 0.12\0\2SMB 2.002\0"
    assert smb1_offer(smb1(both + b"\2SMB 2.???\0")) is Smb1Offer.LATER
    assert smb1_offer(smb1(both)) is Smb1Offer.SMB_202
    assert smb1_offer(smb1(b"\2NT LM 0.12\0")) is Smb1Offer.SMB1
    assert smb1_offer(smb1(b"")) is Smb1Offer.SMB1


@pytest.mark.parametrize(
    "frame",
    [smb1(b"")[:34], smb1(b"", command=0x73), smb1(b"", words=1), smb1(b"\2SMB 2.???\0")[:-1]],
)
def test_what_is_no_negotiate_of_smb1_is_refused(frame: memoryview) -> None:
    with pytest.raises(MalformedMessage):
        smb1_offer(frame)


def test_a_session_setup_is_read_and_answered() -> None:
    found = read_session_setup(message(session_setup_body(b"token", flags=1, previous=9)))
    assert found == SessionSetup(
        is_binding=True, requires_signing=False, previous_session_id=9, token=b"token"
    )
    body = write_session_setup(b"token", 4)
    assert struct.unpack_from("<HHHH", body) == (9, 4, 72, 5)
    assert body[8:] == b"token"


@pytest.mark.parametrize(("offset", "length"), [(87, 5), (88, 6), (0xFFFF, 1), (0, 5)])
def test_a_token_outside_of_its_message_is_refused(offset: int, length: int) -> None:
    body = bytearray(session_setup_body(b"token"))
    struct.pack_into("<HH", body, 12, offset, length)
    with pytest.raises(MalformedMessage):
        read_session_setup(message(bytes(body)))


def test_a_tree_connect_names_a_share_of_a_server() -> None:
    found = read_tree_connect(message(tree_connect_body(r"\\server\Share")))
    assert found == SharePath("server", "Share")
    body = write_tree_connected(TreeConnected(1, 0x8030, 0x1F01FF))
    assert body.hex() == "10000100" + "30800000" + "00000000" + "ff011f00"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "share",
        r"\share",
        r"\\server",
        r"\\server" + "\\",
        r"\\\share",
        r"\\a\b\c",
        "\\\\a\\b\0",
    ],
)
def test_other_paths_name_no_share(path: str) -> None:
    with pytest.raises(MalformedMessage):
        read_tree_connect(message(tree_connect_body(path)))


def test_a_path_that_is_no_utf_16_names_no_share() -> None:
    for body in (tree_connect_body("\\\\a\\\ud800"), tree_connect_body(r"\\a\b")[:-1]):
        with pytest.raises(MalformedMessage):
            read_tree_connect(message(body))


def test_errors_carry_their_data_as_the_dialect_wants_it() -> None:
    assert write_error() == NO_DATA == bytes.fromhex("090000000000000000")
    assert write_error(b"data").hex() == "09000000" + "04000000" + b"data".hex()
    wrapped = write_error(b"data", in_context=True)
    assert wrapped.hex() == "09000100" + "0c000000" + "04000000" + "00000000" + b"data".hex()


def test_the_header_of_an_encrypted_frame_is_read_and_written() -> None:
    raw = write_transform(b"n" * 11, 5, 77) + b"12345"
    assert len(raw) == 57
    assert read_transform(memoryview(raw)) == TransformHeader(
        bytes(16), b"n" * 11 + bytes(5), 5, 1, 77
    )


@pytest.mark.parametrize(
    ("size", "at", "value"),
    [(52, 36, 0), (57, 36, 4), (57, 36, 6), (57, 42, 0), (57, 42, 2), (51, 36, 5)],
)
def test_a_false_header_of_an_encrypted_frame_is_refused(size: int, at: int, value: int) -> None:
    raw = bytearray(write_transform(b"n" * 12, 5, 77) + b"12345")[:size]
    struct.pack_into("<H", raw, at, value)
    with pytest.raises(MalformedMessage):
        read_transform(memoryview(raw))


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for read in (read_negotiate, read_session_setup, read_tree_connect):
        try:
            read(message(body))
        except MalformedMessage:
            pass


@given(st.lists(st.builds(NegotiateContext, st.integers(0, 9), st.binary(max_size=20)), max_size=5))
def test_contexts_that_are_written_are_read_again(listed: list[NegotiateContext]) -> None:
    raw = bytes(64) + contexts.write_contexts(listed)
    assert contexts.read_contexts(memoryview(raw), 64, len(listed), after=64) == tuple(listed)
