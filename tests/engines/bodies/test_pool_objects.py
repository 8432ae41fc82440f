"""The objects of bodies in a pool: written some at once, missing, removed in the middle of it all.

The pool is one in memory, behind the functions of Ceph's library (fake_librados.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest import mock

import pytest

from strongroom.engines.base import DataDamaged
from strongroom.engines.bodies.base import BodiesAway, BodyStore
from strongroom.engines.bodies.blocking import PlaceLimits
from strongroom.engines.bodies.places import inspect_place, make_place_ready, open_place
from strongroom.engines.bodies.rados import objects, pool_body
from strongroom.engines.bodies.rados.objects import MARK, object_name
from strongroom.engines.bodies.rados.pool import BodyPool
from strongroom.engines.bodies.threaded import ThreadedBodies
from strongroom.engines.bodies.urls import pool_of
from tests.engines.bodies.contract import (
    LONG,
    MIB,
    OWN,
    found,
    made,
    read,
    settled,
    write,
)
from tests.engines.bodies.fake_librados import StoredObject
from tests.engines.bodies.places import POOL, TriedFake
from tests.engines.bodies.pool_trials import attempt, until


@pytest.mark.parametrize("shortened", [False, True])
def test_an_opened_body_whose_objects_vanish_is_damage_and_never_short(
    place: TriedFake, shortened: bool
) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7)
        body = await bodies.open(7)
        second = place.ceph.objects(POOL)[object_name(7, 1)]
        if shortened:
            second.data = second.data[:100]
        else:
            del place.ceph.objects(POOL)[object_name(7, 1)]
        at = 4 * MIB + (100 if shortened else 0)
        for offset, length in ((0, len(LONG)), (4 * MIB, 200), (at, 1)):
            with pytest.raises(DataDamaged, match=r"body 7 in rados.* on are missing"):
                await body.read(offset, length)
        assert await body.read(0, 4 * MIB) == LONG[: 4 * MIB]
        place.unmark()
        with pytest.raises(BodiesAway):
            await body.read(0, len(LONG))

    attempt(place, trial)


def test_a_body_of_one_object_takes_two_writes_and_one_more_for_its_end(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        place.ceph.writes.clear()
        await write(bodies, 7, LONG[: 4 * MIB])
        assert place.ceph.writes == [object_name(7)] * 2
        await bodies.remove([7])
        assert place.ceph.writes == [object_name(7)] * 3

    attempt(place, trial)


@pytest.mark.parametrize(("count", "at_once"), [(1, 8), (3, 12)])
def test_some_objects_are_written_at_once_and_memory_is_bounded(
    place: TriedFake, count: int, at_once: int
) -> None:
    """Eight of each body, and twelve in all."""
    goes_on = threading.Event()
    begun: list[int] = []

    async def trial(bodies: ThreadedBodies) -> None:
        async def upload(body_id: int) -> None:
            writing = await bodies.begin(body_id)
            for _ in range(60):
                await writing.write(LONG[:MIB])
                begun.append(body_id)
            await writing.finish()

        with place.ceph.failing("write", "*.*", hold=goes_on):
            uploads = [asyncio.ensure_future(upload(number)) for number in range(count)]
            await until(lambda: place.ceph.most_at_once == at_once)
            await asyncio.sleep(0.2)
            assert place.ceph.most_at_once == at_once
            assert len(begun) < 45 * count
            goes_on.set()
            await asyncio.gather(*uploads)

    few = PlaceLimits(call_s=60, look_s=60, long_s=60, threads=32, pieces=12)
    with mock.patch.object(BodyPool, "limits", few):
        attempt(place, trial)


def test_an_upload_that_waits_for_its_turn_has_one_object_in_memory(place: TriedFake) -> None:
    goes_on = threading.Event()
    data = bytes(41 * MIB)

    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        with place.ceph.failing("write", "*7", hold=goes_on):
            tracemalloc.start()
            upload = asyncio.ensure_future(writing.write(data))
            try:
                await until(lambda: place.ceph.most_at_once == 1 and place.ceph._writing == 1)
                await asyncio.sleep(0.2)
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
                goes_on.set()
                await upload
        await writing.finish()
        # One is on its way, of which the library has a copy, and one waits.
        assert most < 3 * 4 * MIB + MIB

    one = PlaceLimits(call_s=60, look_s=60, long_s=60, threads=8, pieces=1)
    with mock.patch.object(BodyPool, "limits", one):
        attempt(place, trial)


def test_a_body_is_read_while_all_pieces_of_uploads_hang(place: TriedFake) -> None:
    goes_on = threading.Event()

    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 99, b"elsewhere")
        with place.ceph.failing("write", "*.*", hold=goes_on):
            begun = [await bodies.begin(number) for number in range(1, 6)]
            # Each has eight on their way.
            uploads = [asyncio.ensure_future(one.write(bytes(41 * MIB))) for one in begun]
            await until(lambda: place.ceph.most_at_once == bodies.limits.pieces)
            try:
                async with asyncio.timeout(10):
                    assert await read(bodies, 99) == b"elsewhere"
            finally:
                goes_on.set()
                await asyncio.gather(*uploads)
        await asyncio.gather(*(one.finish() for one in begun))

    attempt(place, trial)


@contextlib.contextmanager
def _small_objects() -> Iterator[None]:
    with (
        mock.patch.object(objects, "OBJECT_BYTES", 1000),
        mock.patch.object(pool_body, "OBJECT_BYTES", 1000),
    ):
        yield


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 11, 12, 13, 15, 16, 17, 30, 50])
def test_what_a_dead_gateway_wrote_is_removed_whole(place: TriedFake, count: int) -> None:
    """It dies with some objects on their way, of which the last ones come first."""

    async def trial(bodies: ThreadedBodies) -> None:
        pool = bodies._place
        writing = pool.begin(7)
        calls = list(writing.pieces(bytes(1000 * (count + 8) + 1), 0.0))
        _run(calls[:count])
        _run(calls[count + 1 : count + 8])
        assert len(place.left()) >= count
        assert set(await found(bodies)) == {7}
        await bodies.remove([7])
        assert not place.left()

    with _small_objects():
        attempt(place, trial)


def _run(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()


def test_a_long_upload_stays_young_and_learns_that_it_was_removed(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        pool, ceph = bodies._place, place.ceph
        writing = pool.begin(7)
        for turn in range(20):
            ceph.now += 300
            _run(writing.pieces(bytes(1001), 300.0 * turn))
            assert ceph.now - ceph.objects(POOL)[object_name(7)].changed_at <= 600
        await bodies.remove([7])
        calls = [
            call for turn in range(20, 23) for call in writing.pieces(bytes(1001), 300.0 * turn)
        ]
        with pytest.raises(BodiesAway, match="body 7 was removed"):
            _run(calls)

    with _small_objects():
        attempt(place, trial)


def test_a_removal_that_was_cut_is_repeated_from_what_is_left(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        for names in ("*7", "*.00000001", "*.00000002"):
            await write(bodies, 7)
            with place.ceph.failing("write", names, errno.EIO), pytest.raises(BodiesAway):
                await bodies.remove([7])
            await settled(bodies)
            assert set(await found(bodies)) == {7}
            await bodies.remove([7])
            assert not place.left()

    attempt(place, trial)


def test_a_removal_that_cannot_begin_leaves_nothing_of_others_behind(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7)
        begin = place.ceph.rados_aio_write_op_operate

        def refused(operation: int, io: Any, completion: Any, name: bytes, *rest: Any) -> int:
            if name.endswith(b".00000002"):
                return -errno.ENOMEM
            return begin(operation, io, completion, name, *rest)

        beginning = mock.patch.object(place.ceph, "rados_aio_write_op_operate", refused)
        with beginning, pytest.raises(BodiesAway):
            await bodies.remove([7])
        await settled(bodies)
        assert not place.ceph.completions
        await bodies.remove([7])
        assert not place.left()

    attempt(place, trial)


def _state(place: TriedFake) -> bytes:
    return place.ceph.objects(POOL)[object_name(7)].attributes["state"]


def test_a_body_cannot_be_finished_once_its_removal_has_begun(place: TriedFake) -> None:
    goes_on = threading.Event()

    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        await writing.write(LONG[: 8 * MIB])
        await asyncio.sleep(0.2)
        with place.ceph.failing("write", "*.00000002", hold=goes_on):
            removing = asyncio.ensure_future(bodies.remove([7]))
            await until(lambda: _state(place).startswith(b"removed"))
            with pytest.raises(BodiesAway, match="body 7 was removed"):
                await writing.finish()
            goes_on.set()
            await removing
        assert not place.left()

    attempt(place, trial)


def test_a_writer_removes_what_it_wrote_after_its_body_was_removed(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        await writing.write(LONG[: 5 * MIB])
        await until(lambda: bool(place.ceph.objects(POOL)[object_name(7)].data))
        await bodies.remove([7])
        await writing.write(LONG)
        with pytest.raises(BodiesAway, match="body 7 was removed"):
            await writing.finish()
        assert set(place.left()) == {object_name(7, number) for number in (1, 2, 3)}
        writing.give_up()
        await settled(bodies)
        assert not place.left()

    attempt(place, trial)


@pytest.mark.parametrize("attributes", [{}, {"state": b"?"}, {"state": b"arriving 016"}])
def test_a_body_whose_state_cannot_be_read_is_removed(
    place: TriedFake, attributes: dict[str, bytes]
) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        place.ceph.objects(POOL)[object_name(7)] = StoredObject(b"", attributes)
        async with asyncio.timeout(10):
            await bodies.remove([7])
        assert not place.left()

    attempt(place, trial)


def test_a_body_may_grow_while_its_removal_begins(place: TriedFake) -> None:
    """Its state changes between the read of it and the change that depends on it."""

    async def trial(bodies: ThreadedBodies) -> None:
        pool = bodies._place
        assert isinstance(pool, BodyPool)
        writing = pool.begin(7)
        calls = list(writing.pieces(bytes(30_001), 0.0))
        _run(calls[:12])
        attribute = pool.connection.attribute

        def grown(name: str, key: str) -> bytes:
            state = attribute(name, key)
            while calls[12:]:
                calls.pop(12)()
            return state

        with mock.patch.object(pool.connection, "attribute", grown):
            await bodies.remove([7])
        assert not place.left()

    with _small_objects():
        attempt(place, trial)


def test_objects_without_a_first_one_are_named_by_doctor_and_no_body(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7)
        stray = StoredObject(b"late", {}, place.ceph.now - 5000)
        place.ceph.objects(POOL)[object_name(8, 3)] = stray
        place.ceph.objects(POOL)["something else"] = StoredObject()
        assert await found(bodies) == {7: len(LONG)}

    attempt(place, trial)
    seen = inspect_place(place.url)
    assert sorted(one for page in seen.pages() for one in page) == [7, 8]
    (state,) = seen.states([8])
    assert (state.id, state.size_bytes, state.age_s) == (8, 0, 5000)
    seen.close()
    assert not place.ceph.open


def test_an_inspection_that_nobody_refers_to_any_more_leaves_no_client(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7)

    attempt(place, trial)
    seen = inspect_place(place.url)
    pages = seen.pages()
    assert list(next(pages)) == [7]
    del seen
    assert len(place.ceph.open) == 1
    del pages
    assert not place.ceph.open


def test_long_lists_come_in_pages_and_a_failure_is_told(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        there = place.ceph.objects(POOL)
        for body_id in range(2500):
            there[object_name(body_id)] = StoredObject(b"", {"state": b"whole 0"})
        pages = [len(page) async for page in bodies.ids()]
        assert sum(pages) == 2500
        assert max(pages) <= 1000
        with place.ceph.failing("list", object_name(1500), errno.EIO), pytest.raises(BodiesAway):
            assert [page async for page in bodies.ids()] == []
        await settled(bodies)
        there.clear()
        there[MARK] = StoredObject(OWN.text(), {"turn": OWN.turn.hex.encode()})

    attempt(place, trial)


@pytest.mark.parametrize("hangs", [False, True])
def test_a_list_that_is_left_is_closed_in_a_thread(place: TriedFake, hangs: bool) -> None:
    """Its last read may hang when it is left. The client may have been closed since."""
    goes_on, closed_in = threading.Event(), list[str]()
    list_close, shutdown = place.ceph.rados_nobjects_list_close, place.ceph.rados_shutdown

    def told(call: Callable[[Any], None]) -> Callable[[Any], None]:
        def telling(given: Any) -> None:
            closed_in.append(threading.current_thread().name)
            call(given)

        return telling

    async def trial(bodies: BodyStore) -> None:
        there = place.ceph.objects(POOL)
        there.update({object_name(body_id): StoredObject() for body_id in range(2500)})
        pages = bodies.ids()
        await anext(pages)
        with place.ceph.failing("list", object_name(1500), hold=goes_on):
            if hangs:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(pages), 0.1)
            await bodies.close()
            assert place.ceph.open
            del pages
            await asyncio.sleep(0.1)
            goes_on.set()
        await until(lambda: not place.ceph.open)

    async def whole() -> None:
        await make_place_ready(place.url, OWN)
        bodies = await open_place(place.url)
        closing = mock.patch.object(place.ceph, "rados_nobjects_list_close", told(list_close))
        ending = mock.patch.object(place.ceph, "rados_shutdown", told(shutdown))
        with closing, ending:
            await trial(bodies)

    asyncio.run(whole())
    assert len(closed_in) == 2
    assert threading.current_thread().name not in closed_in


def test_namespaces_of_one_pool_are_places_of_their_own(place: TriedFake) -> None:
    async def whole() -> None:
        async with made(place) as bodies:
            await write(bodies, 7)
            place.url += "&ns=two"
            async with made(place) as other:
                assert await found(other) == {}
                await write(other, 7, b"another one")
            assert await read(bodies, 7) == LONG

    asyncio.run(whole())
    assert pool_of(place.url).namespace == "two"
