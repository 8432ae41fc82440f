"""A real file system that another program fills: the server continues, stops, restarts, and
deletions free space.

It needs root on Linux: the test mounts a small file system in memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.engines.embedded.space.ballast import BALLAST_BYTES
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.server import Server
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB
from tests.durability.full_disk_work import Work

_SIZE = "112m"
_RENEWALS = 10_000
# The log holds them, and the database is still small when the disk is full.
_MANY = 600
# Fills the file system to its last block; with a second argument, again and again.
_FILL = """
import sys, time
with open(sys.argv[1], "ab", buffering=0) as file:
    while True:
        for size in (1 << 20, 1 << 12):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass
        if len(sys.argv) < 3:
            break
        print("full", flush=True)
        time.sleep(0.002)
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    path = tmp_path / "small"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "strongroom", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run this as root on Linux: {done.stderr}"
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def _fill(path: Path) -> Path:
    filler = path / "filler"
    subprocess.run([sys.executable, "-c", _FILL, str(filler)], check=True)
    assert _free_bytes(path) == 0
    return filler


def _free_bytes(path: Path) -> int:
    facts = os.statvfs(path)
    return facts.f_bavail * facts.f_frsize


def _work(server: Server, many: int = 0) -> Work:
    return Work(server.url, server.queue_url, server.table_url, many)


def _end(server: Server, kills: bool) -> None:
    if kills:
        server.kill()
    else:
        server.stop()
        assert server.exit_code == 0, server.output()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("many", [0, _MANY], ids=["short log", "long log"])
@pytest.mark.parametrize("kills", [True, False], ids=["kill", "sigterm"])
def test_a_full_file_system(small: Path, kills: bool, many: int) -> None:
    data = small / "data"
    with Server.start(data=data, test_clock=False) as server:
        work = _work(server, many)
        work.store()
        filler = _fill(small)
        for _ in range(3):
            work.close()
            _end(server, kills)
            _fill(small)
            server.restart()
            work = _work(server, many)
            work.read()
        assert "full" in work.refused(500_000).error["Message"]
        work.refused(100)
        work.keep_alive()
        expect(work.grow(), 507, "InsufficientStorage")
        work.renew(_RENEWALS)
        work.read()
        assert (data / "ballast").stat().st_size >= BALLAST_BYTES // 2, "the rest is for deletes"
        work.delete()
        _until(lambda: _free_bytes(small) > 3_000_000, "what was deleted does not come back")
        filler.unlink()
        _until(lambda: (data / "ballast").stat().st_size == BALLAST_BYTES, "no ballast again")
        expect(work.blobs.put("/again?restype=container"), 201)
        expect(work.blobs.put("/again/large", PUT_BLOB, bytes(3_000_000)), 201)
        work.close()
        server.stop()
        assert server.exit_code == 0, server.output()
    assert list(check(data)) == []


@pytest.mark.timeout(600)
def test_beside_a_program_that_takes_all_space_there_is(small: Path) -> None:
    data = small / "data"
    with Server.start(data=data, test_clock=False) as server:
        work = _work(server)
        work.store()
        command = [sys.executable, "-c", _FILL, str(small / "filler"), "on"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as hungry:
            assert hungry.stdout is not None
            try:
                hungry.stdout.readline()
                for kills in (True, False, True, False):
                    work.close()
                    _end(server, kills)
                    server.restart()
                    work = _work(server)
                    work.read()
                    work.renew(200)
                work.delete()
            finally:
                hungry.kill()
        work.close()
    assert list(check(data)) == []


def _until(holds: object, message: str) -> None:
    assert callable(holds)
    for _ in range(400):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(message)
