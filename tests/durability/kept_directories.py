"""Data directories and backups that earlier versions wrote, packed into the repository.

Lives here: how they are packed and unpacked. Every version must open all of them. To pack those of
a new format, run `python -m tests.durability.kept_directories` with the version that writes it.
Must not live here: what is in them (kept_data.py), tests.

The directory was copied while its server ran, as a kill would leave it: its log is not empty. The
ballast is left out.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from strongroom.engines.embedded.disk.directory import FORMAT_VERSION
from strongroom.engines.embedded.upkeep.backup import backup
from strongroom.testing import InProcessServer
from tests.durability.kept_data import Services, fill

FOLDER: Final = Path(__file__).parent / "kept"
_LEFT_OUT: Final = ("ballast", "LOCK", "BACKUP", "*-shm")


def unpack(version: str, kind: str, target: Path) -> Path:
    """Unpack what a version of the format left. Return the directory, inside `target`.

    Arguments:
        kind: "data" or "backup".
    """
    with tarfile.open(FOLDER / f"format-{version}-{kind}.tar.xz") as packed:
        packed.extractall(target, filter="data")
    return target / kind


def versions() -> list[str]:
    """Return the formats of which directories are kept."""
    return sorted({path.name.split("-")[1] for path in FOLDER.glob("format-*.tar.xz")})


def write_all(home: Path) -> None:
    """Fill the directory `data` in `home`, and make the directory `backup` from it."""
    served = home / "served"
    with InProcessServer.start(data=served, test_clock=False) as server:
        on = Services(server)
        fill(on)
        on.close()
        backup(served, home / "backup")
        shutil.copytree(served, home / "data", ignore=shutil.ignore_patterns(*_LEFT_OUT))


def _pack(source: Path, target: Path) -> None:
    with (
        lzma.open(target, "wb", preset=9 | lzma.PRESET_EXTREME) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as packed,
    ):
        packed.add(source, source.name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_all(home)
        FOLDER.mkdir(exist_ok=True)
        for kind in ("data", "backup"):
            _pack(home / kind, FOLDER / f"format-{FORMAT_VERSION}-{kind}.tar.xz")
