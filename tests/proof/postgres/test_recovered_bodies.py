"""Bodies in a folder over recoveries of the database: base backup, archived log, three moments.

Five minutes of load overwrite and delete bodies. Then the database is recovered to three moments of
the load. Each one finds all of its bodies, and nothing of the others is removed. A server on a copy
of the database that is served removes nothing either.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from strongroom.clock import SystemClock
from strongroom.engines.base import Commit, EngineError, Key, Partition, Record, Ref, Step, Write
from strongroom.engines.bodies.base import BodiesUnfit
from strongroom.engines.checksum import crc64
from strongroom.engines.postgres.apart import turns
from strongroom.engines.postgres.assembly import (
    PostgresOptions,
    init_bodies,
    init_store,
    open_store,
)
from strongroom.engines.postgres.inspection import StoreInspection
from strongroom.engines.postgres.place_adoption import PlaceAdoption
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import body_of, pieces
from tests.coordination.servers import (
    PostgresServer,
    folder_of,
    postgres_on,
    program,
    user_of_postgres,
)
from tests.engines.postgres.servers import SMALL, Administrator, memory_folder, quick_server

LOAD_S: Final = float(os.environ.get("STRONGROOM_PROOF_LOAD_S", "300"))
_NAMES: Final = 40
_WRITERS: Final = 4
_HOUR_S: Final = 3600
_KEY: Final = Key(False, b"body")
_OPTIONS: Final = PostgresOptions(
    connections=4, schema="store", apart_bytes=4096, keep_dropped_s=_HOUR_S, observe_s=3.0
)


class Named(msgspec.Struct, frozen=True):
    """What a record says of its body."""

    content: int
    size_bytes: int
    crc: int


def _at(name: int) -> Ref:
    return Ref(Partition(b"bodies", b"%d" % name), _KEY)


async def _put(store: PostgresEngine, name: int, body: bytes | None) -> None:
    """Overwrite or delete a body, and drop the one before."""
    named = None
    if body is not None:
        written = await store.contents.write(pieces(body, 65_536), len(body))
        named = Named(written.id, len(body), written.crc64)

    def decide(found: list[Record | None], _: int) -> Commit[None]:
        (record,) = found
        old = () if record is None else (_named(record).content,)
        value = None if named is None else msgspec.msgpack.encode(named)
        adopt = () if named is None else (named.content,)
        step = Step(_at(name).partition, (Write(_KEY, value),), adopt, old)
        return Commit(None, (step,))

    await store.update(_at(name).partition, [_at(name)], decide)  # type: ignore[arg-type]


def _named(record: Record) -> Named:
    return msgspec.msgpack.decode(record.value, type=Named)


async def _load(store: PostgresEngine, until_s: float, seed: int) -> int:
    chance, count = random.Random(seed), 0
    while time.monotonic() < until_s:
        size_bytes = chance.choice((100, 5_000, 70_000, 300_000))
        body = None if chance.random() < 0.2 else chance.randbytes(size_bytes)
        await _put(store, chance.randrange(_NAMES), body)
        count += 1
    return count


async def _check(store: PostgresEngine) -> int:
    """Read all bodies; return how many there are."""
    records = await store.read([_at(name) for name in range(_NAMES)])
    found = [_named(record) for record in records if record is not None]
    for named in found:
        opened = await store.contents.open(named.content)
        body = await body_of(opened)
        opened.close()
        assert (len(body), crc64(body)) == (named.size_bytes, named.crc), named
    return len(found)


class Archive:
    """A server whose log is archived, with copies and recoveries of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._user = user_of_postgres()
        self.log = folder_of(self._user, memory_folder())
        self.base = folder_of(self._user, memory_folder())
        self.server = quick_server(
            folder,
            *("-c", "archive_mode=on", "-c", f"archive_command=cp %p {self.log}/%f"),
            *("-c", "archive_timeout=5s"),
        )
        self.others: list[PostgresServer] = []

    def copy(self, target: Path) -> None:
        basebackup = Path(program("initdb", "postgresql")).resolve().with_name("pg_basebackup")
        command = [basebackup, "-D", target, "-d", self.server.url, "-X", "stream", "-c", "fast"]
        subprocess.run(
            list(map(str, command)), check=True, user=self._user, cwd="/", capture_output=True
        )

    def recovered(self, moment: str | None) -> PostgresServer:
        """Return a server on the state at a moment; None = on a copy of the present state."""
        data = folder_of(self._user, memory_folder())
        if moment is None:
            data.rmdir()
            self.copy(data)
        else:
            subprocess.run(["cp", "-aT", str(self.base), str(data)], check=True)
            (data / "recovery.signal").touch()
        flags = () if moment is None else self._recovery(moment)
        log = self._folder / f"copy{len(self.others)}.log"
        server = postgres_on(data, log, *SMALL, "-c", "archive_mode=off", *flags)
        self.others.append(server)
        return server

    def _recovery(self, moment: str) -> tuple[str, ...]:
        settings = (
            f"restore_command=cp {self.log}/%f %p",
            f"recovery_target_time={moment}",
            "recovery_target_action=promote",
        )
        return tuple(text for one in settings for text in ("-c", one))

    def stop(self) -> None:
        for server in (*self.others, self.server):
            server.kill()
        for one in (self.log, self.base):
            shutil.rmtree(one, ignore_errors=True)


