"""The list of packages from which an image is built: one line a package, with version and hash.

Lives here: the list's format. Must not live here: where packages are found (debian.py, wheels.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

Kind = Literal["deb", "wheel"]
ARCHITECTURES = ("amd64", "arm64")
_FOLDER = Path(__file__).parent / "locked"
_HEAD = (
    "# Written by `make image ARGS=--lock`: kind, name, version, SHA-256. Images have this date:\n"
)


class LockError(Exception):
    """The list cannot be used; the text says which line, and what to do."""


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """One package of the image."""

    kind: Kind
    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Lock:
    """All packages of the image of one architecture, and the date on which they were chosen."""

    day: str
    packages: tuple[Package, ...]

    @property
    def seconds(self) -> int:
        """The date in seconds since 1970: the time of change of every file in the image."""
        return int(datetime.fromisoformat(self.day).replace(tzinfo=UTC).timestamp())

    def of(self, kind: Kind) -> list[Package]:
        """Return the packages of one kind, by name."""
        return [package for package in self.packages if package.kind == kind]


def path_of(architecture: str) -> Path:
    """Return the list of an architecture's packages."""
    return _FOLDER / f"{architecture}.txt"


def text_of(day: str, packages: Iterable[Package]) -> str:
    """Return a list as text."""
    lines = [f"{one.kind} {one.name} {one.version} {one.sha256}\n" for one in sorted(packages)]
    return _HEAD + f"date {day}\n" + "".join(lines)


def parse(text: str, name: str) -> Lock:
    """Return the list that a text holds. Raises LockError.

    Arguments:
        name: the name of the text in errors.
    """
    day = None
    packages = []
    for number, line in enumerate(text.splitlines(), start=1):
        match line.split():
            case [first, *_] if first.startswith("#"):
                continue
            case ["date", found]:
                day = found
            case ["deb" | "wheel" as kind, package, version, sha256] if len(sha256) == 64:
                packages.append(Package(kind, package, version, sha256))
            case _:
                raise LockError(f"{name}:{number}: not KIND NAME VERSION SHA256: {line!r}")
    if day is None:
        raise LockError(f"{name}: no line `date YYYY-MM-DD`; `make image ARGS=--lock` writes one")
    return Lock(day, tuple(packages))


def read(architecture: str) -> Lock:
    """Return the list of an architecture. Raises LockError."""
    path = path_of(architecture)
    try:
        return parse(path.read_text(encoding="utf-8"), path.name)
    except FileNotFoundError:
        raise LockError(f"{path} is missing; `make image ARGS=--lock` writes it") from None
