"""Declared layouts: reading inverts writing, and no byte outside of a message is read."""

from __future__ import annotations

import msgspec
import pytest

from strongroom.wire.smb.structures import Layout, MalformedMessage, variable_part


class _Pair(msgspec.Struct, frozen=True):
    first: int
    second: int


_PAIR = Layout(_Pair, "H2xI")


def test_reserved_bytes_are_skipped_and_written_as_zero() -> None:
    data = bytes.fromhex("0100ffff02000000")
    assert _PAIR.size == 8
    assert _PAIR.read(data) == _Pair(1, 2)
    assert _PAIR.write(_Pair(1, 2)).hex() == "0100000002000000"


@pytest.mark.parametrize(("size", "at"), [(7, 0), (8, 1), (8, -1), (0, 0)])
def test_a_structure_that_is_cut_off_is_refused(size: int, at: int) -> None:
    with pytest.raises(MalformedMessage, match="_Pair needs 8 bytes"):
        _PAIR.read(bytes(size), at)


@pytest.mark.parametrize(
    ("offset", "length", "found"),
    [(4, 4, b"efgh"), (7, 1, b"h"), (0, 0, b""), (99, 0, b""), (3, 2, None), (7, 2, None)],
)
def test_a_variable_part_lies_after_the_fixed_one_and_within_the_message(
    offset: int, length: int, found: bytes | None
) -> None:
    data = memoryview(b"abcdefgh")
    if found is None:
        with pytest.raises(MalformedMessage):
            variable_part(data, offset, length, after=4)
    else:
        assert variable_part(data, offset, length, after=4) == found
