"""Bodies of every kind (in the record, beside it, in a content): a replaced body is read whole,
snapshots keep their state, and nothing is left behind."""

from __future__ import annotations

import itertools

import pytest

from strongroom.engines.base import VERIFIED_BYTES_MAX
from strongroom.engines.content_in_memory import ContentInMemory
from strongroom.limits import INLINE_BODY_BYTES_MAX, RECORD_BODY_BYTES_MAX
from strongroom.operations.blob import blob
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.services.blob import blobs
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.bodies.body import Body
from strongroom.store.blob.bodies.empty import Empty
from strongroom.store.blob.bodies.in_record import InRecord
from strongroom.store.blob.bodies.inline import Inline
from strongroom.store.blob.bodies.readers import Reading
from strongroom.store.blob.bodies.stored import Stored
from strongroom.store.core import keys
from strongroom.values import ByteRange
from tests.services import blob_calls as do
from tests.services.container_calls import run
from tests.services.sweeps import fresh, swept

# The lengths at which bodies change to the next kind.
KINDS: dict[int, type[Body]] = {
    0: Empty,
    1: InRecord,
    RECORD_BODY_BYTES_MAX: InRecord,
    RECORD_BODY_BYTES_MAX + 1: Inline,
    INLINE_BODY_BYTES_MAX: Inline,
    INLINE_BODY_BYTES_MAX + 1: Stored,
}


def text(size_bytes: int, seed: int) -> bytes:
    return bytes((seed + number) % 251 for number in range(size_bytes))


async def body_of(on: Services) -> Body:
    (found,) = [record for ref, record in do.left(on)[0] if ref.key == keys.HEAD_KEY]
    return blob_records.BLOB.decode(found.value).body


@pytest.mark.parametrize(("size_bytes", "kind"), KINDS.items())
def test_where_a_body_lies(size_bytes: int, kind: type[Body]) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "b", text(size_bytes, 1))
        assert isinstance(await body_of(on), kind)
        assert await do.read(on, "b") == text(size_bytes, 1)

    run(test)


@pytest.mark.parametrize("size_bytes", [size for size in KINDS if size > 1])
def test_a_range_of_a_body(size_bytes: int) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "b", text(size_bytes, 1))
        wanted = blobs.GetBlob(ByteRange(1, size_bytes - 2), range_md5=True)
        found = await do.run(on, blob.GET_BLOB, "b", wanted)
        assert found.pieces == text(size_bytes, 1)[1 : size_bytes - 1]

    run(test)


@pytest.mark.parametrize(("before", "after"), list(itertools.product(KINDS, KINDS)))
def test_a_body_that_replaces_another(before: int, after: int) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        first, then = text(before, 1), text(after, 2)
        await do.put(on, "b", first)
        ticks = await do.snapshot(on, "b")
        await do.put(on, "b", then)
        await do.start_copy(on, "b", "copy")
        await swept(on, sweeper)
        assert await do.read(on, "b", ticks) == first
        assert await do.read(on, "b") == then
        assert await do.read(on, "copy") == then
        await do.put(on, "b", first)
        await do.delete(on, "copy")
        await do.delete(on, "b", DeleteSnapshots.INCLUDE)
        await swept(on, sweeper)
        assert (len(do.left(on)[0]), do.left(on)[1]) == (1, []), "the container's record is left"

    run(test)


def test_a_body_that_is_in_one_part_by_now_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each such race would keep a file open for ever."""
    real = ContentInMemory.close
    closed: list[ContentInMemory] = []

    def close(content: ContentInMemory) -> None:
        closed.append(content)
        real(content)

    async def test() -> None:
        on, _ = await fresh()
        await do.put_block(on, "b", text(1000, 1))
        later = text(2 * VERIFIED_BYTES_MAX, 2)

        async def replace(reading: Reading) -> None:
            await do.put(on, "b", later)

        monkeypatch.setattr(ContentInMemory, "close", close)
        monkeypatch.setattr(Reading, "wait_for_mutations", replace)
        found = await do.run(on, blob.GET_BLOB, "b", blobs.GetBlob())
        closed.clear()
        assert await do.received(found) == later
        assert [content.size_bytes for content in closed] == [len(later)]

    run(test)
