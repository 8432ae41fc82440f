"""A pool of Ceph as a place of bodies: refusals, late and lost calls, full pools, new connections.

The pool is one in memory, behind the functions of Ceph's library (fake_librados.py).
"""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from unittest import mock
from uuid import uuid4

import msgspec
import pytest

from strongroom.engines.base import Busy, EngineError, Full
from strongroom.engines.bodies.base import BodiesAway, BodiesUnfit, BodyMissing
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.places import make_place_ready, open_place
from strongroom.engines.bodies.rados import library
from strongroom.engines.bodies.rados.connection import PoolConnection
from strongroom.engines.bodies.rados.objects import MARK, object_name
from strongroom.engines.bodies.threaded import ThreadedBodies
from tests.engines.bodies.contract import (
    LONG,
    MIB,
    OTHER_STORE,
    OWN,
    SECOND,
    THIRD,
    found,
    made,
    opened,
    read,
    settled,
    write,
)
from tests.engines.bodies.fake_librados import StoredObject
from tests.engines.bodies.places import POOL, TriedFake
from tests.engines.bodies.pool_trials import attempt, go_on, until

# What is refused, and with which words.


def test_without_the_library_the_package_is_named(place: TriedFake) -> None:
    missing = OSError("librados.so.2: cannot open shared object file")
    library.librados.cache_clear()
    with (
        mock.patch("strongroom.engines.bodies.rados.connection.librados", library.librados),
        mock.patch.object(library, "shared_library", side_effect=missing),
        pytest.raises(BodiesUnfit, match="Install librados2"),
    ):
        asyncio.run(open_place(place.url))


def test_a_folder_needs_no_library(tmp_path: Path) -> None:
    with (
        mock.patch.object(library, "shared_library", side_effect=AssertionError("it was loaded")),
        pytest.raises(BodiesUnfit, match="no mark"),
    ):
        asyncio.run(open_place(f"file://{tmp_path}"))


