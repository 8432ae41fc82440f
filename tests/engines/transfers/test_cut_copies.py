"""Copies that are cut anywhere, that meet damage or a full disk, and copies that differ."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from strongroom.engines.base import DataDamaged, Unavailable
from strongroom.engines.embedded.disk.directory import RECORDS_NAME
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import connect
from strongroom.engines.embedded.records.sqlite import SCHEMA
from strongroom.engines.embedded.upkeep.transfer_target import EmbeddedTarget
from strongroom.engines.store_copy import copy_store
from strongroom.engines.transfer import (
    CopyRefused,
    SourceDamaged,
    StoredRecord,
)
from tests.coordination.servers import PostgresServer
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.disks.sqlite import DiskVfs
from tests.engines.transfers.cutting import Cut, Scissors, Small, Tampered, copy_until_cut
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

_SIZES = (1000, 60_000, 65_537, 1_300_000, 0, 5, 900_000)


def _where(kind: str, folder: Path, server: PostgresServer) -> Place:
    return Directory(folder) if kind == "directory" else Schema(server.url)


@pytest.mark.parametrize("start", ["directory", "schema"])
@pytest.mark.parametrize("goal", ["directory", "schema"])
def test_a_copy_that_is_cut_anywhere_goes_on_there(
    start: str, goal: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    chance = random.Random(f"{start} {goal}")

    async def prove() -> None:
        home, whole = _where(start, tmp_path / "home", postgres), Directory(tmp_path / "whole")
        target = _where(goal, tmp_path / "goal", postgres)
        async with served(home) as store:
            filled = await fill(store, sizes=_SIZES)
        expected = await copy(home, whole)
        cuts = batches = 0
        while True:
            scissors = Scissors(chance, 16)
            try:
                report = await copy_until_cut(home, target, scissors)
                break
            except Cut:
                cuts += 1
            finally:
                batches += scissors.batches
        assert cuts > 2
        assert report.resumed
        assert report.digest == expected.digest
        needed = -(-len(filled.records) // 7) + len(_SIZES)
        assert batches <= needed + cuts, "what was written is not written again"
        async with served(target) as store:
            await check(store, filled)

    asyncio.run(prove())


def test_a_copy_that_was_killed_while_it_made_its_tables_is_replaced(tmp_path: Path) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Directory(tmp_path / "goal")
        async with served(home) as store:
            filled = await fill(store, sizes=(1000,))
        (goal.path / "segments").mkdir(parents=True)
        (goal.path / "UNFINISHED").write_text("")
        made = connect(str(tmp_path / RECORDS_NAME), None, 1024, SCHEMA)
        for name in (RECORDS_NAME, RECORDS_NAME + "-wal", RECORDS_NAME + "-shm"):
            data = (tmp_path / name).read_bytes()
            # Half of the only commit: there are no tables yet.
            (goal.path / name).write_bytes(data[: len(data) // 2] if "wal" in name else data)
        made.close()
        assert not (await copy(home, goal)).resumed
        async with served(goal) as store:
            await check(store, filled)

    asyncio.run(prove())


@pytest.mark.parametrize("end", ["home", "goal"])
def test_a_connection_that_breaks_ends_the_copy_which_goes_on_later(
    end: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home = _where("schema" if end == "home" else "directory", tmp_path / "home", postgres)
        goal = _where("schema" if end == "goal" else "directory", tmp_path / "goal", postgres)
        async with served(home) as store:
            filled = await fill(store, sizes=(1000, 2_000_000, 1000))
        broken = home if end == "home" else goal
        assert isinstance(broken, Schema)
        left = 4

        def break_connections() -> None:
            nonlocal left
            left -= 1
            if not left:
                broken.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'strongroom'"
                )

        source, target = await home.source(), await goal.target()
        tampered = Tampered(target, after=break_connections)
        with pytest.raises(Unavailable, match=r"was lost .* Run the same command again"):
            await copy_store(Small(source), tampered)
        await target.close()
        await source.close()
        assert (await copy(home, goal)).resumed
        async with served(goal) as store:
            await check(store, filled)

    asyncio.run(prove())


@pytest.mark.parametrize("kind", ["directory", "schema"])
def test_a_copy_goes_on_only_from_the_source_that_it_began_with(
    kind: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    """Not from another store, nor from the same one after a server has opened it again."""

    async def prove() -> None:
        home, other = Directory(tmp_path / "home"), Directory(tmp_path / "other")
        goal = _where(kind, tmp_path / "goal", postgres)
        for one in (home, other):
            async with served(one) as store:
                await fill(store, sizes=(10,))
        with pytest.raises(Cut):
            await copy_until_cut(home, goal, Scissors(random.Random(1), 9))
        with pytest.raises(CopyRefused, match=r"unfinished copy"):
            await copy(other, goal)
        async with served(home):
            pass
        with pytest.raises(CopyRefused, match=r"unfinished copy .*before a server opened"):
            await copy(home, goal)

    asyncio.run(prove())


def _found(directory: Path, body: bytes) -> tuple[Path, int]:
    """Return the segment that has a body, and where it begins."""
    for segment in (directory / "segments").iterdir():
        at = segment.read_bytes().find(body)
        if at >= 0:
            return segment, at
    raise AssertionError("no segment has this body")


def _damage_records(directory: Path) -> None:
    records = directory / "records.sqlite"
    for page in range(10, records.stat().st_size // PAGE_BYTES, 10):
        _flip(records, page * PAGE_BYTES + 4000)


def _flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("size_bytes", [1000, 300_000])
def test_a_damaged_content_of_a_directory_is_named(size_bytes: int, tmp_path: Path) -> None:
    """Once it is mended, the copy goes on."""

    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Directory(tmp_path / "goal")
        async with served(home) as store:
            filled = await fill(store, sizes=(size_bytes,))
        (content_id,) = filled.bodies
        segment, at = _found(home.path, filled.bodies[content_id])
        _flip(segment, at + size_bytes // 2)
        with pytest.raises(SourceDamaged, match=rf"content {content_id} of {size_bytes} bytes"):
            await copy(home, goal)
        with pytest.raises(Exception, match="not whole"):
            await goal.open()
        _flip(segment, at + size_bytes // 2)
        await copy(home, goal)
        async with served(goal) as store:
            await check(store, filled)

    asyncio.run(prove())


@pytest.mark.parametrize(
    ("size_bytes", "damage"),
    [
        (1000, "UPDATE contents SET data = set_byte(data, 500, get_byte(data, 500) # 1)"),
        (300_000, "UPDATE chunks SET data = set_byte(data, 500, get_byte(data, 500) # 1)"),
        (300_000, "DELETE FROM chunks WHERE at > 0"),
        (300_000, "UPDATE chunks SET at = at + 262144 WHERE at > 0"),
    ],
)
def test_a_damaged_content_of_postgresql_is_named(
    size_bytes: int, damage: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home, goal = Schema(postgres.url), Directory(tmp_path / "goal")
        async with served(home) as store:
            filled = await fill(store, sizes=(size_bytes,))
        home.run(damage)
        (content_id,) = filled.bodies
        with pytest.raises(SourceDamaged, match=rf"content {content_id} of {size_bytes} bytes"):
            await copy(home, goal)

    asyncio.run(prove())


def test_a_damaged_record_is_not_copied(tmp_path: Path) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Directory(tmp_path / "goal")
        async with served(home) as store:
            await fill(store, sizes=())
        _damage_records(home.path)
        with pytest.raises((SourceDamaged, DataDamaged), match=r"damaged page|checksum"):
            await copy(home, goal)

    asyncio.run(prove())


def _lose(batch: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
    return batch[1:]


def _garble(batch: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
    return [one._replace(value=one.value + b"!") for one in batch]


def _renew(batch: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
    return [one._replace(version=one.version + 1) for one in batch]


@pytest.mark.parametrize("tamper", [_lose, _garble, _renew])
def test_a_copy_that_differs_is_not_finished(
    tamper: Callable[[Sequence[StoredRecord]], Sequence[StoredRecord]], tmp_path: Path
) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Directory(tmp_path / "goal")
        async with served(home) as store:
            await fill(store, sizes=(10,))
        source, target = await home.source(), await goal.target()
        with pytest.raises(CopyRefused, match=r"differs from .* stays unfinished"):
            await copy_store(source, Tampered(target, tamper))
        await target.close()
        await source.close()
        with pytest.raises(Exception, match="not whole"):
            await goal.open()

    asyncio.run(prove())


def test_a_gateway_that_joins_meanwhile_is_noticed_at_the_end(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home, goal = Schema(postgres.url), Directory(tmp_path / "goal")
        async with served(home) as store:
            await fill(store, sizes=(10,))

        def join() -> None:
            home.run("UPDATE membership SET version = version + 1")

        source, target = await home.source(), await goal.target()
        with pytest.raises(CopyRefused, match="a gateway has opened"):
            await copy_store(source, Tampered(target, after=join))
        await target.close()
        await source.close()
        with pytest.raises(Exception, match="not whole"):
            await goal.open()

    asyncio.run(prove())


def test_a_body_that_the_target_s_database_damages_is_noticed(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Schema(postgres.url)
        async with served(home) as store:
            await fill(store, sizes=(300_000,))

        def damage(batch: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
            if batch:
                goal.run("UPDATE chunks SET data = set_byte(data, 500, get_byte(data, 500) # 1)")
            return batch

        source, target = await home.source(), await goal.target()
        with pytest.raises(CopyRefused, match=r"postgres is damaged: content \d+"):
            await copy_store(source, Tampered(target, damage))
        await target.close()
        await source.close()

    asyncio.run(prove())


def test_a_body_that_the_target_s_disk_damages_is_noticed(tmp_path: Path) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Directory(tmp_path / "goal")
        async with served(home) as store:
            await fill(store, sizes=(300_000,))

        def damage(batch: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
            if batch:
                (segment,) = (goal.path / "segments").iterdir()
                _flip(segment, 1234)
            return batch

        source, target = await home.source(), await goal.target()
        with pytest.raises(CopyRefused, match=r"goal is damaged: content \d+"):
            await copy_store(source, Tampered(target, damage))
        await target.close()
        await source.close()

    asyncio.run(prove())


def test_a_full_disk_of_a_directory_is_named_and_the_copy_goes_on_later(tmp_path: Path) -> None:
    async def prove() -> None:
        home = Directory(tmp_path / "home")
        async with served(home) as store:
            filled = await fill(store, sizes=(400_000, 50_000, 400_000))
        disk = Disk(tmp_path)
        for folder in ("goal", "goal/segments"):
            disk.directory_made(str(tmp_path / folder))
        source = await home.source()
        with DiskVfs(disk, "strongroom-copied") as vfs:
            used_bytes = disk.used_bytes()
            for room_bytes in range(0, 1_500_000, 300_000):
                disk.capacity_bytes = used_bytes + room_bytes
                target = _on(disk, vfs, tmp_path)
                with pytest.raises(CopyRefused, match=r"the disk of .*goal is full. Free some"):
                    await copy_store(source, target)
                await target.close()
            disk.capacity_bytes = None
            target = _on(disk, vfs, tmp_path)
            report = await copy_store(source, target)
            await target.close()
        await source.close()
        assert report.resumed
        async with served(Directory(tmp_path / "goal")) as store:
            await check(store, filled)

    asyncio.run(prove())


def _on(disk: Disk, vfs: DiskVfs, folder: Path) -> EmbeddedTarget:
    return EmbeddedTarget(
        folder / "goal", files=DiskFiles(disk), vfs=vfs.name, segment_bytes=SEGMENT_BYTES
    )


def test_a_full_disk_of_postgresql_is_named_and_the_copy_goes_on_later(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async def prove() -> None:
        home, goal = Directory(tmp_path / "home"), Schema(postgres.url)
        async with served(home) as store:
            filled = await fill(store, sizes=(400_000, 50_000))
        await (await goal.target()).close()
        goal.run(
            "CREATE FUNCTION fill_() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'no space'; END $$"
        )
        goal.run("CREATE TRIGGER filled BEFORE INSERT ON records EXECUTE FUNCTION fill_()")
        with pytest.raises(CopyRefused, match=r"the disk of .*postgres is full. Free some"):
            await copy(home, goal)
        goal.run("DROP TRIGGER filled ON records")
        assert (await copy(home, goal)).resumed
        async with served(goal) as store:
            await check(store, filled)

    asyncio.run(prove())
