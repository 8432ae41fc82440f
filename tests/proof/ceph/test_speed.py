"""Bodies of 64 MiB through an engine into a pool, beside what Ceph's own benchmark does there.

Both write to one pool in turns, so both see the same machine. STRONGROOM_PROOF_TURNS is how often.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import re
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Final

import pytest

from strongroom.clock import SystemClock
from strongroom.engines.base import Step
from strongroom.engines.postgres.assembly import (
    PostgresOptions,
    init_bodies,
    init_store,
    open_store,
)
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import commit, place
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import fresh_schema
from tests.proof.ceph.cluster import CephCluster
from tests.proof.ceph.pools import RealPool

_TURNS: Final = int(os.environ.get("STRONGROOM_PROOF_TURNS", "5"))
_SLICE_S: Final = 10
_BODY: Final = os.urandom(64 * 1024 * 1024)
_CHUNK_BYTES: Final = 256 * 1024
_LEAST: Final = 0.6
_RATE: Final = re.compile(r"Bandwidth \(MB/sec\):\s+([0-9.]+)")


async def _chunks() -> AsyncIterator[bytes]:
    for at in range(0, len(_BODY), _CHUNK_BYTES):
        yield _BODY[at : at + _CHUNK_BYTES]


async def _put(store: PostgresEngine, ids: list[int]) -> None:
    written = await store.contents.write(_chunks(), len(_BODY))
    await commit(store, Step(place(), adopt=(written.id,)))
    ids.append(written.id)


async def _get_next(store: PostgresEngine, ids: Iterator[int]) -> None:
    opened = await store.contents.open(next(ids))
    size_bytes = 0
    async for piece in opened.chunks():
        size_bytes += len(piece)
    opened.close()
    assert size_bytes == len(_BODY)


async def _rate(clients: int, work: Callable[[], Awaitable[None]]) -> float:
    """Return MiB a second, as Ceph's benchmark counts: each client works for some seconds."""
    began, done = time.monotonic(), 0

    async def client() -> None:
        nonlocal done
        while time.monotonic() - began < _SLICE_S:
            await work()
            done += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    return done * len(_BODY) / 2**20 / (time.monotonic() - began)


def _bench(ceph: CephCluster, *arguments: str) -> float:
    answer = ceph.rados("-p", "bodies", "bench", str(_SLICE_S), *arguments, "-t", "16")
    found = _RATE.search(answer)
    assert found is not None, answer
    return float(found[1])


async def _measured(ceph: CephCluster, store: PostgresEngine, clients: int) -> float:
    """Return the ratio of writes. Who comes first changes, since each turn leaves work behind."""
    puts, writes, gets, reads = [], [], [], []
    for turn in range(_TURNS):
        ids: list[int] = []
        if turn % 2:
            puts.append(await _rate(clients, functools.partial(_put, store, ids)))
        write = ("write", "-b", "4M", "--no-cleanup")
        writes.append(await asyncio.to_thread(_bench, ceph, *write))
        if not turn % 2:
            puts.append(await _rate(clients, functools.partial(_put, store, ids)))
        reads.append(await asyncio.to_thread(_bench, ceph, "seq"))
        gets.append(await _rate(clients, functools.partial(_get_next, store, itertools.cycle(ids))))
        await asyncio.to_thread(ceph.rados, "-p", "bodies", "cleanup")
        for content_id in ids:
            await commit(store, Step(place(), drop=(content_id,)))
        await _swept(store)
    _show(f"{clients} clients, GET", gets, reads)
    return _show(f"{clients} clients, PUT", puts, writes)


def _show(name: str, ours: list[float], theirs: list[float]) -> float:
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(
        f"{name} of 64 MiB: {statistics.median(ours):.0f} MiB/s, rados bench "
        f"{statistics.median(theirs):.0f} MiB/s, ratio {ratio:.2f}",
        flush=True,
    )
    return ratio


async def _swept(store: PostgresEngine) -> None:
    for _ in range(4):
        await store.gateways.wait_for_earlier_commits(await store.now())
        await store.maintain()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("clients", [1, 8])
def test_long_bodies_reach_much_of_what_the_pool_takes(
    ceph: CephCluster, postgres: PostgresServer, pool: RealPool, clients: int
) -> None:
    """One body alone has half as many objects on their way as the benchmark: it is only shown."""
    schema = fresh_schema()
    options = PostgresOptions(
        schema=schema, bodies=pool.url, keep_dropped_s=0, observe_s=0.0, connections=4
    )

    async def whole() -> float:
        await init_store(postgres.url, schema)
        await init_bodies(postgres.url, schema, pool.url)
        store = await open_store(postgres.url, SystemClock(), options)
        try:
            return await _measured(ceph, store, clients)
        finally:
            await store.close()

    ratio = asyncio.run(whole())
    assert clients == 1 or ratio >= _LEAST
