"""Build the container image without a container engine: `make image`.

It needs Debian or Ubuntu with apt, and no rights of root. The image is made of the packages that
locked/ lists, of this project's wheels in dist/, and of entrypoint.py. The same three give the same
bytes.

    python -m deploy.image.build                 the image for this machine's architecture
    python -m deploy.image.build --arch arm64    for another one (needs qemu-user-static)
    python -m deploy.image.build --lock          write locked/ anew, with the newest packages

Lives here: the order of the work, and what is printed. Must not live here: each step.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from deploy.image import lock, root_file_system, wheels
from deploy.image.archive import Archive, Settings, archive
from deploy.image.debian import Apt, AptError
from deploy.image.lock import Lock, LockError
from deploy.image.root_file_system import HERE, CannotCompile, Contents
from deploy.image.sbom import sbom
from deploy.image.wheels import Pip, PipError, Wheel

ROOT = HERE.parents[1]
# What the connection support of Spring Boot looks for in an image of another name.
_SPRING = {"org.springframework.boot.service-connection": "azure-storage/azurite"}
_SERVER = "strongroom"


class CannotBuild(Exception):
    """The image cannot be built; the text says why."""


def contents() -> Contents:
    """Return what people chose for the image."""
    found = tomllib.loads((HERE / "contents.toml").read_text(encoding="utf-8"))
    return Contents(
        release=found["debian"]["release"],
        debian_version=found["debian"]["version"],
        python=found["debian"]["python"],
        debian=tuple(found["debian"]["packages"]),
        left_out=tuple(found["left_out"]["paths"]),
        busybox=tuple(found["busybox"]["commands"]),
        user=found["image"]["user"],
        ports=tuple(found["image"]["ports"]),
        command=tuple(found["image"]["command"]),
    )


def own_wheels(folder: Path, pip: Pip) -> list[Path]:
    """Return this project's wheels, the server's first. Without any in `folder` they are built.

    Raises: CannotBuild, PipError.
    """
    paths = sorted(folder.glob("*.whl"))
    if not paths:
        sources = (ROOT, ROOT / "distributions" / "azurite")
        paths = [pip.built(source) for source in sources if (source / "pyproject.toml").exists()]
    by_name = {wheels.read(path.read_bytes()).name: path for path in paths}
    if len(by_name) < len(paths) or _SERVER not in by_name:
        raise CannotBuild(f"{folder} must hold one wheel of {_SERVER}, and one of each other")
    return [by_name.pop(_SERVER), *(by_name[name] for name in sorted(by_name))]


def write_lock(architecture: str, apt: Apt, pip: Pip, own: Sequence[Path], day: str) -> None:
    """Write the list of the newest packages of an architecture. Raises AptError, PipError."""
    apt.update()
    server, *others = map(str, own)
    with_driver = [f"{server}[postgres]", *others]
    wheels_ = pip.resolved(with_driver, ROOT / "constraints.txt")
    packages = [*apt.newest(contents().debian), *wheels_]
    lock.path_of(architecture).write_text(lock.text_of(day, packages), encoding="utf-8")


def build(
    architecture: str, listed: Lock, apt: Apt, pip: Pip, own: Sequence[bytes]
) -> tuple[Archive, bytes]:
    """Return the image of a list of packages, and its bill of materials.

    Arguments:
        own: this project's wheels, the server's first.

    Raises: LockError, AptError, PipError, CannotCompile, CannotBuild.
    """
    chosen = contents()
    debs = apt.fetched(listed.of("deb"))
    dependencies = list(pip.fetched(listed.of("wheel")).values())
    known = [(wheels.read(data), hashlib.sha256(data).hexdigest()) for data in own]
    bill = sbom(
        listed,
        chosen,
        architecture,
        known,
        [wheels.read(data) for data in dependencies],
    )
    with tempfile.TemporaryDirectory(prefix="strongroom-image-") as folder:
        layers = [
            root_file_system.debian_layer(debs, chosen, Path(folder)),
            root_file_system.dependencies_layer(dependencies),
            root_file_system.own_layer(own, bill),
        ]
        root_file_system.compile_modules(layers, architecture, chosen, Path(folder) / "root")
    missing = root_file_system.missing_libraries(layers)
    if missing:
        raise CannotBuild("\n".join(["packages are missing in contents.toml:", *missing]))
    tars = [tree.tar(listed.seconds) for tree in layers]
    return archive(tars, settings(architecture, listed, chosen, known[0][0])), bill


def settings(architecture: str, listed: Lock, chosen: Contents, server: Wheel) -> Settings:
    """Return how a container of the image runs."""
    labels = {
        "org.opencontainers.image.title": "Strongroom",
        "org.opencontainers.image.description": server.summary,
        "org.opencontainers.image.version": server.version,
        "org.opencontainers.image.licenses": server.licence,
        "org.opencontainers.image.created": f"{listed.day}T00:00:00Z",
    }
    for text in server.urls:
        name, _, address = map(str.strip, text.partition(","))
        if name.lower() in ("source", "documentation"):
            labels[f"org.opencontainers.image.{name.lower()}"] = address
    return Settings(
        architecture=architecture,
        seconds=listed.seconds,
        names=(f"strongroom:{server.version}", "strongroom:latest"),
        entrypoint=(f"/{root_file_system.ENTRYPOINT}",),
        command=chosen.command,
        healthcheck=(f"/{root_file_system.HEALTHCHECK}",),
        ports=chosen.ports,
        environment={
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "STRONGROOM_DATA": "/data",
        },
        labels=dict(sorted((labels | _SPRING).items())),
    )


def _arguments() -> argparse.Namespace:
    here = {machine: name for name, (machine, _) in root_file_system.MACHINES.items()}
    parser = argparse.ArgumentParser(
        prog="make image", description="Build the container image, without a container engine."
    )
    parser.add_argument(
        *("--arch", "-a"),
        choices=lock.ARCHITECTURES,
        default=here.get(platform.machine(), "amd64"),
        help="the architecture of the image (default: that of this machine)",
    )
    parser.add_argument("--lock", action="store_true", help="write locked/ anew, build nothing")
    parser.add_argument("--mirror", default="", help="the address of Debian's packages")
    parser.add_argument(
        "--wheels", type=Path, default=ROOT / "dist", help="this project's wheels (default: dist)"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build", help="where the image goes (default: build)"
    )
    parser.add_argument(
        "--packages",
        type=Path,
        default=ROOT / "build" / "image-packages",
        help="where downloaded packages are kept (default: build/image-packages)",
    )
    return parser.parse_args()


def main() -> None:
    """Build, or write the lists of packages anew."""
    arguments = _arguments()
    try:
        if arguments.lock:
            _lock_all(arguments)
        else:
            _build_one(arguments)
    except (AptError, PipError, LockError, CannotCompile, CannotBuild) as error:
        sys.exit(f"make image: {error}")


def _tools(arguments: argparse.Namespace, architecture: str) -> tuple[Apt, Pip]:
    chosen = contents()
    folder = arguments.packages / architecture
    apt = Apt(folder.resolve(), chosen.release, architecture, arguments.mirror)
    return apt, Pip(folder.resolve(), architecture, chosen.python)


def _lock_all(arguments: argparse.Namespace) -> None:
    day = datetime.now(UTC).date().isoformat()
    for architecture in lock.ARCHITECTURES:
        apt, pip = _tools(arguments, architecture)
        write_lock(architecture, apt, pip, own_wheels(arguments.wheels, pip), day)
        print(f"{lock.path_of(architecture).relative_to(ROOT)}: written")


def _build_one(arguments: argparse.Namespace) -> None:
    architecture = arguments.arch
    apt, pip = _tools(arguments, architecture)
    own = [path.read_bytes() for path in own_wheels(arguments.wheels, pip)]
    made, bill = build(architecture, lock.read(architecture), apt, pip, own)
    arguments.output.mkdir(parents=True, exist_ok=True)
    version = wheels.read(own[0]).version
    path = arguments.output / f"strongroom-image-{version}-{architecture}.tar"
    part = path.with_suffix(".part")
    part.write_bytes(made.data)
    part.replace(path)  # whoever loads the image sees a whole one
    path.with_suffix(".cdx.json").write_bytes(bill)
    print(f"{path}: {made.compressed_bytes / 1e6:.1f} MB compressed")
    for layer in made.layers:
        print(f"  layer {layer}")
    print(f"  podman load -i {path}    (or docker load)")


if __name__ == "__main__":
    main()
