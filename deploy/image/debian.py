"""Debian's packages: which versions there are, their download, and their files.

Lives here: apt and dpkg-deb, as programs. Must not live here: what is left out of the image
(root_file_system.py). Packages are unpacked and never configured. So no program of the image runs,
and the machine may have another architecture. The addresses and keys are those that this machine's
apt has for its own release.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from deploy.image.lock import LockError, Package
from deploy.image.tree import Tree, read_tar

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_INDEX = "$(SITE) $(RELEASE)"


class AptError(Exception):
    """apt or dpkg-deb is missing, or failed; the text says what to do."""


class Apt:
    """apt with folders of its own, for one release and one architecture.

    Arguments:
        folder: where apt keeps its lists, and where packages are downloaded to.
        release: the name of Debian's release.
        architecture: Debian's name of it.
        mirror: the address of Debian's packages; empty = the one that this machine's apt has.
    """

    def __init__(self, folder: Path, release: str, architecture: str, mirror: str = "") -> None:
        self._folder = folder
        self._architecture = architecture
        self._release = release
        self._environment = os.environ | {"LC_ALL": "C.UTF-8"}
        for name in ("state/lists/partial", "cache/archives/partial", "packages"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        (folder / "debian.sources").write_text(self._sources(mirror), encoding="utf-8")
        config = folder / "apt.conf"
        config.write_text(_config(folder, architecture), encoding="utf-8")
        self._environment["APT_CONFIG"] = str(config)

    def update(self) -> None:
        """Read the lists of packages anew. Raises AptError."""
        self._run("apt-get", "-q", "update")

    def newest(self, names: Iterable[str]) -> list[Package]:
        """Return the newest version of each package, by name. Raises AptError."""
        wanted = sorted(names)
        text = self._run("apt-cache", "show", "--no-all-versions", *wanted)
        found = {}
        for stanza in text.split("\n\n"):
            fields = dict(re.findall(r"^(\S+): (.*)$", stanza, re.MULTILINE))
            if fields:
                name = fields["Package"]
                found[name] = Package("deb", name, fields["Version"], fields["SHA256"])
        missing = set(wanted) - set(found)
        if missing:
            raise AptError(f"Debian {self._release} has no package {', '.join(sorted(missing))}")
        return [found[name] for name in wanted]

    def fetched(self, packages: Sequence[Package]) -> dict[Package, bytes]:
        """Return the packages, downloaded unless they are here already.

        Raises: AptError, LockError if a version is no longer to be had, or differs.
        """
        missing = [one for one in packages if not self._path(one).exists()]
        if missing:
            self.update()
            self._download(missing)
        found = {}
        for package in packages:
            data = self._path(package).read_bytes()
            if hashlib.sha256(data).hexdigest() != package.sha256:
                self._path(package).unlink()
                raise LockError(f"{package.name} {package.version} is not the one in the list")
            found[package] = data
        return found

    def _download(self, missing: Sequence[Package]) -> None:
        names = [f"{one.name}={one.version}" for one in missing]
        try:
            self._run("apt-get", "-q", "download", *names, cwd=self._folder / "packages")
        except AptError as error:
            raise LockError(
                f"{error}\nIf Debian has replaced a version, `make image ARGS=--lock` takes the "
                "newest ones."
            ) from None

    def _path(self, package: Package) -> Path:
        for architecture in (self._architecture, "all"):
            version = package.version.replace(":", "%3a")
            name = f"{package.name}_{version}_{architecture}.deb"
            path = self._folder / "packages" / name
            if path.exists():
                return path
        return path

    def _sources(self, mirror: str) -> str:
        sites = dict.fromkeys(
            site
            for site, suite in self._own_sources()
            if suite.partition("-")[0] == _own_release() and "backports" not in suite
        )
        main = mirror or next((site for site in sites if "security" not in site), "")
        if not main:
            raise AptError(
                "apt has no source of Debian's packages on this machine: name one by --mirror"
            )
        security = [site for site in sites if "security" in site and not mirror]
        suites = [(main, f"{self._release} {self._release}-updates")]
        suites += [(site, f"{self._release}-security") for site in security]
        return "\n".join(
            f"Types: deb\nURIs: {site}\nSuites: {names}\nComponents: main\nSigned-By: {_KEYRING}\n"
            for site, names in suites
        )

    def _own_sources(self) -> list[tuple[str, str]]:
        lines = self._run("apt-get", "indextargets", "--format", _INDEX, "Created-By: Packages")
        return [(site, suite) for site, suite in map(str.split, lines.splitlines())]

    def _run(self, *command: str, cwd: Path | None = None) -> str:
        try:
            done = subprocess.run(
                command, env=self._environment, cwd=cwd, capture_output=True, text=True
            )
        except FileNotFoundError:
            raise AptError(
                f"{command[0]} is missing: images are built on Debian or Ubuntu"
            ) from None
        if done.returncode:
            raise AptError(f"{' '.join(command[:3])} ... failed:\n{done.stderr.strip()}")
        return done.stdout


def _config(folder: Path, architecture: str) -> str:
    places = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "debian.sources",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferencesparts": "-",
        "APT::Architecture": architecture,
        "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
        "Acquire::Languages": "none",
    }
    lines = [f'{name} "{value}";' for name, value in places.items()]
    return "\n".join([*lines, f'APT::Architectures {{ "{architecture}"; }};', ""])


def _own_release() -> str:
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition("=")
        if name == "VERSION_CODENAME":
            return value.strip('"')
    return ""


def files_of(package: bytes, folder: Path) -> Tree:
    """Return the files of a package. Raises AptError.

    Arguments:
        folder: for the time of the work.
    """
    return read_tar(_dpkg_deb("--fsys-tarfile", package, folder))


def control_of(package: bytes, folder: Path) -> str:
    """Return a package's own description, as dpkg keeps it. Raises AptError."""
    return _dpkg_deb("--field", package, folder).decode()


def _dpkg_deb(what: str, package: bytes, folder: Path) -> bytes:
    path = folder / "package.deb"
    path.write_bytes(package)
    try:
        return subprocess.run(("dpkg-deb", what, path), check=True, stdout=subprocess.PIPE).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise AptError(f"dpkg-deb cannot read a package: {error}") from None
