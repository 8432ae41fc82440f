"""The data directory: its stamp, its lock, and the directories that it refuses."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import EngineError
from strongroom.engines.embedded.disk.directory import (
    Damaged,
    DirectoryInUse,
    Format,
    NotADataDirectory,
    TestClockMismatch,
    UnknownFormat,
    parse_format,
)
from strongroom.engines.embedded.log.gate import cut_damaged_log
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.backup import backup, restore
from strongroom.testing.contract.subject import face, put, value

_OPTIONS = EmbeddedOptions(ballast_bytes=64 * 1024)


async def _touch(path: Path, test_clock: bool = False) -> None:
    store = await open_store(path, ManualClock(), test_clock=test_clock, options=_OPTIONS)
    await put(store, (face(), b"here"))
    await store.close()


def _refuses(path: Path, kind: type[EngineError], words: str, test_clock: bool = False) -> None:
    with pytest.raises(kind, match=words):
        asyncio.run(_touch(path, test_clock))


def test_a_new_directory_is_stamped_with_its_parents(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    asyncio.run(_touch(path))
    assert (path / "FORMAT").read_text() == "strongroom 4\n"
    assert {one.name for one in path.iterdir()} >= {"records.sqlite", "segments", "ballast"}
    assert (path / "ballast").stat().st_size == 64 * 1024
    asyncio.run(_touch(path))


def test_a_path_that_is_not_utf_8_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff") / "data"
    _refuses(path, NotADataDirectory, "only paths in UTF-8")
    assert list(tmp_path.iterdir()) == []


def test_only_its_owner_can_read_what_is_in_a_directory_that_others_may_enter(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data"
    path.mkdir(mode=0o755)

    async def prove() -> None:
        store = await open_store(path, ManualClock(), options=_OPTIONS)
        await put(store, (face(), b"here"))
        assert _readable_by_others(path) == []
        await store.close()

    before = os.umask(0o022)
    try:
        asyncio.run(prove())
        for made, make in (("backup", backup), ("restored", restore)):
            (tmp_path / made).mkdir(mode=0o755)
            make(tmp_path / ("data" if make is backup else "backup"), tmp_path / made)
            assert _readable_by_others(tmp_path / made) == []
    finally:
        os.umask(before)


def _readable_by_others(path: Path) -> list[str]:
    return [one.name for one in path.rglob("*") if one.stat().st_mode & 0o077]


def test_no_second_server_opens_a_directory_whose_lock_file_was_removed(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await open_store(tmp_path / "d", ManualClock(), options=_OPTIONS)
        (tmp_path / "d" / "LOCK").unlink()
        with pytest.raises(DirectoryInUse, match="another server"):
            await open_store(tmp_path / "d", ManualClock(), options=_OPTIONS)
        with pytest.raises(DirectoryInUse, match="stop it first"):
            cut_damaged_log(tmp_path / "d")
        await store.close()
        await _touch(tmp_path / "d")

    asyncio.run(prove())


def test_two_servers_never_open_one_directory(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await open_store(tmp_path / "d", ManualClock(), options=_OPTIONS)
        with pytest.raises(DirectoryInUse, match="another server"):
            await open_store(tmp_path / "d", ManualClock(), options=_OPTIONS)
        await put(store, (face(), b"still served"))
        assert await value(store, face()) == b"still served"
        await store.close()
        await _touch(tmp_path / "d")

    asyncio.run(prove())


def test_an_unknown_format_is_refused_and_both_are_named(tmp_path: Path) -> None:
    asyncio.run(_touch(tmp_path / "d"))
    (tmp_path / "d" / "FORMAT").write_text("strongroom 5\n")
    _refuses(tmp_path / "d", UnknownFormat, "(?s)strongroom 5.*strongroom 4.*strongroom 3")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "strongroom",
        "other 1",
        "strongroom 1",
        "strongroom 3 unheard-of",
        "strongroom 3 upgrading",
        "strongroom 4 unheard-of",
        "strongroom 30",
        "\x00\xff",
    ],
)
def test_stamps_that_are_not_ours(text: str) -> None:
    with pytest.raises(UnknownFormat):
        parse_format(text, "DIR")


@pytest.mark.parametrize(
    "stamp",
    [Format(), Format(test_clock=True), Format(backup=True), Format(test_clock=True, backup=True)],
)
def test_stamps_are_read_as_they_were_written(stamp: Format) -> None:
    assert parse_format(stamp.text(), "DIR") == stamp


def test_a_directory_with_something_else_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    _refuses(tmp_path, NotADataDirectory, "not a data directory")
    assert [one.name for one in tmp_path.iterdir()] == ["letters.txt"]


def test_a_test_clock_belongs_to_the_directory(tmp_path: Path) -> None:
    asyncio.run(_touch(tmp_path / "plain"))
    _refuses(tmp_path / "plain", TestClockMismatch, "without", test_clock=True)
    asyncio.run(_touch(tmp_path / "tests", test_clock=True))
    _refuses(tmp_path / "tests", TestClockMismatch, "with")


def test_time_moves_by_hand_only_with_a_test_clock(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await open_store(tmp_path / "d", ManualClock(), options=_OPTIONS)
        with pytest.raises(ValueError, match="test clock"):
            store.advance(1)
        await store.close()

    asyncio.run(prove())


@pytest.mark.parametrize("name", ["records.sqlite", "segments"])
def test_missing_parts_are_named(name: str, tmp_path: Path) -> None:
    asyncio.run(_touch(tmp_path / "d"))
    (tmp_path / "d" / name).rename(tmp_path / "elsewhere")
    _refuses(tmp_path / "d", Damaged, name)


def test_a_creation_that_was_interrupted_begins_again(tmp_path: Path) -> None:
    asyncio.run(_touch(tmp_path / "d"))
    (tmp_path / "d" / "FORMAT").rename(tmp_path / "d" / "FORMAT.new")
    asyncio.run(_touch(tmp_path / "d"))
    assert (tmp_path / "d" / "FORMAT").read_text() == "strongroom 4\n"
