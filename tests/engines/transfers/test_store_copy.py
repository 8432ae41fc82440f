"""Whole stores copied between engines: nothing is lost, changed, or taken for whole too early."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from strongroom.clock import SystemClock
from strongroom.engines.embedded.disk.directory import DirectoryLayout, NotADataDirectory
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.embedded.store import open_store
from strongroom.engines.embedded.upkeep.backup import backup
from strongroom.engines.embedded.upkeep.check import check as check_directory
from strongroom.engines.postgres.sessions.session import DatabaseUnfit
from strongroom.engines.postgres.sql.making import init_sql
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.engines.transfer import CopyRefused
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.version_1 import VERSION_1
from tests.engines.transfers.stores import (
    SEGMENT_BYTES,
    Directory,
    Place,
    Schema,
    check,
    copy,
    fill,
    served,
)


def test_a_store_goes_to_postgresql_and_back_unchanged(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        places: list[Place] = [
            Directory(tmp_path / "first"),
            Schema(postgres.url),
            Schema(postgres.url, tmp_path / "apart"),
            Schema(postgres.url, tmp_path / "apart too"),
            Schema(postgres.url),
            Directory(tmp_path / "last"),
            Directory(tmp_path / "second of its kind"),
        ]
        for name in ("apart", "apart too"):
            (tmp_path / name).mkdir()
        async with served(places[0]) as store:
            filled = await fill(store)
        reports = [await copy(one, other) for one, other in itertools.pairwise(places)]
        assert len({report.digest for report in reports}) == 1
        assert reports[0].records == len(filled.records)
        assert reports[0].contents == len(filled.bodies)
        assert not any(report.resumed for report in reports)
        assert list(check_directory(tmp_path / "last")) == []
        for name in ("apart", "apart too"):
            found = (tmp_path / name).glob("bodies/*/*")
            assert [one.stat().st_size for one in found] == [2_500_000]
        for one in places:
            async with served(one) as store:
                await check(store, filled)
        assert list(check_directory(tmp_path / "last")) == []

    asyncio.run(prove())


def test_segments_that_are_full_are_sealed(tmp_path: Path) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Directory(tmp_path / "goal")
        async with served(home) as store:
            await fill(store, sizes=(SEGMENT_BYTES,) * 3)
        await copy(home, goal)
        reader = Reader(DirectoryLayout(str(goal.path)).records, None, scanning=True)
        sums = reader.segment_sums()
        reader.close()
        assert len(sums) == 3
        assert [one.sealed for one in sums] == [True] * (len(sums) - 1) + [False]
        assert all(one.end >= SEGMENT_BYTES for one in sums[:-1])

    asyncio.run(prove())


def test_progress_rises_to_its_end(tmp_path: Path, postgres: PostgresServer) -> None:
    async def prove() -> None:
        home = Directory(tmp_path / "home")
        async with served(home) as store:
            await fill(store)
        seen: list[tuple[int, int]] = []
        await copy(home, Schema(postgres.url), lambda done, total: seen.append((done, total)))
        assert len(seen) > 10
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert seen[-1][0] == seen[-1][1]

    asyncio.run(prove())


def test_a_copy_in_postgresql_counts_against_its_quota_as_its_source_did(
    postgres: PostgresServer,
) -> None:
    async def prove() -> None:
        home, goal = Schema(postgres.url), Schema(postgres.url)
        async with served(home) as store:
            await fill(store)
        await copy(home, goal)
        used = []
        for one in (home, goal):
            async with served(one) as store:
                assert isinstance(store, PostgresEngine)
                used.append(store.space.used_bytes)
        assert used[0] == used[1] > 1_000_000

    asyncio.run(prove())


@pytest.mark.parametrize(("clock", "reset"), [(False, False), (True, False), (False, True)])
def test_the_marks_of_a_directory_are_kept(
    clock: bool, reset: bool, tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Directory(tmp_path / "goal")
        store = await open_store(home.path, SystemClock(), test_clock=clock, allow_reset=reset)
        if clock:
            store.advance(86_400.0)
        told = await store.now()
        await store.close()
        between = Schema(postgres.url)
        await copy(home, between)
        await copy(between, goal)
        assert _format(goal) == _format(home)
        async with served(between) as gateway:
            assert gateway.allows_reset is reset
            assert await gateway.now() >= told

    asyncio.run(prove())


def _format(where: Directory) -> str:
    return (where.path / "FORMAT").read_text()


def test_a_mark_of_foreign_etags_is_kept(tmp_path: Path, postgres: PostgresServer) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Directory(tmp_path / "goal")
        async with served(home) as store:
            await fill(store, sizes=())
        home.mark("strongroom 4 foreign-etags\n")
        between = Schema(postgres.url)
        await copy(home, between)
        await copy(between, goal)
        assert _format(goal) == _format(home)

    asyncio.run(prove())


def test_a_role_that_may_not_make_tables_can_copy(tmp_path: Path, postgres: PostgresServer) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Schema(postgres.url)
        async with served(home) as store:
            filled = await fill(store)
        role = f"copier_{goal.name}"
        goal.run(f"CREATE ROLE {role} LOGIN")
        goal.run(init_sql(goal.name, role))
        goal.url = postgres.url.replace("postgres@", f"{role}@")
        await copy(home, goal)
        async with served(goal) as store:
            await check(store, filled)
        await copy(goal, Directory(tmp_path / "back"))

    asyncio.run(prove())


def test_a_store_without_anything_is_copied(tmp_path: Path, postgres: PostgresServer) -> None:
    async def prove() -> None:
        places = (Directory(tmp_path / "a"), Schema(postgres.url), Directory(tmp_path / "b"))
        async with served(places[0]):
            pass
        assert (await copy(places[0], places[1])).records == 0
        assert (await copy(places[1], places[2])).contents == 0
        async with served(places[2]) as store:
            await fill(store, sizes=(10,))

    asyncio.run(prove())


def test_time_does_not_fall_behind_the_source(tmp_path: Path, postgres: PostgresServer) -> None:
    """Also where no record shows how far it had come."""

    async def prove() -> None:
        places: list[Place] = [
            Schema(postgres.url),
            Directory(tmp_path / "b"),
            Schema(postgres.url),
        ]
        async with served(places[0]) as store:
            store.advance(1000.0)
            told = await store.now()
        for one, other in itertools.pairwise(places):
            await copy(one, other)
        async with served(places[2]) as store:
            assert await store.now() >= told

    asyncio.run(prove())


def test_a_backup_is_copied_while_its_store_is_served(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home = Directory(tmp_path / "home")
        async with served(home) as store:
            filled = await fill(store, sizes=(100_000,))
            await asyncio.to_thread(backup, home.path, tmp_path / "backup")
            goal = Schema(postgres.url)
            await copy(Directory(tmp_path / "backup"), goal)
        async with served(goal) as store:
            await check(store, filled)

    asyncio.run(prove())


@pytest.mark.parametrize("kind", ["directory", "schema"])
def test_a_source_that_is_served_is_refused(
    kind: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home = Directory(tmp_path / "home") if kind == "directory" else Schema(postgres.url)
        goal = Directory(tmp_path / "goal")
        async with served(home):
            with pytest.raises(Exception, match=r"a server has .* open; stop it|being served"):
                await copy(home, goal)
        assert not goal.path.exists()
        await copy(home, goal)

    asyncio.run(prove())


def test_a_gateway_that_joins_during_a_copy_ends_it(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home = Schema(postgres.url)
        async with served(home) as store:
            await fill(store, sizes=(10,))
        source = await home.source()
        await source.ensure_unchanged()
        async with served(home):
            pass
        with pytest.raises(CopyRefused, match="a gateway has opened"):
            await source.ensure_unchanged()
        await source.close()

    asyncio.run(prove())


@pytest.mark.parametrize("kind", ["directory", "schema"])
def test_a_target_that_is_not_new_is_refused_and_stays_as_it_is(
    kind: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home = Directory(tmp_path / "home")
        goal: Place = Directory(tmp_path / "goal") if kind == "directory" else Schema(postgres.url)
        async with served(home) as store:
            await fill(store, 1, sizes=(10,))
        async with served(goal) as store:
            filled = await fill(store, 2, sizes=(20,))
        with pytest.raises(CopyRefused, match=r"not empty|holds data already"):
            await copy(home, goal)
        async with served(goal) as store:
            await check(store, filled)

    asyncio.run(prove())


def test_a_store_of_the_version_before_is_a_source_and_no_target(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        old, new, back = Schema(postgres.url), Schema(postgres.url), Directory(tmp_path / "back")
        for schema in (old, empty := Schema(postgres.url)):
            schema.run(VERSION_1.read_text("utf-8").replace('"SCHEMA"', f'"{schema.name}"'))
        async with served(old) as store:
            filled = await fill(store)
        await copy(old, new)
        await copy(new, back)
        for one in (old, new, back):
            async with served(one) as store:
                await check(store, filled)
        with pytest.raises(DatabaseUnfit, match="strongroom store migrate"):
            await copy(new, empty)

    asyncio.run(prove())


def test_a_target_with_a_gateway_is_refused(tmp_path: Path, postgres: PostgresServer) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Schema(postgres.url)
        async with served(home) as store:
            await fill(store, sizes=(10,))
        async with served(goal):
            with pytest.raises(CopyRefused, match="being served"):
                await copy(home, goal)
        await copy(home, goal)

    asyncio.run(prove())


@pytest.mark.parametrize("kind", ["directory", "schema"])
def test_two_copies_to_one_target_do_not_mix(
    kind: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home = Directory(tmp_path / "home")
        goal: Place = Directory(tmp_path / "goal") if kind == "directory" else Schema(postgres.url)
        async with served(home) as store:
            await fill(store, sizes=(10,))
        source, first = await home.source(), await goal.target()
        await first.begin(source.state, source.traits)
        second = await goal.target()
        with pytest.raises(CopyRefused, match=r"being written by another"):
            await second.begin(source.state, source.traits)
        for one in (second, first, source):
            await one.close()
        await copy(home, goal)

    asyncio.run(prove())


@pytest.mark.parametrize("kind", ["directory", "schema"])
def test_an_unfinished_target_is_not_served_and_is_no_source(
    kind: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home = Directory(tmp_path / "home")
        goal: Place = Directory(tmp_path / "goal") if kind == "directory" else Schema(postgres.url)
        async with served(home) as store:
            await fill(store, sizes=(10,))
        source, target = await home.source(), await goal.target()
        await target.begin(source.state, source.traits)
        await target.close()
        await source.close()
        unfinished = r"not whole|copy that is not complete"
        with pytest.raises((NotADataDirectory, DatabaseUnfit), match=unfinished):
            await goal.open()
        with pytest.raises((NotADataDirectory, CopyRefused), match=unfinished):
            await copy(goal, Directory(tmp_path / "further"))
        await copy(home, goal)
        async with served(goal):
            pass

    asyncio.run(prove())
