"""The contract's cases about records: decisions, snapshots, order, pages, limits, stamps.

Lives here: cases only.
"""

# ruff: noqa: D103 - a case's name says what must hold

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Final

from strongroom.clock import ManualClock
from strongroom.engines.base import (
    COMMIT_WRITES_MAX,
    KEY_BYTES_MAX,
    KEYSPACE_BYTES_MAX,
    PARTITION_BYTES_MAX,
    RECORD_BYTES_MAX,
    SCAN_EXAMINED_MAX,
    Commit,
    Key,
    Position,
    Record,
    Ref,
    Step,
    StorageEngine,
    Write,
)
from strongroom.engines.conditions import (
    AllOf,
    AnyOf,
    BytesWithin,
    Condition,
    Contains,
    LongerThan,
    NumberWithin,
    holds,
)
from strongroom.testing.contract.subject import (
    Refused,
    Subject,
    commit,
    face,
    hidden,
    increment,
    place,
    put,
    refuse,
    scan_all,
    value,
    writes,
)

_ODD_NAMES: Final = (
    b"",
    b"\x00",
    b"\x00\x00",
    b"a",
    b"a\x00",
    b"a\xff",
    b"b",
    b"\xff",
    b"\xff\xff",
)


async def a_commit_is_read_back_with_its_stamp(subject: Subject) -> None:
    store = subject.store
    stamp = await put(store, (face(), b"one"), (hidden(b"h"), b"two"))
    records = await store.read([face(), hidden(b"h"), face(b"none"), hidden()])
    assert records == [Record(b"one", stamp), Record(b"two", stamp), None, None]
    later = await put(store, (face(), b""), (hidden(b"h"), None), (hidden(b"never"), None))
    assert later > stamp
    assert await store.read([face(), hidden(b"h")]) == [Record(b"", later), None]


async def decisions_see_what_they_asked_for_in_that_order(subject: Subject) -> None:
    store = subject.store
    await put(store, (face(b"a"), b"1"), (hidden(b"a"), b"2"))
    await put(store, (face(b"", b"other", b"elsewhere"), b"3"))
    asked = [face(b"", b"other", b"elsewhere"), hidden(b"a"), face(b"none"), face(b"a")]
    seen: list[bytes | None] = []

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[str]:
        seen[:] = [None if one is None else one.value for one in records]
        return Commit("nothing to change")

    assert await store.update(place(), asked, decide) == "nothing to change"
    assert seen == [b"3", b"2", None, b"1"]


async def a_refused_decision_leaves_no_trace(subject: Subject) -> None:
    store = subject.store
    stamp = await put(store, (face(), b"kept"))
    try:
        await refuse(store, face())
    except Refused:
        pass
    else:
        raise AssertionError("the refusal was lost")
    assert await store.read([face()]) == [Record(b"kept", stamp)]


async def counting_by_32_tasks_loses_nothing(subject: Subject) -> None:
    async def count() -> list[int]:
        return [await increment(subject.store, face()) for _ in range(10)]

    answers = await asyncio.gather(*(count() for _ in range(32)))
    assert sorted(one for numbers in answers for one in numbers) == list(range(1, 321))
    assert await value(subject.store, face()) == b"320"


async def one_of_32_creators_wins(subject: Subject) -> None:
    def create(name: bytes) -> Callable[[Sequence[Record | None], int], Commit[bytes]]:
        def decide(records: Sequence[Record | None], stamp: int) -> Commit[bytes]:
            if records[0] is not None:
                raise Refused(records[0].value.decode())
            return Commit(name, writes((face(), name)))

        return decide

    answers = await asyncio.gather(
        *(subject.store.update(place(), [face()], create(b"%d" % one)) for one in range(32)),
        return_exceptions=True,
    )
    (winner,) = [one for one in answers if isinstance(one, bytes)]
    refusals = {str(one) for one in answers if isinstance(one, Refused)}
    assert refusals == {winner.decode()}
    assert await value(subject.store, face()) == winner


