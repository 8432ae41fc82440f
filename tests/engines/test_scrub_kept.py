"""When the scrub begins, goes on and waits, and what it keeps over restarts."""

from __future__ import annotations

import asyncio
import errno
import logging
from contextlib import aclosing
from pathlib import Path

import pytest

from strongroom.engines.embedded.scrub import kept, state
from strongroom.engines.embedded.scrub.kept import FILE_NAME
from strongroom.engines.embedded.scrub.scrub import SAVE_EVERY_S, Scrub
from strongroom.engines.embedded.upkeep.backup import backup, restore
from strongroom.engines.embedded.upkeep.check import check
from strongroom.platform.files import pread
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import store_on
from tests.engines.scrubs import (
    DAY_S,
    LARGE_BYTES,
    OPTIONS,
    Wall,
    add_content,
    fill,
    findings_of,
    flip_content,
    opened,
    scrub_of,
)

_PREAD = "strongroom.engines.embedded.bodies.body_check.pread"


async def _filled(path: Path) -> list[int]:
    async with opened(path) as store:
        return await fill(store)


def test_a_pass_goes_on_after_a_restart_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt a pass after each number of pieces. Together, both parts read each content, and
    hardly any twice."""
    path = tmp_path / "data"
    read: list[int] = []

    def note(descriptor: int, length: int, offset: int) -> bytes:
        read.append(length)
        return pread(descriptor, length, offset)

    async def part(pieces_max: int | None) -> int:
        async with opened(path) as store:
            scrub = scrub_of(store, Wall())
            scrub._state.begin_pass(1.0)
            await scrub._pieces.open()
            count = 0
            async with aclosing(scrub._pieces.of_pass()) as pieces:
                async for _ in pieces:
                    count += 1
                    if count == pieces_max:
                        break
                else:
                    scrub._state.end_pass(2.0)
            await scrub.close()
            return count

    async def prove() -> None:
        await _filled(path)
        monkeypatch.setattr(_PREAD, note)
        whole = await part(None)
        whole_bytes = sum(read)
        assert whole > 8
        for pieces_max in range(1, whole):
            read.clear()
            assert await part(pieces_max) == pieces_max
            rest = await part(None)
            assert kept.load(str(path)).ended_s == 2.0
            assert whole <= pieces_max + rest + 1
            # A large content that was interrupted begins anew.
            assert whole_bytes <= sum(read) <= whole_bytes + LARGE_BYTES
        assert rest < whole

    asyncio.run(prove())


def test_a_state_that_cannot_be_read_begins_a_pass_anew(tmp_path: Path) -> None:
    path = tmp_path / "data"

    async def prove() -> None:
        await _filled(path)
        for data in (b"", b"{", b'{"position": {"part": "other"}}', b"[]", b"\xff" * 100, b"{}"):
            (path / FILE_NAME).write_bytes(data)
            async with opened(path) as store:
                scrub = scrub_of(store, Wall())
                assert scrub._state.kept() == kept.KeptScrub()
                await scrub.one_pass()
                await scrub.close()
        assert kept.load(str(path)).ended_s == Wall().now_s
        newer = (path / FILE_NAME).read_bytes()[:-1] + b',"of_a_newer_version":1}'
        (path / FILE_NAME).write_bytes(newer)
        assert kept.load(str(path)).ended_s == Wall().now_s
        assert (path / FILE_NAME).stat().st_mode & 0o077 == 0

    asyncio.run(prove())


def test_a_full_disk_keeps_no_state_and_fails_nothing(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk, log_ahead=False) as store:
            await fill(store, 20)
            scrub = scrub_of(store, Wall())
            file = tmp_path / "data" / FILE_NAME

            def full(operation: str, path: str) -> int | None:
                return errno.ENOSPC if FILE_NAME in path and operation == "write" else None

            disk.fault = full
            await scrub.one_pass()
            assert scrub.facts().ended_s is not None
            assert list(file.parent.glob(f"{FILE_NAME}*")) == []
            disk.fault = None
            await scrub.close()
            assert file.exists()

    asyncio.run(prove())


def test_findings_beyond_a_bound_are_only_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data"

    async def prove() -> None:
        await _filled(path)
        for number in range(10):
            flip_content(path, number)
        monkeypatch.setattr(state, "FINDINGS_MAX", 4)
        async with opened(path) as store:
            scrub = scrub_of(store, Wall())
            for _ in range(2):
                await scrub.one_pass()
                assert (len(findings_of(scrub)), scrub.facts().damaged) == (4, 10)
            await scrub.close()
        assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 4

    asyncio.run(prove())


def test_the_next_pass_waits_and_state_is_kept_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the loop of the scrub in virtual time: both clocks move by what it sleeps."""
    path = tmp_path / "data"
    wall, elapsed = Wall(), [0.0]
    saves: list[float] = []
    scrubs: list[Scrub] = []
    save = kept.save

    def note_save(*given: object) -> None:
        saves.append(elapsed[0])
        save(*given)  # type: ignore[arg-type]

    async def sleep(seconds: float) -> None:
        wall.now_s += seconds
        elapsed[0] += seconds
        if seconds >= 3600:  # between two passes it keeps no thread and no connection
            assert scrubs[0]._thread._pool is None
            assert scrubs[0]._thread._reader is None
        await asyncio.sleep(0)
        if elapsed[0] > 70 * DAY_S:
            raise asyncio.CancelledError

    async def prove() -> None:
        await _filled(path)
        async with opened(path) as store:
            scrub = scrub_of(store, wall)
            scrubs.append(scrub)
            scrub._sleep, scrub._loop_s = sleep, lambda: elapsed[0]
            began: list[float] = []
            begin = scrub._state.begin_pass

            def note_begin(now_s: float) -> None:
                began.append(elapsed[0])
                begin(now_s)

            monkeypatch.setattr(scrub._state, "begin_pass", note_begin)
            monkeypatch.setattr(kept, "save", note_save)
            with pytest.raises(asyncio.CancelledError):
                await scrub.run()
        assert [round(one / DAY_S) for one in began] == [0, 30, 60]
        assert began[0] == 60.0
        assert 3 <= len(saves) <= 30
        assert SAVE_EVERY_S > 60

    asyncio.run(prove())


