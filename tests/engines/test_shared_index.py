"""SQLite's shared index has its space on the disk before a process writes to it."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from strongroom.engines.embedded.records.shared_index import (
    AHEAD_BYTES,
    PIECE_BYTES,
    allocate_index,
    is_without_space,
)
from strongroom.testing.contract.subject import face, put
from strongroom.testing.ports import port_flags
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import store_on

# The disk fills up before the blocks of the index are allocated. Without that the next write into
# the mapped file would end the process by SIGBUS.
_ON_A_FULL_DISK = """
import errno, sys
from strongroom import cli
from strongroom.engines.embedded.records import shared_index
shared_index._system_allocate = lambda: lambda *given: errno.ENOSPC
sys.argv[0] = "strongroom"
cli.main()
"""


def test_the_whole_index_is_allocated_before_the_first_commit(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            await put(store, (face(), b"value"))
            index = tmp_path / "data" / "records.sqlite-shm"
            assert index.stat().st_size == PIECE_BYTES
            assert index.stat().st_blocks * 512 >= PIECE_BYTES + AHEAD_BYTES

    asyncio.run(prove())


def _directory(tmp_path: Path) -> Path:
    async def make() -> None:
        async with store_on(Disk(tmp_path)) as store:
            await put(store, (face(), b"value"))

    asyncio.run(make())
    return tmp_path / "data"


@pytest.mark.parametrize("command", ["serve", "doctor", "backup"])
def test_a_disk_that_is_full_before_the_index_is_allocated(command: str, tmp_path: Path) -> None:
    data = _directory(tmp_path)
    given = {
        "serve": ["--data", str(data), "--test-clock", *port_flags()],
        "doctor": [str(data)],
        "backup": [str(data), str(tmp_path / "copy")],
    }
    ended = subprocess.run(
        [sys.executable, "-c", _ON_A_FULL_DISK, command, *given[command]],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 4, ended.stderr
    assert "records.sqlite cannot be" in ended.stderr
    assert "the disk is full; free some space" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_pieces_are_allocated_ahead_as_far_as_there_is_space() -> None:
    asked: list[tuple[int, int, int]] = []

    def allocate(descriptor: int, mode: int, offset: int, length: int) -> int:
        asked.append((mode, offset, length))
        return errno.ENOSPC if mode else 0

    assert allocate_index(allocate, 7, 0, PIECE_BYTES) == 0
    assert allocate_index(allocate, 7, PIECE_BYTES, PIECE_BYTES) == 0
    assert asked == [
        (0, 0, PIECE_BYTES),
        (1, PIECE_BYTES, AHEAD_BYTES),
        (0, PIECE_BYTES, PIECE_BYTES),
    ]


@pytest.mark.parametrize(
    ("number", "result"),
    [(errno.ENOSPC, errno.ENOSPC), (errno.EDQUOT, errno.EDQUOT), (errno.EOPNOTSUPP, 0)],
)
def test_a_file_system_that_cannot_allocate_is_used_as_it_is(number: int, result: int) -> None:
    assert allocate_index(lambda *given: number, 7, 0, PIECE_BYTES) == result


def test_other_failures_to_map_are_no_full_disk() -> None:
    failed = apsw.IOError()
    failed.extendedresult = apsw.SQLITE_IOERR_SHMMAP  # type: ignore[attr-defined]  # no stub
    assert not is_without_space(failed)
