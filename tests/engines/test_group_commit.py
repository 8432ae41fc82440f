"""Group commit: which commits share a sync, which wait for one, and the effect of a failed sync."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import apsw
import pytest

from strongroom.engines.base import (
    Commit,
    CommitUnknown,
    EngineError,
    Record,
    Step,
    StorageEngine,
    Unavailable,
)
from strongroom.engines.embedded.bodies import dead_space
from strongroom.engines.embedded.commit import writer_turns
from strongroom.engines.embedded.commit.serial_point import Group, QueuedWork, SerialPoint
from strongroom.engines.embedded.log import checkpoints
from strongroom.limits import KIB, MIB
from strongroom.testing.contract.subject import (
    Refused,
    commit,
    face,
    increment,
    pieces,
    place,
    put,
    refuse,
    value,
    writes,
)
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.embedded_stores import Gate, store_on


def test_nothing_that_a_running_sync_covers_is_shown(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        gate = Gate()
        async with store_on(disk) as store:
            await put(store, (face(), b"0"))
            disk.fault = gate
            gate.shut()
            try:
                writing = asyncio.create_task(put(store, (face(), b"1")))
                assert await asyncio.to_thread(gate.reached.wait, 30)
                refusing = asyncio.create_task(refuse(store, face()))
                for _ in range(20):
                    await asyncio.sleep(0.001)
                assert await value(store, face()) == b"0", "a read showed what is not durable"
                assert not writing.done()
                assert not refusing.done(), "a refusal showed what is not durable"
            finally:
                gate.open()
            await writing
            with pytest.raises(Refused, match="value=b'1'"):
                await refusing

    asyncio.run(prove())


def test_many_decisions_share_few_syncs_and_refusals_need_none(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        gate = Gate()
        async with store_on(disk) as store:
            await put(store, (face(), b"0"))
            disk.fault = gate
            assert sorted(
                await asyncio.gather(*(increment(store, face()) for _ in range(100)))
            ) == list(range(1, 101))
            assert gate.syncs < 20
            before = gate.syncs
            for _ in range(50):
                with pytest.raises(Refused):
                    await refuse(store, face())
            assert gate.syncs == before

    asyncio.run(prove())


@pytest.mark.parametrize("before", [None, b"before"])
@pytest.mark.parametrize("changes", [(b"1", None), (None, b"2"), (b"1", None, b"3"), (b"1", b"2")])
def test_what_a_group_changes_often_is_as_the_last_left_it(
    tmp_path: Path, before: bytes | None, changes: tuple[bytes | None, ...]
) -> None:
    async def change(store: StorageEngine, value: bytes | None) -> tuple[bytes | None, int]:
        def decide(
            records: Sequence[Record | None], stamp: int
        ) -> Commit[tuple[bytes | None, int]]:
            (record,) = records
            seen = None if record is None else record.value
            return Commit((seen, stamp), writes((face(), value)))

        return await store.update(place(), [face()], decide)

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk) as store:
            if before is not None:
                await put(store, (face(), before))
            made = await asyncio.gather(*(change(store, value) for value in changes))
            assert [seen for seen, _ in made] == [before, *changes[:-1]]
        async with store_on(disk) as store:
            (record,) = await store.read([face()])
            last = changes[-1]
            assert record == (None if last is None else Record(last, made[-1][1]))

    asyncio.run(prove())


def test_a_faulty_decision_harms_nobody_in_its_group(tmp_path: Path) -> None:
    async def exhausted(store: StorageEngine) -> None:
        def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
            raise StopIteration

        await store.update(place(), [], decide)

    async def misguided(store: StorageEngine) -> None:
        wrong = cast("bytes", {1, 2, 3})
        await store.update(place(), [], lambda _, __: Commit(None, writes((face(b"x"), wrong))))

    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            answers = await asyncio.gather(
                increment(store, face()),
                exhausted(store),
                increment(store, face()),
                misguided(store),
                increment(store, face()),
                return_exceptions=True,
            )
            assert [type(one) for one in answers] == [int, RuntimeError, int, TypeError, int]
            assert await value(store, face()) == b"3"
            assert await value(store, face(b"x")) is None

    asyncio.run(prove())


def test_one_that_asks_for_what_cannot_be_is_refused_alone(tmp_path: Path) -> None:
    async def prove() -> None:
        wrong = face(cast("bytes", "\ud800"))
        async with store_on(Disk(tmp_path)) as store:
            answers = await asyncio.gather(
                increment(store, face()),
                increment(store, wrong),
                increment(store, face()),
                return_exceptions=True,
            )
            assert [type(one) for one in answers] == [int, UnicodeEncodeError, int]

    asyncio.run(prove())


def test_slow_look_ups_leave_time_for_the_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SerialPoint.look_up

    def slow(self: SerialPoint, item: QueuedWork, group: Group) -> None:
        time.sleep(0.02)
        whole(self, item, group)

    async def prove() -> None:
        disk = Disk(tmp_path)
        gate = Gate()
        async with store_on(disk) as store:
            disk.fault = gate
            monkeypatch.setattr(writer_turns, "GROUP_TIME_S", 0.1)
            monkeypatch.setattr(SerialPoint, "look_up", slow)
            await asyncio.gather(*(increment(store, face(b"%d" % one)) for one in range(20)))
            assert gate.syncs <= 10

    asyncio.run(prove())


def test_a_group_does_not_gather_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            monkeypatch.setattr(writer_turns, "GROUP_TIME_S", 0.05)
            writing = [asyncio.create_task(put(store, (face(b"first"), b"")))]
            while not writing[0].done() and len(writing) < 200:
                time.sleep(0.005)  # noqa: ASYNC251 - turns of the loop that take long
                key = face(b"%d" % len(writing))
                writing.append(asyncio.create_task(put(store, (key, b""))))
                await asyncio.sleep(0)
            assert len(writing) < 200
            await asyncio.gather(*writing)

    asyncio.run(prove())


def test_a_refusal_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    made: list[weakref.ref[Refused]] = []

    def refusal() -> Refused:
        error = Refused()
        made.append(weakref.ref(error))
        return error

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
        raise refusal()

    async def update(store: StorageEngine) -> None:
        with contextlib.suppress(Refused):
            await store.update(face()[0], (face(),), decide)

    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            await update(store)
            await asyncio.gather(*(update(store) for _ in range(10)), put(store, (face(), b"")))

    gc.disable()
    try:
        asyncio.run(prove())
        assert [error() for error in made] == [None] * 11
    finally:
        gc.enable()


def test_a_caller_that_goes_away_before_its_group_changes_nothing(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            going = asyncio.create_task(put(store, (face(), b"never")))
            await asyncio.sleep(0)
            going.cancel()
            staying = await put(store, (face(b"other"), b""))
            assert staying > 0
            assert await value(store, face()) is None

    asyncio.run(prove())


def test_a_group_larger_than_its_bounds_is_split(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            stamps = await asyncio.gather(
                *(put(store, (face(b"%d" % one), bytes(20_000))) for one in range(700))
            )
            assert len(set(stamps)) == 700
            assert await value(store, face(b"699")) == bytes(20_000)

    asyncio.run(prove())


def test_large_commits_of_many_callers_do_not_share_one_turn_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_bytes, sizes = 480 * KIB, list[int]()
    finish = SerialPoint.finish

    def counted(self: SerialPoint, group: Group) -> None:
        sizes.append(group.size_bytes)
        finish(self, group)

    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            monkeypatch.setattr(SerialPoint, "finish", counted)
            commits = [
                [(face(b"%d-%d" % (one, part)), bytes(60 * KIB)) for part in range(8)]
                for one in range(8)
            ]
            await asyncio.gather(*(put(store, *pairs) for pairs in commits))
        assert sum(sizes) >= 8 * own_bytes
        assert max(sizes) < MIB + own_bytes + 2 * KIB, "a group took more than 1 MiB and one item"

    asyncio.run(prove())


def test_commits_of_many_records_do_not_share_one_turn_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, rows = 50, list[int]()
    finish = SerialPoint.finish

    def counted(self: SerialPoint, group: Group) -> None:
        rows.append(group.rows)
        finish(self, group)

    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            monkeypatch.setattr(SerialPoint, "finish", counted)
            commits = [
                [(face(b"%d-%d" % (one, part)), b"x") for part in range(own)] for one in range(20)
            ]
            await asyncio.gather(*(put(store, *pairs) for pairs in commits))
        assert sum(rows) >= 20 * own
        assert max(rows) <= 200 + own, "a group took more than 192 rows and one item"

    asyncio.run(prove())


@pytest.mark.parametrize(("operation", "suffix"), [("sync", "-wal"), ("write", "-wal")])
def test_an_io_error_in_commit_stops_the_store(operation: str, suffix: str, tmp_path: Path) -> None:
    def fail(doing: str, path: str) -> int | None:
        return errno.EIO if doing == operation and path.endswith(suffix) else None

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk) as store:
            told: list[EngineError] = []
            store.on_fatal(told.append)
            await put(store, (face(), b"acknowledged"))
            disk.fault = fail
            waiting = asyncio.create_task(store.wait(face(b"w"), None, 60))
            await asyncio.sleep(0)
            answers = await asyncio.gather(
                *(put(store, (face(b"%d" % one), b"")) for one in range(5)),
                return_exceptions=True,
            )
            assert all(isinstance(one, CommitUnknown) for one in answers)
            await waiting
            assert len(told) == 1
            with pytest.raises(Unavailable, match="I/O error"):
                await put(store, (face(), b"later"))
        disk.fault = None
        async with store_on(disk) as store:
            assert await value(store, face()) == b"acknowledged"

    asyncio.run(prove())


def test_a_failed_sync_of_a_segment_stops_the_store(tmp_path: Path) -> None:
    def fail(doing: str, path: str) -> int | None:
        return errno.EIO if doing == "sync" and path.endswith(".seg") else None

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk) as store:
            told: list[EngineError] = []
            store.on_fatal(told.append)
            disk.fault = fail
            answers = await asyncio.gather(
                *(store.contents.write(pieces(bytes(50_000)), 50_000) for _ in range(4)),
                return_exceptions=True,
            )
            assert all(isinstance(one, Unavailable) for one in answers)
            assert len(told) == 1
            with pytest.raises(Unavailable):
                await put(store, (face(), b""))

    asyncio.run(prove())


def test_a_checkpoint_that_cannot_open_its_files_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def no_descriptor(path: str, vfs: str | None, cache_kib: int) -> apsw.Connection:
        tried.append(path)
        raise apsw.CantOpenError("unable to open database file")

    async def prove() -> None:
        monkeypatch.setattr(checkpoints, "PASSIVE_PAGES", 1)
        monkeypatch.setattr(checkpoints, "connect", no_descriptor)
        async with store_on(Disk(tmp_path)) as store:
            while len(tried) < 2:
                await put(store, (face(), b"%d" % len(tried)))
            assert await value(store, face()) is not None

    asyncio.run(prove())


def test_a_commit_is_answered_though_the_disk_does_not_say_how_full_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(files: DiskFiles, path: str) -> int:
        raise OSError(errno.EIO, "statvfs failed")

    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            ids = [(await store.contents.write(pieces(bytes(1000)), 1000)).id for _ in range(3)]
            await commit(store, Step(place(), adopt=tuple(ids)))
            monkeypatch.setattr(dead_space, "_SEAL_EARLY_BYTES", 1)
            monkeypatch.setattr(DiskFiles, "free_bytes", fails)
            await asyncio.wait_for(commit(store, Step(place(), drop=tuple(ids))), 10)
            await asyncio.wait_for(put(store, (face(), b"goes on")), 10)
            monkeypatch.undo()

    asyncio.run(prove())
