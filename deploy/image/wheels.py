"""Python's packages: their versions, their download by pip, and their files.

Lives here: pip as a program, and the layout of wheels. Must not live here: Debian's packages.
Source of the layout: the Python packaging specification "Binary distribution format".
"""

from __future__ import annotations

import email
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.image.lock import LockError, Package
from deploy.image.tree import File, Tree

# Where Debian's Python looks for what is not Debian's.
PACKAGES_FOLDER = "usr/local/lib/python3.13/dist-packages"
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBC = (*range(41, 16, -1), 5)  # of the release, down to the oldest that wheels are made for
_EXECUTABLE = 0o111


class PipError(Exception):
    """pip failed; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """What is known of a wheel by its own metadata."""

    name: str
    version: str
    summary: str
    licence: str
    urls: tuple[str, ...]
    scripts: tuple[tuple[str, str], ...]  # command, module:function


class Pip:
    """pip, for the image's Python on one architecture.

    Arguments:
        folder: where wheels are downloaded to.
        architecture: Debian's name of it.
        python: the version of Python, as 3.13.
    """

    def __init__(self, folder: Path, architecture: str, python: str) -> None:
        self._folder = folder / "wheels"
        self._folder.mkdir(parents=True, exist_ok=True)
        machine = _MACHINES[architecture]
        platforms = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC]
        platforms += [f"manylinux2014_{machine}", f"manylinux1_{machine}"]
        self._target = [
            *("--only-binary=:all:", f"--python-version={python}", "--implementation=cp"),
            *(f"--platform={platform}" for platform in platforms),
        ]

    def resolved(self, own: Sequence[str], constraints: Path) -> list[Package]:
        """Return what wheels of this project need, in the versions of the constraints.

        Arguments:
            own: their paths, with the extras that are wanted.

        Raises: PipError.
        """
        report = self._run(
            *("install", "--dry-run", "--ignore-installed", "--report=-", "--quiet"),
            *(*self._target, f"--target={self._folder / 'none'}", f"--constraint={constraints}"),
            *own,
        )
        found = []
        for item in json.loads(report)["install"]:
            archive = item["download_info"]["archive_info"]
            name, version = item["metadata"]["name"], item["metadata"]["version"]
            if not item["download_info"]["url"].startswith("file:"):
                digest = archive["hashes"]["sha256"]
                found.append(Package("wheel", normal_name(name), version, digest))
        return sorted(found)

    def fetched(self, packages: Iterable[Package]) -> dict[Package, bytes]:
        """Return the wheels, downloaded unless they are here. Raises PipError, LockError."""
        wanted = list(packages)
        here = self._here()
        missing = [one for one in wanted if one.sha256 not in here]
        if missing:
            lines = [f"{one.name}=={one.version} --hash=sha256:{one.sha256}\n" for one in missing]
            listed = self._folder / "requirements.txt"
            listed.write_text("".join(lines), encoding="utf-8")
            self._run(
                *("download", "--quiet", "--no-deps", "--require-hashes", *self._target),
                *(f"--dest={self._folder}", f"--requirement={listed}"),
            )
            here = self._here()
        lost = [one for one in wanted if one.sha256 not in here]
        if lost:
            raise LockError(f"{lost[0].name} {lost[0].version} is not the one in the list")
        return {one: here[one.sha256] for one in wanted}

    def built(self, source: Path) -> Path:
        """Return a wheel of this project, built from its source. Raises PipError."""
        self._run(
            *("wheel", "--quiet", "--no-deps", "--no-cache-dir"),
            *(f"--wheel-dir={self._folder / 'own'}", str(source)),
        )
        return max((self._folder / "own").glob("*.whl"), key=lambda path: path.stat().st_mtime_ns)

    def _here(self) -> dict[str, bytes]:
        found = (path.read_bytes() for path in sorted(self._folder.glob("*.whl")))
        return {hashlib.sha256(data).hexdigest(): data for data in found}

    def _run(self, *arguments: str) -> str:
        # A folder of wheels that this machine prefers would give other wheels of the same version.
        environment = os.environ | {"PIP_FIND_LINKS": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        done = subprocess.run(
            (sys.executable, "-m", "pip", *arguments),
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise PipError(f"pip {arguments[0]} failed:\n{done.stderr.strip()}")
        return done.stdout


def files_of(wheel: bytes) -> Tree:
    """Return the files of a wheel at their places in the image. Raises ValueError for a wheel that
    puts files elsewhere."""
    tree = Tree()
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            path = _place(member.filename)
            if path is not None:
                executable = member.external_attr >> 16 & _EXECUTABLE
                tree.add(path, File(archive.read(member), 0o755 if executable else 0o644))
    return tree


def _place(name: str) -> str | None:
    """Return where a file of a wheel belongs; None = nowhere, since it is made otherwise."""
    top, _, rest = name.partition("/")
    if not top.endswith(".data"):
        return f"{PACKAGES_FOLDER}/{name}"
    kind, _, inside = rest.partition("/")
    if kind in ("purelib", "platlib"):
        return f"{PACKAGES_FOLDER}/{inside}"
    if kind in ("scripts", "data", "headers"):
        return None  # commands of dependencies, manual pages, headers
    raise ValueError(f"a wheel has {name!r}, which has no place in the image")


def read(wheel: bytes) -> Wheel:
    """Return what a wheel says of itself."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = archive.namelist()
        [metadata] = [name for name in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        fields = email.message_from_bytes(archive.read(metadata))
        entries = metadata.replace("METADATA", "entry_points.txt")
        scripts = archive.read(entries).decode() if entries in names else ""
    return Wheel(
        name=normal_name(fields["Name"]),
        version=fields["Version"],
        summary=fields.get("Summary", ""),
        licence=fields.get("License-Expression") or fields.get("License") or "",
        urls=tuple(fields.get_all("Project-URL") or ()),
        scripts=_scripts(scripts),
    )


def _scripts(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line
        elif section == "[console_scripts]" and "=" in line:
            name, target = map(str.strip, line.split("=", 1))
            found.append((name, target))
    return tuple(found)


def normal_name(name: str) -> str:
    """Return the one form of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()