async def a_partition_is_read_from_one_snapshot(subject: Subject) -> None:
    store = subject.store
    done = asyncio.Event()

    async def write() -> None:
        for number in range(100):
            await put(store, (face(b"a"), b"%d" % number), (hidden(b"b"), b"%d" % number))
        done.set()

    async def read() -> None:
        while not done.is_set():
            one, other = await store.read([face(b"a"), hidden(b"b")])
            assert one == other
            await asyncio.sleep(0)

    await asyncio.gather(write(), read(), read())


async def steps_reach_several_partitions_in_order(subject: Subject) -> None:
    store = subject.store
    other = face(b"", b"other", b"elsewhere")
    stamp = await commit(
        store, *writes((other, b"1"), (face(), b"2"), (other, b"3"), (face(b"gone"), b"4"))
    )
    await commit(store, *writes((face(b"gone"), None)))
    assert await store.read([other, face()]) == [Record(b"3", stamp), Record(b"2", stamp)]
    assert await value(store, face(b"gone")) is None


async def face_and_hidden_keys_never_meet(subject: Subject) -> None:
    store = subject.store
    await put(store, (face(b"same"), b"face"), (hidden(b"same"), b"hidden"))
    assert [one.value for one in await scan_all(store, b"k", 10)] == [b"face"]
    assert [one.value for one in await store.read_range(place(), True, b"", None, 10)] == [
        b"hidden"
    ]
    await put(store, (face(b"same"), None))
    assert await scan_all(store, b"k", 10) == []
    assert await value(store, hidden(b"same")) == b"hidden"


async def a_range_is_in_byte_order_and_bounded(subject: Subject) -> None:
    store = subject.store
    await put(store, *((hidden(name), b"v" + name) for name in reversed(_ODD_NAMES)))
    await put(store, (hidden(b"stranger", b"q"), b""))
    items = await store.read_range(place(), True, b"", None, 100)
    assert [one.name for one in items] == sorted(_ODD_NAMES)
    assert all(one.value == b"v" + one.name for one in items)
    some = await store.read_range(place(), True, b"\x00\x00", b"b", 100)
    assert [one.name for one in some] == [b"\x00\x00", b"a", b"a\x00", b"a\xff"]
    few = await store.read_range(place(), True, b"a\x00", None, 2)
    assert [one.name for one in few] == [b"a\x00", b"a\xff"]
    assert await store.read_range(place(), True, b"", None, 0) == []
    many = [(hidden(b"%04d" % one, b"many"), b"") for one in range(300)]
    await put(store, *many)
    assert len(await store.read_range(place(b"many"), True, b"", None, 250)) == 250


async def a_scan_is_in_byte_order_whatever_the_pages(subject: Subject) -> None:
    store = subject.store
    names = [(one, other) for one in _ODD_NAMES for other in _ODD_NAMES]
    for one in _ODD_NAMES:
        await put(store, *((face(other, one), one + b"/" + other) for other in _ODD_NAMES))
    await put(store, (face(b"", b"p", b"j"), b"before"), (face(b"x", b"p", b"j"), b""))
    await put(store, (face(b"", b"p", b"k\x00"), b"after"))
    for max_records in (1, 7, 80, 81, 82, 200):
        faces = await scan_all(store, b"k", max_records)
        assert [(one.partition, one.key) for one in faces] == sorted(names)
        assert all(one.value == one.partition + b"/" + one.key for one in faces)
    first, until = Position(b"a", b"\x00"), Position(b"b", b"a")
    page = await store.scan(b"k", first, until, 1000)
    wanted = [pair for pair in sorted(names) if tuple(first) <= pair < tuple(until)]
    assert [(one.partition, one.key) for one in page.faces()] == wanted
    assert page.resume is None


