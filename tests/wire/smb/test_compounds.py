"""Compounds: the start of each message, related messages, and truncated or cyclic chains."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.smb.compounds import ELEMENTS_MAX, padding, related_chains, split
from strongroom.wire.smb.header import RELATED_OPERATIONS, Header, write_header
from strongroom.wire.smb.structures import MalformedMessage


def frame(*bodies: bytes, flags: Sequence[int] = ()) -> bytes:
    whole = b""
    for number, body in enumerate(bodies):
        is_last = number == len(bodies) - 1
        size = 64 + len(body)
        following = 0 if is_last else size + len(padding(size))
        header = Header(
            message_id=number,
            next_command=following,
            flags=flags[number] if flags else 0,
        )
        whole += write_header(header) + body + (b"" if is_last else padding(size))
    return whole


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6))
def test_messages_are_found_one_after_the_other(bodies: list[bytes]) -> None:
    elements = split(memoryview(frame(*bodies)))
    assert [one.header.message_id for one in elements] == list(range(len(bodies)))
    assert all(
        bytes(one.message[64:]).startswith(body) for one, body in zip(elements, bodies, strict=True)
    )
    assert bytes(elements[-1].message[64:]) == bodies[-1]


@pytest.mark.parametrize("following", [1, 8, 56, 63, 65, 68, 136, 144, 0xFFFF_FFF8])
def test_a_step_that_leads_nowhere_is_refused(following: int) -> None:
    data = bytearray(frame(bytes(8), bytes(0)))
    data[20:24] = struct.pack("<I", following)
    with pytest.raises(MalformedMessage):
        split(memoryview(data))


def test_a_compound_is_bounded() -> None:
    assert len(split(memoryview(frame(*[b""] * ELEMENTS_MAX)))) == ELEMENTS_MAX
    with pytest.raises(MalformedMessage, match="more than"):
        split(memoryview(frame(*[b""] * (ELEMENTS_MAX + 1))))


@pytest.mark.parametrize(
    ("flags", "sizes"),
    [
        ("-", [1]),
        ("---", [1, 1, 1]),
        ("-rr", [3]),
        ("r", [1]),
        ("rr-r", [2, 2]),
        ("-r-rr-", [2, 3, 1]),
    ],
)
def test_an_element_that_is_not_related_begins_a_chain(flags: str, sizes: list[int]) -> None:
    bits = [RELATED_OPERATIONS if flag == "r" else 0 for flag in flags]
    elements = split(memoryview(frame(*[b""] * len(bits), flags=bits)))
    assert [len(chain) for chain in related_chains(elements)] == sizes


@given(st.binary(max_size=300))
def test_any_bytes_are_split_or_refused(data: bytes) -> None:
    try:
        elements = split(memoryview(data))
    except MalformedMessage:
        return
    assert sum(len(one.message) for one in elements) == len(data)
