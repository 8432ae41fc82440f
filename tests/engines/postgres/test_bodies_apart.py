"""Long bodies in a folder: what stays, what is removed and by whom, and which databases may serve.

`maintain` is called where a gateway would work by itself after some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final
from unittest import mock

import msgspec
import pytest

from strongroom.engines.base import DataDamaged, EngineError, Step, StorageEngine
from strongroom.engines.bodies import layout
from strongroom.engines.bodies.base import BodiesAway, BodiesUnfit
from strongroom.engines.bodies.layout import BodyFolder, name_of
from strongroom.engines.gateways import Horizon
from strongroom.engines.postgres.apart.sweep import ApartSweep
from strongroom.engines.postgres.apart.turns import Turns
from strongroom.engines.postgres.assembly import init_bodies, open_store
from strongroom.engines.postgres.place_adoption import PlaceAdoption
from strongroom.engines.postgres.sessions.session import DatabaseUnfit
from strongroom.engines.postgres.sql.making import init_sql
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.platform.open_folder import OpenFolder
from strongroom.testing.contract.subject import body_of, commit, content, pieces, place
from strongroom.values import Health
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.mutants import without_horizon
from tests.engines.postgres.servers import Administrator, fresh_schema
from tests.engines.postgres.subject import PostgresSubject

BODY: Final = os.urandom(200_000)
CAUGHT: Final = (AssertionError, pytest.fail.Exception)
DAY_S: Final = 24 * 3600


class Apart(PostgresSubject):
    """A store with bodies apart, and copies of its database."""

    def __init__(self, url: str, administrator: Administrator, folder: Path) -> None:
        super().__init__(url, administrator, bodies=folder)
        self.folder, self.url, self.sql = folder, url, administrator

    def copied(self) -> str:
        """Copy the whole database, with all rows as they are; return its schema."""
        copy = fresh_schema()
        tables = self.sql.run(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (self.schema,)
        )
        self.sql.run(init_sql(copy))
        for (table,) in tables:
            self.sql.run(f"DELETE FROM {copy}.{table}")
            self.sql.run(f"INSERT INTO {copy}.{table} SELECT * FROM {self.schema}.{table}")
        return copy

    async def opened(self, schema: str | None = None, **changed: object) -> PostgresEngine:
        options = msgspec.structs.replace(self.options, **changed)
        if schema is not None:
            options = msgspec.structs.replace(options, schema=schema)
        engine = await open_store(self.url, self.clock, options)
        self._gateways.append(engine)
        return engine

    def files(self) -> set[int]:
        return {int(one.name, 16) for one in self.folder.glob("bodies/*/*")}

    def age(self, content_id: int, age_s: float) -> None:
        """Let a file be older than it is."""
        then = time.time() - age_s
        os.utime(self.folder / name_of(content_id), (then, then))


Trial = Callable[[Apart], Awaitable[None]]


@pytest.fixture
def attempt(
    postgres: PostgresServer, administrator: Administrator, tmp_path: Path
) -> Callable[[Trial], None]:
    """Run a trial with a fresh store."""

    def run(trial: Trial) -> None:
        async def whole() -> None:
            subject = Apart(postgres.url, administrator, tmp_path)
            await subject.start()
            try:
                await trial(subject)
            finally:
                await subject.stop()

        asyncio.run(whole())

    return run


async def _owned(store: StorageEngine, body: bytes = BODY) -> int:
    written = await store.contents.write(pieces(body, 50_000), len(body))
    await commit(store, Step(place(), adopt=(written.id,)))
    return written.id


async def _tidy(*stores: StorageEngine, rounds: int = 3) -> None:
    """Let the gateways send the heartbeats by which the horizon lags, take turns, and tidy up."""
    for _ in range(rounds):
        for store in stores:
            await store.gateways.wait_for_earlier_commits(await store.now())
            assert isinstance(store, PostgresEngine)
            await store.maintain()


# What stays, and what is removed.


async def _lives(subject: Apart) -> None:
    one, two = subject.store, await subject.second()
    body = await _owned(one)
    assert await content(two, body) == BODY
    pins = [await store.contents.open(body) for store in (one, two)]
    await commit(two, Step(place(), drop=(body,)))
    for pin in pins:
        await _tidy(one, two)
        assert await body_of(pin) == BODY
        assert subject.files() == {body}, "it is still read"
        pin.close()
    await _tidy(one, two)
    assert subject.files() == set()


def test_a_dropped_file_stays_until_no_gateway_reads_it(attempt: Callable[[Trial], None]) -> None:
    attempt(_lives)


def test_without_the_horizon_it_is_removed_too_soon(attempt: Callable[[Trial], None]) -> None:
    with without_horizon(), pytest.raises(AssertionError, match="still read"):
        attempt(_lives)


async def _kept(subject: Apart) -> None:
    """Dropped bodies, and those without a row, stay as long as is asked for."""
    await subject.store.close()
    store = await subject.opened(keep_dropped_s=7 * DAY_S)
    dropped, unowned, owned = [await _owned(store) for _ in range(3)]
    await commit(store, Step(place(), drop=(dropped,)))
    subject.sql.run(f"DELETE FROM {subject.schema}.contents WHERE id = {unowned}")
    for days, left in ((6, {dropped, unowned, owned}), (8, {owned})):
        subject.sql.run(f"UPDATE {subject.schema}.dropped SET at = now() - interval '{days} days'")
        for one in (dropped, unowned, owned):
            if one in subject.files():
                subject.age(one, days * DAY_S)
        store._parts.upkeep._apart[1]._next_orphans_s = 0.0  # type: ignore[index]
        await _tidy(store)
        assert subject.files() == left, f"after {days} days"
    assert await content(store, owned) == BODY


def test_what_nobody_needs_stays_for_a_week(attempt: Callable[[Trial], None]) -> None:
    attempt(_kept)


async def _still_arriving(subject: Apart) -> None:
    """A client pauses for longer than dropped bodies are kept, which is no time at all here."""
    store = subject.gateway
    await _tidy(store)
    goes_on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield BODY[:150_000]
        await goes_on.wait()
        yield BODY[150_000:]

    writing = asyncio.create_task(store.contents.write(slow(), len(BODY)))
    await _until(lambda: len(subject.files()) == 1)
    (arriving,) = subject.files()
    left = arriving - 1
    (subject.folder / name_of(left)).write_bytes(BODY)
    for hours, wanted in ((20, {arriving, left}), (25, {arriving})):
        subject.age(left, hours * 3600)
        await _sweep(store).remove_orphans()
        assert subject.files() == wanted
    goes_on.set()
    written = await writing
    await commit(store, Step(place(), adopt=(written.id,)))
    assert await content(store, written.id) == BODY


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it does not come")


def _sweep(store: PostgresEngine) -> ApartSweep:
    apart = store._parts.upkeep._apart
    assert apart is not None
    return apart[1]


def test_a_body_that_still_arrives_is_no_orphan(attempt: Callable[[Trial], None]) -> None:
    attempt(_still_arriving)


async def _interrupted(subject: Apart) -> None:
    """A walk through the folder fails; the next one comes soon, and only where it may."""
    store, other = subject.gateway, await subject.second()
    await _tidy(store)
    left = await _owned(store)
    subject.sql.run(f"DELETE FROM {subject.schema}.contents WHERE id = {left}")
    subject.age(left, 25 * 3600)
    again = mock.patch("strongroom.engines.postgres.apart.sweep._ORPHANS_AGAIN_S", 0.0)
    failing = mock.patch.object(BodyFolder, "ids", side_effect=OSError(errno.EIO, "it failed"))
    _sweep(store)._next_orphans_s = 0.0
    with again:
        with failing, pytest.raises(BodiesAway):
            await store._parts.upkeep.tend()
        await _tidy(store)
    assert subject.files() == set()
    assert isinstance(other, PostgresEngine)

    async def asked() -> Horizon:
        raise AssertionError("only one gateway needs to know what may be removed")

    assert not await _sweep(other).remove_dropped(asked)


def test_a_walk_that_failed_is_repeated_soon(attempt: Callable[[Trial], None]) -> None:
    attempt(_interrupted)


async def _full(subject: Apart) -> None:
    """No mark can be written for longer than the database remembers turns."""
    store = subject.gateway
    await _tidy(store)
    body = await _owned(store)
    ended: list[EngineError] = []
    store.on_fatal(ended.append)
    refused = mock.patch.object(
        layout, "write_mark", side_effect=OSError(errno.ENOSPC, "no space is left")
    )
    with refused as writes, mock.patch("strongroom.engines.postgres.apart.turns.TURN_S", 0.0):
        for _ in range(40):
            with contextlib.suppress(BodiesAway):
                await _tidy(store, rounds=1)
        assert writes.call_count > 16
    await _tidy(store)
    assert ended == []
    assert await content(store, body) == BODY


def test_a_folder_that_takes_no_mark_is_still_that_of_its_database(
    attempt: Callable[[Trial], None],
) -> None:
    attempt(_full)


@contextlib.contextmanager
def _hanging() -> Iterator[set[str]]:
    """Files can neither be removed nor listed meanwhile. Yield which calls have begun to hang."""
    goes_on = threading.Event()
    begun: set[str] = set()

    def hang(call: str) -> list[object]:
        begun.add(call)
        goes_on.wait(120)
        return []

    with contextlib.ExitStack() as patches:
        for call in ("remove", "ids"):
            hanging = mock.Mock(side_effect=lambda *_, call=call: hang(call))
            patches.enter_context(mock.patch.object(BodyFolder, call, hanging))
        try:
            yield begun
        finally:
            goes_on.set()


async def _hung(subject: Apart) -> None:
    """Files can neither be removed nor listed for a while, and all else goes on."""
    store = subject.gateway
    await _tidy(store)
    bodies = store._parts.bodies
    assert bodies is not None
    with _hanging() as begun:
        _sweep(store)._next_orphans_s = 0.0
        long = await store.contents.write(pieces(BODY), len(BODY))
        short = await store.contents.write(pieces(b"short"), 5)
        store.contents.discard(long.id)
        await asyncio.sleep(0)
        store.contents.discard(short.id)
        rows = f"SELECT 1 FROM {subject.schema}.contents WHERE id IN ({long.id}, {short.id})"
        async with asyncio.timeout(60):
            await _until(lambda: not subject.sql.run(rows) and len(begun) == 2)
            (subject.folder / layout.MARK).rename(subject.folder / "away")
            await _until(lambda: bodies.why_away() is not None)
            (subject.folder / "away").rename(subject.folder / layout.MARK)
            await store.close()


def test_calls_that_hang_delay_no_look_no_discard_and_no_end(
    attempt: Callable[[Trial], None],
) -> None:
    attempt(_hung)


@contextlib.contextmanager
def _without_fresh_read() -> Iterator[None]:
    """Every old file counts as one without a row."""

    async def all_of(_: ApartSweep, ids: Sequence[int]) -> list[int]:
        return list(ids)

    with mock.patch.object(ApartSweep, "_unowned", all_of):
        yield


def test_without_a_fresh_read_of_the_rows_it_loses_what_is_owned(
    attempt: Callable[[Trial], None],
) -> None:
    with _without_fresh_read(), pytest.raises(AssertionError, match="after 8 days"):
        attempt(_kept)


async def _given_up(subject: Apart) -> None:
    """Uploads that fail, are cancelled at any point, or whose bodies are discarded."""
    store = subject.store

    async def failing() -> object:
        yield BODY
        raise ConnectionResetError

    for size_bytes in (None, len(BODY) + 1):
        with pytest.raises(ConnectionResetError):
            await store.contents.write(failing(), size_bytes)  # type: ignore[arg-type]
    for turns in (1, 2, 3, 5, 8, 12, 20, 40):
        writing = asyncio.create_task(store.contents.write(pieces(BODY, 50_000), None))
        for _ in range(turns):
            await asyncio.sleep(0.0002)
        writing.cancel()
        (ended,) = await asyncio.gather(writing, return_exceptions=True)
        if not isinstance(ended, BaseException):
            store.contents.discard(ended.id)
    await subject.restart()
    await _tidy(subject.store)
    assert subject.files() == set()


def test_an_upload_that_was_given_up_leaves_no_file(attempt: Callable[[Trial], None]) -> None:
    attempt(_given_up)


async def _left(subject: Apart) -> None:
    one, two = subject.store, await subject.second()
    left = (await two.contents.write(pieces(BODY), len(BODY))).id
    subject.stop_heartbeats(two)
    subject.clock.advance(11)
    await one.gateways.hold(b"lane")  # this declares the other one dead
    await _tidy(one)
    assert left not in subject.files()


def test_what_a_dead_gateway_wrote_is_removed(attempt: Callable[[Trial], None]) -> None:
    attempt(_left)


async def _late(subject: Apart) -> None:
    """A heartbeat that is late for a while takes the right to sweep away."""
    store = subject.gateway
    await _tidy(store)
    body = await _owned(store)
    await commit(store, Step(place(), drop=(body,)))
    subject.stop_heartbeats(store)
    subject.clock.advance(6)
    with pytest.raises(EngineError):
        await store.maintain()
    with contextlib.suppress(EngineError):
        await store._parts.upkeep.tend()
    assert subject.files() == {body}
    subject.resume_heartbeats(store)
    await _tidy(store)
    assert subject.files() == set()


def test_after_a_late_heartbeat_the_sweep_goes_on(attempt: Callable[[Trial], None]) -> None:
    attempt(_late)


async def _damaged(subject: Apart) -> None:
    store = subject.store
    missing, short, whole = [await _owned(store) for _ in range(3)]
    (subject.folder / name_of(missing)).unlink()
    with (subject.folder / name_of(short)).open("r+b") as file:
        file.truncate(100)
    for one, words in ((missing, "missing"), (short, "100 of 200000")):
        with pytest.raises(DataDamaged, match=f"{one}.*{words}"):
            await store.contents.open(one)
    assert await content(store, whole) == BODY


def test_a_file_that_is_missing_or_short_is_damage_with_a_name(
    attempt: Callable[[Trial], None],
) -> None:
    attempt(_damaged)


async def _unmounted(subject: Apart) -> None:
    store = subject.gateway
    body, short = await _owned(store), await _owned(store, b"in the database")
    aside = subject.folder.with_name("aside")
    subject.folder.rename(aside)
    subject.folder.mkdir()
    with pytest.raises(EngineError, match="mount"):
        await store.maintain()
    # Other gateways have the same folder: none would do better.
    assert await store.health(5) is Health.SERVING
    assert store.facts().bodies_away is True
    with pytest.raises(EngineError, match="mount"):
        await store.contents.open(body)
    with pytest.raises(EngineError, match="mount"):
        await store.contents.write(pieces(BODY), len(BODY))
    assert await content(store, short) == b"in the database"
    assert list(subject.folder.iterdir()) == []
    subject.folder.rmdir()
    aside.rename(subject.folder)
    await store.maintain()
    assert store.facts().bodies_away is False
    assert await content(store, body) == BODY


def test_an_unmounted_folder_is_unavailable_and_nothing_is_written_below_it(
    attempt: Callable[[Trial], None],
) -> None:
    attempt(_unmounted)


def test_without_a_look_at_the_mark_bodies_would_count_as_missing(
    attempt: Callable[[Trial], None],
) -> None:
    def unchecked(folder: BodyFolder) -> object:
        folder._root = OpenFolder(folder.path)
        return folder.mark

    with mock.patch.object(BodyFolder, "look", unchecked), pytest.raises(CAUGHT):
        attempt(_unmounted)


# Which databases may serve.


async def _refusals(subject: Apart) -> None:
    subject.store = await subject.second()
    url, schema = subject.url, subject.schema
    elsewhere = subject.folder.with_name("elsewhere")
    elsewhere.mkdir()
    other = f"file://{elsewhere}"
    for bodies, words in ((None, "--bodies file:"), (other, "store adopt URL --bodies")):
        with pytest.raises(DatabaseUnfit, match=words):
            await subject.opened(bodies=bodies)
    with pytest.raises(DatabaseUnfit, match="not in"):
        await init_bodies(url, schema, other)
    plain = PostgresSubject(url, subject.sql)
    await plain.start()
    try:
        with pytest.raises(DatabaseUnfit, match="store init URL --bodies"):
            await subject.opened(plain.schema)
        with pytest.raises(BodiesUnfit, match="another store"):
            await init_bodies(url, plain.schema, f"file://{subject.folder}")
        await init_bodies(url, plain.schema, other)
        (subject.folder / layout.MARK).write_bytes((elsewhere / layout.MARK).read_bytes())
        with pytest.raises(BodiesUnfit, match="another store"):
            await subject.opened()
        (subject.folder / layout.MARK).unlink()
        with pytest.raises(BodiesUnfit, match="mount"):
            await subject.opened()
    finally:
        await plain.stop()


def test_a_folder_that_does_not_belong_to_the_store_is_refused(
    attempt: Callable[[Trial], None],
) -> None:
    attempt(_refusals)


async def _copy_behind(subject: Apart) -> None:
    """A copy that was made before the last turn is refused, until it adopts the folder."""
    store = subject.gateway
    await _tidy(store)
    body = await _owned(store)
    copy = subject.copied()
    turned = mock.patch("strongroom.engines.postgres.apart.turns.TURN_S", 0.0)
    with turned:
        await _tidy(store)
    with pytest.raises(BodiesUnfit, match="store adopt URL"):
        await subject.opened(copy)
    adoption = await _prepared(subject, copy)
    with turned:
        adopting = asyncio.create_task(adoption.adopt(0.5))
        await _tidy(store)
        with pytest.raises(BodiesUnfit, match="another database is being served"):
            await adopting
    await adoption.close()
    await _adopted(subject, copy)
    ended: list[EngineError] = []
    store.on_fatal(ended.append)
    with pytest.raises(BodiesUnfit, match="another state"):
        await store.maintain()
    assert len(ended) == 1
    served = await subject.opened(copy)
    assert await content(served, body) == BODY
    with pytest.raises(BodiesUnfit, match="store adopt URL"):
        await subject.opened()


def _gone(subject: Apart, schema: str) -> None:
    """Let the gateways of a copy count as dead, as they do after ten seconds."""
    subject.sql.run(f"UPDATE {schema}.membership SET body = ''")
    subject.sql.run(f"DELETE FROM {schema}.gateways")


async def _prepared(subject: Apart, schema: str, bodies: str | None = None) -> PlaceAdoption:
    _gone(subject, schema)
    return await PlaceAdoption.prepared(subject.url, schema, bodies)


async def _adopted(subject: Apart, schema: str, bodies: str | None = None) -> None:
    adoption = await _prepared(subject, schema, bodies)
    assert adoption.is_needed
    await adoption.adopt(0.1)
    await adoption.close()
    again = await _prepared(subject, schema)
    assert not again.is_needed
    await again.close()


def test_a_copy_of_the_database_serves_only_when_it_has_adopted_the_folder(
    attempt: Callable[[Trial], None],
) -> None:
    attempt(_copy_behind)


async def _fresh_copy(subject: Apart) -> None:
    """A copy knows the last turn, and is served beside the database. It must remove nothing."""
    store = subject.gateway
    await _tidy(store)
    await store.close()
    store = await subject.opened(observe_s=0.0)
    dropped, kept = await _owned(store), await _owned(store)
    on_its_way = (await store.contents.write(pieces(BODY), len(BODY))).id
    await commit(store, Step(place(), drop=(dropped,)))
    copy = subject.copied()
    later = await _owned(store)
    _gone(subject, copy)
    beside = await subject.opened(copy, observe_s=3600.0)
    ended: list[EngineError] = []
    beside.on_fatal(ended.append)
    await _tidy(beside)
    assert subject.files() == {dropped, kept, on_its_way, later}, "the copy removed something"
    await commit(store, Step(place(), adopt=(on_its_way,)))
    await _tidy(store)
    with pytest.raises(BodiesUnfit, match="another state"):
        await beside.maintain()
    assert len(ended) == 1
    assert subject.files() == {kept, on_its_way, later}
    for body in (kept, on_its_way, later):
        assert await content(store, body) == BODY


def test_a_server_on_a_fresh_copy_removes_nothing_and_ends_at_the_next_turn(
    attempt: Callable[[Trial], None],
) -> None:
    attempt(_fresh_copy)


@contextlib.contextmanager
def _at_once() -> Iterator[None]:
    """Whoever gets the right removes at once, without looking on or taking a turn."""

    async def may(_: Turns) -> bool:
        return True

    with mock.patch.object(Turns, "may_remove", may):
        yield


@contextlib.contextmanager
def _without_comparison() -> Iterator[None]:
    """The turn of the mark is not compared with the database."""

    async def look(turns: Turns) -> object:
        return await turns._store.look()

    with mock.patch.object(Turns, "look", look):
        yield


@pytest.mark.parametrize("mutant", [_at_once, _without_comparison])
def test_without_turns_it_would_not_be_told_from_the_database(
    attempt: Callable[[Trial], None], mutant: Callable[[], AbstractContextManager[None]]
) -> None:
    with mutant(), pytest.raises(CAUGHT):
        attempt(_fresh_copy)


async def _moved(subject: Apart) -> None:
    body = await _owned(subject.store)
    await subject.store.close()
    moved = subject.folder.with_name("moved")
    subject.folder.rename(moved)
    await _adopted(subject, subject.schema, f"file://{moved}")
    store = await subject.opened(bodies=f"file://{moved}")
    assert await content(store, body) == BODY
    moved.rename(subject.folder)


def test_a_folder_that_was_moved_is_adopted_where_it_is(attempt: Callable[[Trial], None]) -> None:
    attempt(_moved)