async def a_scan_resumes_where_nothing_is_and_stops_by_bytes(subject: Subject) -> None:
    store = subject.store
    for number in range(20):
        await put(store, (face(b"", b"%02d" % number), bytes(1000)))
    page = await store.scan(b"k", Position(b"07x", b"anything"), None, 3)
    assert [one.partition for one in page.faces()] == [b"08", b"09", b"10"]
    short = await store.scan(b"k", Position(b"", b""), None, 100, max_bytes=2500)
    assert 1 <= len(short.faces()) <= 4
    assert short.resume is not None, "what is left must not be lost"
    assert (await store.scan(b"none", Position(b"", b""), None, 5)).faces() == []


_CONDITIONS: Final[tuple[Condition, ...]] = (
    Contains(b"7"),
    NumberWithin(b"n=", 20.0, 40.5),
    NumberWithin(b"n=", -math.inf, 3.0),
    NumberWithin(b"n=", 40.0, math.inf, skip_bytes=2),
    BytesWithin(b"n=1", b"", b"5"),
    BytesWithin(b"", b"v1", b"v2"),
    LongerThan(90),
    AllOf((Contains(b"n="), NumberWithin(b"n=", 0.1, 5.0))),
    AnyOf((Contains(b"n=2"), AllOf((Contains(b"n=1"), LongerThan(20))))),
    Contains(b"nothing has it"),
)


async def a_condition_leaves_out_nothing_that_satisfies_it(subject: Subject) -> None:
    store = subject.store
    for partition in (b"a", b"b"):
        values = [b"v%d n=%d.5e0 %b" % (one % 3, one, b"x" * one) for one in range(100)]
        values += [b"", b"n=", b"n=1", b"n=41", b"n=-3", b"0 n=no"]
        rows = ((face(b"%03d" % at, partition), one) for at, one in enumerate(values))
        await put(store, *rows)
    everything = await scan_all(store, b"k", 1000)
    for where in _CONDITIONS:
        wanted = [one for one in everything if holds(where, one.value)]
        for max_records in (1, 30, 1000):
            found = await scan_all(store, b"k", max_records, where)
            assert len(set(found)) == len(found) and found == sorted(found)
            assert [one for one in found if one in wanted] == wanted
            assert set(found) <= set(everything)


async def a_condition_that_nothing_satisfies_ends_a_page(subject: Subject) -> None:
    store = subject.store
    count = 2 * SCAN_EXAMINED_MAX
    for at in range(0, count, COMMIT_WRITES_MAX):
        rows = range(at, min(at + COMMIT_WRITES_MAX, count))
        await put(store, *((face(b"%06d" % one), b"value") for one in rows))
    page = await store.scan(b"k", Position(b"", b""), None, 1, where=Contains(b"nothing has it"))
    assert page.resume is not None, "one page looked at everything"
    last = face(b"%06d" % (count - 1))
    await put(store, (last, b"this has it"))
    found = await scan_all(store, b"k", 1000, Contains(b"this has it"))
    assert b"this has it" in [one.value for one in found], "it was not looked for to the end"


async def unchanged_records_are_listed_exactly_once(subject: Subject) -> None:
    store = subject.store
    still = {b"%03d" % number for number in range(0, 300, 3)}
    for name in still:
        await put(store, (face(b"", name), b"still"))
    done = asyncio.Event()

    async def churn(offset: int) -> None:
        number = 0
        while not done.is_set():
            ref = face(b"", b"%03d" % ((number * 3 + offset) % 300))
            await put(store, (ref, None if number % 2 else b"moving"))
            number += 1

    churning = [asyncio.create_task(churn(offset)) for offset in (1, 2)]
    try:
        for max_records in (5, 9, 150):
            found = [
                one.partition
                for one in await scan_all(store, b"k", max_records)
                if one.value == b"still"
            ]
            assert sorted(found) == sorted(still)
    finally:
        done.set()
        await asyncio.gather(*churning)


