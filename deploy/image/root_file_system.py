"""The layers of the image: Debian's packages, Python's packages, and what is ours.

Lives here: what is left out, made and linked; the compiled modules of Python. Must not live here:
where packages come from (debian.py, wheels.py), the form of the image (archive.py).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.image import debian, wheels
from deploy.image.elf import needed
from deploy.image.lock import Package
from deploy.image.tree import File, Folder, Link, Tree

HERE = Path(__file__).parent
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
COMMANDS = "usr/lib/strongroom/bin"
ENTRYPOINT = "usr/lib/strongroom/entrypoint.py"
HEALTHCHECK = "usr/lib/strongroom/healthcheck"
SBOM = "usr/share/sbom/strongroom.cdx.json"
# Machine, and the triplet of its libraries, by Debian's name of the architecture.
MACHINES = {
    "amd64": ("x86_64", "x86_64-linux-gnu"),
    "arm64": ("aarch64", "aarch64-linux-gnu"),
}


class CannotCompile(Exception):
    """The image's Python does not run on this machine; the text says what to install."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What people chose for the image (contents.toml)."""

    release: str
    debian_version: str
    python: str
    debian: tuple[str, ...]
    left_out: tuple[str, ...]
    busybox: tuple[str, ...]
    user: int
    ports: tuple[int, ...]
    command: tuple[str, ...]


def debian_layer(packages: Mapping[Package, bytes], contents: Contents, folder: Path) -> Tree:
    """Return the layer of Debian's packages.

    Arguments:
        folder: for the time of the work.
    """
    tree = Tree()
    status = []
    for package in sorted(packages):
        data = packages[package]
        tree.entries |= debian.files_of(data, folder).entries
        control = debian.control_of(data, folder).rstrip("\n")
        status.append(control.replace("\n", "\nStatus: install ok installed\n", 1) + "\n")
    _add_certificates(tree)
    tree.leave_out(contents.left_out)
    # What scanners for vulnerabilities read.
    tree.add("var/lib/dpkg/status", File("\n".join(status).encode()))
    for command in contents.busybox:
        if f"usr/bin/{command}" not in tree.entries:
            tree.add(f"usr/bin/{command}", Link("busybox"))
    tree.add("usr/bin/nc", Link("nc.openbsd"))
    tree.add("usr/bin/python3", Link(f"python{contents.python}"))
    _add_system_files(tree, contents)
    return tree


def _add_certificates(tree: Tree) -> None:
    paths = sorted(path for path in tree.entries if path.startswith("usr/share/ca-certificates/"))
    found = [tree.file(path) for path in paths if path.endswith(".crt")]
    tree.add(CERTIFICATES, File(b"".join(one.rstrip(b"\n") + b"\n" for one in found)))
    tree.add("usr/lib/ssl/cert.pem", Link("/" + CERTIFICATES))
    tree.add("usr/lib/ssl/certs", Link("/etc/ssl/certs"))


