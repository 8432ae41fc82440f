"""Paths: how few calls of the engine they take, and what happens to them between two calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.operations.file import share
from strongroom.operations.file.rename import RENAME_DIRECTORY
from strongroom.services.core.runner import Services
from strongroom.services.file.rest.renaming import RenameNode, RenameSource
from strongroom.services.file.shares.share_snapshots import SnapshotShare
from strongroom.values import ByteRange
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.engine_calls import EngineCalls

LEAF_BYTES = 65_536


async def deep(on: Services, depth: int) -> str:
    """Create directories and return the path of a file in the last one."""
    path = ""
    for number in range(depth - 1):
        path += f"folder {number}/"
        await do.mkdir(on, path.removesuffix("/"))
    return path + "file"


async def rename(on: Services, old: str, new: str) -> None:
    base = f"/{given.ACCOUNT}/{do.SHARE}/"
    source = RenameSource(f"http://host{base}{old}", base + old, base + new)
    await do.run(on, RENAME_DIRECTORY, new, RenameNode(source=source))


@pytest.mark.parametrize("depth", [1, 2, 3, 100])
def test_get_file_takes_four_calls_at_any_depth(depth: int) -> None:
    async def scenario() -> None:
        on = await do.services()
        path = await deep(on, depth)
        await do.write(on, path, b"text")
        calls = EngineCalls(on.store)
        found = await do.begin(on, path)
        assert calls.names == ["read", "follow", "read", "read"]
        assert await do.drain(found) == b"text"

    given.run(scenario)


@pytest.mark.parametrize("depth", [1, 3, 100])
@pytest.mark.parametrize("size_bytes", [10, LEAF_BYTES, LEAF_BYTES + 10])
def test_put_range_takes_four_calls_before_the_commit(depth: int, size_bytes: int) -> None:
    async def scenario() -> None:
        on = await do.services()
        path = await deep(on, depth)
        await do.create(on, path, size_bytes)
        calls = EngineCalls(on.store)
        await do.put(on, path, 0, b"x" * size_bytes)
        assert calls.names == ["read", "follow", "read", "read", "update"]

    given.run(scenario)


def test_a_snapshot_takes_four_calls_where_no_name_has_changed() -> None:
    async def scenario() -> None:
        on = await do.services()
        path = await deep(on, 9)
        await do.write(on, path, b"text")
        stamp = (await do.run(on, share.SNAPSHOT_SHARE, "", SnapshotShare())).snapshot
        calls = EngineCalls(on.store)
        found = await do.begin(on, path, snapshot=stamp)
        assert calls.names == ["read", "follow", "read", "read"]
        assert await do.drain(found) == b"text"

    given.run(scenario)


Change = Callable[[Services], Awaitable[None]]


async def swap(on: Services) -> None:
    """Give the path of the file to another file."""
    await rename(on, "a", "c")
    await rename(on, "b", "a")


async def take_away(on: Services) -> None:
    await rename(on, "a", "c")


async def replace(on: Services) -> None:
    await do.delete(on, "a/d/f")
    await do.write(on, "a/d/f", b"new text")


async def two_files() -> Services:
    on = await do.services()
    for folder, text in (("a", b"the one"), ("b", b"the other")):
        await do.mkdir(on, folder)
        await do.mkdir(on, f"{folder}/d")
        await do.write(on, f"{folder}/d/f", text)
    return on


@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize(
    ("change", "after"), [(swap, b"the other"), (take_away, None), (replace, b"new text")]
)
def test_a_read_sees_the_path_as_it_was_at_one_time(
    at: int, change: Change, after: bytes | None
) -> None:
    async def scenario() -> None:
        on = await two_files()
        EngineCalls(on.store, at, lambda: change(on))
        found: bytes | None = None
        with suppress(StorageError):
            found = await do.read(on, "a/d/f")
        # What is changed before the last look is seen.
        assert found == (b"the one" if at == 4 else after)

    given.run(scenario)


@pytest.mark.parametrize("at", range(1, 5))
def test_a_write_changes_the_file_that_has_the_path_at_its_commit(at: int) -> None:
    async def scenario() -> None:
        on = await two_files()
        EngineCalls(on.store, at, lambda: swap(on))
        await do.put(on, "a/d/f", 0, b"THE")
        assert await do.read(on, "a/d/f") == b"THE other"
        assert await do.read(on, "c/d/f") == b"the one"

    given.run(scenario)


@pytest.mark.parametrize("at", range(1, 3))
def test_a_share_that_is_deleted_meanwhile_is_what_is_missing(at: int) -> None:
    async def scenario() -> None:
        on = await two_files()

        async def delete() -> None:
            await do.run(on, share.DELETE_SHARE, "")

        EngineCalls(on.store, at, delete)
        with pytest.raises(StorageError) as refused:
            await do.look(on, "a/d/f")
        assert refused.value.row is errors.SHARE_NOT_FOUND

    given.run(scenario)


@pytest.mark.parametrize("path", ["a/d/none", "none/d/f", "a/d/f/g"])
def test_a_name_that_is_missing_says_nothing_without_its_share(path: str) -> None:
    async def scenario() -> None:
        on = await two_files()

        async def delete() -> None:
            await do.run(on, share.DELETE_SHARE, "")

        EngineCalls(on.store, 2, delete)  # after the names were read
        with pytest.raises(StorageError) as refused:
            await do.look(on, path)
        assert refused.value.row is errors.SHARE_NOT_FOUND

    given.run(scenario)


def test_a_file_in_the_middle_of_a_path_is_no_parent() -> None:
    async def scenario() -> None:
        on = await two_files()
        for path in ("a/d/f/g", "a/d/f/g/h", "none/x"):
            with pytest.raises(StorageError) as refused:
                await do.look(on, path)
            assert refused.value.row is file_errors.PARENT_NOT_FOUND
        with pytest.raises(StorageError) as missing:
            await do.read(on, "a/d/g", ByteRange(0, 1))
        assert missing.value.row is errors.RESOURCE_NOT_FOUND

    given.run(scenario)
