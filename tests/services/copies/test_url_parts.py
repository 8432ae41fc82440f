"""The part of a response that a From URL operation uses: how it is cut out, and the cases
refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.core.copies.parts import cut_range, length_of_answer
from strongroom.services.core.copies.sources import SourceBroken, require_part
from strongroom.values import ByteRange

DATA = bytes(range(200))


async def _pieces(data: bytes, size_bytes: int) -> AsyncGenerator[bytes]:
    for start in range(0, len(data), size_bytes):
        yield data[start : start + size_bytes]


@given(
    st.integers(0, 200), st.integers(1, 60), st.integers(0, 210), st.integers(0, 210), st.booleans()
)
def test_a_part_is_the_slice_or_refused(
    size_bytes: int, piece_bytes: int, first: int, more: int, is_known: bool
) -> None:
    """B-URL-08, B-URL-09: in any pieces, with a known length or without one."""
    data = DATA[:size_bytes]
    last = None if more > 200 else first + more
    wanted = ByteRange(first, last)

    async def cut() -> tuple[int | None, bytes]:
        pieces = _pieces(data, piece_bytes)
        length, part = cut_range(pieces, size_bytes if is_known else None, wanted)
        return length, b"".join([piece async for piece in part])

    if first >= size_bytes or (last is not None and last >= size_bytes):
        with pytest.raises((StorageError, SourceBroken)) as caught:
            asyncio.run(cut())
        # Bytes were passed on when the end of a source of unknown length comes too early.
        is_late = not is_known and first < size_bytes
        error = caught.value
        assert isinstance(error, StorageError) is not is_late
        assert is_late or (isinstance(error, StorageError) and error.row is errors.INVALID_RANGE)
        return
    length, found = asyncio.run(cut())
    expected = data[first:] if last is None else data[first : last + 1]
    assert found == expected
    assert length == (None if last is None and not is_known else len(expected))


@pytest.mark.parametrize(
    ("first", "last", "size_bytes", "found"),
    [
        (0, None, 10, (0, 10)),
        (0, 9, 10, (0, 10)),
        (9, 9, 10, (9, 1)),
        (9, None, 10, (9, 1)),
        (10, None, 10, None),
        (0, 10, 10, None),
        (0, None, 0, None),
        (0, 0, 0, None),
    ],
)
def test_a_range_is_all_there_or_refused(
    first: int, last: int | None, size_bytes: int, found: tuple[int, int] | None
) -> None:
    """B-URL-09."""
    wanted = ByteRange(first, last)
    if found is not None:
        assert require_part(wanted, size_bytes) == found
        return
    with pytest.raises(StorageError) as caught:
        require_part(wanted, size_bytes)
    assert caught.value.row is errors.INVALID_RANGE


NOT_IT = copy_errors.CANNOT_VERIFY_COPY_SOURCE
SHORT = errors.INVALID_RANGE


@pytest.mark.parametrize(
    ("text", "last", "size_bytes", "outcome"),
    [
        ("bytes 5-9/20", 9, 5, 5),
        ("bytes 5-9/*", 9, 5, 5),
        ("bytes 5-9/20", 9, None, 5),
        ("bytes 5-19/20", None, 15, 15),
        ("bytes 5-19/*", None, 15, 15),
        ("bytes 5-18/20", None, 14, NOT_IT),
        ("bytes 5-8/9", 9, 4, SHORT),
        ("bytes 5-10/20", 9, 6, NOT_IT),
        ("bytes 4-9/20", 9, 6, NOT_IT),
        ("bytes 5-9/20", 9, 6, NOT_IT),
        ("bytes 5-4/20", 4, 0, NOT_IT),
        ("bytes 5-9", 9, 5, NOT_IT),
        ("bytes */20", 9, 5, NOT_IT),
        ("bytes 5-9/20, bytes 1-2/20", 9, 5, NOT_IT),
        ("", 9, 5, NOT_IT),
        ("bytes 5-" + "9" * 19 + "/20", 9, 5, NOT_IT),
    ],
)
def test_what_an_answer_with_a_part_brings(
    text: str, last: int | None, size_bytes: int | None, outcome: object
) -> None:
    """B-URL-17."""
    wanted = ByteRange(5, last)
    if isinstance(outcome, int):
        assert length_of_answer(wanted, text, size_bytes) == outcome
        return
    with pytest.raises(StorageError) as caught:
        length_of_answer(wanted, text, size_bytes)
    assert caught.value.row is outcome
