"""Writes to files wake the sweeper when they leave something to sweep, and no other writes do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from strongroom.engines.base import Position
from strongroom.limits import MIB
from strongroom.operations.file import file
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import information, transfers
from strongroom.services.file.rest.files import SetFileProperties
from strongroom.store.core import keys
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services import handle_calls as smb

LENGTH = 64 * MIB


async def jobs(on: Services) -> int:
    return len((await on.store.scan(keys.JOBS, Position(b"", b""), None, 10)).faces())


async def put(on: Services) -> None:
    await do.put(on, "f", 0, b"new" * 100_000)


async def clear(on: Services) -> None:
    await do.clear(on, "f", 0, LENGTH)


async def cut(on: Services) -> None:
    await do.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(size_bytes=0))


async def replace(on: Services) -> None:
    await do.create(on, "f", 5)


async def delete(on: Services) -> None:
    await do.delete(on, "f")


async def put_by_handle(on: Services) -> None:
    mount = await smb.mounted(on)
    await mount.write(await mount.handle("f"), 0, b"new" * 100_000)


async def clear_by_handle(on: Services) -> None:
    mount = await smb.mounted(on)
    await transfers.zero_data(on, await mount.handle("f"), 0, LENGTH, smb.WaitingRequest())


async def cut_by_handle(on: Services) -> None:
    mount = await smb.mounted(on)
    await information.set_end_of_file(on, await mount.handle("f"), 0, smb.WaitingRequest())


async def delete_by_handle(on: Services) -> None:
    mount = await smb.mounted(on)
    handle = await mount.handle("f")
    await mount.dispose(handle)
    await mount.close(handle)


Change = Callable[[Services], Awaitable[None]]
WRITES: tuple[Change, ...] = (put, put_by_handle)
CHANGES: tuple[Change, ...] = (
    clear,
    cut,
    replace,
    delete,
    clear_by_handle,
    cut_by_handle,
    delete_by_handle,
)


async def one_file() -> Services:
    on = await do.services()
    await do.create(on, "f", LENGTH)
    await do.put(on, "f", 0, b"old" * 100_000)
    assert await jobs(on) == 0
    on.work.clear()
    return on


@pytest.mark.parametrize("change", WRITES)
def test_a_write_that_leaves_nothing_wakes_nobody(change: Change) -> None:
    async def scenario() -> None:
        on = await one_file()
        await change(on)
        assert await jobs(on) == 0
        assert not on.work.is_set()

    given.run(scenario)


@pytest.mark.parametrize("change", WRITES)
def test_a_write_over_bytes_that_a_reader_needs_wakes_the_sweeper(change: Change) -> None:
    async def scenario() -> None:
        on = await one_file()
        reading = await do.begin(on, "f")
        await change(on)
        assert await jobs(on) == 1
        assert on.work.is_set()
        assert (await do.drain(reading)).startswith(b"old")

    given.run(scenario)


@pytest.mark.parametrize("change", CHANGES)
def test_what_removes_many_bytes_wakes_the_sweeper(change: Change) -> None:
    async def scenario() -> None:
        on = await one_file()
        await change(on)
        assert await jobs(on) == 1
        assert on.work.is_set()

    given.run(scenario)
