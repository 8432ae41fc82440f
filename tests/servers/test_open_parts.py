"""The end of a server's parts, and of what runs in the background."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.servers.open_parts import OpenParts


def test_a_part_that_fails_at_its_end_keeps_no_other_one_open() -> None:
    closed: list[str] = []

    def part(name: str, error: Exception | None = None) -> None:
        async def close() -> None:
            closed.append(name)
            if error is not None:
                raise error

        parts.add(close)

    parts = OpenParts()
    part("store")
    part("log", OSError("the disk is full"))
    part("sources", RuntimeError("it is read"))
    with pytest.raises(RuntimeError, match="it is read"):
        asyncio.run(parts.close())
    assert closed == ["sources", "log", "store"]
    asyncio.run(parts.close())
    assert len(closed) == 3


def test_what_runs_in_the_background_is_cancelled_in_its_turn() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("work")

    async def close() -> None:
        seen.append("store")

    async def scenario() -> None:
        parts = OpenParts()
        parts.add(close)
        parts.run(work())
        await asyncio.sleep(0)
        await parts.close()

    asyncio.run(scenario())
    assert seen == ["work", "store"]


def test_an_error_that_ends_a_work_in_the_background_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        raise RuntimeError("it is odd")

    async def scenario() -> None:
        parts = OpenParts()
        parts.run(work())
        await asyncio.sleep(0.01)
        assert "it is odd" in caplog.text, "before the end of the server"
        await parts.close()

    asyncio.run(scenario())
