"""Pages without readers are reclaimed, and no others, in any sequence of operations."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors.core import StorageError
from strongroom.operations.blob import blob
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.services.blob import blobs
from strongroom.services.blob.blobs import Download
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from tests.services import blob_calls as do
from tests.services import page_calls as pages
from tests.services.container_calls import run
from tests.services.service_engine import settle
from tests.services.sweeps import drop_container, fresh, swept

PAGE = 512
KIB = 1024
MIB = 1024 * KIB
TIB = MIB * MIB
SIZE = 24 * MIB
INCLUDE = DeleteSnapshots.INCLUDE


async def begun(
    on: Services, name: str, ticks: int | None = None
) -> tuple[Download, AsyncIterator[bytes]]:
    """Start a download."""
    found = await do.run(on, blob.GET_BLOB, name, blobs.GetBlob(), snapshot=ticks)
    assert isinstance(found, Download) and not isinstance(found.pieces, bytes)
    return found, aiter(found.pieces)  # type: ignore[arg-type]  # pieces of bytes here


def end(found: Download) -> None:
    assert found.finished is not None
    found.finished()


def kept(on: Services) -> int:
    """Return the number of records and contents of pages."""
    records, contents = do.left(on)
    return len(contents) + len([ref for ref, _ in records if ref.key.hidden])


def test_overwritten_cleared_and_truncated_pages_come_back() -> None:
    """B-PAG-21."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "b", TIB)
        for turn in range(3):
            await pages.write(on, "b", 0, bytes([turn]) * MIB)
        assert len(do.left(on)[1]) == 16
        await pages.clear(on, "b", 0, 512 * KIB)
        assert len(do.left(on)[1]) == 8
        await pages.write(on, "b", TIB - MIB, b"x" * MIB)
        await pages.resize(on, "b", 600 * KIB)
        await swept(on, sweeper)
        assert len(do.left(on)[1]) == 2
        await pages.clear(on, "b", 0, 600 * KIB)
        await swept(on, sweeper)
        assert kept(on) == 0
        assert pages.problems(on) == []

    run(test)


@pytest.mark.parametrize("replacing", [False, True])
def test_deleted_and_replaced_blobs_come_back_with_their_snapshots(replacing: bool) -> None:
    """B-PAG-21."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "b", TIB)
        first = [await _written(on, turn) for turn in range(3)]
        await do.delete(on, "b", ticks=first[1])
        await swept(on, sweeper)
        assert pages.problems(on) == []
        assert [(await do.read_range(on, "b", at))[:1] for at in (first[0], first[2])] == [
            b"\0",
            b"\2",
        ]
        if replacing:
            await pages.create(on, "b", PAGE)
            await swept(on, sweeper)
            assert (await do.read_range(on, "b", first[2]))[:1] == b"\2"
            assert pages.problems(on) == []
        await do.delete(on, "b", INCLUDE)
        assert pages.problems(on) == []
        await swept(on, sweeper)
        assert kept(on) == 0
        assert pages.problems(on) == []

    run(test)


def test_what_only_a_deleted_snapshot_saw_comes_back_with_the_next_write() -> None:
    """B-PAG-21."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "b", TIB)
        first = await _written(on, 1)
        second = await _written(on, 2)
        await do.delete(on, "b", ticks=second)
        await swept(on, sweeper)
        await pages.write(on, "b", 0, b"3" * 200 * KIB)
        assert pages.problems(on) == []
        await swept(on, sweeper)
        assert pages.problems(on) == []
        assert len(do.left(on)[1]) == 2 * 3
        assert (await do.read_range(on, "b", first))[:1] == b"\1"

    run(test)


