"""Frames are assembled from any pieces of a socket, after a check of their size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.smb.framing import FrameAssembler, prefix
from strongroom.wire.smb.structures import MalformedMessage

MAX = 300_000


def feed(assembler: FrameAssembler, data: bytes, steps: list[int]) -> list[bytes]:
    found, number = [], 0
    while data:
        buffer = assembler.buffer()
        assert len(buffer)
        count = min(steps[number % len(steps)], len(buffer), len(data))
        buffer[:count] = data[:count]
        data, number = data[count:], number + 1
        found += [bytes(frame) for frame in assembler.received(count)]
    return found


@given(
    sizes=st.lists(
        st.integers(4, 200) | st.sampled_from([65_532, 65_536, 70_000, MAX]), max_size=4
    ),
    steps=st.lists(st.integers(1, 100_000), min_size=1, max_size=4),
)
def test_any_pieces_make_the_same_frames(sizes: list[int], steps: list[int]) -> None:
    frames = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    steps = [max(step, 50) for step in steps]
    assembler = FrameAssembler(MAX)
    assert feed(assembler, b"".join(prefix(len(one)) + one for one in frames), steps) == frames
    assert not assembler.is_frame_incomplete


def test_a_large_frame_is_received_in_parts() -> None:
    """Receiving a megabyte at once would hold up the loop, beside many connections."""
    size, taken = 1 << 20, 0
    assembler = FrameAssembler(size)
    data = prefix(size) + bytes(size)
    while data:
        buffer = assembler.buffer()
        assert len(buffer) <= 256 * 1024
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        taken += sum(len(frame) for frame in assembler.received(count))
    assert taken == size


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7])
def test_a_length_may_come_byte_by_byte(step: int) -> None:
    data = b"".join(prefix(5) + b"abcde" for _ in range(9))
    assert feed(FrameAssembler(MAX), data, [step]) == [b"abcde"] * 9


def test_a_frame_that_has_begun_is_known() -> None:
    assembler = FrameAssembler(MAX)
    for byte in prefix(10) + b"123456789":
        assert feed(assembler, bytes([byte]), [1]) == []
        assert assembler.is_frame_incomplete
    assert feed(assembler, b"0", [1]) == [b"1234567890"]


@pytest.mark.parametrize("start", ["81000044", "85000000", "00000003", "00000000", "00ffffff"])
def test_other_transports_and_sizes_are_refused(start: str) -> None:
    with pytest.raises(MalformedMessage):
        feed(FrameAssembler(MAX), bytes.fromhex(start), [4])


def test_the_bound_may_be_raised_between_frames() -> None:
    assembler = FrameAssembler(4)
    with pytest.raises(MalformedMessage, match="5 bytes; 4 are allowed"):
        feed(assembler, prefix(5) + b"abcde", [9])
    assembler = FrameAssembler(4)
    assembler.frame_bytes_max = 5
    assert feed(assembler, prefix(5) + b"abcde", [9]) == [b"abcde"]
