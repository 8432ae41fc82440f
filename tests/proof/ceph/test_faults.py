"""A pool whose cluster refuses or does not answer: rights, quotas, blocklists, stopped OSDs."""

from __future__ import annotations

import asyncio
import ctypes
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from strongroom.engines.base import Full
from strongroom.engines.bodies.base import BodiesAway, BodiesUnfit
from strongroom.engines.bodies.places import make_place_ready, open_place
from strongroom.engines.bodies.rados import connection, library
from strongroom.engines.bodies.rados.pool import BodyPool
from strongroom.engines.bodies.threaded import ThreadedBodies
from strongroom.engines.bodies.urls import PoolUrl
from strongroom.testing.ports import HOST, free_port
from tests.engines.bodies.contract import LONG, MIB, OWN, found, made, read, settled, write
from tests.proof.ceph.cluster import CephCluster
from tests.proof.ceph.pools import RealPool

_OPERATION_S = 4
_LEAVING = """
import asyncio, sys
from strongroom.engines.bodies.places import open_place
async def leave():
    bodies = await open_place(sys.argv[1])
    writing = await bodies.begin(int(sys.argv[2]))
    print("begun", flush=True)
    sys.stdin.readline()
    for _ in range(12):
        await writing.write(bytes(1048576))
    calls = [asyncio.ensure_future(call) for call in (bodies.open(1), bodies.look())]
    await asyncio.sleep(0.2)
    if sys.argv[3] == "closes":
        await bodies.close()
asyncio.run(leave())
print("end", flush=True)
"""


@contextmanager
def _stopped(ceph: CephCluster) -> Iterator[None]:
    ceph.pause()
    try:
        yield
    finally:
        ceph.resume()


def test_each_refusal_says_what_to_do(ceph: CephCluster, pool: RealPool, tmp_path: Path) -> None:
    right = ("mon", "allow r", "osd", "allow rw pool=bodies")
    other = ceph.user("other", "mon", "allow r", "osd", "allow rw pool=coded")
    rooms = ceph.user("rooms", *right)
    alien = tmp_path / "ceph.conf"
    alien.write_text("no configuration\n")
    away = tmp_path / "away.conf"
    nobody = f"mon host = {HOST}:{free_port()}"
    away.write_text(re.sub("mon host = .*", nobody, ceph.configuration.read_text()))
    for url, words in (
        (PoolUrl("bodies", str(tmp_path / "none")), "cannot be read: No such file"),
        (PoolUrl("bodies", str(alien)), "no configuration of Ceph"),
        (PoolUrl("nobody", str(ceph.configuration)), "ceph osd pool create nobody"),
        (PoolUrl("bodies", str(other), "", "client.other"), "osd 'allow rw pool=bodies'"),
        (PoolUrl("bodies", str(rooms), "empty", "client.rooms"), "no mark"),
    ):
        with pytest.raises(BodiesUnfit, match=words):
            asyncio.run(open_place(str(url)))
    with pytest.raises(BodiesAway, match="within 10 s"):
        asyncio.run(open_place(str(PoolUrl("bodies", str(away)))))


def test_a_user_with_the_rights_of_the_manual_can_do_all(ceph: CephCluster) -> None:
    namespace = "osd", "allow rw pool=bodies namespace=rooms"
    conf = ceph.user("tenant", "mon", "allow r", *namespace)
    url = str(PoolUrl("bodies", str(conf), "rooms", "client.tenant"))

    async def trial() -> None:
        await make_place_ready(url, OWN)
        bodies = await open_place(url)
        writing = await bodies.begin(7)
        await writing.write(LONG)
        await writing.finish()
        assert [one async for page in bodies.ids() for one in page] == [7]
        await bodies.put_mark(OWN)
        await bodies.remove([7])
        await bodies.close()

    asyncio.run(trial())


async def _fill(bodies: ThreadedBodies, kept: list[int]) -> None:
    for body_id in range(100):
        await write(bodies, body_id)
        kept.append(body_id)
        await asyncio.sleep(0.5)


def test_a_full_pool_takes_no_body_and_gives_all_others(ceph: CephCluster) -> None:
    """The pool's quota is noticed by the cluster some seconds later."""
    ceph.make_pool("small", 8)
    ceph.run("osd", "pool", "set-quota", "small", "max_bytes", str(32 * MIB))
    place = RealPool(ceph, "small")

    async def trial() -> None:
        async with made(place) as bodies:
            kept: list[int] = []
            with pytest.raises(Full):
                await _fill(bodies, kept)
            assert bodies.why_away() is None
            for body_id in kept:
                assert await read(bodies, body_id) == LONG
            await bodies.remove(list(await found(bodies)))
            assert await found(bodies) == {}
            until = time.monotonic() + 60
            while time.monotonic() < until:
                try:
                    await write(bodies, 1000)
                    break
                except Full:
                    await asyncio.sleep(0.5)
            assert await read(bodies, 1000) == LONG

    asyncio.run(trial())
    place.close()


