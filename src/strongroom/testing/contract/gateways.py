"""The contract's cases about gateways that need only one gateway.

Lives here: cases only. Cases with several gateways are in shared.py and membership.py.
"""

# ruff: noqa: D103 - a case's name says what must hold

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.engines.gateways import ANNOUNCEMENT_BYTES_MAX, GATEWAYS_MAX
from strongroom.testing.contract.subject import Subject, face, is_lost, put, stands

_SOON_S: Final = 30.0
_WRITERS: Final = 24


async def a_gateway_alone_owns_everything(subject: Subject) -> None:
    gateways = subject.store.gateways
    assert 0 <= gateways.number < GATEWAYS_MAX
    assert all(gateways.owns(b"%d" % one) for one in range(20))
    incarnation = gateways.incarnation
    await put(subject.store, (face(), b""))
    await subject.restart()
    assert subject.store.gateways.incarnation != incarnation
    assert subject.store.gateways.owns(b"name")


async def a_hold_is_given_once_until_it_is_given_back(subject: Subject) -> None:
    gateways = subject.store.gateways
    hold, other = await gateways.hold(b"name"), await gateways.hold(b"other")
    assert hold is not None and other is not None
    assert await gateways.hold(b"name") is None
    assert not is_lost(hold) and stands(hold)
    hold.release()
    assert is_lost(hold) and not stands(hold)
    again = await gateways.hold(b"name")
    assert again is not None and not is_lost(again)
    hold.release()
    assert await gateways.hold(b"name") is None, "it was given back by one who no longer had it"
    await subject.restart()
    assert is_lost(again) and is_lost(other) and not stands(other)
    assert await subject.store.gateways.hold(b"name") is not None


async def a_hold_that_is_given_back_meanwhile_is_free_or_held(subject: Subject) -> None:
    gateways = subject.store.gateways
    for turns in range(8):
        hold = await gateways.hold(b"name")
        assert hold is not None and stands(hold)
        again = asyncio.create_task(gateways.hold(b"name"))
        for _ in range(turns):
            await asyncio.sleep(0)
        hold.release()
        other = await again or await gateways.hold(b"name")
        await asyncio.sleep(0.01)
        await gateways.horizon()
        assert other is not None and stands(other), "nobody has it, and nobody can take it"
        assert await gateways.hold(b"name") is None
        other.release()


async def a_gateway_finds_itself(subject: Subject) -> None:
    gateways = subject.store.gateways
    run = gateways.run
    assert (run.number, run.incarnation) == (gateways.number, gateways.incarnation)
    assert not gateways.has_ended(run)
    assert gateways.holder(b"name") is None
    hold = await gateways.hold(b"name")
    assert hold is not None and gateways.holder(b"name") == run
    assert gateways.announced(run) is None
    for text in (bytes(range(256)) * 4, b"here"):
        await gateways.announce(text)
        assert gateways.announced(run) == text
    try:
        await gateways.announce(bytes(ANNOUNCEMENT_BYTES_MAX + 1))
        raise AssertionError("an announcement that is too long was accepted")
    except ValueError:
        assert gateways.announced(run) == b"here"
    assert len(gateways.secret) in (0, 32)
    await subject.restart()
    again = subject.store.gateways
    assert again.has_ended(run) and not again.has_ended(again.run)
    assert again.announced(run) is None
    assert again.announced(again.run) is None, "a new run has announced nothing yet"


async def no_reader_of_its_own_holds_back_its_horizon(subject: Subject) -> None:
    store = subject.store
    mark = store.gateways.begin_reading()
    stamp = await put(store, (face(), b""))
    assert (await store.gateways.horizon()).frees(7, stamp)
    mark.narrow((7, 8))
    assert (await store.gateways.horizon()).frees(7, stamp)
    mark.end()
    mark.end()


async def after_quiet_no_older_commit_happens(subject: Subject) -> None:
    store = subject.store
    writing = [True]
    refs = [face(b"%d" % number) for number in range(_WRITERS)]

    async def write(number: int) -> None:
        while writing[0]:
            await put(store, (refs[number], b""))

    tasks = [asyncio.create_task(write(number)) for number in range(_WRITERS)]
    async with asyncio.timeout(_SOON_S):
        for turns in range(12):
            for _ in range(turns):
                await asyncio.sleep(0)
            stamp = await store.now()
            await store.gateways.wait_for_earlier_commits(stamp)
            before = [one and one.version for one in await store.read(refs)]
            for _ in range(6):
                await asyncio.sleep(0)
                after = [one and one.version for one in await store.read(refs)]
                for old, new in zip(before, after, strict=True):
                    assert old == new or (new or 0) >= stamp, "an older commit happened later"
                before = after
        writing[0] = False
        await asyncio.gather(*tasks)


async def a_wait_for_commits_of_the_future_is_refused(subject: Subject) -> None:
    store = subject.store
    async with asyncio.timeout(_SOON_S):
        await store.gateways.wait_for_earlier_commits(await store.now())
        await store.gateways.wait_for_earlier_commits(await put(store, (face(), b"")))
        try:
            await store.gateways.wait_for_earlier_commits(await store.now() + 3600 * 10_000_000)
        except ValueError:
            return
    raise AssertionError("it waits for a stamp that nobody was given")


CASES: Final = (
    a_gateway_alone_owns_everything,
    a_hold_is_given_once_until_it_is_given_back,
    a_hold_that_is_given_back_meanwhile_is_free_or_held,
    a_gateway_finds_itself,
    no_reader_of_its_own_holds_back_its_horizon,
    after_quiet_no_older_commit_happens,
    a_wait_for_commits_of_the_future_is_refused,
)
