"""Append blobs: the writes of an append, their visibility to readers and snapshots, their
cleanup."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from strongroom.engines.base import CommitUnknown, ContentMissing, Item, Ref
from strongroom.errors.blob import (
    APPEND_POSITION_CONDITION_NOT_MET,
    BLOB_IS_SEALED,
    BLOCK_COUNT_EXCEEDS_LIMIT,
    INVALID_BLOB_TYPE,
    MAX_BLOB_SIZE_CONDITION_NOT_MET,
)
from strongroom.errors.core import INTERNAL_ERROR, ErrorCode, StorageError
from strongroom.limits import COMMITTED_BLOCKS_MAX, INLINE_BODY_BYTES_MAX
from strongroom.operations.blob import blob
from strongroom.semantics.blob.appends import AppendConditions
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.services.blob import blobs
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.core import keys
from strongroom.values import BlobKind, ByteRange
from tests.services import append_calls as log
from tests.services import blob_calls as do
from tests.services.container_calls import run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, fresh, swept

LARGE = INLINE_BODY_BYTES_MAX + 1
INCLUDE = DeleteSnapshots.INCLUDE


def text(size_bytes: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size_bytes)


async def refused(attempt: Awaitable[object]) -> ErrorCode:
    with pytest.raises(StorageError) as error:
        await attempt
    return error.value.row


async def filled(on: Services, name: str, sizes: list[int]) -> bytes:
    """Make an append blob with blocks of these sizes, and return its bytes."""
    await log.create(on, name)
    parts = [text(size, seed) for seed, size in enumerate(sizes)]
    for part in parts:
        await log.add(on, name, part)
    return b"".join(parts)


def records(on: Services) -> dict[Ref, bytes]:
    return {ref: found.value for ref, found in do.left(on)[0]}


def block_records(on: Services) -> list[Ref]:
    return [ref for ref in records(on) if ref.key.name[:1] == keys.APPENDED]


def test_an_append_answers_where_its_block_begins_and_how_many_there_are() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await log.create(on, "b")
        offset = 0
        for count, size_bytes in enumerate((1, LARGE, 7, 100_000, 8192)):
            found = await log.add(on, "b", text(size_bytes, count))
            assert (found.offset, found.count) == (offset, count + 1)
            offset += size_bytes
        whole = b"".join(text(size, n) for n, size in enumerate((1, LARGE, 7, 100_000, 8192)))
        assert await do.read(on, "b") == whole

    run(test)


def test_an_append_writes_two_records_however_many_blocks_there_are() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await log.create(on, "b")
        written = []
        for _ in range(200):
            before = records(on)
            await log.add(on, "b", b"x" * 100)
            after = records(on)
            changed = [ref for ref, value in after.items() if before.get(ref) != value]
            written.append((len(changed), sum(len(after[ref]) for ref in changed)))
        assert {count for count, _ in written} == {2}, "the head and the block"
        assert max(size for _, size in written[1:]) <= written[0][1] + 8

    run(test)


def test_any_range_is_read_across_blocks_of_all_sizes() -> None:
    async def test() -> None:
        on, _ = await fresh()
        sizes = [1] * 40 + [LARGE, 5, 3000, LARGE * 3] + [2] * 400
        whole = await filled(on, "b", sizes)
        edges = {0, 1, 39, 40, 41, 40 + LARGE, 45 + LARGE, len(whole) - 801, len(whole) - 1}
        for first, last in itertools.product(sorted(edges), repeat=2):
            if first > last:
                continue
            wanted = blobs.GetBlob(ByteRange(first, last))
            found = await do.run(on, blob.GET_BLOB, "b", wanted)
            assert await do.received(found) == whole[first : last + 1], (first, last)

    run(test)


def test_a_range_at_the_end_reads_few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        on, _ = await fresh()
        whole = await filled(on, "b", [3] * 2000)
        looked: list[int] = []
        plain = ServiceEngine.read_range

        async def watched(self: ServiceEngine, *given: Any) -> list[Item]:
            page = await plain(self, *given)
            looked.append(len(page))
            return page

        monkeypatch.setattr(ServiceEngine, "read_range", watched)
        found = await do.run(on, blob.GET_BLOB, "b", blobs.GetBlob(ByteRange(5990, None)))
        assert await do.received(found) == whole[5990:]
        assert sum(looked) < 10

    run(test)


def test_snapshots_share_the_blocks_and_stay_as_they_were() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        first = await filled(on, "b", [10, LARGE])
        ticks = await do.snapshot(on, "b")
        contents = do.left(on)[1]
        await log.add(on, "b", b"more")
        assert do.left(on)[1] == contents, "nothing was copied"
        assert await do.read(on, "b", ticks) == first
        assert await do.read(on, "b") == first + b"more"
        await do.put(on, "copy", b"")
        # When it is overwritten by a new one, the blocks of the snapshot stay, and only those.
        await log.create(on, "b")
        await swept(on, sweeper)
        assert await do.read(on, "b", ticks) == first
        assert do.left(on)[1] == contents
        blocks = block_records(on)
        assert len(blocks) == 2
        await do.delete(on, "b", INCLUDE)
        await do.delete(on, "copy")
        await swept(on, sweeper)
        assert (len(do.left(on)[0]), do.left(on)[1]) == (1, [])

    run(test)


def test_a_snapshot_that_goes_leaves_the_head_whole() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await filled(on, "b", [10, LARGE])
        ticks = await do.snapshot(on, "b")
        await log.add(on, "b", b"more")
        whole = await do.read(on, "b")
        await do.delete(on, "b", ticks=ticks)
        await swept(on, sweeper)
        assert await do.read(on, "b") == whole

    run(test)


def test_blocks_that_are_appended_while_a_snapshot_is_swept_stay() -> None:
    """A sweep removes only blocks up to the end of the retired form."""

    async def test() -> None:
        on, sweeper = await fresh()
        await filled(on, "b", [10, 10])
        ticks = await do.snapshot(on, "b")
        await do.delete(on, "b", ticks=ticks)
        store = on.store
        plain = store.read_range
        added = False

        async def late(partition: Any, hidden: bool, first: bytes, *rest: Any) -> list[Item]:
            nonlocal added
            if first == keys.snapshot_range()[0] and not (hidden or added):
                added = True
                await log.add(on, "b", b"appended meanwhile")
            return await plain(partition, hidden, first, *rest)

        store.read_range = late  # type: ignore[method-assign, assignment]  # a double
        await log.add(on, "b", b"before")
        await swept(on, sweeper)
        assert added
        whole = await do.read(on, "b")
        assert whole is not None and whole.endswith(b"beforeappended meanwhile")

    run(test)


def test_many_appenders_get_offsets_that_follow_one_another() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await log.create(on, "b")
        parts = [text(size, size) for size in range(1, 33)] * 4
        found = await asyncio.gather(*(log.add(on, "b", part) for part in parts))
        assert sorted(one.count for one in found) == list(range(1, len(parts) + 1))
        whole = await do.read(on, "b")
        assert whole is not None and len(whole) == sum(map(len, parts))
        for one, part in zip(found, parts, strict=True):
            assert whole[one.offset : one.offset + len(part)] == part
        ordered = sorted(zip(found, parts, strict=True), key=lambda pair: pair[0].count)
        ends = list(itertools.accumulate(len(part) for _, part in ordered))
        assert [one.offset for one, _ in ordered] == [0, *ends[:-1]]

    run(test)


def test_appenders_on_two_gateways_get_offsets_that_follow_one_another() -> None:
    async def test() -> None:
        here, _ = await fresh()
        assert isinstance(here.store, ServiceEngine)
        there = Services(here.store.second(), here.clock)
        await log.create(here, "b")
        parts = [text(size, size) for size in range(1, 33)]
        tries = [log.add((here, there)[n % 2], "b", part) for n, part in enumerate(parts)]
        found = await asyncio.gather(*tries)
        assert sorted(one.count for one in found) == list(range(1, 33))
        for on in (here, there):
            whole = await do.read(on, "b")
            assert whole is not None and len(whole) == sum(map(len, parts))
            for one, part in zip(found, parts, strict=True):
                assert whole[one.offset : one.offset + len(part)] == part

    run(test)


def test_of_many_appenders_at_one_position_one_wins() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await log.create(on, "b")
        for position in (0, 3):
            at = AppendConditions(position=position)
            tries = [log.add(on, "b", b"%03d" % n, at) for n in range(32)]
            found = await asyncio.gather(*tries, return_exceptions=True)
            refusals = [one for one in found if isinstance(one, StorageError)]
            assert len(refusals) == 31
            assert {one.row for one in refusals} == {APPEND_POSITION_CONDITION_NOT_MET}
        assert len(await do.read(on, "b") or b"") == 6
        assert do.left(on)[1] == [], "what was refused leaves nothing"

    run(test)


@pytest.mark.parametrize(
    ("limit", "error"),
    [(13, None), (12, MAX_BLOB_SIZE_CONDITION_NOT_MET), (0, MAX_BLOB_SIZE_CONDITION_NOT_MET)],
)
def test_the_maximal_size_counts_the_new_block(limit: int, error: ErrorCode | None) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await filled(on, "b", [10])
        given = AppendConditions(max_size_bytes=limit)
        if error is None:
            await log.add(on, "b", b"abc", given)
        else:
            assert await refused(log.add(on, "b", b"abc", given)) is error

    run(test)


def test_a_blob_takes_50_000_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        monkeypatch.setattr("strongroom.limits.COMMITTED_BLOCKS_MAX", 40)
        await filled(on, "b", [2] * 40)
        assert await refused(log.add(on, "b", b"no")) is BLOCK_COUNT_EXCEEDS_LIMIT
        await do.start_copy(on, "b", "copy")
        assert await refused(log.add(on, "copy", b"no")) is BLOCK_COUNT_EXCEEDS_LIMIT
        for name in ("b", "copy"):
            await do.delete(on, name)
        await swept(on, sweeper)
        assert len(do.left(on)[0]) == 1

    assert COMMITTED_BLOCKS_MAX == 50_000
    run(test)


@pytest.mark.parametrize("sizes", [[], [5], [5, LARGE, 7], [200_000] * 90])
def test_a_copy_keeps_type_and_count_and_can_be_appended_to(sizes: list[int]) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        whole = await filled(on, "b", sizes)
        await do.start_copy(on, "b", "copy")
        await swept(on, sweeper)
        view = await do.run(on, blob.GET_BLOB_PROPERTIES, "copy", None)
        assert view.blob.kind is BlobKind.APPEND
        assert view.blob.body.appended_count == len(sizes)
        found = await log.add(on, "copy", b"more")
        assert (found.offset, found.count) == (len(whole), len(sizes) + 1)
        assert await do.read(on, "copy") == whole + b"more"
        assert await do.read(on, "b") == whole

    run(test)


def test_a_sealed_blob_is_read_copied_and_overwritten_but_not_appended_to() -> None:
    async def test() -> None:
        on, _ = await fresh()
        whole = await filled(on, "b", [5])
        await log.seal(on, "b")
        await log.seal(on, "b")
        assert await refused(log.add(on, "b", b"no")) is BLOB_IS_SEALED
        await do.metadata(on, "b", "1")
        assert await do.read(on, "b") == whole
        await do.start_copy(on, "b", "copy")
        assert await refused(log.add(on, "copy", b"no")) is BLOB_IS_SEALED
        await log.create(on, "b")
        await log.add(on, "b", b"yes")
        assert await do.read(on, "b") == b"yes"

    run(test)


def test_block_blobs_and_append_blobs_are_written_each_in_its_way() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await filled(on, "log", [5])
        await do.put(on, "plain", b"text")
        assert await refused(log.add(on, "plain", b"no")) is INVALID_BLOB_TYPE
        assert await refused(log.seal(on, "plain")) is INVALID_BLOB_TYPE
        assert await refused(do.stage(on, "log", "0", b"no")) is INVALID_BLOB_TYPE
        assert await refused(do.commit(on, "log", [])) is INVALID_BLOB_TYPE
        assert await refused(do.start_copy(on, "log", "plain")) is INVALID_BLOB_TYPE
        assert await refused(do.start_copy(on, "plain", "log")) is INVALID_BLOB_TYPE
        await do.put(on, "log", b"replaced")
        assert await do.read(on, "log") == b"replaced"

    run(test)


def test_who_reads_while_the_blob_grows_reads_what_it_began_with() -> None:
    async def test() -> None:
        on, _ = await fresh()
        whole = await filled(on, "b", [LARGE] * 40)
        found = await do.run(on, blob.GET_BLOB, "b", blobs.GetBlob())
        for _ in range(20):
            await log.add(on, "b", b"more")
        assert await do.received(found) == whole

    run(test)


def test_a_reader_does_not_begin_again_because_the_blob_grows() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await filled(on, "b", [5])
        plain, looks, is_appending = on.store.read, 0, False

        async def busy(refs: Any) -> Any:
            nonlocal looks, is_appending
            if not is_appending and looks < 20:
                looks, is_appending = looks + 1, True
                await log.add(on, "b", b"more")
                is_appending = False
            return await plain(refs)

        on.store.read = busy  # type: ignore[method-assign, assignment]  # a double
        assert await do.read(on, "b")
        assert looks < 5

    run(test)


def test_a_download_arrives_whole_though_the_blob_is_deleted_and_swept() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        whole = await filled(on, "b", [LARGE, 100] * 40)
        found = await do.run(on, blob.GET_BLOB, "b", blobs.GetBlob())
        pieces = aiter(found.pieces)
        data = await anext(pieces)
        await do.delete(on, "b")
        await swept(on, sweeper)
        data += b"".join([piece async for piece in pieces])
        assert data == whole
        found.finished()
        await swept(on, sweeper)
        assert (len(do.left(on)[0]), do.left(on)[1]) == (1, [])

    run(test)


@pytest.mark.parametrize("drops_container", [False, True])
def test_another_gateway_sweeps_nothing_that_a_stalled_download_has_still_to_read(
    drops_container: bool,
) -> None:
    """Small blocks have no contents to name, so the reader protects all of them."""

    async def test() -> None:
        here, _ = await fresh()
        assert isinstance(here.store, ServiceEngine)
        store = here.store.second()
        there = Services(store, here.clock)
        store.gateways.owns = lambda name: True  # type: ignore[method-assign]  # a double
        sweeper = Sweeper(there)
        whole = await filled(here, "b", [100] * 600 + [LARGE] + [100] * 6000)
        found = await do.run(here, blob.GET_BLOB, "b", blobs.GetBlob())
        pieces = aiter(found.pieces)
        data = await anext(pieces)
        if drops_container:
            await drop_container(there)
        else:
            await do.put(there, "b", b"new")
        (reading,) = here.held.of(Readers).snapshot(found.view.partition)
        reading.narrow()
        await swept(there, sweeper)
        data += b"".join([piece async for piece in pieces])
        assert data == whole
        found.finished()
        await swept(there, sweeper)
        assert do.left(there)[1] == []
        assert not block_records(there)

    run(test)


def test_a_block_that_is_missing_is_an_error_also_while_the_blob_grows() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await filled(on, "b", [100, 100])
        assert isinstance(on.store, ServiceEngine)
        plain = on.store.read_range

        async def lost(*given: Any) -> list[Item]:
            await log.add(on, "b", b"more")
            return [one for one in await plain(*given) if not one.name.endswith(b"\0\x64")]

        on.store.read_range = lost  # type: ignore[method-assign, assignment]  # a double
        with pytest.raises((StorageError, ContentMissing)) as error:
            await do.read(on, "b")
        assert isinstance(error.value, StorageError) and error.value.row is INTERNAL_ERROR

    run(test)


def test_an_append_whose_outcome_is_unknown_happened_whole_or_not_at_all() -> None:
    async def test() -> None:
        for cut in range(3):
            before, _ = await fresh()
            whole = await filled(before, "b", [5, LARGE])
            assert isinstance(before.store, ServiceEngine)
            before.store.cut_after_steps(cut)
            try:
                await log.add(before, "b", text(LARGE, 9))
            except CommitUnknown:
                pass
            else:
                assert cut >= 1
            on = Services(before.store.restarted(), before.clock)
            found = await do.read(on, "b")
            assert found in (whole, whole + text(LARGE, 9))
            assert (await log.add(on, "b", b"on")).offset == len(found or b"")
            sweeper = Sweeper(on)
            await do.delete(on, "b")
            await swept(on, sweeper)
            assert (len(do.left(on)[0]), do.left(on)[1]) == (1, [])

    run(test)


@pytest.mark.parametrize("cut", range(5))
def test_a_sweep_that_is_cut_off_is_finished_by_the_next(cut: int) -> None:
    async def test() -> None:
        before, sweeper = await fresh()
        await filled(before, "b", [5, LARGE] * 400)
        await do.snapshot(before, "b")
        await log.add(before, "b", b"more")
        await do.delete(before, "b", INCLUDE)
        assert isinstance(before.store, ServiceEngine)
        before.store.advance(1)
        before.store.cut_after_steps(cut)
        await sweeper.run_once()
        on = Services(before.store.restarted(), before.clock)
        await swept(on, Sweeper(on))
        assert (len(do.left(on)[0]), do.left(on)[1]) == (1, [])

    run(test)