def test_the_binding_is_imported_only_where_a_pool_is_named(tmp_path: Path) -> None:
    opening = (
        "import asyncio, sys\n"
        "from strongroom.engines.bodies.places import make_place_ready, open_place\n"
        "from tests.engines.bodies.contract import OWN\n"
        "async def whole():\n"
        "    await make_place_ready(sys.argv[1], OWN)\n"
        "    await (await open_place(sys.argv[1])).close()\n"
        "asyncio.run(whole())\n"
        "print([one for one in sys.modules if 'rados' in one])\n"
    )
    command = [sys.executable, "-c", opening, f"file://{tmp_path}"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ended.stdout == "[]\n"


def test_what_cannot_be_opened_says_what_to_do(place: TriedFake, tmp_path: Path) -> None:
    conf = place.configuration

    def refuses(url: str, words: str) -> None:
        with pytest.raises(BodiesUnfit, match=words):
            asyncio.run(open_place(url))

    refuses(f"rados://{POOL}?conf={tmp_path}/none", "none, cannot be read: No such file")
    refuses(f"rados://other?conf={conf}", "ceph osd pool create other")
    refuses(place.url, "store init URL --bodies 'rados://")
    with place.ceph.failing("read", MARK, errno.EPERM):
        refuses(place.url, "mon 'allow r' and osd 'allow rw pool=bodies'")
    place.ceph.refused = -errno.EACCES
    refuses(f"{place.url}&user=client.rooms", "refuses client.rooms .*keyring")
    conf.write_text("?")
    refuses(place.url, "is no configuration of Ceph")
    assert not place.ceph.open


@pytest.mark.parametrize(("kind", "names"), [("read", MARK), ("write", MARK), ("list", "*")])
def test_a_pool_that_cannot_be_made_ready_names_the_rights(
    place: TriedFake, kind: str, names: str
) -> None:
    place.put_foreign()
    if kind == "write":
        place.ceph.objects(POOL).clear()
    with (
        place.ceph.failing(kind, names, errno.EPERM),
        pytest.raises(BodiesUnfit, match=r"may not read and write it .*ceph auth caps"),
    ):
        asyncio.run(make_place_ready(place.url, OWN))
    assert not place.ceph.open


def test_a_cluster_that_does_not_answer_is_away(place: TriedFake) -> None:
    place.ceph.refused = -errno.ETIMEDOUT
    with pytest.raises(BodiesAway, match="within 10 s"):
        asyncio.run(open_place(place.url))
    assert not place.ceph.open


def test_a_place_for_which_there_are_not_threads_enough_leaves_none_behind(
    place: TriedFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(threading.enumerate())
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name == "bodies-9":
            raise RuntimeError("can't start new thread")
        start(thread)

    async def trial() -> None:
        await make_place_ready(place.url, OWN)
        monkeypatch.setattr(threading.Thread, "start", limited)
        with pytest.raises(Busy, match="thread cannot be started"):
            await open_place(place.url)
        await until(lambda: not place.ceph.open and set(threading.enumerate()) <= before)

    asyncio.run(trial())


def test_no_call_waits_for_ever(place: TriedFake) -> None:
    async def trial(_: ThreadedBodies) -> None:
        limits = ("rados_osd_op_timeout", "rados_mon_op_timeout", "client_mount_timeout")
        assert all(int(place.ceph.options[name]) > 0 for name in limits)

    attempt(place, trial)


# Failing calls.


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("names", ["*7", "*.00000001", "*.00000002"])
def test_a_full_pool_refuses_the_body_and_nothing_else(
    place: TriedFake, names: str, number: int
) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 8)
        writing = await bodies.begin(7)
        with place.ceph.failing("write", names, number), pytest.raises(Full):
            await go_on(writing)
        writing.give_up()
        await settled(bodies)
        assert await found(bodies) == {8: len(LONG)}
        await bodies.remove([8])
        assert not place.left()

    attempt(place, trial)


@pytest.mark.parametrize("number", [errno.EIO, errno.ETIMEDOUT, errno.ENOTCONN])
@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_call_that_fails_is_unavailable_and_ends_no_gateway(
    place: TriedFake, kind: str, number: int
) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        ended: list[EngineError] = []
        bodies.on_broken(ended.append)
        await write(bodies, 7)
        body = await bodies.open(7)
        names = "*8*" if kind == "write" else "*7*"
        with place.ceph.failing(kind, names, number), pytest.raises(BodiesAway):
            await (write(bodies, 8) if kind == "write" else body.read(0, 1))
        await settled(bodies)
        assert await body.read(0, 1) == LONG[:1]
        await write(bodies, 9)
        assert ended == []

    attempt(place, trial)


def test_calls_that_fail_together_make_one_look(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7)
        body = await bodies.open(7)
        look, told, looks = bodies._place.look, threading.Event(), 0

        def slowly() -> BodiesMark:
            nonlocal looks
            looks += 1
            told.wait(10)
            return look()

        bodies._place.look = slowly  # type: ignore[method-assign]  # a double
        with place.ceph.failing("read", "*7*", errno.EIO):
            reads = (body.read(0, 1) for _ in range(20))
            failed = await asyncio.gather(*reads, return_exceptions=True)
        assert all(isinstance(one, BodiesAway) for one in failed)
        told.set()
        await settled(bodies)
        assert looks == 1

    attempt(place, trial)


@pytest.mark.parametrize("names", ["*7", "*.00000001", "*.00000002"])
def test_a_write_that_happens_after_it_was_given_up_leaves_what_the_sweep_finds(
    place: TriedFake, names: str
) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        late = place.ceph.failing("write", names, errno.ETIMEDOUT, is_late=True)
        with late, pytest.raises(BodiesAway):
            await go_on(writing)
        writing.give_up()
        await settled(bodies)
        place.ceph.carry_out()
        assert set(await found(bodies)) == {7}
        await bodies.remove([7])
        assert not place.left()

    attempt(place, trial)


def test_a_body_whose_begin_happens_late_is_found_by_the_sweep(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        late = place.ceph.failing("write", "*7", errno.ETIMEDOUT, is_late=True)
        with late, pytest.raises(BodiesAway):
            await bodies.begin(7)
        place.ceph.carry_out()
        assert await found(bodies) == {7: 0}
        with pytest.raises(BodyMissing):
            await bodies.open(7)

    attempt(place, trial)


# The mark.


@pytest.mark.parametrize("other", [SECOND, OTHER_STORE])
def test_a_pool_that_two_make_ready_at_once_belongs_to_one_store(
    place: TriedFake, other: BodiesMark
) -> None:
    goes_on = threading.Event()

    async def trial() -> None:
        with place.ceph.failing("write", MARK, hold=goes_on):
            both = [
                asyncio.ensure_future(make_place_ready(place.url, mark)) for mark in (OWN, other)
            ]
            await until(lambda: place.ceph.most_at_once == 2)
            goes_on.set()
            ends = await asyncio.gather(*both, return_exceptions=True)
        refused = [str(end) for end in ends if isinstance(end, BodiesUnfit)]
        assert len(refused) + ends.count(None) == 2
        assert len(refused) == (other.store != OWN.store)
        assert all("another store" in words for words in refused)

    asyncio.run(trial())
    assert not place.ceph.open


@pytest.mark.parametrize("other", [SECOND, OTHER_STORE])
def test_a_mark_that_comes_while_a_pool_is_made_ready_is_judged(
    place: TriedFake, other: BodiesMark
) -> None:
    names = PoolConnection.names

    def meanwhile(connection: PoolConnection) -> Iterator[str]:
        place.ceph.objects(POOL)[MARK] = StoredObject(other.text())
        return names(connection)

    is_refused = other.store != OWN.store
    expected = pytest.raises(BodiesUnfit, match="another store") if is_refused else nullcontext()
    with mock.patch.object(PoolConnection, "names", meanwhile), expected:
        asyncio.run(make_place_ready(place.url, OWN))


def test_a_mark_that_is_put_late_replaces_none_that_was_put_since(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        late = place.ceph.failing("write", MARK, errno.ETIMEDOUT, is_late=True)
        with late, pytest.raises(BodiesAway):
            await bodies.put_mark(SECOND)
        assert await bodies.look() == OWN
        async with opened(place.url) as other:
            await other.put_mark(THIRD)
        place.ceph.carry_out()
        assert await bodies.look() == THIRD

    attempt(place, trial)


def test_a_mark_that_was_not_seen_is_not_replaced(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        async with opened(place.url) as other:
            await other.put_mark(THIRD)
            with pytest.raises(BodiesAway, match="changed meanwhile"):
                await bodies.put_mark(SECOND)
            assert await other.look() == THIRD

    attempt(place, trial)


# Connections.


def test_after_a_blocklisting_the_next_look_makes_a_new_connection(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        await writing.write(LONG)
        there = place.ceph.objects(POOL)
        await until(lambda: sum(len(there[name].data) for name in place.left()) == 8 * MIB)
        place.ceph.blocklisted |= (before := set(place.ceph.open))
        with pytest.raises(BodiesAway):
            await bodies.begin(8)
        await settled(bodies)
        assert await bodies.look() == OWN
        await writing.finish()
        assert await read(bodies, 7) == LONG
        assert len(place.ceph.open) == 1
        assert place.ceph.open.isdisjoint(before)

    attempt(place, trial)


def test_another_pool_of_the_same_name_is_away_until_it_has_the_mark(place: TriedFake) -> None:
    async def trial(bodies: ThreadedBodies) -> None:
        await write(bodies, 7)
        kept = dict(place.ceph.objects(POOL))
        place.ceph.make_pool(POOL)
        with pytest.raises(BodiesAway, match="no mark"):
            await bodies.open(7)
        with pytest.raises(BodiesAway, match="no mark"):
            await bodies.begin(8)
        assert not place.left()
        place.ceph.objects(POOL).update(kept)
        await bodies.look()
        assert await read(bodies, 7) == LONG

    attempt(place, trial)


def test_nothing_is_written_to_or_removed_from_the_pool_of_another_store(place: TriedFake) -> None:
    """It has the name of the one in which an upload has begun."""

    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        await writing.write(LONG)
        kept = dict(place.ceph.objects(POOL))
        place.ceph.make_pool(POOL)
        foreign = msgspec.structs.replace(OWN, store=uuid4())
        there = place.ceph.objects(POOL)
        there[MARK] = StoredObject(foreign.text())
        there[object_name(7)] = StoredObject(b"theirs", {"state": b"whole 6"})
        with pytest.raises(BodiesAway, match="another store"):
            await bodies.look()
        with pytest.raises(BodiesAway):
            await writing.finish()
        writing.give_up()
        await settled(bodies)
        assert set(there) == {MARK, object_name(7)}
        assert there[object_name(7)].data == b"theirs"
        place.ceph.make_pool(POOL)
        place.ceph.objects(POOL)[MARK] = kept[MARK]

    attempt(place, trial)


def test_an_upload_ends_in_no_copy_of_its_pool(place: TriedFake) -> None:
    """The copy was made while it was written, and took the name. Objects may be missing in it."""

    async def trial(bodies: ThreadedBodies) -> None:
        writing = await bodies.begin(7)
        await writing.write(LONG[: 5 * MIB])
        await until(lambda: bool(place.ceph.objects(POOL)[object_name(7)].data))
        copy = dict(place.ceph.objects(POOL))
        await writing.write(LONG[5 * MIB : 9 * MIB])
        await until(lambda: len(place.left()) == 2)
        place.ceph.make_pool(POOL)
        place.ceph.objects(POOL).update(copy)
        await bodies.look()
        with pytest.raises(BodiesAway, match="its pool was replaced"):
            await writing.finish()
        with pytest.raises(BodyMissing):
            await bodies.open(7)
        writing.give_up()
        await settled(bodies)
        assert set(await found(bodies)) == {7}, "the sweep removes it"

    attempt(place, trial)


def test_a_pool_closes_when_its_last_call_has_ended(place: TriedFake) -> None:
    goes_on = threading.Event()

    async def trial() -> None:
        async with made(place) as bodies:
            await write(bodies, 7)
            with place.ceph.failing("read", "*7", hold=goes_on):
                opening = asyncio.ensure_future(bodies.open(7))
                await asyncio.sleep(0.05)
                await bodies.close()
                assert len(place.ceph.open) == 1
                goes_on.set()
                assert (await opening).size_bytes == len(LONG)

    asyncio.run(trial())
    assert not place.ceph.open
