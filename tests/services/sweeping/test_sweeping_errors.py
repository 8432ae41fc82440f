"""What the running sweeper does when a step of its work fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.engines.base import Full, Partition
from strongroom.services.blob.accesses import Accesses
from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.values import Purpose
from tests.services import blob_calls as do
from tests.services.container_calls import run
from tests.services.service_engine import settle
from tests.services.sweeps import drop_container, fresh

BIG = 30_000


async def _runs_until_nothing_is_left(on: Services, sweeper: Sweeper) -> None:
    task = asyncio.create_task(sweeper.run())
    for _ in range(400):
        on.work.set()
        await asyncio.sleep(0.005)
        if task.done() or do.left(on) == ([], []):
            break
    assert not task.done()
    assert do.left(on) == ([], [])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_jobs_free_space_while_there_is_none_for_last_access_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        update, accesses = on.store.update, on.disposable.of(Accesses)

        def full(partition: Partition, reads: Any, decide: Any, purpose: Purpose) -> Any:
            if purpose is Purpose.UPKEEP:
                accesses.note(1, "b", None)  # requests go on reading
                raise Full(purpose)
            return update(partition, reads, decide, purpose)

        monkeypatch.setattr(on.store, "update", full)
        await do.put(on, "b", b"x" * BIG)
        await drop_container(on)
        accesses.note(1, "b", None)
        on.store.advance(1)
        await _runs_until_nothing_is_left(on, sweeper)

    run(test)


def test_the_running_sweeper_outlasts_an_error_that_nobody_expects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody would notice its end, and no job would be done any more."""

    async def never(*_: object) -> bool:
        raise RuntimeError("the copy is odd")

    async def test() -> None:
        on, sweeper = await fresh()
        sources = on.held.of(CopySources)
        sources._pending["1"] = never
        await do.put(on, "b", b"x" * BIG)
        await drop_container(on)
        on.store.advance(1)
        task = asyncio.create_task(sweeper.run())
        await settle()
        sources._pending.clear()
        on.work.set()
        await settle()
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await _runs_until_nothing_is_left(on, sweeper)

    run(test)
    assert "the copy is odd" in caplog.text