def test_what_cannot_be_read_now_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Too many files are open for a while."""
    path = tmp_path / "data"
    tries = [0]

    def busy(descriptor: int, length: int, offset: int) -> bytes:
        tries[0] += 1
        if tries[0] < 4:
            raise OSError(errno.EMFILE, "Too many open files")
        return pread(descriptor, length, offset)

    async def prove() -> None:
        await _filled(path)
        async with opened(path) as store:
            scrub = scrub_of(store, Wall())
            monkeypatch.setattr(_PREAD, busy)
            running = asyncio.create_task(scrub.run())
            while scrub.facts().ended_s is None:
                await asyncio.wait([running], timeout=0.001)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert findings_of(scrub) == {}
        assert len([one for one in caplog.records if "the scrub waits" in one.message]) == 1

    asyncio.run(prove())


def test_backups_restores_and_doctor_leave_the_state_alone(tmp_path: Path) -> None:
    path = tmp_path / "data"

    async def prove() -> None:
        await _filled(path)
        async with opened(path) as store:
            scrub = scrub_of(store, Wall())
            await scrub.one_pass()
            await scrub.close()
        assert (path / FILE_NAME).exists()
        assert list(check(path)) == []
        backup(path, tmp_path / "backup")
        restore(tmp_path / "backup", tmp_path / "restored")
        for made in ("backup", "restored"):
            assert FILE_NAME not in {one.name for one in (tmp_path / made).iterdir()}
        async with opened(tmp_path / "restored", OPTIONS) as store:
            assert await add_content(store, b"<more>", 100_000)

    asyncio.run(prove())
