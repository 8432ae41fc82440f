"""The contract's cases about records and contents that two gateways serve at the same time.

Lives here: cases only, for engines with several gateways. Cases about holds, readers, earlier
commits and dead gateways are in membership.py.
"""

# ruff: noqa: D103 - a case's name says what must hold

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from strongroom.engines.base import Commit, Record, Ref, Step, StorageEngine
from strongroom.testing.contract.subject import (
    Refused,
    SharedSubject,
    commit,
    content,
    face,
    hidden,
    increment,
    pieces,
    place,
    put,
    refuse,
    scan_all,
    value,
    writes,
)
from strongroom.values import TICKS_PER_S

_SOON_S: Final = 30.0
_LONG_S: Final = 60.0
_SKEW_S: Final = 5.0


async def counting_over_two_gateways_loses_nothing(subject: SharedSubject) -> None:
    stores = (subject.store, await subject.second())

    async def count(store: StorageEngine) -> list[int]:
        return [await increment(store, face()) for _ in range(10)]

    answers = await asyncio.gather(*(count(stores[one % 2]) for one in range(32)))
    assert sorted(one for numbers in answers for one in numbers) == list(range(1, 321))
    assert await value(stores[1], face()) == b"320"


async def a_commit_held_back_is_decided_again(subject: SharedSubject) -> None:
    """The guard is compared when the commit happens, not when it is decided.

    The first of the two has the greater stamp, so that stamps alone do not tell.
    """
    one, ahead = subject.store, await subject.second(_SKEW_S)
    for name, slow, quick in ((b"1", ahead, one), (b"2", one, ahead)):
        ref = face(partition=name)
        held = subject.hold_commits(slow)
        waiting = asyncio.create_task(increment(slow, ref))
        await held.reached()
        assert await increment(quick, ref) == 1
        held.release()
        assert await waiting == 2
        assert await value(quick, ref) == b"2"


async def a_commit_held_back_is_no_older_than_what_came_meanwhile(subject: SharedSubject) -> None:
    """This also holds for a commit that has read nothing, and thus has no guard."""
    one, two = subject.store, await subject.second(_SKEW_S)
    held = subject.hold_commits(one)
    waiting = asyncio.create_task(put(one, (face(b"late"), b"")))
    await held.reached()
    stamp = await put(two, (face(), b""))
    held.release()
    assert await waiting > stamp


async def commits_of_the_other_gateway_are_seen_in_stamp_order(subject: SharedSubject) -> None:
    """This also holds for commits that read nothing, for which no guard is compared."""
    stores = (subject.store, await subject.second(_SKEW_S))
    writing = [True]

    async def watch(store: StorageEngine) -> None:
        known: dict[bytes, int] = {}
        while writing[0] or len(known) < 96:
            items = await store.read_range(place(), False, b"", None, 100)
            fresh = [item.version for item in items if item.name not in known]
            assert not fresh or min(fresh) > max(known.values(), default=0)
            known |= {item.name: item.version for item in items}
            await asyncio.sleep(0)

    watching = [asyncio.create_task(watch(store)) for store in stores]
    for first in range(0, 96, 8):
        names = [face(b"%d" % (first + at)) for at in range(8)]
        await asyncio.gather(*(put(stores[at % 2], (ref, b"")) for at, ref in enumerate(names)))
    writing[0] = False
    await asyncio.gather(*watching)


async def stamps_of_two_gateways_are_unique(subject: SharedSubject) -> None:
    stores = (subject.store, await subject.second())
    stamps = await asyncio.gather(
        *(put(stores[one % 2], (face(b"", b"%d" % one), b"")) for one in range(400))
    )
    assert len(set(stamps)) == 400
    assert {stamp % 64 for stamp in stamps[::2]} != {stamp % 64 for stamp in stamps[1::2]}


