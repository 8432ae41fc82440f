"""Incremental copies that are interrupted, and what the next one makes of their pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.operations.blob import blob, copy
from strongroom.services.blob.copies import copying, incremental_jobs
from strongroom.services.blob.states.retention import find_snapshots
from strongroom.services.core.copies.pending import NotPending
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.store.core import keys
from tests.services import blob_calls as do
from tests.services import page_calls as pages
from tests.services.container_calls import ACCOUNT, run
from tests.services.sweeps import fresh, swept

PAGE = 512


async def copied(on: Services, sweeper: Sweeper) -> int:
    """Copy a new snapshot of `source` to `backup`. Return the time of the snapshot."""
    ticks = await do.snapshot(on, "source")
    await pages.copy_incrementally(on, "source", ticks, "backup")
    await swept(on, sweeper)
    return ticks


async def newest(on: Services, name: str) -> int:
    """Return the time of a blob's newest snapshot."""
    place = await on.place(Service.BLOB, ACCOUNT, "photos")
    assert place is not None
    partition = keys.blob(place.generation, name)
    found = await find_snapshots(on.store, partition, 100, lambda one: True)
    return found[-1][0].ticks


async def abort(on: Services, name: str) -> None:
    found = await do.run(on, blob.GET_BLOB_PROPERTIES, name, None)
    given = copying.AbortCopy(found.blob.copy.id)
    await do.run(on, copy.ABORT_COPY, name, given)


def test_no_page_of_an_aborted_copy_of_a_longer_snapshot_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B-CPY-07: the source shrinks, and later has the same length with other bytes."""

    async def test() -> None:
        on, sweeper = await fresh()
        await pages.create(on, "source", 2 * PAGE)
        await pages.write(on, "source", 0, b"1" * PAGE)
        await copied(on, sweeper)
        await pages.resize(on, "source", 4 * PAGE)
        await pages.write(on, "source", 2 * PAGE, b"2" * 2 * PAGE)
        with monkeypatch.context() as patch:
            patch.setattr(incremental_jobs._IncrementalCopyRun, "resize", _aborting(on))
            await copied(on, sweeper)
        await pages.resize(on, "source", 2 * PAGE)
        await copied(on, sweeper)
        await pages.resize(on, "source", 4 * PAGE)
        ticks = await copied(on, sweeper)
        data = b"1" * PAGE + bytes(3 * PAGE)
        assert await do.read(on, "source", ticks) == data
        assert await do.read(on, "backup", await newest(on, "backup")) == data

    run(test)


def _aborting(on: Services) -> Callable[[Any], Awaitable[None]]:
    """Return a last step of a copy before which the copy is aborted."""

    async def resize(job: Any) -> None:
        await abort(on, "backup")
        raise NotPending

    return resize