def test_bytes_that_a_deleted_snapshot_shared_come_back_while_an_older_one_lives() -> None:
    """B-PAG-21. The sweep after the deletion removes the version of the leaf that the snapshot
    used."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "b", TIB)
        await do.snapshot(on, "b")
        await pages.write(on, "b", 0, b"1" * 64 * KIB)
        shared = await do.snapshot(on, "b")
        await pages.write(on, "b", 0, b"2" * 32 * KIB)
        await do.delete(on, "b", ticks=shared)
        await swept(on, sweeper)
        await pages.write(on, "b", 0, b"3" * 64 * KIB)
        assert pages.problems(on) == []
        await swept(on, sweeper)
        assert pages.problems(on) == []
        assert len(do.left(on)[1]) == 1

    run(test)


async def _written(on: Services, turn: int) -> int:
    await pages.write(on, "b", 0, bytes([turn]) * 200 * KIB)
    await pages.write(on, "b", PAGE * turn + MIB, b"s" * PAGE)
    return await do.snapshot(on, "b")


def test_a_container_goes_with_its_page_blobs() -> None:
    """B-PAG-21."""

    async def test() -> None:
        on, sweeper = await fresh()
        for name in ("a", "b"):
            await pages.create(on, name, TIB)
            for turn in range(3):
                await pages.write(on, name, 0, bytes([turn]) * 200 * KIB)
                await do.snapshot(on, name)
            await pages.clear(on, name, 0, TIB)
        await drop_container(on)
        await swept(on, sweeper)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_a_download_is_of_one_state_whatever_is_written_meanwhile() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "b", 2 * MIB)
        await pages.write(on, "b", 0, b"a" * 2 * MIB)
        ticks = await do.snapshot(on, "b")
        await pages.write(on, "b", 0, b"b" * 2 * MIB)
        old, of_snapshot = await begun(on, "b", ticks)
        now, of_head = await begun(on, "b")
        data = await anext(of_head)
        snap = await anext(of_snapshot)
        await pages.write(on, "b", MIB, b"c" * MIB)
        await do.delete(on, "b", ticks=ticks)
        await swept(on, sweeper)
        await pages.clear(on, "b", 0, 2 * MIB)
        await swept(on, sweeper)
        await do.delete(on, "b")
        await swept(on, sweeper)
        data += b"".join([piece async for piece in of_head])
        snap += b"".join([piece async for piece in of_snapshot])
        assert (data, snap) == (b"b" * 2 * MIB, b"a" * 2 * MIB)
        assert pages.problems(on) == []
        end(old)
        end(now)
        await swept(on, sweeper)
        await swept(on, sweeper)
        assert kept(on) == 0
        assert pages.problems(on) == []

    run(test)


def test_another_gateways_reader_keeps_what_it_reads() -> None:
    async def test() -> None:
        here, _ = await fresh()
        # Of the memory engine.
        there = Services(here.store.second(), here.clock)  # type: ignore[attr-defined]
        sweepers = (Sweeper(here), Sweeper(there))
        await pages.create(here, "b", 2 * MIB)
        await pages.write(here, "b", 0, b"a" * 2 * MIB)
        found, pieces = await begun(here, "b")
        data = await anext(pieces)
        await pages.write(there, "b", 0, b"b" * 2 * MIB)
        await pages.clear(there, "b", 0, MIB)
        for _ in range(2):
            for sweeper in sweepers:
                await swept(there, sweeper)
        await do.delete(there, "b")
        for sweeper in sweepers:
            await swept(there, sweeper)
        data += b"".join([piece async for piece in pieces])
        assert data == b"a" * 2 * MIB
        assert pages.problems(there) == []
        end(found)
        for _ in range(3):
            for sweeper in sweepers:
                await swept(there, sweeper)
        assert kept(there) == 0
        assert pages.problems(there) == []

    run(test)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("create", "write", "write", "write", "clear", "clear", "resize", "snapshot"),
                *("snapshot", "unsnap", "delete", "block", "copy", "sweep", "read", "unread"),
            ]
        ),
        st.sampled_from("ab"),
        st.integers(0, SIZE // PAGE - 1),
        st.sampled_from([PAGE, 4 * KIB, 70 * KIB, 300 * KIB, 9 * MIB]),
    ),
    max_size=30,
)


class Model:
    """The pages of each blob and snapshot, sparse: page number -> the byte that fills it.

    `since` has the pages that were written, and those that were cleared, since each snapshot that
    can be compared with the blob.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.pages: dict[str, dict[int, int]] = {}
        self.snapshots: dict[str, dict[int, dict[int, int]]] = {"a": {}, "b": {}}
        self.since: dict[str, dict[int, tuple[set[int], set[int]]]] = {"a": {}, "b": {}}

    def write(self, name: str, numbers: range, mark: int) -> None:
        self.pages[name].update(dict.fromkeys(numbers, mark))
        for written, _ in self.since[name].values():
            written.update(numbers)

    def clear(self, name: str, first: int, stop: int) -> None:
        gone = [number for number in self.pages[name] if first <= number < stop]
        for number in gone:
            del self.pages[name][number]
        for _, cleared in self.since[name].values():
            cleared.update(gone)

    def changes(self, name: str, ticks: int) -> pages.Ranges:
        held, before = self.pages[name], self.snapshots[name][ticks]
        written, cleared = self.since[name][ticks]
        changed = dict.fromkeys(written & held.keys(), False)
        gone = (cleared | before.keys()) - held.keys()
        changed |= {number: True for number in gone if number * PAGE < self.sizes[name]}
        return self.ranges(changed)

    def ranges(self, found: dict[int, bool] | dict[int, int]) -> pages.Ranges:
        listed: pages.Ranges = []
        for number in sorted(found):
            is_clear = found[number] is True
            if listed and listed[-1][1:] == (number * PAGE, is_clear):
                listed[-1] = (listed[-1][0], (number + 1) * PAGE, is_clear)
            else:
                listed.append((number * PAGE, (number + 1) * PAGE, is_clear))
        return listed


