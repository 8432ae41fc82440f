"""The contract's cases about a full disk, an unknown outcome, and a store that has stopped.

Lives here: cases only.
"""

# ruff: noqa: D103 - a case's name says what must hold

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Final

from strongroom.engines.base import (
    CommitUnknown,
    EngineError,
    Full,
    Position,
    Step,
    Unavailable,
    Write,
)
from strongroom.testing.contract.subject import (
    Refused,
    Subject,
    commit,
    content,
    face,
    hidden,
    pieces,
    place,
    put,
    put_until_full,
    refuse,
    value,
)
from strongroom.values import Health, Purpose

_TRIES: Final = 200
_PAUSE_S: Final = 0.05
_HEALTH_S: Final = 60.0


async def _ends_as(kind: type[EngineError], doing: Awaitable[object]) -> None:
    try:
        await doing
    except kind:
        return
    raise AssertionError(f"it should have ended as {kind.__name__}")


async def a_full_disk_refuses_what_grows_and_nothing_else(subject: Subject) -> None:
    store = subject.store
    await put(store, (face(), b"kept"), (hidden(b"h"), bytes(60_000)))
    written = await store.contents.write(pieces(bytes(100_000)), 100_000)
    await commit(store, Step(place(), adopt=(written.id,)))
    subject.fill()
    await put_until_full(store)
    for number in range(3):
        await _ends_as(Full, put(store, (hidden(b"%d" % number), bytes(60_000))))
        await _ends_as(Full, store.contents.write(pieces(bytes(100_000)), 100_000))
        await _ends_as(Full, store.contents.write_all([bytes(50_000)] * 2))
    assert await value(store, face()) == b"kept"
    assert await value(store, hidden(b"0")) is None
    assert len((await store.scan(b"k", Position(b"", b""), None, 10)).faces()) == 1
    assert await content(store, written.id) == bytes(100_000)
    assert await store.now() > 0
    try:
        await refuse(store, face())
    except Refused:
        pass
    await put(store, (hidden(b"h"), None))
    assert await value(store, hidden(b"h")) is None
    await commit(store, Step(place(), drop=(written.id,)))
    assert await content(store, written.id) is None
    subject.free()
    await _until_it_works(subject)
    await subject.restart()
    assert await value(subject.store, face()) == b"kept"
    assert await value(subject.store, hidden(b"h")) is None
    assert await value(subject.store, hidden(b"after")) == bytes(60_000)


async def a_full_disk_judges_an_update_by_its_purpose(subject: Subject) -> None:
    store = subject.store
    await put(store, *((hidden(b"%d" % number), bytes(60_000)) for number in range(4)))
    subject.fill()
    await put_until_full(store)
    answers = await asyncio.gather(
        put(store, (hidden(b"0"), b"1" * 60_000)),
        put(store, (hidden(b"growth"), bytes(60_000))),
        put(store, (hidden(b"1"), bytes(60_001)), purpose=Purpose.UPKEEP),
        put(store, (hidden(b"2"), bytes(60_001)), (hidden(b"more"), bytes(60_000))),
        put(store, (face(b"job"), b"to be done"), (hidden(b"3"), None), purpose=Purpose.FREEING),
        refuse(store, face()),
        return_exceptions=True,
    )
    assert [type(one) for one in answers] == [int, Full, int, Full, int, Refused]
    assert await value(store, hidden(b"0")) == b"1" * 60_000
    assert await value(store, hidden(b"growth")) is None
    assert await value(store, hidden(b"1")) == bytes(60_001)
    assert await value(store, hidden(b"2")) == bytes(60_000)
    assert await value(store, face(b"job")) == b"to be done"
    assert await value(store, hidden(b"3")) is None
    await subject.restart()
    store = subject.store
    assert await value(store, hidden(b"0")) == b"1" * 60_000
    await put(store, (hidden(b"0"), b"2" * 60_000))
    await put(store, *((hidden(b"%d" % number), None) for number in range(3)))
    assert await value(store, hidden(b"0")) is None


async def _until_it_works(subject: Subject) -> None:
    for _ in range(_TRIES):
        try:
            written = await subject.store.contents.write(pieces(bytes(100_000)), 100_000)
            await put(subject.store, (hidden(b"after"), bytes(60_000)))
            await commit(subject.store, Step(place(), adopt=(written.id,)))
        except Full:
            await asyncio.sleep(_PAUSE_S)
        else:
            assert await content(subject.store, written.id) == bytes(100_000)
            return
    raise AssertionError("space returned, but writes do not work")


async def a_restart_decides_what_became_of_an_unknown_commit(subject: Subject) -> None:
    await put(subject.store, (face(), b"before"))
    for number in range(4):
        after = b"after %d" % number
        before = await value(subject.store, face())
        subject.break_next_commit()
        try:
            await put(subject.store, (face(), after))
            allowed = [after]
        except CommitUnknown:
            allowed = [after, before or b""]
        await subject.restart()
        assert await value(subject.store, face()) in allowed
        assert await value(subject.store, face()) == await value(subject.store, face())
    await put(subject.store, (face(), b"goes on"))
    assert await value(subject.store, face()) == b"goes on"


