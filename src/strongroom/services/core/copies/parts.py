"""The range of a source on another server that a From URL operation reads.

Lives here: the length that a 206 answer brings, and the cutting of a range out of a whole answer.
Source: "Put Block From URL", request header x-ms-source-range; RFC 9110, section 14.4, for
Content-Range.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from strongroom.errors import copies as copy_errors
from strongroom.errors.core import StorageError
from strongroom.services.core.copies.sources import (
    SourceBroken,
    cannot_read,
    range_beyond_end,
    require_part,
)
from strongroom.values import ByteRange

_CONTENT_RANGE: Final = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_PARTIAL: Final = 206


def length_of_answer(wanted: ByteRange, content_range: str, size_bytes: int | None) -> int:
    """How many bytes an answer with status 206 brings. `size_bytes` is its Content-Length; None
    when it has none."""
    match = _CONTENT_RANGE.fullmatch(content_range)
    if match is None or int(match[1]) != wanted.first:
        raise _another_part()
    last = int(match[2])
    if wanted.last is not None and last < wanted.last:
        raise range_beyond_end()
    end = wanted.last
    if end is None:
        end = last if match[3] == "*" else int(match[3]) - 1
    length = last - wanted.first + 1
    if last != end or length <= 0 or size_bytes not in (None, length):
        raise _another_part()
    return length


def cut_range(
    chunks: AsyncGenerator[bytes], size_bytes: int | None, wanted: ByteRange
) -> tuple[int | None, AsyncGenerator[bytes]]:
    """Return the length of a range of a whole source, None when unknown, and its bytes.

    A source that is too short is refused with InvalidRange, here or while it is read.
    """
    if size_bytes is not None:
        offset, length = require_part(wanted, size_bytes)
        return length, _cut(chunks, offset, length)
    if wanted.last is None:
        return None, _cut(chunks, wanted.first, None)
    length = wanted.last - wanted.first + 1
    return length, _cut(chunks, wanted.first, length)


async def _cut(
    chunks: AsyncGenerator[bytes], offset: int, length: int | None
) -> AsyncGenerator[bytes]:
    """Yield `length` bytes from `offset` on; None = all that follow."""
    has_begun = False
    async with aclosing(chunks):
        async for chunk in chunks:
            kept = chunk[offset:]
            offset = max(0, offset - len(chunk))
            if not kept:
                continue
            has_begun = True
            if length is None:
                yield kept
                continue
            kept = kept[:length]
            length -= len(kept)
            yield kept
            if not length:
                return
    if not has_begun:
        raise range_beyond_end()
    if length:
        raise SourceBroken("The copy source ended before the end of the range.")


def _another_part() -> StorageError:
    text = "The copy source answered with another range than the one that it was asked for."
    return cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, text, _PARTIAL)