async def a_scan_shows_each_partition_as_one_commit_left_it(subject: Subject) -> None:
    """Each partition is at least as new as the call; different partitions may differ in age."""
    store = subject.store
    done = asyncio.Event()
    written = dict.fromkeys(range(40), 0)

    async def churn(first: int) -> None:
        while not done.is_set():
            for number in range(first, 40, 4):
                name = b"%03d" % number
                body = bytes(2000)
                pair = ((face(key, name), body) for key in (b"a", b"b", b"c"))
                written[number] = await put(store, *pair)

    churning = [asyncio.create_task(churn(first)) for first in range(4)]
    try:
        for _ in range(8):
            await asyncio.sleep(0)
            before = dict(written)
            page = await store.scan(b"k", Position(b"", b""), None, 1000)
            versions: dict[bytes, set[int]] = {}
            for one in page.faces():
                versions.setdefault(one.partition, set()).add(one.version)
            assert all(len(one) == 1 for one in versions.values()), "a commit was seen half"
            for number, stamp in before.items():
                assert not stamp or min(versions[b"%03d" % number]) >= stamp, "it is an old state"
    finally:
        done.set()
        await asyncio.gather(*churning)


async def limits_are_kept(subject: Subject) -> None:
    store = subject.store
    # The names do not compress: an index with compression would hide its own limit.
    noise = ManualClock().random_bytes
    longest = noise(PARTITION_BYTES_MAX)
    partition = place(longest, noise(KEYSPACE_BYTES_MAX))
    names = [noise(KEY_BYTES_MAX) for _ in range(4)]
    names += [names[0][:-1] + bytes([255 - names[0][-1]])]
    bodies = [noise(RECORD_BYTES_MAX) for _ in names]
    for is_hidden in (False, True):
        refs = [Ref(partition, Key(is_hidden, name)) for name in names]
        await put(store, *zip(refs, bodies, strict=True))
        assert [one and one.value for one in await store.read(refs)] == bodies
        items = await store.read_range(partition, is_hidden, b"", None, 10)
        assert [item.name for item in items] == sorted(names)
    faces = await scan_all(store, partition.keyspace, 2)
    assert [(one.partition, one.key) for one in faces] == [(longest, one) for one in sorted(names)]
    many = tuple(Write(Key(True, b"%d" % one), b"") for one in range(COMMIT_WRITES_MAX))
    await commit(store, Step(place(), many))
    too_much = [
        Step(place(b"", b"k" * (KEYSPACE_BYTES_MAX + 1))),
        Step(place(b"p" * (PARTITION_BYTES_MAX + 1))),
        Step(place(), (Write(Key(False, b"n" * (KEY_BYTES_MAX + 1)), b""),)),
        Step(place(), (Write(face().key, bytes(RECORD_BYTES_MAX + 1)),)),
        Step(place(), (*many, Write(face().key, b""))),
        Step(place(), tuple(Write(one.key, bytes(RECORD_BYTES_MAX)) for one in many[:129])),
    ]
    for step in too_much:
        await _is_a_value_error(store, step)
    assert await value(store, face()) is None


async def _is_a_value_error(store: StorageEngine, step: Step) -> None:
    try:
        await store.update(
            place(), [], lambda _, __: Commit(None, (*writes((face(), b"trace")), step))
        )
    except ValueError:
        return
    raise AssertionError(f"{str(step)[:80]} was accepted")


async def stamps_are_unique_and_rise_with_time(subject: Subject) -> None:
    store = subject.store
    before = await store.now()
    stamps = await asyncio.gather(
        *(put(store, (face(b"", b"%d" % (one % 7)), b"")) for one in range(200))
    )
    assert len(set(stamps)) == 200
    assert min(stamps) >= before
    assert await store.now() >= max(stamps), "a commit lies in the future"
    subject.clock.advance(5)
    later = await store.now()
    assert later >= before + 5 * 10_000_000
    assert await put(store, (face(), b"")) >= max(later, *stamps)