@asynccontextmanager
async def _served(url: str, place: str, **changed: object) -> AsyncIterator[PostgresEngine]:
    options = msgspec.structs.replace(_OPTIONS, bodies=place, **changed)
    store = await open_store(url, SystemClock(), options)
    try:
        yield store
    finally:
        await store.close()


async def _adopt(url: str) -> None:
    adoption = await PlaceAdoption.prepared(url, _OPTIONS.schema, None)
    try:
        assert adoption.is_needed
        await adoption.adopt(1.0)
    finally:
        await adoption.close()


def _files(folder: Path) -> set[str]:
    return {one.name for one in folder.glob("bodies/*/*")}


async def _until_gone(server: PostgresServer) -> None:
    """The gateways of the state count as dead ten seconds after it."""
    await asyncio.sleep(11)
    assert server.runs()


async def _proof(archive: Archive, folder: Path) -> None:
    url, place = archive.server.url, f"file://{folder}"
    await init_store(url, _OPTIONS.schema)
    await init_bodies(url, _OPTIONS.schema, place)
    archive.base.rmdir()
    archive.copy(archive.base)
    administrator = Administrator(url)
    async with _served(url, place) as store:
        until_s = time.monotonic() + LOAD_S
        load = [asyncio.create_task(_load(store, until_s, seed)) for seed in range(_WRITERS)]
        moments = []
        for _ in range(3):
            await asyncio.sleep(LOAD_S / 4)
            moments.append(administrator.value("SELECT clock_timestamp()::text"))
        print(f"{sum(await asyncio.gather(*load))} bodies overwritten and deleted")
        await store.maintain()
        left = await _check(store)
        await _copy_beside(archive, store, folder, place)
        assert await _check(store) == left
    administrator.run("SELECT pg_switch_wal()")
    administrator.close()
    before = _files(folder)
    for moment in moments:
        server = await asyncio.to_thread(archive.recovered, moment)
        await _recovery(server, folder, place)
        assert _files(folder) >= before, "a body of another moment was removed"
    await _adopt(url)
    async with _served(url, place) as store:
        assert await _check(store) == left


async def _recovery(server: PostgresServer, folder: Path, place: str) -> None:
    with pytest.raises(BodiesUnfit, match="store adopt URL"):
        async with _served(server.url, place):
            pass
    with StoreInspection(server.url, _OPTIONS.schema, _HOUR_S) as inspection:
        assert list(inspection.body_findings()) == []
    await _until_gone(server)
    await _adopt(server.url)
    async with _served(server.url, place) as store:
        count = await _check(store)
        assert count > 0
        until_s = time.monotonic() + 5
        while time.monotonic() < until_s:
            await store.maintain()
            await asyncio.sleep(0.5)
        await _load(store, time.monotonic() + 1, 99)
        await _check(store)
        print(f"recovered: {count} bodies, all whole")


async def _copy_beside(archive: Archive, store: PostgresEngine, folder: Path, place: str) -> None:
    """Serve a copy of the database, which would remove everything dropped at once if it could."""
    server = await asyncio.to_thread(archive.recovered, None)
    before = _files(folder)
    ended: list[EngineError] = []
    try:
        async with _served(server.url, place, keep_dropped_s=0) as beside:
            beside.on_fatal(ended.append)
            until_s = time.monotonic() + 60
            while not ended and time.monotonic() < until_s:
                try:
                    await beside.maintain()
                except EngineError as error:
                    print(f"the copy: {error}")
                assert _files(folder) >= before, "the copy removed a body"
                await asyncio.sleep(0.2)
            assert ended, "the copy goes on"
    except BodiesUnfit as error:
        print(f"the copy was refused at once: {error}")
    assert _files(folder) >= before
    await store.maintain()


@pytest.mark.timeout(1800)
def test_every_moment_finds_all_its_bodies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_S", 1.0)
    folder = tmp_path / "shared"
    folder.mkdir()
    archive = Archive(tmp_path)
    try:
        asyncio.run(_proof(archive, folder))
    finally:
        archive.stop()
