"""Bodies read piece by piece: which parts of contents are read, and how much is verified."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import msgspec
import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import VERIFIED_BYTES_MAX, DataDamaged, Key, Partition, Step
from strongroom.engines.memory import MemoryEngine
from strongroom.store.blob.bodies import appended
from strongroom.store.blob.bodies.appended import NewAppended
from strongroom.store.blob.bodies.blocks import ListedBlock, Span, spans
from strongroom.store.blob.bodies.body import HEAD, Body
from strongroom.store.blob.bodies.reading import read_spans, to_store
from strongroom.store.blob.bodies.received import inline_body
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


class _Feed:
    def __init__(self, data: bytes) -> None:
        self.size_bytes: int | None = len(data)
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data

    async def next_bytes(self, size_bytes: int) -> AsyncIterator[bytes]:
        taken, self._data = self._data[:size_bytes], self._data[size_bytes:]
        yield taken


class _Change:
    """Keeps the records of a commit, and shows them to doctor as those of a head."""

    stamp, which, past, size_bytes = 7, "the blob", HEAD, 0

    def __init__(self) -> None:
        self._records: dict[bytes, bytes] = {}

    def put(self, key: Key, value: bytes | None) -> None:
        assert value is not None
        self._records[key.name] = value

    def adopt(self, content: int) -> None: ...

    def drop(self, content: int) -> None: ...

    def retire(self, body: Body) -> None: ...

    def record(self, key: Key) -> bytes | None:
        return self._records.get(key.name)

    def records(self, first: bytes, until: bytes) -> list[tuple[bytes, bytes]]:
        return sorted(one for one in self._records.items() if first <= one[0] < until)

    def content(self, content: int) -> bytes | None: ...

    def claim_map(self, number: int, at: int) -> None: ...


@pytest.mark.parametrize(("size_bytes", "parts"), [(1000, 1), (1001, 2), (2500, 3)])
def test_a_copy_of_one_long_appended_block_is_whole(
    size_bytes: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have more records than blocks, also when others are appended to it."""
    monkeypatch.setattr(appended, "GROUP_BYTES", 1000)

    async def prove() -> None:
        contents = MemoryEngine(ManualClock()).contents
        change = _Change()
        copied = await appended.copy_appended(1, contents, _Feed(bytes(size_bytes)))
        assert len(copied.parts) == parts
        body = copied.take(change)
        for count in (1, 2):
            assert body.appended_count == count
            found = body.inspect(change)
            assert (found.size_bytes, found.problems) == (size_bytes + count - 1, ())
            body = appended.append(body, inline_body(b"x"), change)

    asyncio.run(prove())


def test_appended_blocks_that_nobody_counted_are_found() -> None:
    change = _Change()
    body = appended.append(NewAppended().take(change), inline_body(b"one"), change)
    body = appended.append(body, inline_body(b"two"), change)
    assert body.inspect(change).problems == ()
    (problem,) = msgspec.structs.replace(body, count=1).inspect(change).problems
    assert problem == "the blob says 1 blocks, but has 2"
