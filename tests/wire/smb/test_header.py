"""The header of SMB messages: 64 bytes, in which only the protocol id and the size are fixed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.smb.commands import Command, name_of
from strongroom.wire.smb.header import (
    ALL_ONES,
    FILE_ID,
    PLACEHOLDER,
    RELATED_OPERATIONS,
    FileId,
    Header,
    read_header,
    write_header,
)
from strongroom.wire.smb.structures import MalformedMessage

ECHO = bytes.fromhex(
    "fe534d4240000100000000000d00010009000000000000000700000000000000fffe000000000000"
    "8877665544332211" + "00" * 16
)


def test_a_known_header_is_read() -> None:
    header = read_header(ECHO)
    assert header == Header(
        credit_charge=1,
        command=Command.ECHO,
        credits=1,
        flags=9,
        message_id=7,
        process_id=0xFEFF,
        session_id=0x1122334455667788,
    )
    assert write_header(header) == ECHO
    assert not header.is_related


def test_two_halves_make_an_async_id() -> None:
    assert Header(process_id=2, tree_id=1).async_id == 0x1_0000_0002


def test_the_low_half_of_the_status_is_the_channel_sequence() -> None:
    assert Header(status=0xABCD_0007).channel_sequence == 7


def test_related_messages_say_so() -> None:
    assert Header(flags=RELATED_OPERATIONS).is_related


@given(
    st.builds(
        Header,
        credit_charge=st.integers(0, 0xFFFF),
        status=st.integers(0, 0xFFFF_FFFF),
        command=st.integers(0, 0xFFFF),
        message_id=st.integers(0, ALL_ONES),
        tree_id=st.integers(0, 0xFFFF_FFFF),
        session_id=st.integers(0, ALL_ONES),
        signature=st.binary(min_size=16, max_size=16),
    ),
    st.integers(0, 9),
)
def test_what_is_written_is_read_again(header: Header, before: int) -> None:
    assert read_header(bytes(before) + write_header(header), before) == header


@pytest.mark.parametrize(
    "data",
    [
        b"",
        ECHO[:63],
        b"\xff" + ECHO[1:],
        ECHO[:4] + b"\x41" + ECHO[5:],
    ],
)
def test_what_is_no_header_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_header(data)


def test_only_all_ones_are_a_placeholder() -> None:
    assert FILE_ID.read(b"\xff" * 16) == PLACEHOLDER
    assert PLACEHOLDER.is_placeholder
    assert not FileId(ALL_ONES, 0).is_placeholder


def test_every_number_has_a_name() -> None:
    assert [name_of(number) for number in (0, 18, 19, 0xFFFF)] == [
        "NEGOTIATE",
        "OPLOCK_BREAK",
        "UNKNOWN",
        "UNKNOWN",
    ]
