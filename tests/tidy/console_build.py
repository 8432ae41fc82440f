"""The console's built page, and the hashes that tell of which sources it is.

Lives here: the list of sources, the hashes, building and comparing. Must not live here: how the
page is built (console/vite.config.js). Python alone compares hashes; Node is needed only to build.

    python -m tests.tidy.console_build            builds, and records the hashes (`make console`)
    python -m tests.tidy.console_build --compare  lints, checks the types, builds anew and compares

`--compare` without node_modules only compares the hashes. In CI, node_modules is always there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.sources import ROOT

CONSOLE = ROOT / "console"
BUILT = ROOT / "src/strongroom/servers/console/built"
RECORD = "sources.json"
LICENCES = "licences.txt"
LOCK = CONSOLE / "package-lock.json"
_SOURCES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.js")
_FOLDERS = ("src", "public")
_NODE_MODULES = CONSOLE / "node_modules"

Hashes = dict[str, str]


def sources(console: Path = CONSOLE) -> list[Path]:
    """Return the files of which the page is built, in order."""
    found = [path for folder in _FOLDERS for path in (console / folder).rglob("*")]
    return sorted(
        path for path in [*found, *(console / name for name in _SOURCES)] if path.is_file()
    )


def built_files(built: Path = BUILT) -> list[Path]:
    """Return what was built, in order, without the record."""
    return sorted(path for path in built.rglob("*") if path.is_file() and path.name != RECORD)


def hashes(paths: Iterable[Path], root: Path) -> Hashes:
    """Return the SHA-256 of each file, by its path from `root`."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def record(console: Path = CONSOLE, built: Path = BUILT) -> str:
    """Return the content of `sources.json`."""
    content = {
        "sources": hashes(sources(console), console),
        "built": hashes(built_files(built), built),
    }
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def differences(console: Path = CONSOLE, built: Path = BUILT) -> list[str]:
    """Return what is not as it was recorded, a sentence each; [] if there is no build at all."""
    file = built / RECORD
    if not built.is_dir():
        return []
    if not file.is_file():
        return [f"{RECORD} is missing: run 'make console'."]
    was, now = json.loads(file.read_text(encoding="utf-8")), json.loads(record(console, built))
    return [
        f"{name}: {path} has changed since 'make console'."
        for name in ("sources", "built")
        for path in sorted({*was[name], *now[name]})
        if was[name].get(path) != now[name].get(path)
    ]


@dataclass(frozen=True, slots=True)
class ShippedPackage:
    """A package whose code is in the built scripts, as the lock file has it.

    Attributes:
        needs: the names of packages that it needs itself.
        sha512: of the package's archive, in hexadecimal digits.
    """

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]
    sha512: str


def shipped() -> list[ShippedPackage]:
    """Return the packages whose code is in the built scripts, in the order of their names."""
    packages = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    return [
        ShippedPackage(
            path.removeprefix("node_modules/"),
            package["version"],
            package["license"],
            (*package.get("dependencies", ()), *package.get("peerDependencies", ())),
            base64.b64decode(package["integrity"].removeprefix("sha512-")).hex(),
        )
        for path, package in sorted(packages.items())
        if path and not package.get("dev")
    ]


def build(built: Path) -> None:
    """Build the page into `built`. Raises: CalledProcessError, FileNotFoundError without Node."""
    _run("node_modules/.bin/vite", "build", "--logLevel", "warn", "--outDir", str(built))
    parts = [
        f"{one.name} {one.version} ({one.licence})\n\n{_licence(one.name)}" for one in shipped()
    ]
    (built / LICENCES).write_text("\n\n".join(parts), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Build, or compare. Return the exit code."""
    if arguments == ["--compare"]:
        return _compare()
    build(BUILT)
    (BUILT / RECORD).write_text(record(), encoding="utf-8")
    return 0


def _compare() -> int:
    complaints = differences()
    if (_NODE_MODULES / ".bin").is_dir():
        _run("node_modules/.bin/eslint", "--cache", "--cache-location", "node_modules/.cache/", ".")
        _run("node_modules/.bin/tsc")
        if BUILT.is_dir():
            complaints += _differs_from_a_new_build()
    for complaint in complaints:
        print(f"console: {complaint}")
    return 1 if complaints else 0


def _differs_from_a_new_build() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        new, old = hashes(built_files(Path(folder)), Path(folder)), hashes(built_files(), BUILT)
    return [
        f"{path} is not what the sources give: run 'make console'."
        for path in sorted({*new, *old})
        if new.get(path) != old.get(path)
    ]


def _licence(name: str) -> str:
    folder = _NODE_MODULES / name
    file = next(path for path in sorted(folder.iterdir()) if path.name.upper().startswith("LICEN"))
    return file.read_text(encoding="utf-8").strip() + "\n"


def _run(*command: str) -> None:
    subprocess.run(command, cwd=CONSOLE, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
