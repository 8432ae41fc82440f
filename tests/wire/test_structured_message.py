"""Structured messages: encoded messages are decoded, here and by the SDK, for any split."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import pytest
from azure.storage.blob._shared.streams import (
    StructuredMessageDecoder,
    StructuredMessageEncodeStream,
    StructuredMessageProperties,
)
from hypothesis import given
from hypothesis import strategies as st

from strongroom.engines.checksum import crc64
from strongroom.errors.core import CRC64_MISMATCH, INVALID_INPUT, StorageError
from strongroom.wire.blob import structured_message
from strongroom.wire.blob.structured_message import (
    SEGMENT_BYTES,
    SEGMENTS_MAX,
    Decoder,
    Encoder,
    message_bytes,
    segment_bytes,
    segment_count,
)


def encoded(data: bytes, cuts: Iterable[int] = ()) -> bytes:
    encoder = Encoder(len(data), crc64)
    found, start = b"", 0
    for cut in [*sorted(cuts), len(data)]:
        found += b"".join(encoder.encode(data[start:cut]))
        start = max(start, cut)
    return found + encoder.finish()


def decoded(message: bytes, size: int, cuts: Iterable[int] = (), known: bool = True) -> bytes:
    decoder = Decoder(size, len(message) if known else None, crc64)
    found, start = b"", 0
    for cut in [*sorted(cuts), len(message)]:
        found += b"".join(decoder.feed(message[start:cut]))
        start = max(start, cut)
    decoder.finish()
    return found


def by_sdk(data: bytes, segment: int) -> bytes:
    stream = StructuredMessageEncodeStream(
        BytesIO(data), len(data), StructuredMessageProperties.CRC64, segment_size=segment
    )
    found: bytes = stream.read()
    return found


def refused(message: bytes, size: int, known: bool = True) -> StorageError:
    with pytest.raises(StorageError) as caught:
        decoded(message, size, known=known)
    return caught.value


@given(st.binary(max_size=400), st.lists(st.integers(0, 600)), st.integers(1, 90))
def test_what_is_encoded_is_decoded(data: bytes, cuts: list[int], segment: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structured_message, "SEGMENT_BYTES", segment)
        message = encoded(data, [cut for cut in cuts if cut < len(data)])
        assert len(message) == message_bytes(len(data))
    assert decoded(message, len(data), [cut for cut in cuts if cut < len(message)]) == data
    assert decoded(message, len(data), known=False) == data
    theirs: Any = StructuredMessageDecoder(iter([message]), len(message))
    assert theirs.read() == data


@given(st.binary(max_size=400), st.integers(1, 90), st.lists(st.integers(0, 600)))
def test_what_the_sdk_encodes_is_decoded(data: bytes, segment: int, cuts: list[int]) -> None:
    message = by_sdk(data, segment)
    assert decoded(message, len(data), [cut for cut in cuts if cut < len(message)]) == data


@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_message_with_a_changed_byte_is_refused(data: bytes, draw: st.DataObject) -> None:
    message = bytearray(by_sdk(data, 17))
    place = draw.draw(st.integers(0, len(message) - 1))
    message[place] ^= draw.draw(st.integers(1, 255))
    error = refused(bytes(message), len(data))
    assert error.row in (INVALID_INPUT, CRC64_MISMATCH)


@given(st.binary(max_size=80), st.integers(0, 40))
def test_any_bytes_are_a_message_or_are_refused(data: bytes, size: int) -> None:
    head = struct.pack("<BQHH", 1, len(data) + 13, 1, 1)
    for message in (data, head + data):
        assert refused(message, size).row in (INVALID_INPUT, CRC64_MISMATCH)


@given(st.binary(max_size=60), st.data())
def test_a_message_that_is_cut_or_goes_on_is_refused(data: bytes, draw: st.DataObject) -> None:
    message = by_sdk(data, 17)
    short = message[: draw.draw(st.integers(0, len(message) - 1))]
    for known in (True, False):
        assert refused(short, len(data), known).row is INVALID_INPUT
        assert refused(message + b"x", len(data), known).row is INVALID_INPUT
        assert refused(message, len(data) + 1, known).row is INVALID_INPUT


def message_of(
    data: bytes = b"abc",
    version: int = 1,
    flags: int = 1,
    segments: int = 1,
    length: int = 42,
    number: int = 1,
    size: int = 3,
) -> bytes:
    total = struct.pack("<Q", crc64(data))
    head = struct.pack("<BQHH", version, length, flags, segments)
    return head + struct.pack("<HQ", number, size) + data + total + total


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "version is 2"),
        ({"flags": 0}, "flags are 0"),
        ({"flags": 3}, "flags are 3"),
        ({"segments": 0}, "no segment"),
        ({"segments": 2}, "does not follow"),
        ({"length": 43}, "Content-Length 42"),
        ({"number": 2}, "segment 1 has the number 2"),
        ({"size": 4}, "longer than what is left"),
        ({"size": 1 << 63}, "longer than what is left"),
    ],
)
def test_a_malformed_message(changes: dict[str, Any], reason: str) -> None:
    assert decoded(message_of(), 3) == b"abc"
    error = refused(message_of(**changes), 3)
    assert error.row is INVALID_INPUT and reason in error.message


def test_the_two_checksums_are_both_compared() -> None:
    good = message_of()
    for at in (26, 34):
        bad = good[:at] + b"\0\0" + good[at + 2 :]
        error = refused(bad, 3)
        assert error.row is CRC64_MISMATCH
        assert {name for name, _ in error.extras} == {
            "UserSpecifiedCrc64",
            "ServerCalculatedCrc64",
        }


def test_long_contents_have_no_more_segments_than_can_be_counted() -> None:
    assert segment_count(0) == 1 and segment_count(SEGMENT_BYTES) == 1
    assert segment_count(SEGMENT_BYTES + 1) == 2
    for size in (SEGMENT_BYTES * SEGMENTS_MAX, SEGMENT_BYTES * SEGMENTS_MAX + 1, 200 << 40):
        assert segment_count(size) <= SEGMENTS_MAX
        assert segment_count(size) * segment_bytes(size) >= size


def test_more_or_less_content_than_announced_is_an_error() -> None:
    with pytest.raises(ValueError, match="more content"):
        list(Encoder(1, crc64).encode(b"ab"))
    with pytest.raises(ValueError, match="missing"):
        Encoder(1, crc64).finish()
