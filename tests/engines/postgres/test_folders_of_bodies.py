"""Which databases may serve with a folder of bodies: unmounted folders, copies, adoptions.

`maintain` is called where a gateway would work by itself after some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final
from unittest import mock

import pytest

from strongroom.engines.base import EngineError, Step
from strongroom.engines.bodies import layout
from strongroom.engines.bodies.base import BodiesUnfit
from strongroom.engines.bodies.layout import BodyFolder
from strongroom.engines.postgres.apart.turns import Turns
from strongroom.engines.postgres.assembly import init_bodies
from strongroom.engines.postgres.place_adoption import PlaceAdoption
from strongroom.engines.postgres.sessions.session import DatabaseUnfit
from strongroom.platform.open_folder import OpenFolder
from strongroom.testing.contract.subject import commit, content, pieces, place
from strongroom.values import Health
from tests.engines.postgres.apart import BODY, Apart, Trial, own_body, tidy
from tests.engines.postgres.subject import PostgresSubject

CAUGHT: Final = (AssertionError, pytest.fail.Exception)


async def _unmounted(subject: Apart) -> None:
    store = subject.gateway
    body, short = await own_body(store), await own_body(store, b"in the database")
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
    await tidy(store)
    body = await own_body(store)
    copy = subject.copied()
    turned = mock.patch("strongroom.engines.postgres.apart.turns.TURN_S", 0.0)
    with turned:
        await tidy(store)
    with pytest.raises(BodiesUnfit, match="store adopt URL"):
        await subject.opened(copy)
    adoption = await _prepared(subject, copy)
    with turned:
        adopting = asyncio.create_task(adoption.adopt(0.5))
        await tidy(store)
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
    await tidy(store)
    await store.close()
    store = await subject.opened(observe_s=0.0)
    dropped, kept = await own_body(store), await own_body(store)
    on_its_way = (await store.contents.write(pieces(BODY), len(BODY))).id
    await commit(store, Step(place(), drop=(dropped,)))
    copy = subject.copied()
    later = await own_body(store)
    _gone(subject, copy)
    beside = await subject.opened(copy, observe_s=3600.0)
    ended: list[EngineError] = []
    beside.on_fatal(ended.append)
    await tidy(beside)
    assert subject.files() == {dropped, kept, on_its_way, later}, "the copy removed something"
    await commit(store, Step(place(), adopt=(on_its_way,)))
    await tidy(store)
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
    body = await own_body(subject.store)
    await subject.store.close()
    moved = subject.folder.with_name("moved")
    subject.folder.rename(moved)
    await _adopted(subject, subject.schema, f"file://{moved}")
    store = await subject.opened(bodies=f"file://{moved}")
    assert await content(store, body) == BODY
    moved.rename(subject.folder)


def test_a_folder_that_was_moved_is_adopted_where_it_is(attempt: Callable[[Trial], None]) -> None:
    attempt(_moved)
