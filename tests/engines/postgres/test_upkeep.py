"""What a gateway tidies up: dropped bodies, what dead gateways left, old stamps. What it counts.

`maintain` is called where a gateway would call it by itself after some seconds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from strongroom.engines.base import Step, StorageEngine, Write
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import (
    body_of,
    commit,
    content,
    face,
    hidden,
    pieces,
    place,
    put,
)
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.mutants import without_horizon
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject

Trial = Callable[[PostgresSubject, Administrator], Awaitable[None]]
_LONG_BYTES = 600_000
_SIZES = (0, 100, 60_000, 70_000, 300_000)


def _try(trial: Trial, server: PostgresServer, administrator: Administrator) -> None:
    async def whole() -> None:
        subject = PostgresSubject(server.url, administrator)
        await subject.start()
        try:
            await trial(subject, administrator)
        finally:
            await subject.stop()

    asyncio.run(whole())


async def _owned(store: StorageEngine, size_bytes: int = _LONG_BYTES) -> int:
    written = await store.contents.write(pieces(bytes(size_bytes), 50_000), size_bytes)
    await commit(store, Step(place(), adopt=(written.id,)))
    return written.id


async def _tidy(*stores: StorageEngine) -> None:
    """Let all gateways send the heartbeats by which the horizon lags, and then tidy up."""
    for _ in range(3):
        for store in stores:
            await store.gateways.wait_for_earlier_commits(await store.now())
    for store in stores:
        assert isinstance(store, PostgresEngine)
        await store.maintain()


def _left(subject: PostgresSubject, administrator: Administrator) -> dict[str, int]:
    """How many rows there are of bodies."""
    tables = ("contents", "chunks", "dropped")
    return {
        table: administrator.value(f"SELECT count(*) FROM {subject.schema}.{table}")
        for table in tables
    }


async def _pinned(subject: PostgresSubject, administrator: Administrator) -> None:
    one, two = subject.store, await subject.second()
    body = await _owned(one)
    pins = [await store.contents.open(body) for store in (one, two)]
    await commit(two, Step(place(), drop=(body,)))
    for number, pin in enumerate(pins):
        await _tidy(one, two)
        assert await body_of(pin) == bytes(_LONG_BYTES), f"gateway {number} still reads it"
        pin.close()
    await _tidy(one, two)
    assert _left(subject, administrator) == {"contents": 0, "chunks": 0, "dropped": 0}


def test_a_dropped_body_stays_until_no_gateway_reads_it(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    _try(_pinned, postgres, administrator)


def test_without_the_horizon_it_would_be_deleted_under_its_reader(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    with without_horizon(), pytest.raises(Exception, match="missing"):
        _try(_pinned, postgres, administrator)


async def _orphans(subject: PostgresSubject, administrator: Administrator) -> None:
    one, two = subject.store, await subject.second()
    for size_bytes in _SIZES:
        await two.contents.write(pieces(bytes(size_bytes)), size_bytes)
    kept = [await one.contents.write(pieces(bytes(size)), size) for size in _SIZES]
    await _tidy(one, two)
    assert _left(subject, administrator)["contents"] == 2 * len(_SIZES), "it may yet be adopted"
    subject.stop_heartbeats(two)
    subject.clock.advance(11)
    await one.gateways.hold(b"lane")  # this declares the other one dead
    await _tidy(one)
    assert _left(subject, administrator)["contents"] == len(_SIZES)
    for written in kept:
        await commit(one, Step(place(), adopt=(written.id,)))
        assert await content(one, written.id) == bytes(written.size_bytes)
        await commit(one, Step(place(), drop=(written.id,)))
    await _tidy(one)
    assert _left(subject, administrator) == {"contents": 0, "chunks": 0, "dropped": 0}


def test_what_a_dead_gateway_wrote_and_nobody_adopted_is_deleted(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    _try(_orphans, postgres, administrator)


async def _given_up(subject: PostgresSubject, administrator: Administrator) -> None:
    """Uploads that fail, that are cancelled at any point, and whose bodies are discarded."""
    store = subject.store

    async def failing() -> object:
        yield bytes(_LONG_BYTES)
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await store.contents.write(failing(), None)  # type: ignore[arg-type]
    for turns in (1, 3, 10, 30, 60, 100):
        writing = asyncio.create_task(
            store.contents.write(pieces(bytes(_LONG_BYTES), 50_000), None)
        )
        for _ in range(turns):
            await asyncio.sleep(0.0002)
        writing.cancel()
        (ended,) = await asyncio.gather(writing, return_exceptions=True)
        if not isinstance(ended, BaseException):
            store.contents.discard(ended.id)
    for size_bytes in _SIZES:
        store.contents.discard((await store.contents.write(pieces(bytes(size_bytes)), None)).id)
    await subject.restart()
    await _tidy(subject.store)
    assert _left(subject, administrator) == {"contents": 0, "chunks": 0, "dropped": 0}


def test_an_upload_that_was_given_up_leaves_nothing(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    _try(_given_up, postgres, administrator)


async def _counted(subject: PostgresSubject, administrator: Administrator) -> None:
    """Random writes, bodies, drops and deletions, some in commits that break."""
    chance, stores = random.Random(7), [subject.store, await subject.second()]
    bodies: list[int] = []
    for turn in range(120):
        store = stores[turn % 2]
        ref = chance.choice((face, hidden))(b"%d" % chance.randrange(6))
        value = None if chance.random() < 0.3 else bytes(chance.randrange(2000))
        adopt, drop = [], []
        if chance.random() < 0.3:
            size_bytes = chance.choice(_SIZES)
            written = await store.contents.write(pieces(bytes(size_bytes)), size_bytes)
            if chance.random() < 0.7:
                adopt.append(written.id)
            else:
                store.contents.discard(written.id)
        if bodies and chance.random() < 0.3:
            drop.append(bodies.pop(chance.randrange(len(bodies))))
        if turn % 20 == 10:
            subject.break_next_commit()
        writes = (Write(ref.key, value), Write(ref.key, value))
        await commit(store, Step(place(), writes, tuple(adopt), tuple(drop)))
        bodies += adopt
    for one in stores:
        await one.close()
    await subject.restart()
    await _tidy(subject.store)
    assert await _used(subject) == _actual(subject, administrator)


async def _used(subject: PostgresSubject) -> int:
    await subject.store.gateways.horizon()
    return subject.gateway.space.used_bytes


def _actual(subject: PostgresSubject, administrator: Administrator) -> int:
    schema = subject.schema
    return int(
        administrator.value(
            f"SELECT coalesce((SELECT sum(length(place) + length(value)) FROM {schema}.records), 0)"
            f" + coalesce((SELECT sum(size) FROM {schema}.contents), 0)"
        )
    )


def test_the_bytes_of_the_quota_are_those_that_are_there(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    _try(_counted, postgres, administrator)


async def _forgotten(subject: PostgresSubject, administrator: Administrator) -> None:
    one, ahead = subject.store, await subject.second(5.0)
    stamps = [await put(ahead, (face(b"", b"%d" % number), b"")) for number in range(50)]
    rows = f"SELECT count(*) FROM {subject.schema}.partitions"
    assert administrator.value(rows) == 50
    await _tidy(one, ahead)
    await _tidy(one, ahead)
    assert administrator.value(rows) == 0
    for number, stamp in enumerate(stamps):
        assert await put(one, (face(b"other", b"%d" % number), b"")) > stamp, "a stamp fell"


def test_stamps_of_partitions_are_forgotten_when_nothing_older_can_happen(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    _try(_forgotten, postgres, administrator)