def _add_system_files(tree: Tree, contents: Contents) -> None:
    user = contents.user
    passwd = (
        "root:x:0:0:root:/root:/bin/sh\n"
        f"strongroom:x:{user}:{user}:Strongroom:/data:/usr/sbin/nologin\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )
    group = f"root:x:0:\nstrongroom:x:{user}:\nnogroup:x:65534:\n"
    tree.add("etc/passwd", File(passwd.encode()))
    tree.add("etc/group", File(group.encode()))
    # Without it the C library would ask the network for localhost.
    tree.add("etc/nsswitch.conf", File(b"passwd: files\ngroup: files\nhosts: files dns\n"))
    tree.add("tmp", Folder(0o1777))
    # Group 0 as well: some clusters choose any user, and always this group.
    tree.add("data", Folder(0o770, user, 0))


def dependencies_layer(packages: Iterable[bytes]) -> Tree:
    """Return the layer of the Python packages that the server needs."""
    tree = Tree()
    for wheel in packages:
        tree.entries |= wheels.files_of(wheel).entries
    return tree


def own_layer(own: Sequence[bytes], sbom: bytes) -> Tree:
    """Return the layer of this project's wheels, with their commands."""
    tree = Tree()
    for wheel in own:
        tree.entries |= wheels.files_of(wheel).entries
        for name, target in wheels.read(wheel).scripts:
            tree.add(f"{COMMANDS}/{name}", File(_script(target).encode(), 0o755))
            tree.add(f"usr/bin/{name}", Link("/" + ENTRYPOINT))
    tree.add(ENTRYPOINT, File((HERE / "entrypoint.py").read_bytes(), 0o755))
    tree.add(HEALTHCHECK, File((HERE / "healthcheck.sh").read_bytes(), 0o755))
    tree.add(SBOM, File(sbom))
    return tree


def _script(target: str) -> str:
    module, _, function = target.partition(":")
    return (
        "#!/usr/bin/python3 -I\n"
        "import sys\n\n"
        f"from {module} import {function}\n\n"
        f"sys.exit({function}())\n"
    )


def compile_modules(
    layers: Sequence[Tree], architecture: str, contents: Contents, folder: Path
) -> None:
    """Add each module's compiled form to its layer, made by the image's own Python.

    It is never compared with the source, whose time is that of the image.

    Arguments:
        layers: all layers, the lowest first.
        folder: a new folder for the time of the work.

    Raises: CannotCompile.
    """
    folder = folder.resolve()
    for tree in layers:
        _lay_on(folder, tree)
    sources = ("usr/lib/python3.13", wheels.PACKAGES_FOLDER)
    command = [
        *_interpreter(folder, architecture, contents.python),
        *("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"),
        *("-s", str(folder), "-p", "/", *(str(folder / source) for source in sources)),
    ]
    environment = {"PYTHONHOME": str(folder / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise CannotCompile(f"compileall failed:\n{done.stdout}{done.stderr}")
    for path in sorted(folder.glob("usr/**/__pycache__/*.pyc")):
        name = path.relative_to(folder).as_posix()
        source = path.parent.parent / (path.name.partition(".")[0] + ".py")
        home = source.relative_to(folder).as_posix()
        for tree in layers:
            if home in tree.entries:
                tree.add(name, File(path.read_bytes()))


def _lay_on(folder: Path, tree: Tree) -> None:
    folder.mkdir(exist_ok=True)
    for path in tree.entries:
        place = folder / path
        if place.is_symlink() or place.is_file():
            place.unlink()
    tree.write_to(folder)


def _interpreter(root: Path, architecture: str, python: str) -> list[str]:
    """Return the command that runs the image's Python on this machine, below a folder."""
    machine, triplet = MACHINES[architecture]
    program = str(root / f"usr/bin/python{python}")
    if platform.machine() == machine:
        [loader] = (root / f"usr/lib/{triplet}").glob("ld-linux-*.so.*")
        return [str(loader), "--library-path", str(root / f"usr/lib/{triplet}"), program]
    emulator = shutil.which(f"qemu-{machine}-static")
    if emulator is None:
        raise CannotCompile(
            f"an image for {architecture} needs qemu-{machine}-static here: apt install "
            "qemu-user-static"
        )
    return [emulator, "-L", str(root), program]


def missing_libraries(layers: Sequence[Tree]) -> list[str]:
    """Return the shared libraries that a file of the image needs and that no layer has."""
    entries = {path: entry for tree in layers for path, entry in tree.entries.items()}
    here = {os.path.basename(path) for path in entries if ".so" in os.path.basename(path)}
    missing = []
    for path, entry in sorted(entries.items()):
        if isinstance(entry, File) and entry.data.startswith(b"\x7fELF"):
            missing += [f"{path} needs {name}" for name in needed(entry.data) if name not in here]
    return missing
