"""A sweep of a file reads several records one after the other. A snapshot that is taken in between,
and what follows it, loses nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from strongroom.services.core.runner import Services
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.file.test_share_snapshots import drop, sweep, take
from tests.services.share_model import held

_CALLS: Final = ("read", "read_range", "scan", "update")
_SIZE: Final = 300_000


async def delete(on: Services) -> None:
    await do.delete(on, "f")


async def overwrite(on: Services) -> None:
    await do.put(on, "f", 50_000, b"later" * 20_000)


async def clear(on: Services) -> None:
    await do.clear(on, "f", 0, _SIZE)


async def replace(on: Services) -> None:
    await do.create(on, "f", 7)


def before_call(on: Services, number: int, act: Callable[[], Awaitable[None]]) -> list[int]:
    """Run `act` once before the engine's call with this number. Return the list of its calls."""
    calls: list[int] = []
    acts = False

    def intercepted(real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **more: Any) -> Any:
            nonlocal acts
            if not acts:
                calls.append(len(calls))
                if len(calls) - 1 == number:
                    acts = True
                    await act()
                    acts = False
            return await real(*arguments, **more)

        return call

    for name in _CALLS:
        setattr(on.store, name, intercepted(getattr(on.store, name)))
    return calls


@pytest.mark.parametrize("change", [delete, overwrite, clear, replace])
def test_a_snapshot_that_is_taken_during_a_sweep_keeps_what_it_saw(
    change: Callable[[Services], Awaitable[None]],
) -> None:
    async def scenario(number: int) -> bool:
        on = await do.services()
        await do.write(on, "f", b"first " * (_SIZE // 6))
        first = (await take(on)).snapshot
        await do.put(on, "f", 1000, b"second" * 1000)
        await do.clear(on, "f", 100_000, 50_000)
        await drop(on, first)
        seen: list[tuple[int, Any]] = []

        async def act() -> None:
            taken = (await take(on)).snapshot
            seen.append((taken, await held(on, taken)))
            await change(on)

        calls = before_call(on, number, act)
        await sweep(on)
        is_within = len(calls) > number
        await sweep(on)
        for taken, before in seen:
            assert await held(on, taken) == before, f"{change.__name__} before call {number}"
        return is_within

    async def all_calls() -> int:
        number = 0
        while await scenario(number):
            number += 1
        return number

    assert given.run(all_calls) > 5
