"""The `timeout` of a request, and the error that it gets, by what it waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.services.core import timeouts

LATE = file_errors.CLIENT_CACHE_FLUSH_DELAY


def outcome(result: Awaitable[int]) -> ErrorCode:
    async def scenario() -> ErrorCode:
        with pytest.raises(StorageError) as refused:
            await timeouts.with_timeout(result, 0.001)
        return refused.value.row

    return asyncio.run(scenario())


async def for_ever() -> int:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def waiting_for_a_client() -> int:
    with timeouts.waiting(LATE):
        return await for_ever()


async def having_waited() -> int:
    with timeouts.waiting(LATE):
        pass
    with pytest.raises(KeyError), timeouts.waiting(LATE):
        raise KeyError
    return await for_ever()


def test_a_late_request_is_answered_by_what_it_waits_for() -> None:
    assert outcome(for_ever()) is errors.OPERATION_TIMED_OUT
    assert outcome(waiting_for_a_client()) is LATE
    assert outcome(having_waited()) is errors.OPERATION_TIMED_OUT


def test_a_request_in_time_is_answered_as_ever() -> None:
    async def quick() -> int:
        with timeouts.waiting(LATE):
            return 7

    async def scenario() -> None:
        assert await timeouts.with_timeout(quick(), 60) == 7
        assert await quick() == 7  # without a limit

    asyncio.run(scenario())


def test_a_cancelled_request_is_cancelled_wherever_it_waits() -> None:
    async def scenario() -> None:
        task = asyncio.ensure_future(timeouts.with_timeout(waiting_for_a_client(), 600))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
