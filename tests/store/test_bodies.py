"""Bodies read piece by piece: which parts of contents are read, and how much is verified."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import VERIFIED_BYTES_MAX, DataDamaged, Partition, Step
from strongroom.engines.memory import MemoryEngine
from strongroom.store.blob.bodies.blocks import ListedBlock, Span, spans
from strongroom.store.blob.bodies.reading import read_spans, to_store
from strongroom.testing.contract.subject import commit, pieces

_LONG_BYTES = 3 * VERIFIED_BYTES_MAX


def _block(size_bytes: int, content: int, offset_bytes: int = 0) -> ListedBlock:
    return ListedBlock(b"%d/%d" % (content, offset_bytes), size_bytes, content, offset_bytes)


def test_blocks_that_follow_one_another_in_a_content_are_one_span() -> None:
    blocks = [_block(10, 1), _block(5, 1, 10), _block(0, 1, 15), _block(7, 1, 15), _block(4, 2)]
    assert list(spans(blocks, 0, 26)) == [Span(1, 0, 22), Span(2, 0, 4)]
    assert list(spans(blocks, 3, 10)) == [Span(1, 3, 10)]
    assert list(spans(blocks, 21, 2)) == [Span(1, 21, 1), Span(2, 0, 1)]


def test_blocks_in_another_order_or_with_a_gap_are_spans_of_their_own() -> None:
    blocks = [_block(5, 1, 10), _block(10, 1), _block(3, 1, 12), _block(3, 2, 15)]
    wanted = [Span(1, 10, 5), Span(1, 0, 10), Span(1, 12, 3), Span(2, 15, 3)]
    assert list(spans(blocks, 0, 21)) == wanted


@pytest.mark.parametrize(
    "parts",
    [
        [(0, _LONG_BYTES)],
        [(5, 100)],  # the damage is elsewhere: the bytes may still not be used
        [(0, 10), (20, 10), (_LONG_BYTES - 10, 10)],
    ],
)
def test_what_is_stored_again_is_verified_first(parts: list[tuple[int, int]]) -> None:
    async def prove() -> None:
        store = MemoryEngine(ManualClock())
        body = bytes(index % 251 for index in range(_LONG_BYTES))
        written = await store.contents.write(pieces(body), len(body))
        await commit(store, Step(Partition(b"k", b"p"), adopt=(written.id,)))
        wanted = [Span(written.id, offset, length) for offset, length in parts]

        async def gathered() -> bytes:
            return b"".join([data async for data in read_spans(store, deque(wanted), to_store())])

        assert await gathered() == b"".join(body[at : at + length] for at, length in parts)
        store.damage(written.id)
        with pytest.raises(DataDamaged):
            await gathered()

    asyncio.run(prove())
