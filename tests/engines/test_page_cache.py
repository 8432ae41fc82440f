"""What the cache of pages tells is what would be read now, and its memory has a bound."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from strongroom.engines.base import Key, Page, Partition, Position, Ref, Step, Write
from strongroom.engines.embedded import EmbeddedStore
from strongroom.engines.embedded.records import page_cache
from strongroom.engines.embedded.records.page_cache import Asked, PageCache
from strongroom.engines.embedded.records.sqlite import Reader, Slices
from strongroom.testing.contract_subject import commit
from strongroom.testing.disk import Disk
from tests.engines.embedded_stores import Gate, store_on

ASKED = Asked(b"k", Position(b"b", b"5"), Position(b"d", b""), 100, 1 << 20)
OPEN = ASKED._replace(until=None)
PAGE = Page([b"b", b"c"], [b"7", b"1"], [b"x", b"y"], [1, 1], None)
CUT = Page([b"b", b"c"], [b"7", b"1"], [b"x", b"y"], [1, 1], Position(b"c", b"4"))


def _ref(partition: bytes, name: bytes, keyspace: bytes = b"k", hidden: bool = False) -> Ref:
    return Ref(Partition(keyspace, partition), Key(hidden, name))


def _slices(page: Page) -> Slices[Page]:
    yield
    yield
    return page


def _read(cache: PageCache, asked: Asked = ASKED, page: Page = PAGE) -> None:
    for _ in cache.reading(asked, _slices(page)):
        pass


def _kept(asked: Asked = ASKED, page: Page = PAGE) -> PageCache:
    cache = PageCache()
    for _ in range(2):
        _read(cache, asked, page)
    assert cache.get(asked) is page
    return cache


def _is_empty(cache: PageCache) -> bool:
    is_full_size = cache._left_bytes == page_cache.SIZE_BYTES_MAX
    return is_full_size and not cache._pages and not cache._by_keyspace


def test_what_is_asked_for_once_is_not_kept() -> None:
    cache = PageCache()
    for number in range(1000):
        _read(cache, ASKED._replace(max_records=number))
    assert _is_empty(cache)
    _read(cache, ASKED._replace(max_records=999))
    assert cache.get(ASKED._replace(max_records=999)) is PAGE


INSIDE = [
    (ASKED, PAGE, _ref(b"b", b"5")),
    (ASKED, PAGE, _ref(b"b", b"7")),
    (ASKED, PAGE, _ref(b"c", b"")),
    (ASKED, PAGE, _ref(b"c\xff", b"\xff")),
    (OPEN, PAGE, _ref(b"\xff", b"")),
    (ASKED, CUT, _ref(b"c", b"3")),
    (OPEN, CUT, _ref(b"c", b"3\xff")),
    # The next page begins there: without it, elsewhere.
    (ASKED, CUT, _ref(b"c", b"4")),
]
OUTSIDE = [
    (ASKED, PAGE, _ref(b"b", b"4\xff")),
    (ASKED, PAGE, _ref(b"a", b"9")),
    (ASKED, PAGE, _ref(b"d", b"")),
    (ASKED, PAGE, _ref(b"c", b"1", hidden=True)),
    (ASKED, PAGE, _ref(b"c", b"1", keyspace=b"other")),
    (ASKED, CUT, _ref(b"c", b"4\x00")),
    (OPEN, CUT, _ref(b"\xff", b"")),
]


@pytest.mark.parametrize(("asked", "page", "ref"), INSIDE)
def test_a_page_in_which_is_written_is_let_go_of(asked: Asked, page: Page, ref: Ref) -> None:
    cache = _kept(asked, page)
    cache.bar([_ref(b"a", b""), ref])
    assert cache.get(asked) is None
    _read(cache, asked, page)
    assert cache.get(asked) is None, "the commit may be seen at any moment, or never"
    cache.lift()
    assert _is_empty(cache)
    _read(cache, asked, page)
    assert cache.get(asked) is page


@pytest.mark.parametrize(("asked", "page", "ref"), OUTSIDE)
def test_a_page_beside_which_is_written_stays(asked: Asked, page: Page, ref: Ref) -> None:
    cache = _kept(asked, page)
    cache.bar([ref])
    assert cache.get(asked) is page
    cache.lift()
    assert cache.get(asked) is page


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("steps", [1, 2])
def test_what_is_written_in_while_it_is_read_is_not_kept(steps: int, is_over: bool) -> None:
    cache = PageCache()
    _read(cache)
    reading = cache.reading(ASKED, _slices(PAGE))
    for _ in range(steps):
        next(reading)
    cache.bar([_ref(b"c", b"2")])
    if is_over:
        cache.lift()
    for _ in reading:
        pass
    cache.lift()
    assert _is_empty(cache)


def test_two_who_read_the_same_keep_it_once() -> None:
    cache = PageCache()
    _read(cache)
    several = [cache.reading(ASKED, _slices(PAGE)) for _ in range(3)]
    for _ in zip(*several, strict=False):
        pass
    for reading in several:
        reading.close()
    assert cache.get(ASKED) is PAGE
    cache.bar([_ref(b"c", b"1")])
    assert _is_empty(cache)


def test_a_reading_that_is_broken_off_leaves_nothing() -> None:
    def broken() -> Slices[Page]:
        yield
        raise OSError("no")

    cache = PageCache()
    _read(cache)
    reading = cache.reading(ASKED, _slices(PAGE))
    next(reading)
    reading.close()
    with pytest.raises(OSError, match="no"):
        for _ in cache.reading(ASKED, broken()):
            pass
    assert _is_empty(cache)


def test_memory_is_bounded_and_what_was_asked_for_longest_ago_goes_first() -> None:
    cache = PageCache(size_bytes_max=10 * page_cache._size_bytes(PAGE))
    many = [ASKED._replace(max_records=number) for number in range(1, 101)]
    for asked in many:
        for _ in range(2):
            _read(cache, asked)
        assert cache.get(many[0]) is PAGE
    assert [asked for asked in many if cache.get(asked)] == [many[0], *many[-9:]]
    assert cache._left_bytes == 0
    cache.bar([_ref(b"b", b"7")])
    assert cache._left_bytes == 10 * page_cache._size_bytes(PAGE)


def test_there_are_few_pages_since_every_write_looks_through_them() -> None:
    cache, empty = PageCache(), Page([], [], [], [], None)
    many = [ASKED._replace(max_records=number) for number in range(1, 3 * page_cache.PAGES_MAX)]
    for asked in many:
        for _ in range(2):
            _read(cache, asked, empty)
    assert [asked for asked in many if cache.get(asked)] == many[-page_cache.PAGES_MAX :]
    assert sum(map(len, cache._by_keyspace.values())) == page_cache.PAGES_MAX


def test_a_large_page_is_not_kept() -> None:
    cache, value = PageCache(), bytes(page_cache.PAGE_BYTES_MAX)
    for _ in range(3):
        _read(cache, page=Page([b"c"], [b"1"], [value], [1], None))
    assert _is_empty(cache)


# On a store: records of several slices, all of which a commit changes.

_RECORDS = 600
_NAMES = [b"%04d" % number for number in range(_RECORDS)]


async def _number_all(store: EmbeddedStore, number: int) -> None:
    partition = Partition(b"k", b"c")
    writes = tuple(Write(Key(False, name), b"%d" % number) for name in _NAMES)
    await commit(store, Step(partition, writes))


async def _scan(store: EmbeddedStore, until: Position | None = None) -> int:
    """The number that all of them have."""
    page = await store.scan(b"k", Position(b"", b""), until, 1000)
    assert len(page.values) == _RECORDS
    (value,) = set(page.values)
    return int(value)


async def _look(store: EmbeddedStore, chance: random.Random, written: list[int]) -> int:
    looks = 0
    while written[0] >= 0:
        least = written[0]
        found = await _scan(store, chance.choice([None, Position(b"d", b"")]))
        assert found >= least, "what was committed before the scan began is not seen"
        looks += 1
        await asyncio.sleep(chance.choice((0, 0, 0.0005)))
    return looks


@pytest.mark.parametrize("seed", range(4))
def test_scans_during_commits_are_of_one_moment_and_not_of_the_past(
    seed: int, tmp_path: Path
) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path), commits_on_loop=seed % 2 == 0) as store:
            await _number_all(store, 0)
            written, chance = [0], random.Random(seed)
            looking = [
                asyncio.create_task(_look(store, random.Random(seed * 10 + number), written))
                for number in range(4)
            ]
            for number in range(1, 60):
                await _number_all(store, number)
                written[0] = number
                await asyncio.sleep(chance.choice((0, 0.001, 0.005)))
            written[0] = -1
            assert min(await asyncio.gather(*looking)) > 10

    asyncio.run(prove())


def test_a_page_tells_as_sqlite_does_where_the_next_one_begins(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            await _number_all(store, 1)
            for _ in range(3):
                page = await store.scan(b"k", Position(b"", b""), None, _RECORDS - 1)
                assert page.resume == Position(b"c", _NAMES[-1])
            gone = Write(Key(False, _NAMES[-1]), None)
            await commit(store, Step(Partition(b"k", b"c"), (gone,)))
            for _ in range(3):
                page = await store.scan(b"k", Position(b"", b""), None, _RECORDS - 1)
                assert page.resume is None

    asyncio.run(prove())


def test_a_page_is_asked_of_sqlite_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    then = Reader.scan

    def counted(reader: Reader, keyspace: bytes, *bounds: object) -> Slices[Page]:
        asked.append(keyspace)
        return then(reader, keyspace, *bounds)  # type: ignore[arg-type]  # passed on as they came

    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            await _number_all(store, 1)
            monkeypatch.setattr(Reader, "scan", counted)
            assert [await _scan(store) for _ in range(5)] == [1] * 5
            assert len(asked) == 2
            await _number_all(store, 2)
            assert [await _scan(store) for _ in range(5)] == [2] * 5
            assert len(asked) == 3

    asyncio.run(prove())


def test_a_scan_while_a_commit_runs_leaves_nothing_old_behind(tmp_path: Path) -> None:
    async def prove() -> None:
        disk, gate = Disk(tmp_path), Gate()
        async with store_on(disk) as store:
            await _number_all(store, 1)
            assert [await _scan(store) for _ in range(3)] == [1] * 3
            disk.fault = gate
            gate.shut()
            try:
                writing = asyncio.create_task(_number_all(store, 2))
                assert await asyncio.to_thread(gate.reached.wait, 30)
                assert [await _scan(store) for _ in range(3)] == [1] * 3
            finally:
                gate.open()
            await writing
            assert [await _scan(store) for _ in range(3)] == [2] * 3

    asyncio.run(prove())
