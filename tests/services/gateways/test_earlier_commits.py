"""Waits for earlier commits that jobs share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from strongroom.engines.base import Unavailable
from strongroom.services.core.runner import Services
from strongroom.services.earlier_commits import EarlierCommits
from tests.services.container_calls import run
from tests.services.service_engine import settle

Trial = Callable[["Asked", EarlierCommits], Awaitable[None]]


class Asked:
    """Gateways whose waits end when the test says so."""

    def __init__(self) -> None:
        self.stamps: list[int] = []
        self.ends: list[asyncio.Future[None]] = []

    async def wait_for_earlier_commits(self, stamp: int) -> None:
        self.stamps.append(stamp)
        self.ends.append(asyncio.get_running_loop().create_future())
        await self.ends[-1]


def _try(trial: Trial) -> None:
    async def test() -> None:
        asked = Asked()
        store = SimpleNamespace(gateways=asked)
        earlier = EarlierCommits(cast(Services, SimpleNamespace(store=store)))
        await trial(asked, earlier)

    run(test)


def test_jobs_that_begin_together_share_one_wait_for_the_highest_stamp() -> None:
    async def trial(asked: Asked, earlier: EarlierCommits) -> None:
        waiting = asyncio.gather(*(earlier.have_ended(stamp) for stamp in (5, 7, 6)))
        await settle()
        assert asked.stamps == [7]
        assert not waiting.done()
        asked.ends[0].set_result(None)
        await waiting
        await earlier.have_ended(7)
        assert asked.stamps == [7], "what holds once, holds for ever"

    _try(trial)


def test_a_later_stamp_has_a_wait_of_its_own() -> None:
    async def trial(asked: Asked, earlier: EarlierCommits) -> None:
        first = asyncio.create_task(earlier.have_ended(5))
        await settle()
        later = [asyncio.create_task(earlier.have_ended(stamp)) for stamp in (9, 8)]
        await settle()
        asked.ends[0].set_result(None)
        await first
        await settle()
        assert asked.stamps == [5, 9] and not any(one.done() for one in later)
        asked.ends[1].set_result(None)
        await asyncio.gather(*later)

    _try(trial)


def test_an_error_is_told_to_all_and_the_next_one_asks_anew() -> None:
    async def trial(asked: Asked, earlier: EarlierCommits) -> None:
        waiting = [asyncio.create_task(earlier.have_ended(5)) for _ in range(2)]
        await settle()
        asked.ends[0].set_exception(Unavailable("no heartbeat"))
        told = await asyncio.gather(*waiting, return_exceptions=True)
        assert [str(one) for one in told] == ["no heartbeat"] * 2
        again = asyncio.create_task(earlier.have_ended(5))
        await settle()
        asked.ends[1].set_result(None)
        await again
        assert asked.stamps == [5, 5]

    _try(trial)


def test_a_job_that_is_cancelled_ends_nobody_elses_wait() -> None:
    async def trial(asked: Asked, earlier: EarlierCommits) -> None:
        cancelled, other = (asyncio.create_task(earlier.have_ended(5)) for _ in range(2))
        await settle()
        cancelled.cancel()
        await settle()
        assert cancelled.cancelled() and not other.done()
        asked.ends[0].set_result(None)
        await other

    _try(trial)


def test_a_stop_ends_the_wait() -> None:
    async def trial(asked: Asked, earlier: EarlierCommits) -> None:
        waiting = asyncio.create_task(earlier.have_ended(5))
        await settle()
        await earlier.stop()
        assert asked.ends[0].cancelled()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    _try(trial)


def test_a_stop_of_a_wait_that_has_not_begun_ends_no_later_one() -> None:
    async def trial(asked: Asked, earlier: EarlierCommits) -> None:
        stopped = asyncio.create_task(earlier.have_ended(5))
        await asyncio.sleep(0)
        await earlier.stop()
        assert not asked.stamps, "it was stopped before it began"
        await asyncio.wait([stopped])
        later = asyncio.create_task(earlier.have_ended(5))
        await settle()
        asked.ends[0].set_result(None)
        await later

    _try(trial)
