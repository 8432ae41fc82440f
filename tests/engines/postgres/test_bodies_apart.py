"""Long bodies in a folder: what stays, what is removed and by whom.

`maintain` is called where a gateway would work by itself after some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final
from unittest import mock

import pytest

from strongroom.engines.base import DataDamaged, EngineError, Step
from strongroom.engines.bodies import layout
from strongroom.engines.bodies.base import BodiesAway
from strongroom.engines.bodies.layout import BodyFolder, name_of
from strongroom.engines.gateways import Horizon
from strongroom.engines.postgres.apart.sweep import ApartSweep
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import body_of, commit, content, pieces, place
from tests.engines.postgres.apart import BODY, Apart, Trial, own_body, tidy
from tests.engines.postgres.mutants import without_horizon

DAY_S: Final = 24 * 3600


# What stays, and what is removed.


async def _lives(subject: Apart) -> None:
    one, two = subject.store, await subject.second()
    body = await own_body(one)
    assert await content(two, body) == BODY
    pins = [await store.contents.open(body) for store in (one, two)]
    await commit(two, Step(place(), drop=(body,)))
    for pin in pins:
        await tidy(one, two)
        assert await body_of(pin) == BODY
        assert subject.files() == {body}, "it is still read"
        pin.close()
    await tidy(one, two)
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
    dropped, unowned, owned = [await own_body(store) for _ in range(3)]
    await commit(store, Step(place(), drop=(dropped,)))
    subject.sql.run(f"DELETE FROM {subject.schema}.contents WHERE id = {unowned}")
    for days, left in ((6, {dropped, unowned, owned}), (8, {owned})):
        subject.sql.run(f"UPDATE {subject.schema}.dropped SET at = now() - interval '{days} days'")
        for one in (dropped, unowned, owned):
            if one in subject.files():
                subject.age(one, days * DAY_S)
        store._parts.upkeep._apart[1]._next_orphans_s = 0.0  # type: ignore[index]
        await tidy(store)
        assert subject.files() == left, f"after {days} days"
    assert await content(store, owned) == BODY


def test_what_nobody_needs_stays_for_a_week(attempt: Callable[[Trial], None]) -> None:
    attempt(_kept)


async def _still_arriving(subject: Apart) -> None:
    """A client pauses for longer than dropped bodies are kept, which is no time at all here."""
    store = subject.gateway
    await tidy(store)
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
    await tidy(store)
    left = await own_body(store)
    subject.sql.run(f"DELETE FROM {subject.schema}.contents WHERE id = {left}")
    subject.age(left, 25 * 3600)
    again = mock.patch("strongroom.engines.postgres.apart.sweep._ORPHANS_AGAIN_S", 0.0)
    failing = mock.patch.object(BodyFolder, "ids", side_effect=OSError(errno.EIO, "it failed"))
    _sweep(store)._next_orphans_s = 0.0
    with again:
        with failing, pytest.raises(BodiesAway):
            await store._parts.upkeep.tend()
        await tidy(store)
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
    await tidy(store)
    body = await own_body(store)
    ended: list[EngineError] = []
    store.on_fatal(ended.append)
    refused = mock.patch.object(
        layout, "write_mark", side_effect=OSError(errno.ENOSPC, "no space is left")
    )
    with refused as writes, mock.patch("strongroom.engines.postgres.apart.turns.TURN_S", 0.0):
        for _ in range(40):
            with contextlib.suppress(BodiesAway):
                await tidy(store, rounds=1)
        assert writes.call_count > 16
    await tidy(store)
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
    await tidy(store)
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
    await tidy(subject.store)
    assert subject.files() == set()


def test_an_upload_that_was_given_up_leaves_no_file(attempt: Callable[[Trial], None]) -> None:
    attempt(_given_up)


async def _left(subject: Apart) -> None:
    one, two = subject.store, await subject.second()
    left = (await two.contents.write(pieces(BODY), len(BODY))).id
    subject.stop_heartbeats(two)
    subject.clock.advance(11)
    await one.gateways.hold(b"lane")  # this declares the other one dead
    await tidy(one)
    assert left not in subject.files()


def test_what_a_dead_gateway_wrote_is_removed(attempt: Callable[[Trial], None]) -> None:
    attempt(_left)


async def _late(subject: Apart) -> None:
    """A heartbeat that is late for a while takes the right to sweep away."""
    store = subject.gateway
    await tidy(store)
    body = await own_body(store)
    await commit(store, Step(place(), drop=(body,)))
    subject.stop_heartbeats(store)
    subject.clock.advance(6)
    with pytest.raises(EngineError):
        await store.maintain()
    with contextlib.suppress(EngineError):
        await store._parts.upkeep.tend()
    assert subject.files() == {body}
    subject.resume_heartbeats(store)
    await tidy(store)
    assert subject.files() == set()


def test_after_a_late_heartbeat_the_sweep_goes_on(attempt: Callable[[Trial], None]) -> None:
    attempt(_late)


async def _damaged(subject: Apart) -> None:
    store = subject.store
    missing, short, whole = [await own_body(store) for _ in range(3)]
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
