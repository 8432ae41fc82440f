"""The record cache always shows one committed snapshot, and its memory has a bound."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from strongroom.engines.base import Commit, Full, Record, Ref, Step, StorageEngine, Write, record_of
from strongroom.engines.embedded.records import record_cache
from strongroom.engines.embedded.records.record_cache import RecordCache
from strongroom.engines.embedded.records.sqlite import Reader, Writer
from strongroom.testing.contract.subject import face, hidden, put, value
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import Gate, store_on

_ONE, _OTHER, _THIRD = face(b"one"), hidden(b"other"), face(b"third")


def _keep(cache: RecordCache, refs: Sequence[Ref], records: Sequence[Record | None]) -> None:
    """Read the records twice, so that they are cached."""
    cache.keep(refs, records)
    cache.keep(refs, records)


def _record(number: int, size_bytes: int = 1) -> Record:
    return Record(b"x" * size_bytes, number)


def test_what_is_read_once_is_not_kept() -> None:
    cache = RecordCache()
    for number in range(1000):
        cache.keep([face(b"%d" % number)], [_record(number)])
    assert (cache._younger, cache._older) == ({}, {})


def test_all_or_nothing_is_known() -> None:
    cache = RecordCache()
    _keep(cache, [_ONE, _OTHER], [_record(1), None])
    assert cache.get([_OTHER, _ONE]) == [None, _record(1)]
    assert cache.get([_ONE, _THIRD]) is None
    assert cache.get([]) == []


def test_what_is_known_of_several_is_told_and_the_rest_completes_it() -> None:
    cache = RecordCache()
    _keep(cache, [_ONE, _OTHER], [_record(1), None])
    known, missing = cache.split([_THIRD, _ONE, _OTHER, face(b"fourth")])
    assert missing == [_THIRD, face(b"fourth")]
    read = [_record(3), None]
    assert record_cache.completed(known, read) == [_record(3), _record(1), None, None]
    cache.begin_commit([_ONE])
    assert cache.split([_ONE, _OTHER])[1] == [_ONE]


def test_what_a_commit_writes_is_not_known_until_it_is_over() -> None:
    cache = RecordCache()
    _keep(cache, [_ONE, _OTHER], [_record(1), _record(1)])
    cache.begin_commit([_ONE])
    assert cache.get([_ONE]) is None
    assert cache.get([_OTHER]) == [_record(1)]
    _keep(cache, [_ONE, _THIRD], [_record(2), _record(2)])
    assert cache.get([_ONE]) is None, "the commit may yet fail, or be seen in part"
    assert cache.get([_THIRD]) == [_record(2)]
    cache.end_commit({})
    assert cache.get([_ONE]) is None
    _keep(cache, [_ONE], [_record(2)])
    assert cache.get([_ONE]) == [_record(2)]


def test_what_was_known_is_known_again_as_it_was_committed() -> None:
    cache = RecordCache()
    _keep(cache, [_ONE, _OTHER], [_record(1), _record(1)])
    cache.begin_commit([_ONE, _OTHER, _THIRD])
    cache.end_commit({_ONE: _record(2), _OTHER: None, _THIRD: _record(2)})
    assert cache.get([_ONE, _OTHER]) == [_record(2), None]
    assert cache.get([_THIRD]) is None, "nobody has asked for it"


def test_what_is_asked_for_outlives_what_is_not() -> None:
    cache = RecordCache(size_bytes_max=10_000)
    _keep(cache, [_ONE, _OTHER], [_record(1), _record(1)])
    for number in range(100):
        _keep(cache, [face(b"%d" % number)], [_record(number, 100)])
        assert cache.get([_ONE]) == [_record(1)]
    assert cache.get([_OTHER]) is None


def test_a_commit_is_kept_from_what_is_known_in_either_half() -> None:
    cache = RecordCache(size_bytes_max=10_000)
    _keep(cache, [_ONE], [_record(1)])
    for number in range(7):
        _keep(cache, [face(b"%d" % number)], [_record(number, 100)])
    assert _ONE in cache._older
    cache.begin_commit([_ONE])
    assert cache.get([_ONE]) is None
    cache.end_commit({_ONE: _record(2)})
    assert cache.get([_ONE]) == [_record(2)]


def test_memory_is_bounded_and_the_oldest_go_first() -> None:
    cache = RecordCache(size_bytes_max=10_000)
    refs = [face(b"%d" % number) for number in range(100)]
    for number, ref in enumerate(refs):
        _keep(cache, [ref], [_record(number, 100)])
        cache.keep([ref], [_record(number, 100)])
    known = [ref for ref in refs if ref in {*cache._younger, *cache._older}]
    assert known == refs[-len(known) :]
    assert 5 < len(known) < 20
    _keep(cache, [_ONE], [_record(1, record_cache._VALUE_BYTES_MAX + 1)])
    assert cache.get([_ONE]) is None
    cache.begin_commit(refs)
    cache.end_commit({})
    assert (cache._younger, cache._older) == ({}, {})
    assert cache._left_bytes == cache._half_bytes


async def _put_both(store: StorageEngine, number: int) -> None:
    await put(store, (_ONE, b"%d" % number), (_OTHER, b"%d" % number))


def _number(record: Record | None) -> int:
    assert record is not None
    return int(record.value)


async def _look(store: StorageEngine, chance: random.Random, over: asyncio.Event) -> int:
    """Read one, the other or both records in a loop: no pair is torn, no value goes back in
    time."""
    seen = looks = 0
    while not over.is_set():
        refs: Sequence[Ref] = chance.choice(
            [
                (_ONE,),
                (_OTHER,),
                (_ONE, _OTHER),
                (_OTHER, _ONE),
                # The first is usually cached, and the last never is.
                (_ONE, _OTHER, face(b"none %d" % looks)),
            ]
        )
        numbers = {_number(record) for record in (await store.read(refs))[:2]}
        assert len(numbers) == 1, "a pair was torn"
        assert min(numbers) >= seen, "a read went back in time"
        seen = max(numbers)
        key = chance.choice((_ONE, _OTHER)).key
        (item,) = await store.read_range(_ONE.partition, key.hidden, key.name, None, 1)
        in_range = _number(record_of((item.value, item.version)))
        assert in_range >= seen, "a range went back in time"
        seen = in_range
        looks += 1
        await asyncio.sleep(chance.choice((0, 0, 0.0001)))
    return looks


@pytest.mark.parametrize("seed", range(4))
def test_reads_during_commits_are_of_one_moment(seed: int, tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            await _put_both(store, 0)
            over = asyncio.Event()
            looking = [
                asyncio.create_task(_look(store, random.Random(seed * 10 + number), over))
                for number in range(4)
            ]
            for number in range(1, 150):
                await _put_both(store, number)
            over.set()
            assert min(await asyncio.gather(*looking)) > 10

    asyncio.run(prove())


def test_a_read_while_a_commit_runs_leaves_nothing_old_behind(tmp_path: Path) -> None:
    async def prove() -> None:
        disk, gate = Disk(tmp_path), Gate()
        async with store_on(disk) as store:
            await put(store, (face(), b"0"))
            assert await value(store, face()) == b"0"
            disk.fault = gate
            gate.shut()
            try:
                writing = asyncio.create_task(put(store, (face(), b"1")))
                assert await asyncio.to_thread(gate.reached.wait, 30)
                assert await value(store, face()) == b"0"
            finally:
                gate.open()
            await writing
            assert await value(store, face()) == b"1"

    asyncio.run(prove())


def test_what_did_not_fit_on_the_disk_is_not_told(tmp_path: Path) -> None:
    """The commit itself fails, when its writes are flushed from SQLite's memory."""

    async def prove() -> None:
        disk = Disk(tmp_path, capacity_bytes=64 << 20)
        async with store_on(disk) as store:
            await put(store, (face(), b"0"))
            assert await value(store, face()) == b"0"
            disk.capacity_bytes = disk.used_bytes()
            more = [(face(b"%d" % number), bytes(60_000)) for number in range(10)]
            with pytest.raises(Full):
                await put(store, (face(), b"1" * 10_000), *more)
            assert await value(store, face()) == b"0"
            disk.capacity_bytes = None
            assert await value(store, face()) == b"0"

    asyncio.run(prove())


