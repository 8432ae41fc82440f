"""The contract's cases about waiting for a record.

Lives here: cases only. Every wait has a time limit, and no time is measured.
"""

# ruff: noqa: D103 - a case's name says what must hold

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.testing.contract.subject import (
    Refused,
    Subject,
    face,
    put,
    refuse,
    value,
)

_LONG_S: Final = 60.0
_TURNS: Final = 50


async def waiting_for_what_has_changed_already_ends_at_once(subject: Subject) -> None:
    store = subject.store
    stamp = await put(store, (face(), b""))
    async with asyncio.timeout(_LONG_S / 2):
        await store.wait(face(), None, _LONG_S)
        await store.wait(face(), stamp - 1, _LONG_S)
        await store.wait(face(b"absent"), stamp, _LONG_S)


async def a_commit_wakes_the_waiters_of_its_records(subject: Subject) -> None:
    store = subject.store
    stamp = await put(store, (face(), b"1"))

    async def watch() -> bytes | None:
        await store.wait(face(), stamp, _LONG_S)
        return await value(store, face())

    async with asyncio.timeout(_LONG_S / 2):
        watching = [asyncio.create_task(watch()) for _ in range(8)]
        await asyncio.sleep(0)
        stamp_2 = await put(store, (face(), b"2"))
        assert await asyncio.gather(*watching) == [b"2"] * 8
        gone = asyncio.create_task(store.wait(face(), stamp_2, _LONG_S))
        await asyncio.sleep(0)
        await put(store, (face(), None))
        await gone
        here = asyncio.create_task(store.wait(face(), None, _LONG_S))
        await asyncio.sleep(0)
        await put(store, (face(), b"3"))
        await here


async def nothing_else_wakes_a_waiter(subject: Subject) -> None:
    store = subject.store
    stamp = await put(store, (face(), b""))
    waiting = asyncio.create_task(store.wait(face(), stamp, _LONG_S))
    try:
        await asyncio.sleep(0)
        await put(store, (face(b"another key"), b""))
        await put(store, (face(b"", b"another partition"), b""))
        try:
            await refuse(store, face())
        except Refused:
            pass
        for _ in range(_TURNS):
            await asyncio.sleep(0)
            await value(store, face(b"another key"))
        assert not waiting.done(), "woken though nothing changed"
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def a_wait_ends_when_its_time_is_up(subject: Subject) -> None:
    stamp = await put(subject.store, (face(), b""))
    async with asyncio.timeout(_LONG_S / 2):
        await subject.store.wait(face(), stamp, 0.01)
        await subject.store.wait(face(), stamp, 0)


async def moving_the_clock_wakes_everyone(subject: Subject) -> None:
    store = subject.store
    stamp = await put(store, (face(), b""))
    waiting = [
        asyncio.create_task(store.wait(face(), stamp, _LONG_S)),
        asyncio.create_task(store.wait(face(b"absent"), None, _LONG_S)),
    ]
    await asyncio.sleep(0)
    subject.clock.advance(1)  # so that no stamp is ahead of the clock
    before = await store.now()
    async with asyncio.timeout(_LONG_S / 2):
        wakes = store.wakes
        store.advance(30)
        assert store.wakes != wakes, "whoever is about to wait cannot tell that the clock moved"
        await asyncio.gather(*waiting)
    assert await store.now() >= before + 30 * 10_000_000


async def a_moved_clock_outlasts_a_restart(subject: Subject) -> None:
    before = await subject.store.now()
    subject.store.advance(3600)
    await subject.restart()
    assert await subject.store.now() >= before + 3600 * 10_000_000
    subject.store.advance(3600)
    moved = await subject.store.now()
    await subject.restart()
    assert await subject.store.now() >= moved >= before + 7200 * 10_000_000


async def waiters_are_counted_and_can_all_be_ended(subject: Subject) -> None:
    store = subject.store
    assert store.watching() == 0
    waiting = [
        asyncio.create_task(store.wait(ref, None, _LONG_S)) for ref in (face(), face(), face(b"2"))
    ]
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    assert store.watching() == 3
    async with asyncio.timeout(_LONG_S / 2):
        wakes = store.wakes
        store.stop_waiting()
        assert store.wakes != wakes
        await asyncio.gather(*waiting)
        assert store.watching() == 0
        await store.wait(face(), None, _LONG_S)
        store.stop_waiting()
        store.advance(1)
        await store.wait(face(), None, _LONG_S)
    await put(store, (face(), b"still serves"))


async def closing_wakes_everyone(subject: Subject) -> None:
    store = subject.store
    stamp = await put(store, (face(), b""))
    waiting = asyncio.create_task(store.wait(face(), stamp, _LONG_S))
    await asyncio.sleep(0)
    async with asyncio.timeout(_LONG_S / 2):
        wakes = store.wakes
        await store.close()
        assert store.wakes != wakes, "whoever is about to wait cannot tell that the engine stops"
        await waiting


async def no_change_is_missed_between_reading_and_waiting(subject: Subject) -> None:
    store = subject.store
    count = 50
    seen: list[int] = []

    async def follow() -> None:
        version: int | None = None
        while len(seen) == 0 or seen[-1] < count:
            await store.wait(face(), version, _LONG_S)
            (record,) = await store.read([face()])
            assert record is not None
            version = record.version
            seen.append(int(record.value))

    async with asyncio.timeout(_LONG_S / 2):
        following = asyncio.create_task(follow())
        for number in range(1, count + 1):
            await put(store, (face(), b"%d" % number))
        await following
    assert seen == sorted(seen)


CASES: Final = (
    waiting_for_what_has_changed_already_ends_at_once,
    a_commit_wakes_the_waiters_of_its_records,
    nothing_else_wakes_a_waiter,
    a_wait_ends_when_its_time_is_up,
    moving_the_clock_wakes_everyone,
    a_moved_clock_outlasts_a_restart,
    waiters_are_counted_and_can_all_be_ended,
    closing_wakes_everyone,
    no_change_is_missed_between_reading_and_waiting,
)
