"""A long content that is read in pieces: a damaged one never comes whole."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable

import pytest

from strongroom.engines.base import CHUNK_BYTES_MAX, DataDamaged
from strongroom.engines.checksum import crc64
from strongroom.engines.content_in_pieces import ContentInPieces

BODY = os.urandom(2 * CHUNK_BYTES_MAX + 7)


def content(checksum: int) -> ContentInPieces:
    async def read_piece(offset: int, length: int) -> bytes:
        return BODY[offset : offset + length]

    return ContentInPieces("content 1", len(BODY), checksum, read_piece, lambda: None)


def came(pieces: AsyncIterable[bytes]) -> tuple[bytes, bool]:
    """Return the bytes that came, and whether the content was called damaged."""

    async def gathered() -> tuple[bytes, bool]:
        found = b""
        try:
            async for piece in pieces:
                found += piece
        except DataDamaged:
            return found, True
        return found, False

    return asyncio.run(gathered())


@pytest.mark.parametrize("way", ["slices", "chunks"])
def test_the_last_piece_of_a_damaged_content_does_not_come(way: str) -> None:
    right, wrong = content(crc64(BODY)), content(crc64(BODY) ^ 1)
    assert came(getattr(right, way)(0, len(BODY))) == (BODY, False)
    found, is_damaged = came(getattr(wrong, way)(0, len(BODY)))
    assert is_damaged
    assert len(found) < len(BODY)
    # A part is not verified: the bytes of the others are not read.
    assert came(getattr(wrong, way)(5, CHUNK_BYTES_MAX)) == (BODY[5 : 5 + CHUNK_BYTES_MAX], False)