def _address(bodies: ThreadedBodies) -> str:
    """Return by which address a cluster knows this client."""
    place, found = bodies._place, ctypes.c_char_p()
    assert isinstance(place, BodyPool)
    tell = ctypes.CDLL(library.NAME).rados_getaddrs
    tell.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p))
    assert tell(place.connection._cluster, ctypes.byref(found)) == 0
    return (found.value or b"").decode()


def test_after_a_blocklisting_the_next_look_brings_it_back(
    ceph: CephCluster, pool: RealPool
) -> None:
    async def trial() -> None:
        async with made(pool) as bodies:
            await write(bodies, 7)
            ceph.run("osd", "blocklist", "add", _address(bodies))
            until = time.monotonic() + 30
            while bodies.why_away() is None:
                assert time.monotonic() < until, "it is not refused"
                try:
                    await read(bodies, 7)
                except BodiesAway:
                    break
                await asyncio.sleep(0.1)
            await settled(bodies)
            assert await bodies.look() == OWN
            assert await read(bodies, 7) == LONG
            await write(bodies, 8)

    asyncio.run(trial())


def test_osds_that_do_not_answer_are_away_and_nothing_hangs(
    ceph: CephCluster, pool: RealPool
) -> None:
    """What was given up may be carried out later: the sweep finds all of it."""

    async def trial() -> None:
        async with made(pool) as bodies:
            await write(bodies, 7)
            writing = await bodies.begin(8)
            with _stopped(ceph):
                await writing.write(LONG)
                began = time.monotonic()
                calls = (writing.finish(), bodies.look(), bodies.begin(9), read(bodies, 7))
                ends = await asyncio.gather(*calls, return_exceptions=True)
                assert all(isinstance(one, BodiesAway) for one in ends), ends
                print(f"given up after {time.monotonic() - began:.1f} s")
                writing.give_up()
                await settled(bodies)
            until = time.monotonic() + 60
            while True:
                try:
                    assert await bodies.look() == OWN
                    assert await read(bodies, 7) == LONG
                    break
                except BodiesAway:
                    assert time.monotonic() < until
                    await asyncio.sleep(0.5)
            await asyncio.sleep(2)
            assert set(await found(bodies)) >= {7}
            await bodies.remove([one async for page in bodies.ids() for one in page])
        assert not pool.left()

    limited = {**connection._OPTIONS, "rados_osd_op_timeout": _OPERATION_S}
    with mock.patch.object(connection, "_OPTIONS", limited):
        asyncio.run(trial())
    ceph.wait_until_whole()


def test_without_a_monitor_what_is_connected_goes_on(ceph: CephCluster, pool: RealPool) -> None:
    async def trial() -> None:
        async with made(pool) as bodies:
            ceph.monitor.send(signal.SIGSTOP)
            try:
                await write(bodies, 7)
                assert await read(bodies, 7) == LONG
                assert await bodies.look() == OWN
                with pytest.raises(BodiesAway, match="within 10 s"):
                    await open_place(pool.url)
            finally:
                ceph.monitor.send(signal.SIGCONT)

    asyncio.run(trial())
    ceph.wait_until_whole()


def test_a_pool_that_was_renamed_is_away_until_it_has_its_name_again(ceph: CephCluster) -> None:
    ceph.make_pool("moving", 8)
    place = RealPool(ceph, "moving")

    async def trial() -> None:
        async with made(place) as bodies:
            await write(bodies, 7)
            ceph.run("osd", "pool", "rename", "moving", "elsewhere")
            with pytest.raises(BodiesAway, match="there is no pool moving"):
                await _looked(bodies, lambda: False)
            ceph.run("osd", "pool", "rename", "elsewhere", "moving")
            await _looked(bodies, lambda: True)
            assert await read(bodies, 7) == LONG

    asyncio.run(trial())
    place.close()


async def _looked(bodies: ThreadedBodies, ends: Callable[[], bool]) -> None:
    """Look until it may end. A client learns of a change of pools within seconds."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            await bodies.look()
            if ends():
                return
        except BodiesAway:
            if not ends():
                raise
        await asyncio.sleep(0.5)
    raise AssertionError("it does not change")


@pytest.mark.parametrize("way", ["closes", "leaves"])
def test_a_process_ends_whatever_its_calls_wait_for(
    ceph: CephCluster, pool: RealPool, way: str
) -> None:
    asyncio.run(make_place_ready(pool.url, OWN))
    leaving = subprocess.Popen(
        [sys.executable, "-c", _LEAVING, pool.url, "7", way],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert leaving.stdin is not None
    assert leaving.stdout is not None
    assert leaving.stdout.readline() == "begun\n"
    began = time.monotonic()
    with _stopped(ceph):
        said, _ = leaving.communicate("\n", timeout=30)
    assert (leaving.returncode, said) == (0, "end\n")
    print(f"{way}: ended after {time.monotonic() - began:.1f} s")
    ceph.wait_until_whole()