@given(ACTIONS)
def test_any_sequence_keeps_what_is_seen_and_nothing_else(
    actions: list[tuple[str, str, int, int]],
) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        model, turn, open_reads = Model(), 0, list[Download]()
        for turn, (deed, name, page, length) in enumerate(actions, 1):
            await _act(on, sweeper, model, (deed, name, page, length), turn, open_reads)
            await _check_changes(on, model)
            assert pages.problems(on) == [], (turn, deed)
        for found in open_reads:
            end(found)
        await swept(on, sweeper)
        await swept(on, sweeper)
        assert pages.problems(on) == []
        for name, held in model.pages.items():
            assert await pages.ranges(on, name) == model.ranges(held)
            for number, mark in list(held.items())[:3]:
                assert await do.read_range(on, name, None, number * PAGE) == bytes([mark]) * PAGE
        for name, taken in model.snapshots.items():
            for ticks, held in taken.items():
                assert await pages.ranges(on, name, ticks) == model.ranges(held)
                for number, mark in list(held.items())[-3:]:
                    data = await do.read_range(on, name, ticks, number * PAGE)
                    assert data == bytes([mark]) * PAGE
        for name in "ab":
            with contextlib.suppress(StorageError):
                await do.delete(on, name, INCLUDE)
        await swept(on, sweeper)
        await swept(on, sweeper)
        assert kept(on) == 0

    run(test)


async def _check_changes(on: Services, model: Model) -> None:
    """Compare the changes since each snapshot with the model: B-PAG-15."""
    for name, taken in model.since.items():
        for ticks in taken:
            assert await pages.changes(on, name, ticks) == model.changes(name, ticks)


async def _act(
    on: Services,
    sweeper: Sweeper,
    model: Model,
    action: tuple[str, str, int, int],
    turn: int,
    open_reads: list[Download],
) -> None:
    deed, name, page, length = action
    size = model.sizes.get(name, 0)
    other = "a" if name == "b" else "b"
    is_page = name in model.pages
    if deed == "create":
        if is_page or not model.snapshots[name]:
            await pages.create(on, name, SIZE)
            model.sizes[name], model.pages[name] = SIZE, {}
            model.since[name].clear()
    elif deed == "block":
        if not model.snapshots[name]:
            await do.put(on, name, b"block")
            model.sizes.pop(name, None)
            model.pages.pop(name, None)
            model.since[name].clear()
    elif deed == "sweep":
        await swept(on, sweeper)
    elif deed == "unread":
        if open_reads:
            end(open_reads.pop(page % len(open_reads)))
    elif is_page:
        first = page * PAGE
        stop = min(size, first + length)
        if deed == "write" and first < stop:
            mark = turn % 255 + 1
            stop = min(stop, first + 300 * KIB)
            await pages.write(on, name, first, bytes([mark]) * (stop - first))
            model.write(name, range(page, stop // PAGE), mark)
        elif deed == "clear" and first < stop:
            await pages.clear(on, name, first, stop - first)
            model.clear(name, page, stop // PAGE)
        elif deed == "resize":
            await pages.resize(on, name, first)
            model.sizes[name] = first
            model.clear(name, page, size // PAGE)
        elif deed == "snapshot":
            ticks = await do.snapshot(on, name)
            model.snapshots[name][ticks] = dict(model.pages[name])
            model.since[name][ticks] = set(), set()
        elif deed == "unsnap" and model.snapshots[name]:
            ticks = sorted(model.snapshots[name])[page % len(model.snapshots[name])]
            await do.delete(on, name, ticks=ticks)
            del model.snapshots[name][ticks]
            model.since[name].pop(ticks, None)
        elif deed == "delete":
            await do.delete(on, name, INCLUDE)
            del model.sizes[name], model.pages[name]
            model.snapshots[name] = {}
            model.since[name] = {}
        elif deed == "copy" and await _is_page_or_none(on, other):
            await _copy(on, sweeper, model, name, other)
        elif deed == "read" and size:
            open_reads.append((await begun(on, name))[0])


async def _is_page_or_none(on: Services, name: str) -> bool:
    """Return whether a page blob may be copied over it."""
    try:
        return (await do.run(on, blob.GET_BLOB_PROPERTIES, name, None)).blob.page is not None
    except StorageError:
        return True


async def _copy(on: Services, sweeper: Sweeper, model: Model, name: str, other: str) -> None:
    await do.start_copy(on, name, other)
    await sweeper.run_once()
    await swept(on, sweeper)
    model.sizes[other], model.pages[other] = model.sizes[name], dict(model.pages[name])
    model.since[other].clear()


def test_a_read_that_begins_when_a_write_is_cut_off_waits_for_its_commit() -> None:
    """B-PAG-21: otherwise it would see the head of before, whose pages the commit drops."""

    async def test() -> None:
        on, _ = await fresh()
        await pages.create(on, "b", SIZE)
        await pages.write(on, "b", 0, b"1" * MIB)
        released = asyncio.Event()

        async def hold() -> None:
            await released.wait()

        on.store.before_commit = hold  # type: ignore[attr-defined]  # of the store in memory
        writing = asyncio.ensure_future(pages.write(on, "b", 0, b"2" * MIB))
        await settle()
        writing.cancel()
        await settle()
        beginning = asyncio.ensure_future(begun(on, "b"))
        await settle()
        released.set()
        await settle()
        found, pieces = await beginning
        data = b"".join([piece async for piece in pieces])
        end(found)
        assert data[:MIB] in (b"1" * MIB, b"2" * MIB)
        with pytest.raises(asyncio.CancelledError):
            await writing

    run(test)