async def a_body_lives_exactly_if_its_commit_does(subject: Subject) -> None:
    """This holds even if its writer discards the body after an unknown outcome."""
    for number in range(4):
        store, ref = subject.store, face(b"%d" % number)
        written = await store.contents.write(pieces(b"body"), 4)
        step = Step(place(), (Write(ref.key, b"%d" % written.id),), adopt=(written.id,))
        subject.break_next_commit()
        with contextlib.suppress(CommitUnknown):
            await commit(store, step)
        store.contents.discard(written.id)
        await subject.restart()
        is_there = await value(subject.store, ref) is not None
        assert await content(subject.store, written.id) == (b"body" if is_there else None)
        subject.store.contents.discard(written.id)
        assert await content(subject.store, written.id) == (b"body" if is_there else None)


async def a_body_outlives_a_cancelled_update_that_adopted_it(subject: Subject) -> None:
    store = subject.store
    for turns in (*range(12), 40, 120):
        ref = face(b"%d" % turns)
        written = await store.contents.write(pieces(b"body"), 4)
        step = Step(place(), (Write(ref.key, b""),), adopt=(written.id,))
        updating = asyncio.create_task(commit(store, step))
        for _ in range(turns):
            await asyncio.sleep(0)
        updating.cancel()
        store.contents.discard(written.id)
        await asyncio.gather(updating, return_exceptions=True)
        await put(store, (face(b"another"), b""))
        await store.gateways.wait_for_earlier_commits(await store.now())
        is_there = await value(store, ref) is not None
        assert await content(store, written.id) == (b"body" if is_there else None)


async def an_unknown_commit_stops_an_engine_that_cannot_ask(subject: Subject) -> None:
    store = subject.store
    await put(store, (face(), b"before"))
    subject.break_next_commit()
    await _ends_as(CommitUnknown, put(store, (face(), b"after")))
    await _ends_as(Unavailable, put(store, (face(), b"later")))
    await _ends_as(Unavailable, store.read([face()]))
    await _ends_as(Unavailable, store.now())
    await _ends_as(Unavailable, store.contents.write(pieces(b"x"), 1))
    await _ends_as(Unavailable, store.contents.write_all([b"x"]))
    await _ends_as(Unavailable, store.gateways.hold(b"name"))
    await _ends_as(Unavailable, store.gateways.horizon())
    await _ends_as(Unavailable, store.gateways.wait_for_earlier_commits(1))
    assert await store.health(_HEALTH_S) is Health.STOPPED
    await subject.restart()
    assert await subject.store.health(_HEALTH_S) is Health.SERVING


async def a_closed_store_is_unavailable(subject: Subject) -> None:
    store = subject.store
    accepted = asyncio.gather(*(put(store, (face(b"%d" % one), b"")) for one in range(10)))
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    stamps = await accepted
    await _ends_as(Unavailable, put(store, (face(), b"")))
    await _ends_as(Unavailable, store.read([face()]))
    await _ends_as(Unavailable, store.read_range(place(), False, b"", None, 1))
    await _ends_as(Unavailable, store.scan(b"k", Position(b"", b""), None, 1))
    await _ends_as(Unavailable, store.contents.open(1))
    await _ends_as(Unavailable, store.contents.write(pieces(b"x"), 1))
    await _ends_as(Unavailable, store.contents.write_all([b"x"]))
    await _ends_as(Unavailable, store.now())
    store.contents.discard(1)
    await subject.restart()
    records = await subject.store.read([face(b"%d" % one) for one in range(10)])
    assert [one.version for one in records if one is not None] == stamps


async def its_health_is_what_it_can_do(subject: Subject) -> None:
    store = subject.store
    assert await store.health(_HEALTH_S) is Health.SERVING
    await put(store, (face(), b"kept"))
    subject.fill()
    await _ends_as(Full, store.contents.write(pieces(bytes(100_000)), 100_000))
    assert await store.health(_HEALTH_S) is Health.FULL
    subject.free()
    for _ in range(_TRIES):
        if await store.health(_HEALTH_S) is Health.SERVING:
            break
        await asyncio.sleep(_PAUSE_S)
    assert await store.health(_HEALTH_S) is Health.SERVING
    await subject.restart()
    assert await subject.store.health(_HEALTH_S) is Health.SERVING
    await subject.store.close()
    assert await subject.store.health(_HEALTH_S) is Health.STOPPED


CASES: Final = (
    a_full_disk_refuses_what_grows_and_nothing_else,
    a_full_disk_judges_an_update_by_its_purpose,
    a_restart_decides_what_became_of_an_unknown_commit,
    a_body_lives_exactly_if_its_commit_does,
    a_body_outlives_a_cancelled_update_that_adopted_it,
    a_closed_store_is_unavailable,
    its_health_is_what_it_can_do,
)
STOPPING_CASES: Final = (an_unknown_commit_stops_an_engine_that_cannot_ask,)
