"""Reads of data that is changed, deleted or damaged at the same time end, and let other work
run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Record, Ref, Step, Write
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.blob import blob, block, copy
from strongroom.services.blob import blobs
from strongroom.services.blob.copies import copying
from strongroom.services.blob.types import blocks
from strongroom.services.core.copies.sources import CopySources, LocalSource
from strongroom.services.core.runner import Services
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.core import keys
from tests.services import blob_calls as do
from tests.services.container_calls import ACCOUNT, placed, refused, run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, fresh

BIG = 20_000
READS_MAX = 100
Attempt = Callable[[Services], Awaitable[Any]]
Act = Callable[[Services], Awaitable[None]]


async def nothing(on: Services) -> None:
    """Do nothing."""


def watch_reads(on: Services, kind: bytes, act: Act = nothing) -> None:
    """Run `act` before the first read of a hidden record of this kind; fail a test whose reads do
    not end."""
    real, counted, acted = on.store.read, [0], [False]

    async def read(reads: Sequence[Ref]) -> list[Record | None]:
        counted[0] += 1
        assert counted[0] < READS_MAX, "the reads of one request do not end"
        if not acted[0] and any(ref.key.hidden and ref.key.name[:1] == kind for ref in reads):
            acted[0] = True
            await act(on)
        return await real(reads)

    on.store.read = read  # type: ignore[method-assign]  # a double


async def lose(on: Services, kind: bytes) -> None:
    """Remove the hidden records of a kind, as the container's sweep and damage do."""
    assert isinstance(on.store, ServiceEngine)
    for ref, _ in list(on.store.records()):
        if ref.key.hidden and ref.key.name[:1] == kind:
            await remove(on, ref)


async def remove(on: Services, ref: Ref) -> None:
    step = Step(ref.partition, (Write(ref.key, None),))
    await on.store.update(ref.partition, [], lambda found, stamp: Commit(None, (step,)))


async def lose_contents(on: Services) -> None:
    assert isinstance(on.store, ServiceEngine)
    on.store.lose_contents()


async def drop(on: Services, kind: bytes) -> None:
    """Delete the container, and remove these records, as its sweep does."""
    await drop_container(on)
    await lose(on, kind)


async def make_listed(on: Services, text: bytes = b"x") -> None:
    for name in "12":
        await do.stage(on, "b", name, text * BIG)
    await do.commit(on, "b", ["1", "2"])


async def make_inline(on: Services) -> None:
    await do.put(on, "b", b"small" * 200)


async def make_stored(on: Services) -> None:
    await do.put(on, "b", b"x" * BIG)


async def get(on: Services) -> None:
    found = await do.run(on, blob.GET_BLOB, "b", blobs.GetBlob())
    if found.finished is not None:
        found.finished()


async def get_lists(on: Services) -> None:
    await do.run(on, block.GET_BLOCK_LIST, "b", blocks.GetBlockList(True, True))


async def put_list(on: Services) -> None:
    await do.commit(on, "b", ["1", "2"])


async def copy_it(on: Services) -> None:
    place = await on.place(Service.BLOB, ACCOUNT, "photos")
    assert place is not None

    async def locate(url: str, call: Any, wanted: Any) -> LocalSource:
        return LocalSource(ACCOUNT, "photos", place.generation, "b")

    on.held.of(CopySources).locate = locate
    given = copying.CopyBlob("http://127.0.0.1/account/photos/b")
    await do.run(on, copy.COPY_BLOB, "copy", given)


READERS = [get, get_lists, put_list, copy_it]


@pytest.mark.parametrize("attempt", READERS)
def test_a_missing_list_is_damage(attempt: Attempt, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await make_listed(on)
        await lose(on, keys.BLOCK_LIST)
        watch_reads(on, keys.BLOCK_LIST)
        assert await refused(attempt(on)) == (500, "InternalError")
        assert f"{ACCOUNT}/photos/b" in caplog.text and "block list" in caplog.text
        assert not on.held.of(Readers)._active

    run(test)


@pytest.mark.parametrize("attempt", [get, copy_it])
@pytest.mark.parametrize("inline", [False, True])
def test_a_missing_body_is_damage(attempt: Attempt, inline: bool) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await (make_inline if inline else make_stored)(on)
        await (lose(on, keys.INLINE) if inline else lose_contents(on))
        watch_reads(on, keys.INLINE)
        assert await refused(attempt(on)) == (500, "InternalError")

    run(test)


@pytest.mark.parametrize("attempt", READERS)
def test_a_container_that_is_swept_meanwhile_is_not_found(attempt: Attempt) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await make_listed(on)
        watch_reads(on, keys.BLOCK_LIST, lambda on: drop(on, keys.BLOCK_LIST))
        with pytest.raises(StorageError) as caught:
            await attempt(on)
        if attempt is copy_it:
            assert caught.value.row is copy_errors.CANNOT_VERIFY_COPY_SOURCE
            assert caught.value.message == errors.CONTAINER_NOT_FOUND.message
        else:
            assert caught.value.row is errors.CONTAINER_NOT_FOUND
        assert not on.held.of(Readers)._active

    run(test)


@pytest.mark.parametrize("make", [make_listed, make_inline, make_stored])
def test_a_container_that_was_deleted_before_the_body_was_opened(make: Act) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await make(on)
        call = await placed(on, blobs.GetBlob(), blob="b", rule=blob.GET_BLOB.rule)
        await drop_container(on)
        await lose(on, keys.INLINE)
        await lose_contents(on)
        watch_reads(on, keys.INLINE)
        assert await refused(blobs.get_blob(on, call)) == (404, "ContainerNotFound")

    run(test)


@pytest.mark.parametrize("attempt", [get, get_lists, put_list, copy_it])
def test_what_was_replaced_meanwhile_is_read_as_it_is_now(attempt: Attempt) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await make_listed(on)

        async def replace(on: Services) -> None:
            # Another process does not give way to this one's lists.
            on.disposable.clear()
            await make_inline(on)
            await lose(on, keys.BLOCK_LIST)
            await make_listed(on, b"y")

        watch_reads(on, keys.BLOCK_LIST, replace)
        await attempt(on)
        assert await do.read(on, "b") == b"y" * 2 * BIG

    run(test)


def test_looking_again_lets_others_have_their_turn() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await make_stored(on)
        await lose_contents(on)
        turns = [0]

        async def other() -> None:
            turns[0] += 1

        watch_reads(on, keys.INLINE)
        task = asyncio.create_task(other())
        assert await refused(get(on)) == (500, "InternalError")
        assert turns == [1]
        await task

    run(test)