async def versions_of_a_record_rise_with_any_writer(subject: Subject) -> None:
    store = subject.store
    seen = [0]

    async def watch() -> None:
        while (record := (await store.read([face()]))[0]) is None or record.value != b"end":
            if record is not None:
                assert record.version >= seen[-1]
                seen.append(record.version)
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    for _ in range(10):
        await asyncio.gather(*(put(store, (face(), b"")) for _ in range(8)))
    await put(store, (face(), b"end"))
    await watching


async def commits_of_a_partition_are_seen_in_the_order_of_their_stamps(subject: Subject) -> None:
    store = subject.store
    writing = [True]

    async def watch() -> None:
        known: dict[bytes, int] = {}
        while writing[0] or len(known) < 96:
            items = await store.read_range(place(), False, b"", None, 100)
            fresh = [item.version for item in items if item.name not in known]
            assert not fresh or min(fresh) > max(known.values(), default=0)
            known |= {item.name: item.version for item in items}
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    for first in range(0, 96, 8):
        await asyncio.gather(*(put(store, (face(b"%d" % (first + at)), b"")) for at in range(8)))
    writing[0] = False
    await watching


async def records_of_other_partitions_are_current_when_the_commit_happens(subject: Subject) -> None:
    """Once a deletion is acknowledged, no commit happens whose decision saw the deleted record."""
    store = subject.store

    def create(gate: Ref, ref: Ref) -> Callable[[Sequence[Record | None], int], Commit[None]]:
        def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
            if records[0] is None:
                raise Refused("the gate is shut")
            return Commit(None, writes((ref, b"")))

        return decide

    async def one(number: int) -> None:
        gate, ref = face(b"%d" % number, b"gates"), face(b"%d" % number)
        await put(store, (gate, b"open"))
        creating = asyncio.ensure_future(store.update(place(), [gate], create(gate, ref)))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        await put(store, (gate, None))
        (found,) = await store.read([ref])
        refused = isinstance((await asyncio.gather(creating, return_exceptions=True))[0], Refused)
        assert (await value(store, ref) is None) == refused
        assert (found is None) == refused, "it was created after the gate had been shut"

    await asyncio.gather(*(one(number) for number in range(70)))


async def a_restart_keeps_everything_and_time_goes_on(subject: Subject) -> None:
    stamp = await put(subject.store, (face(), b"kept"), (hidden(b"h"), b"too"))
    subject.store.advance(3600)
    stamps = [stamp, await put(subject.store, (face(b"2"), b""))]
    for step_s in (-7200.0, 0.0, 10.0, -5.0):
        now = await subject.store.now()
        await subject.restart()
        subject.clock.step_wall(step_s)
        await subject.restart()
        assert await subject.store.now() >= now, "time went back"
        stamps.append(await put(subject.store, (face(b"2"), b"")))
    assert stamps == sorted(set(stamps))
    records = await subject.store.read([face(), hidden(b"h")])
    assert records == [Record(b"kept", stamp), Record(b"too", stamp)]


CASES: Final = (
    a_commit_is_read_back_with_its_stamp,
    decisions_see_what_they_asked_for_in_that_order,
    a_refused_decision_leaves_no_trace,
    counting_by_32_tasks_loses_nothing,
    one_of_32_creators_wins,
    a_partition_is_read_from_one_snapshot,
    steps_reach_several_partitions_in_order,
    face_and_hidden_keys_never_meet,
    a_range_is_in_byte_order_and_bounded,
    a_scan_is_in_byte_order_whatever_the_pages,
    a_scan_resumes_where_nothing_is_and_stops_by_bytes,
    a_condition_leaves_out_nothing_that_satisfies_it,
    a_condition_that_nothing_satisfies_ends_a_page,
    unchanged_records_are_listed_exactly_once,
    a_scan_shows_each_partition_as_one_commit_left_it,
    limits_are_kept,
    stamps_are_unique_and_rise_with_time,
    versions_of_a_record_rise_with_any_writer,
    commits_of_a_partition_are_seen_in_the_order_of_their_stamps,
    records_of_other_partitions_are_current_when_the_commit_happens,
    a_restart_keeps_everything_and_time_goes_on,
)
