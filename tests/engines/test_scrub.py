"""The scrub: what a pass reads and finds, and what is no damage."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import apsw
import pytest

from strongroom.engines.base import Step
from strongroom.engines.embedded.records import bound_pages
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import connect
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.embedded.scrub.kept import DamagedPlace, record_place
from strongroom.engines.embedded.store import EmbeddedEngine
from strongroom.engines.embedded.upkeep.check import check
from strongroom.platform.files import pread
from strongroom.testing.contract.subject import commit, face, put
from tests.engines.scrubs import (
    DAY_S,
    LARGE_BYTES,
    Wall,
    fill,
    findings_of,
    flip,
    flip_content,
    opened,
    record,
    scrub_of,
)

_PREAD = "strongroom.engines.embedded.bodies.body_check.pread"


async def _filled(path: Path) -> list[int]:
    async with opened(path) as store:
        return await fill(store)


def _pages_in_use(path: Path) -> set[int]:
    connection = connect(str(path / "records.sqlite"), None, 64)
    try:
        return {one[0] for one in connection.execute("SELECT pageno FROM dbstat")}
    finally:
        connection.close()


async def _found_by_a_pass(store: EmbeddedEngine) -> dict[DamagedPlace, str]:
    scrub = scrub_of(store, Wall())
    await scrub.one_pass()
    await scrub.close()
    return {place: one.problem for place, one in findings_of(scrub).items()}


def test_a_pass_reads_every_page_and_every_byte_of_a_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: set[int] = set()
    ranges: set[tuple[int, int, int]] = set()
    read_page = bound_pages._BoundFile.xRead

    def note_page(file: bound_pages._BoundFile, amount: int, offset: int) -> bytes:
        if amount == PAGE_BYTES:
            pages.add(offset // PAGE_BYTES + 1)
        return read_page(file, amount, offset)

    def note_range(descriptor: int, length: int, offset: int) -> bytes:
        ranges.add((os.fstat(descriptor).st_ino, offset, length))
        return pread(descriptor, length, offset)

    async def prove() -> None:
        path = tmp_path / "data"
        await _filled(path)
        async with opened(path) as store:
            scrub = scrub_of(store, Wall())
            for _ in range(2):  # in the second pass nothing comes from memory either
                pages.clear()
                ranges.clear()
                monkeypatch.setattr(bound_pages._BoundFile, "xRead", note_page)
                monkeypatch.setattr(_PREAD, note_range)
                await scrub.one_pass()
                monkeypatch.undo()
                assert _pages_in_use(path) <= pages
                sizes = [one.stat().st_size for one in (path / "segments").iterdir()]
                assert sum(length for _, _, length in ranges) >= LARGE_BYTES
                # Small contents have no gaps between them, and nothing is dead.
                covered = sum(length for _, _, length in ranges)
                assert covered == store._segments.sizes()[1] <= sum(sizes)
                assert len(_pages_in_use(path)) > 30
            assert scrub.facts().damaged == 0
            assert scrub.facts().progress == 1
            await scrub.close()

    asyncio.run(prove())


def test_flipped_bytes_are_found_logged_once_and_kept_until_they_are_sound(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data"
    records = path / "records.sqlite"

    async def prove() -> None:
        ids = await _filled(path)
        small, large = DamagedPlace("content", ids[3]), DamagedPlace("content", ids[40])

        def damage_all() -> None:
            flip(records, b"<marker 0100>")
            flip_content(path, 3)
            flip_content(path, 40, 2_000_000)

        damage_all()
        async with opened(path) as store:
            wall = Wall()
            scrub = scrub_of(store, wall)
            await scrub.one_pass()
            found = findings_of(scrub)
            assert {small, large, record_place(record(100))} <= found.keys()
            assert record_place(record(0)) not in found
            assert len(found) == 2 + sum(place.kind == "record" for place in found)
            assert scrub.facts().damaged == len(found)
            logged = [one for one in caplog.records if one.levelno == logging.ERROR]
            assert len(logged) == len(found)
            await scrub.one_pass()
            assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == len(
                found
            )
            await scrub.close()
        async with opened(path) as store:
            scrub = scrub_of(store, wall)
            assert findings_of(scrub) == found  # before anything is read again
            damage_all()  # that is, mend all
            await scrub._pieces.look_again()
            assert findings_of(scrub) == {}
            await scrub.close()
        async with opened(path) as store:
            assert scrub_of(store, wall).facts().damaged == 0

    asyncio.run(prove())


def test_a_pass_that_finds_a_place_gone_forgets_it(tmp_path: Path) -> None:
    path = tmp_path / "data"

    async def prove() -> None:
        ids = await _filled(path)
        flip_content(path, 5)
        async with opened(path) as store:
            scrub = scrub_of(store, Wall())
            await scrub.one_pass()
            assert findings_of(scrub).keys() == {DamagedPlace("content", ids[5])}
            await commit(store, Step(record(0).partition, drop=(ids[5],)))
            scrub._wall_s.now_s += 30 * DAY_S  # type: ignore[attr-defined]  # it is a Wall
            await scrub.one_pass()
            assert findings_of(scrub) == {}
            await scrub.close()

    asyncio.run(prove())


@pytest.mark.parametrize("offset", [20, 5000, 9000])
def test_a_flipped_byte_in_the_log_is_found_while_serving(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "data"

    async def prove() -> None:
        async with opened(path) as store:
            await fill(store, 20)
            assert await _found_by_a_pass(store) == {}
            log = path / "records.sqlite-wal"
            byte = log.read_bytes()[offset]
            for value, problems in ((byte ^ 1, 1), (byte, 0)):
                with log.open("r+b") as file:
                    file.seek(offset)
                    file.write(bytes([value]))
                found = await _found_by_a_pass(store)
                assert len([place for place in found if place.kind == "log"]) == problems

    asyncio.run(prove())


def test_a_log_that_starts_anew_while_it_is_read_is_no_damage(tmp_path: Path) -> None:
    """Read frame by frame, and let the log start anew between two of them."""
    path = tmp_path / "data"

    async def prove() -> None:
        async with opened(path) as store:
            await fill(store, 20)
            scrub = scrub_of(store, Wall())
            await scrub._pieces.open()
            async with aclosing(scrub._pieces.of_pass()) as pieces:
                await anext(pieces)
                assert scrub._state.position.part == "log"
                await store._committer.between_groups(store._checkpointer._truncate)
                for number in range(50):
                    await put(store, (face(b"", b"new%02d" % number), bytes(number) * 30))
                async for _ in pieces:
                    pass
            assert findings_of(scrub) == {}
            await scrub.close()

    asyncio.run(prove())


def test_the_first_page_and_a_missing_segment_are_found(tmp_path: Path) -> None:
    path = tmp_path / "data"

    async def prove() -> None:
        ids = await _filled(path)
        async with opened(path) as store:
            await _found_by_a_pass(store)
            data = (path / "records.sqlite").read_bytes()
            _overwrite(path / "records.sqlite", 3000, bytes([data[3000] ^ 1]))
            gone = next(path.joinpath("segments").iterdir())
            aside = gone.rename(tmp_path / "aside")
            scrub = scrub_of(store, Wall())
            with pytest.raises(apsw.IOError):
                await scrub.one_pass()
            assert {place.kind for place in findings_of(scrub)} == {"records"}
            _overwrite(path / "records.sqlite", 3000, data[3000:3001])
            await scrub.one_pass()
            segment = DamagedPlace("segment", int(gone.stem, 16))
            assert {place: one.problem for place, one in findings_of(scrub).items()} == {
                segment: "the file is missing"
            }
            aside.rename(gone)
            await scrub._pieces.look_again()
            assert findings_of(scrub) == {}
            await scrub.close()
            assert ids

    asyncio.run(prove())


def _overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(offset)
        file.write(data)


def test_a_segment_that_was_cut_off_is_found_as_doctor_finds_it(tmp_path: Path) -> None:
    path = tmp_path / "data"

    async def prove() -> None:
        await _filled(path)
        cut = max(path.joinpath("segments").iterdir(), key=lambda one: one.stat().st_size)
        os.truncate(cut, 1_000_000)
        async with opened(path) as store:
            found = await _found_by_a_pass(store)
        by_doctor = {f"{one.place}: {one.problem}" for one in check(path)}
        assert {f"{place.text()}: {problem}" for place, problem in found.items()} == by_doctor
        assert len(found) == 2

    asyncio.run(prove())


def test_an_unreadable_sector_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data"

    def bad(inode: int, bad_offset: int) -> Callable[[int, int, int], bytes]:
        def read(descriptor: int, length: int, offset: int) -> bytes:
            is_bad = os.fstat(descriptor).st_ino == inode and offset <= bad_offset < offset + length
            if is_bad:
                raise OSError(errno.EIO, "Input/output error")
            return pread(descriptor, length, offset)

        return read

    async def prove() -> None:
        ids = await _filled(path)
        reader = Reader(str(path / "records.sqlite"), None, scanning=True)
        location = reader.locate(ids[7])
        reader.close()
        assert location is not None
        inode = (path / "segments" / f"{location.segment:016x}.seg").stat().st_ino
        monkeypatch.setattr(_PREAD, bad(inode, location.offset + 5))
        async with opened(path) as store:
            assert await _found_by_a_pass(store) == {
                DamagedPlace("content", ids[7]): "it cannot be read: Input/output error"
            }

    asyncio.run(prove())
