"""The contract's cases about several gateways: holds, readers, earlier commits, dead gateways.

Lives here: cases only, for engines with several gateways. The clock is moved, and no time is
measured.
"""

# ruff: noqa: D103 - a case's name says what must hold

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from strongroom.engines.base import Step, StorageEngine, Unavailable
from strongroom.engines.gateways import ExclusiveRight, Gateways, Horizon
from strongroom.testing.contract.subject import (
    SharedSubject,
    body_of,
    commit,
    content,
    face,
    is_lost,
    pieces,
    place,
    put,
    stands,
    value,
)

_SOON_S: Final = 30.0
_LATE_S: Final = 6.0
_DEAD_S: Final = 11.0
_TURNS: Final = 50
_CALLS: Final = 5


async def _is_unavailable(doing: Awaitable[object]) -> None:
    try:
        await doing
    except Unavailable:
        return
    raise AssertionError("a gateway went on though it may be dead for the others")


async def _horizon(store: StorageEngine) -> Horizon:
    """Return the horizon, after the few heartbeats by which it may lag.

    A gateway that waits for earlier commits needs a heartbeat of each other one.
    """
    for _ in range(4):
        await store.gateways.wait_for_earlier_commits(await store.now())
        horizon = await store.gateways.horizon()
    return horizon


async def _taken_over(gateways: Gateways, name: bytes) -> ExclusiveRight:
    """Take a right that another gateway has given back, at the latest with its next heartbeat."""
    async with asyncio.timeout(_SOON_S):
        while True:
            hold = await gateways.hold(name)
            if hold is not None:
                return hold
            await asyncio.sleep(0.01)