def test_a_decision_about_what_is_known_asks_sqlite_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Ref] = []
    then = Writer.get

    def counted(writer: Writer, ref: Ref) -> Record | None:
        asked.append(ref)
        return then(writer, ref)

    async def add_one(store: StorageEngine) -> None:
        def decide(found: Sequence[Record | None], stamp: int) -> Commit[None]:
            assert found[1] is None
            number = b"%d" % (int(found[0].value) + 1 if found[0] else 1)
            return Commit(None, (Step(_ONE.partition, (Write(_ONE.key, number),)),))

        await store.update(_ONE.partition, [_ONE, _OTHER], decide)

    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            monkeypatch.setattr(Writer, "get", counted)
            await add_one(store)
            await add_one(store)
            await add_one(store)
            assert asked == [_ONE, _OTHER] * 3, "the first found nothing, and left no trace"
            await add_one(store)
            await asyncio.gather(*(add_one(store) for _ in range(8)))
            assert await value(store, _ONE) == b"12"
            assert len(asked) == 6

    asyncio.run(prove())


def test_a_record_is_asked_of_sqlite_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[Ref]] = []
    then = Reader.get_all

    def counted(reader: Reader, refs: Sequence[Ref]) -> list[Record | None]:
        asked.append(refs)
        return then(reader, refs)

    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            await put(store, (face(), b"0"))
            monkeypatch.setattr(Reader, "get_all", counted)
            for _ in range(3):
                assert await value(store, face()) == b"0"
                assert await value(store, face(b"absent")) is None
            assert len(asked) == 2 * 2
            await put(store, (face(), b"1"), (face(b"absent"), b"2"))
            assert await value(store, face()) == b"1"
            assert await value(store, face(b"absent")) == b"2"

    asyncio.run(prove())
