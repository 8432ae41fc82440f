"""The mark of a data directory that may be reset: made with it, kept with it, and required."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.clock import SystemClock
from strongroom.engines.embedded import open_store
from strongroom.engines.embedded.disk.directory import (
    DirectoryLayout,
    Format,
    ResetNotAllowed,
    parse_format,
)
from strongroom.engines.embedded.upkeep.backup import backup, restore


def opened(data: Path, *, allow_reset: bool, test_clock: bool = False) -> bool:
    """Open and close a directory. Return whether it may be reset."""

    async def run() -> bool:
        store = await open_store(
            data, SystemClock(), test_clock=test_clock, allow_reset=allow_reset
        )
        found = store.allows_reset
        await store.close()
        return found

    return asyncio.run(run())


def test_a_directory_has_the_mark_since_its_creation(tmp_path: Path) -> None:
    assert opened(tmp_path / "data", allow_reset=True)
    assert (tmp_path / "data" / "FORMAT").read_text() == "strongroom 4 allow-reset\n"
    assert not opened(tmp_path / "data", allow_reset=False)
    assert opened(tmp_path / "data", allow_reset=True)


def test_a_directory_without_the_mark_is_never_opened_to_be_reset(tmp_path: Path) -> None:
    assert not opened(tmp_path / "data", allow_reset=False)
    for _ in range(2):
        with pytest.raises(ResetNotAllowed, match="created without --allow-reset"):
            opened(tmp_path / "data", allow_reset=True)
    assert (tmp_path / "data" / "FORMAT").read_text() == "strongroom 4\n"
    assert not opened(tmp_path / "data", allow_reset=False)


@pytest.mark.parametrize("marked", [False, True])
def test_a_restored_directory_has_the_mark_that_the_first_one_had(
    marked: bool, tmp_path: Path
) -> None:
    opened(tmp_path / "data", allow_reset=marked, test_clock=True)
    backup(tmp_path / "data", tmp_path / "copy")
    assert DirectoryLayout(str(tmp_path / "copy")).read_format().backup
    restore(tmp_path / "copy", tmp_path / "again")
    expected = Format(test_clock=True, allow_reset=marked)
    assert DirectoryLayout(str(tmp_path / "again")).read_format() == expected


@pytest.mark.parametrize(
    "found",
    [
        Format(),
        Format(allow_reset=True),
        Format(test_clock=True, allow_reset=True, backup=True),
        Format(upgrading=True, allow_reset=True),
    ],
)
def test_a_format_is_read_as_it_is_written(found: Format) -> None:
    assert parse_format(found.text(), "data") == found