async def _let_others_run(store: StorageEngine) -> None:
    """Give what was begun the time of several calls, here and at a server that has the data."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    for _ in range(_CALLS):
        await store.read([face(b"", b"nothing")])


async def gateways_have_numbers_of_their_own(subject: SharedSubject) -> None:
    stores = (subject.store, await subject.second(), await subject.second())
    assert len({store.gateways.number for store in stores}) == 3
    assert len({store.gateways.incarnation for store in stores}) == 3
    for store in stores:
        await store.gateways.horizon()  # so it sees all of them
    for number in range(60):
        owners = [store for store in stores if store.gateways.owns(b"%d" % number)]
        assert len(owners) == 1
    for store in stores:
        assert any(store.gateways.owns(b"%d" % number) for number in range(60))


async def a_hold_excludes_the_other_gateway(subject: SharedSubject) -> None:
    one, two = subject.store.gateways, (await subject.second()).gateways
    hold = await one.hold(b"lane")
    assert hold is not None
    assert await two.hold(b"lane") is None
    assert await one.hold(b"lane") is None
    assert await two.hold(b"another lane") is not None
    hold.release()
    again = await _taken_over(two, b"lane")
    assert not is_lost(again) and is_lost(hold)
    hold.release()
    assert await one.hold(b"lane") is None


async def gateways_find_each_other(subject: SharedSubject) -> None:
    one, two = subject.store.gateways, (await subject.second()).gateways
    assert len(one.secret) == 32 and one.secret == two.secret
    await one.announce(b"one is here")
    await two.announce(b"two is here")
    assert await two.hold(b"lane") is not None
    for gateways in (one, two):
        await gateways.horizon()  # so it sees all of them
        assert not gateways.has_ended(one.run) and not gateways.has_ended(two.run)
        assert gateways.announced(one.run) == b"one is here"
        assert gateways.announced(two.run) == b"two is here"
        assert gateways.holder(b"lane") == two.run
    subject.stop_heartbeats(subject.store)
    subject.clock.advance(_DEAD_S)
    # The first look removes the dead one, and the next sees the table without it.
    assert await two.hold(b"another lane") is not None
    await two.horizon()
    assert two.has_ended(one.run) and two.announced(one.run) is None
    third = (await subject.second()).gateways
    assert not two.has_ended(third.run), "it has not seen that one yet"


async def a_late_gateway_stops_and_its_hold_is_lost(subject: SharedSubject) -> None:
    late, other = subject.store, await subject.second()
    await put(late, (face(), b""))
    hold = await late.gateways.hold(b"lane")
    assert hold is not None and not is_lost(hold)
    subject.stop_heartbeats(late)
    subject.clock.advance(_LATE_S)
    assert is_lost(hold) and not stands(hold)
    await _is_unavailable(late.read([face()]))
    await _is_unavailable(put(late, (face(), b"")))
    await _is_unavailable(late.gateways.hold(b"another"))
    await _is_unavailable(late.gateways.horizon())
    assert await other.gateways.hold(b"lane") is None, "it is not dead yet"
    subject.resume_heartbeats(late)
    await put(late, (face(), b"goes on"))
    assert is_lost(hold), "a hold that was lost once is not to be believed again"
    assert stands(hold), "nobody else has had it"


async def a_dead_gateway_blocks_nothing_and_commits_nothing(subject: SharedSubject) -> None:
    dead, other = subject.store, await subject.second()
    stamp = await put(other, (face(), b"before"))
    hold = await dead.gateways.hold(b"lane")
    mark = dead.gateways.begin_reading()
    mark.narrow((7,))
    dead.gateways.begin_reading()
    held = subject.hold_commits(dead)
    late = asyncio.create_task(put(dead, (face(), b"late")))
    await held.reached()
    subject.stop_heartbeats(dead)
    subject.clock.advance(_DEAD_S)
    async with asyncio.timeout(_SOON_S):
        later = await put(other, (face(partition=b"another"), b""))
        await other.gateways.wait_for_earlier_commits(later)
        taken = await other.gateways.hold(b"lane")
        assert hold is not None and is_lost(hold) and not stands(hold)
        assert taken is not None and not is_lost(taken)
        horizon = await _horizon(other)
        assert horizon.frees(7, stamp) and horizon.frees(8, later)
        assert all(other.gateways.owns(b"%d" % number) for number in range(20))
    held.release()
    await _is_unavailable(late)
    subject.resume_heartbeats(dead)
    await _is_unavailable(put(dead, (face(), b"late")))
    await _is_unavailable(dead.read([face()]))
    assert not stands(hold) and stands(taken)
    hold.release()
    assert not is_lost(taken)
    assert await value(other, face()) == b"before"


async def a_gateway_that_takes_over_a_hold_issues_later_stamps(subject: SharedSubject) -> None:
    later, ahead = subject.store, await subject.second(skew_s=60.0)
    hold = await ahead.gateways.hold(b"lane")
    assert hold is not None
    subject.stop_heartbeats(ahead)
    for number in range(3):
        newest = await put(ahead, (face(b"%d" % number), b"under the hold"))
    subject.clock.advance(_DEAD_S)
    assert await later.gateways.hold(b"lane") is not None
    assert await put(later, (face(partition=b"another"), b"")) > newest


async def quiet_waits_for_what_the_other_has_decided(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    await _quiet_soon(two, await put(one, (face(b"first"), b"")))
    held = subject.hold_commits(one)
    older = asyncio.create_task(put(one, (face(), b"older")))
    await held.reached()
    stamp = await put(two, (face(b"other"), b""))
    quiet = asyncio.create_task(two.gateways.wait_for_earlier_commits(stamp + 1))
    own = asyncio.create_task(one.gateways.wait_for_earlier_commits(stamp + 1))
    await _let_others_run(two)
    assert not quiet.done() and not own.done(), "an older commit may still happen"
    held.release()
    async with asyncio.timeout(_SOON_S):
        await asyncio.gather(quiet, own)
        assert await older <= stamp or await value(two, face()) == b"older"


async def _quiet_soon(store: StorageEngine, stamp: int) -> None:
    async with asyncio.timeout(_SOON_S):
        await store.gateways.wait_for_earlier_commits(stamp)


async def quiet_passes_over_clocks_that_are_behind(subject: SharedSubject) -> None:
    one, ahead = subject.store, await subject.second(5.0)
    stamp = await put(ahead, (face(), b""))
    for store in (one, ahead):
        await _quiet_soon(store, stamp + 1)
    assert await put(one, (face(b"other"), b"")) > stamp, "an older commit came after all"


async def a_reader_holds_back_the_horizon_of_the_other(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    mark = one.gateways.begin_reading()
    retired = await put(two, (face(), b"without the content"))
    await _quiet_soon(two, retired + 1)
    horizon = await _horizon(two)
    assert not horizon.frees(7, retired), "it is dropped under a reader"
    assert (await _horizon(one)).frees(7, retired), "its own readers it knows itself"
    mark.narrow((8, 9))
    horizon = await _horizon(two)
    assert horizon.frees(7, retired)
    assert not horizon.frees(8, retired) and not horizon.frees(9, retired)
    mark.narrow((9,))
    horizon = await _horizon(two)
    assert horizon.frees(8, retired) and not horizon.frees(9, retired)
    mark.end()
    horizon = await _horizon(two)
    assert horizon.frees(7, retired) and horizon.frees(9, retired)


async def a_reader_that_began_later_holds_back_nothing_older(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    retired = await put(two, (face(), b""))
    await _quiet_soon(one, retired + 1)
    mark = one.gateways.begin_reading()
    later = await put(two, (face(), b""))
    horizon = await _horizon(two)
    assert horizon.frees(7, retired) and not horizon.frees(7, later)
    mark.end()


async def a_reader_sees_what_it_does_not_hold_back(subject: SharedSubject) -> None:
    """A commit in progress when a reader begins has an older stamp, but happens later."""
    one, two = subject.store, await subject.second(5.0)
    held = subject.hold_commits(one)
    retiring = asyncio.create_task(put(one, (face(), b"without the content")))
    await held.reached()
    await put(two, (face(b"", b"elsewhere"), b""))
    await _let_others_run(two)
    mark = two.gateways.begin_reading()
    assert await value(two, face()) is None, "it reads what is about to be retired"
    held.release()
    retired = await retiring
    assert not (await _horizon(one)).frees(7, retired), "it is dropped under a reader"
    mark.end()
    assert (await _horizon(one)).frees(7, retired)


async def a_pin_outlives_a_drop_by_the_other(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    body = bytes(range(256)) * 2000
    written = await one.contents.write(pieces(body), len(body))
    await commit(one, Step(place(), adopt=(written.id,)))
    pin = await one.contents.open(written.id)
    await commit(two, Step(place(), drop=(written.id,)))
    assert await content(one, written.id) is None
    assert await body_of(pin) == body
    pin.close()


async def a_gateway_that_ends_in_order_leaves_nothing_behind(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    assert await two.gateways.hold(b"lane") is not None
    two.gateways.begin_reading()
    await two.close()
    stamp = await put(one, (face(), b""))
    await _quiet_soon(one, stamp)
    assert await one.gateways.hold(b"lane") is not None
    assert (await _horizon(one)).frees(7, stamp)
    assert one.gateways.owns(b"name")
    third = await subject.second()
    assert third.gateways.incarnation != two.gateways.incarnation
    assert await put(third, (face(), b"")) > stamp


CASES: Final = (
    gateways_have_numbers_of_their_own,
    a_hold_excludes_the_other_gateway,
    gateways_find_each_other,
    a_late_gateway_stops_and_its_hold_is_lost,
    a_dead_gateway_blocks_nothing_and_commits_nothing,
    a_gateway_that_takes_over_a_hold_issues_later_stamps,
    quiet_waits_for_what_the_other_has_decided,
    quiet_passes_over_clocks_that_are_behind,
    a_reader_holds_back_the_horizon_of_the_other,
    a_reader_that_began_later_holds_back_nothing_older,
    a_reader_sees_what_it_does_not_hold_back,
    a_pin_outlives_a_drop_by_the_other,
    a_gateway_that_ends_in_order_leaves_nothing_behind,
)
