"""Testcontainers' own modules for Python, Node, Java and Go start our image in place of the
emulator's.

Nothing of theirs is changed: the image has the emulator's name on this machine, and podman answers
for Docker. Each module is fetched by its language's package manager. The containers and the
programs run in a network of their own, since these modules publish ports on every address of a
machine. Their helper that removes what a killed test leaves is another image, so it is turned off.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from strongroom.clock import SystemClock
from strongroom.servers.certificates.self_signed import self_signed_certificate
from tests.proof.podman import Podman
from tests.proof.test_image import image_file
from tests.tidy.sources import ROOT

_PROGRAMS = ROOT / "tests" / "proof" / "testcontainers"
_NAME = "mcr.microsoft.com/azure-storage/azurite:latest"
_NETWORK = f"strongroom-{os.getpid()}"
# `ip netns exec` would hide the control groups.
_WITHIN = ("nsenter", f"--net=/run/netns/{_NETWORK}")
_PYTHON_PACKAGES = (
    *("testcontainers==4.15.0", "azure-storage-blob", "azure-storage-queue"),
    "azure-data-tables",
)

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The environment in which Docker's clients find the image; they run inside of `_WITHIN`."""
    _need("ip", "iproute2")
    with Podman() as podman:
        podman.load(image_file(tmp_path_factory.mktemp("image")))
        podman.run("tag", "localhost/strongroom:latest", _NAME)
        _checked("ip", "netns", "add", _NETWORK)
        try:
            _checked(*_WITHIN, "ip", "link", "set", "lo", "up")
            with podman.service(_WITHIN) as address:
                yield os.environ | {
                    "DOCKER_HOST": address,
                    # Where the tests run in a container, the modules would look for its network.
                    "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
                    "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
                    "TESTCONTAINERS_RYUK_DISABLED": "true",
                    "TESTCONTAINERS_CHECKS_DISABLE": "true",
                    "TESTCONTAINERS_DOCKER_SOCKET_OVERRIDE": address.removeprefix("unix://"),
                }
        finally:
            podman.attempt("rm", "--all", "--force", "--volumes", "--time=0", within=_WITHIN)
            _checked("ip", "netns", "delete", _NETWORK)


def test_python(docker: Mapping[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "packages"
    _checked(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *(f"--target={folder}", f"--constraint={ROOT / 'constraints.txt'}", *_PYTHON_PACKAGES),
    )
    program = _PROGRAMS / "python" / "uses_azurite.py"
    environment = {**docker, "PYTHONPATH": str(folder)}
    assert _used(environment, program.parent, sys.executable, str(program)) == ["done"]


def test_node(docker: Mapping[str, str], tmp_path: Path) -> None:
    _need("npm", "nodejs npm")
    folder = shutil.copytree(_PROGRAMS / "node", tmp_path / "node")
    _checked("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)
    certificate, key = self_signed_certificate(tmp_path, SystemClock())
    pfx = tmp_path / "certificate.pfx"
    _checked(
        *("openssl", "pkcs12", "-export", "-in", str(certificate), "-inkey", str(key)),
        *("-out", str(pfx), "-passout", "pass:secret"),
    )
    environment = {**docker, "NODE_EXTRA_CA_CERTS": str(certificate)}
    files = (str(certificate), str(key), str(pfx))
    node = str(folder / "node_modules/.bin/node")  # the module needs a newer one than Debian's
    done = _used(environment, folder, node, "uses_azurite.mjs", *files)
    ways = ("plain", "in memory", "an account of one's own", "PEM, OAuth", "PFX")
    assert done == [f"done: {way}" for way in ways]


def test_java(docker: Mapping[str, str], tmp_path: Path) -> None:
    _need("mvn", "maven default-jdk-headless")
    folder = shutil.copytree(_PROGRAMS / "java", tmp_path / "java")
    _checked(
        *("mvn", "--batch-mode", "--quiet", "package", "dependency:build-classpath"),
        *("-Dmdep.outputFile=classpath",),
        cwd=folder,
    )
    classes = f"{folder / 'target/classes'}:{(folder / 'classpath').read_text(encoding='utf-8')}"
    assert _used(docker, folder, "java", "-cp", classes, "UsesAzurite") == ["done"]


def test_go(docker: Mapping[str, str], tmp_path: Path) -> None:
    _need("go", "golang")
    folder = shutil.copytree(_PROGRAMS / "go", tmp_path / "go")
    _checked("go", "mod", "tidy", cwd=folder)
    _checked("go", "build", "-o", "uses-azurite", ".", cwd=folder)
    done = _used(docker, folder, str(folder / "uses-azurite"))
    assert done == ["done: all services", "done: blobs only", "done: in memory"]


def _need(program: str, packages: str) -> None:
    assert shutil.which(program), f"{program} is missing: apt install {packages}"


def _checked(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, (
        f"{' '.join(command[:4])} ended with {done.returncode}:\n{done.stdout}"
    )


def _used(environment: Mapping[str, str], folder: Path, *command: str) -> list[str]:
    """Run a program that uses the image; return its lines that begin with `done`."""
    done = subprocess.run(
        (*_WITHIN, *command),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return [line for line in done.stdout.splitlines() if line.startswith("done")]