async def no_stamp_is_below_the_time_that_another_gateway_reported(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    for _ in range(20):
        before = await one.now()
        stamp = await put(two, (face(), b""))
        assert stamp >= before
        assert await value(one, face()) == b""
        assert await one.now() >= stamp, "what was seen lies in the future"
        subject.clock.advance(0.01)


async def a_clock_that_is_ahead_is_followed_where_it_was_seen(subject: SharedSubject) -> None:
    one, ahead = subject.store, await subject.second(_SKEW_S)
    seen = [await put(store, (face(), b"")) for store in (one, ahead, one, ahead, one)]
    assert seen == sorted(set(seen))
    assert await one.now() >= seen[-1]
    assert await one.now() < seen[-1] + _SKEW_S * TICKS_PER_S


async def a_commit_wakes_waiters_at_the_other_gateway(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    stamp = await put(one, (face(), b"1"))
    async with asyncio.timeout(_SOON_S):
        waiting = asyncio.create_task(two.wait(face(), stamp, _LONG_S))
        await asyncio.sleep(0)
        await put(one, (face(), b"2"))
        await waiting
        assert await value(two, face()) == b"2"


async def a_moved_clock_reaches_every_gateway(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    subject.clock.advance(1)  # so that no stamp is ahead of the clock
    before = await two.now()
    async with asyncio.timeout(_SOON_S):
        waiting = asyncio.create_task(two.wait(face(), None, _LONG_S))
        await asyncio.sleep(0)
        wakes = two.wakes
        one.advance(3600)
        await waiting
        assert two.wakes != wakes, "whoever is about to wait there cannot tell"
    third = await subject.second()
    for store in (two, third):
        assert await store.now() >= before + 3600 * TICKS_PER_S
    assert await put(third, (face(), b"")) >= before + 3600 * TICKS_PER_S


async def a_content_is_adopted_where_it_was_written(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    written = await one.contents.write(pieces(b"body"), 4)
    for _ in range(2):
        try:
            await commit(two, Step(place(), adopt=(written.id,)))
        except ValueError:
            two.contents.discard(written.id)
            continue
        raise AssertionError("a content was adopted by another gateway than its writer's")
    await commit(one, Step(place(), adopt=(written.id,)))
    assert await content(two, written.id) == b"body"
    two.contents.discard(written.id)
    assert await content(one, written.id) == b"body"


async def a_commit_that_may_yet_adopt_keeps_its_body(subject: SharedSubject) -> None:
    store = subject.store
    await subject.second()
    written = await store.contents.write(pieces(b"body"), 4)
    held = subject.hold_commits(store)
    step = Step(place(), writes((face(), b""))[0].writes, adopt=(written.id,))
    updating = asyncio.create_task(commit(store, step))
    await held.reached()
    updating.cancel()
    await asyncio.gather(updating, return_exceptions=True)
    store.contents.discard(written.id)
    held.release()
    await store.gateways.wait_for_earlier_commits(await store.now())
    is_there = await value(store, face()) is not None
    assert await content(store, written.id) == (b"body" if is_there else None)


async def unchanged_records_are_listed_once_while_both_gateways_write(
    subject: SharedSubject,
) -> None:
    stores = (subject.store, await subject.second())
    still = {b"%03d" % number for number in range(0, 300, 3)}
    for name in still:
        await put(stores[0], (face(b"a", name), b"still"), (face(b"b", name), b"still"))
    done = asyncio.Event()

    async def churn(offset: int) -> None:
        number = 0
        while not done.is_set():
            name = b"%03d" % ((number * 3 + offset) % 300)
            new = b"%d" % number if number % 2 else None
            await put(stores[offset % 2], (face(b"a", name), new), (face(b"b", name), new))
            number += 1

    churning = [asyncio.create_task(churn(offset)) for offset in (1, 2)]
    try:
        for max_records in (4, 10, 150):
            for store in stores:
                faces = await scan_all(store, b"k", max_records)
                kept = [one.partition for one in faces if one.value == b"still"]
                assert sorted(kept) == sorted(2 * list(still))
                moving = [one for one in faces if one.value != b"still"]
                page = {(one.partition, one.key): one.version for one in moving}
                for (name, key), version in page.items():
                    # Pages end after whole partitions here, so both records are of one commit.
                    assert page.get((name, b"b" if key == b"a" else b"a")) == version
    finally:
        done.set()
        await asyncio.gather(*churning)


async def a_refusal_sees_the_last_commit_of_the_other(subject: SharedSubject) -> None:
    one, two = subject.store, await subject.second()
    for number in range(30):
        await put(one if number % 2 else two, (face(), b"%d" % number))
        seen = None
        try:
            await refuse(two if number % 2 else one, face())
        except Refused as refusal:
            seen = str(refusal)
        assert seen is not None and repr(b"%d" % number) in seen


async def a_put_decided_before_a_deletion_is_refused_after_it(subject: SharedSubject) -> None:
    """A container is deleted and swept while a commit into it is held back."""
    one, two = subject.store, await subject.second()
    container, blob = face(b"", b"container", b"places"), face(b"", b"blob")
    await put(two, (container, b"here"))

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[int]:
        if records[0] is None:
            raise Refused("the container is gone")
        return Commit(stamp, writes((blob, b"body")))

    held = subject.hold_commits(one)
    putting = asyncio.ensure_future(one.update(blob.partition, [container], decide))
    await held.reached()
    await put(two, (container, None))
    await _sweep(two, blob)
    held.release()
    answers = await asyncio.gather(putting, return_exceptions=True)
    assert isinstance(answers[0], Refused), "it was put into a container that is gone"
    assert await value(two, blob) is None


async def _sweep(store: StorageEngine, ref: Ref) -> None:
    if await value(store, ref) is not None:
        await put(store, (ref, None))


async def a_job_is_never_seen_before_its_commit(subject: SharedSubject) -> None:
    """A refused decision leaves no job either: its steps change nothing in other partitions."""
    stores = (subject.store, await subject.second())
    done = asyncio.Event()

    async def enqueue(store: StorageEngine) -> None:
        for _ in range(40):

            def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
                number = int(records[0].value) + 1 if records[0] else 1
                job = face(b"", b"%04d" % number, b"jobs")
                return Commit(None, writes((job, b"%d" % number), (face(), b"%d" % number)))

            await store.update(place(), [face()], decide)

    async def look(store: StorageEngine) -> None:
        while not done.is_set():
            jobs = await scan_all(store, b"jobs", 100)
            (head,) = await store.read([face()])
            newest = max((int(job.value) for job in jobs), default=0)
            assert newest <= (int(head.value) if head else 0), "a job was seen before its commit"
            await asyncio.sleep(0)

    looking = [asyncio.create_task(look(store)) for store in stores]
    try:
        await asyncio.gather(*(enqueue(stores[one % 2]) for one in range(4)))
    finally:
        done.set()
        await asyncio.gather(*looking)
    assert len(await scan_all(stores[1], b"jobs", 50)) == 160


async def both_gateways_read_one_snapshot_of_a_partition(subject: SharedSubject) -> None:
    stores = (subject.store, await subject.second())
    done = asyncio.Event()

    async def write() -> None:
        for number in range(60):
            pair = ((face(b"a"), b"%d" % number), (hidden(b"b"), b"%d" % number))
            await put(stores[number % 2], *pair)
        done.set()

    async def read(store: StorageEngine) -> None:
        while not done.is_set():
            one, other = await store.read([face(b"a"), hidden(b"b")])
            assert one == other
            await asyncio.sleep(0)

    await asyncio.gather(write(), *(read(store) for store in stores))


CASES: Final = (
    counting_over_two_gateways_loses_nothing,
    a_commit_held_back_is_decided_again,
    a_commit_held_back_is_no_older_than_what_came_meanwhile,
    commits_of_the_other_gateway_are_seen_in_stamp_order,
    stamps_of_two_gateways_are_unique,
    no_stamp_is_below_the_time_that_another_gateway_reported,
    a_clock_that_is_ahead_is_followed_where_it_was_seen,
    a_commit_wakes_waiters_at_the_other_gateway,
    a_moved_clock_reaches_every_gateway,
    a_content_is_adopted_where_it_was_written,
    a_commit_that_may_yet_adopt_keeps_its_body,
    unchanged_records_are_listed_once_while_both_gateways_write,
    a_refusal_sees_the_last_commit_of_the_other,
    a_put_decided_before_a_deletion_is_refused_after_it,
    a_job_is_never_seen_before_its_commit,
    both_gateways_read_one_snapshot_of_a_partition,
)
