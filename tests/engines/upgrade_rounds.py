"""Upgrades that are interrupted at a step, on a simulated disk, and the checks of what is left.

Lives here: the rounds and their judge. The short run is in test_upgrade.py, the long one in
tests/proof.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from strongroom.clock import SystemClock
from strongroom.engines.base import EngineError, Record, Ref
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import Inspection, check
from tests.durability.kept_directories import unpack
from tests.engines.disks.disk import Disk, Fault
from tests.engines.disks.sqlite import DiskVfs
from tests.engines.embedded_stores import options_on

OPTIONS = EmbeddedOptions(ballast_bytes=4096, compact=False)
_vfs_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Held:
    """All that a directory holds."""

    records: list[tuple[Ref, Record | None]]
    contents: dict[int, bytes]


def held_by(path: Path) -> Held:
    """Return all that a directory or a backup holds."""
    with Inspection(path) as inspection:
        contents = {one: b"".join(inspection.read_content(one)) for one in inspection.content_ids()}
        return Held(list(inspection.records()), contents)


def old_directory(folder: Path) -> Path:
    """Unpack a directory of format 3 whose log is not empty. Return the directory."""
    return unpack("3", "data", folder)


def open_once(path: Path) -> None:
    """Open a directory as a server does, and close it."""

    async def opened() -> None:
        store = await open_store(path, SystemClock(), options=OPTIONS)
        await store.close()

    asyncio.run(opened())


def upgrade_on(disk: Disk) -> None:
    """Open the directory on the disk, which upgrades it."""

    async def opened() -> None:
        with DiskVfs(disk, f"strongroom-upgrade-{next(_vfs_numbers)}") as vfs:
            options = options_on(disk, vfs, 48 * 1024, 64 * 1024, compact=False)
            store = await open_store(Path(disk.root, "data"), SystemClock(), options=options)
            await store.close()

    asyncio.run(opened())


def count_operations(home: Path) -> int:
    """Return after how many operations on the disk an upgrade of a fresh directory is complete."""
    disk = Disk(home)
    seen: list[int] = []

    def fault(operation: str, path: str) -> int | None:
        if path.endswith("FORMAT.next"):
            seen.append(disk.operations)
        return None

    disk.fault = fault
    upgrade_on(disk)
    assert list(check(home / "data")) == []
    return seen[-1] + 2  # the rename and its sync


def cut_at(step: int, folder: Path, source: Path, seeds: tuple[int, ...], right: Held) -> set[str]:
    """Cut the power at an operation of the upgrade, and judge what is left with each seed. Return
    the formats that were found."""
    home = folder / f"cut-{step}"
    shutil.copytree(source, home / "data")
    disk = Disk(home)
    disk.cut_at = step
    with pytest.raises((EngineError, OSError, apsw.Error)):
        upgrade_on(disk)
    found = set()
    for seed in seeds:
        image = folder / f"image-{step}-{seed}"
        image.mkdir()
        disk.after_power_cut(image, seed)
        found.add(judge(image / "data", right))
        shutil.rmtree(image)
    shutil.rmtree(home)
    return found


def fail_from(step: int, errno: int, folder: Path, source: Path, right: Held) -> None:
    """Let each write from an operation on fail, as on a full disk; then judge what is left."""
    home = folder / f"full-{step}"
    shutil.copytree(source, home / "data")
    disk = Disk(home)
    disk.fault = _writes_from(disk, step, errno)
    # At the last steps, a server can be opened although nothing can be written.
    with contextlib.suppress(EngineError, OSError):
        upgrade_on(disk)
    disk.fault = None
    assert not (home / "data" / "records.sqlite.new").exists() or _format(home / "data") != "3"
    judge(home / "data", right)
    shutil.rmtree(home)


def _writes_from(disk: Disk, step: int, errno: int) -> Fault:
    def fault(operation: str, path: str) -> int | None:
        grows = operation in ("write", "create", "mkdir")
        return errno if grows and disk.operations >= step else None

    return fault


def _format(path: Path) -> str:
    return (path / "FORMAT").read_text().split(maxsplit=1)[1].strip()


def judge(path: Path, right: Held) -> str:
    """The directory is of one format, opens, and holds everything. Return its FORMAT."""
    found = _format(path)
    assert found in ("3", "4 upgrading", "4"), found
    open_once(path)
    assert _format(path) == "4"
    assert not (path / "records.sqlite.new").exists()
    assert list(check(path)) == []
    assert held_by(path) == right
    return found
