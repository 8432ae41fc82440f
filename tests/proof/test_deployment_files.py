"""The files of deploy/, each read by its own program: Helm, systemd, compose, buildah."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from strongroom.config import Settings
from strongroom.testing.ports import free_port
from tests.proof.podman import Podman
from tests.proof.test_image import image_file
from tests.tidy.sources import ROOT

_DEPLOY = ROOT / "deploy"
_CHART = _DEPLOY / "helm" / "strongroom"
_HELM = "helm.sh/helm/v3/cmd/helm@v3.19.5"
# A helm that `go install` built knows no newer cluster by itself.
_TEMPLATE = ("template", "stores", _CHART, "--kube-version=1.31.0")
_NOT_NFS = "local or block volume, not NFS"

pytestmark = pytest.mark.timeout(1800)


def _output(*command: str | Path, **more: Any) -> str:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more
    )
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{done.stdout}"
    return str(done.stdout)


# Helm.


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program `helm`, built by Go unless it is there."""
    found = shutil.which("helm")
    if found is not None:
        return found
    assert shutil.which("go"), "helm is missing, and so is go, which would build it"
    folder = tmp_path_factory.mktemp("helm")
    _output("go", "install", _HELM, env=os.environ | {"GOBIN": str(folder)})
    return str(folder / "helm")


def _rendered(helm: str, *values: str) -> dict[str, dict[str, Any]]:
    """The chart's objects by kind; of two services, the one for clients."""
    sets = [word for value in values for word in ("--set", value)]
    text = _output(helm, *_TEMPLATE, *sets)
    objects = [one for one in yaml.safe_load_all(text) if one]
    return {one["kind"]: one for one in reversed(objects)}


def test_the_chart_is_well_formed(helm: str) -> None:
    found = _output(helm, "lint", "--strict", _CHART, "--set", "accounts.secretName=accounts")
    assert "0 chart(s) failed" in found


def test_the_chart_has_one_server_with_one_volume(helm: str) -> None:
    found = _rendered(helm, "accounts.secretName=accounts", "tls.secretName=tls")
    spec = found["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    [claim] = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    pod = spec["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > Settings().drain_timeout_s
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/.strongroom/health", "port": "blob"}
    volumes = {one["name"]: one["secret"] for one in pod["volumes"]}
    assert {name: one["secretName"] for name, one in volumes.items()} == {
        "accounts": "accounts",
        "tls": "tls",
    }
    assert {one["name"] for one in container["volumeMounts"]} == {"data", "accounts", "tls"}
    ports = {one["name"]: one["targetPort"] for one in found["Service"]["spec"]["ports"]}
    assert set(ports.values()) == {one["name"] for one in container["ports"]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "accounts.secretName must name a Secret"),
        ("replicas=2", "replicas"),
        ("replicaCount=2", "replicaCount"),
        ("terminationGracePeriodSeconds=20", "terminationGracePeriodSeconds"),
        ("storage.accessMode=ReadWriteMany", "accessMode"),
        ("tls.requireHttps=true", "tls.secretName"),
    ],
)
def test_what_would_lose_data_or_secrets_is_refused(helm: str, value: str, text: str) -> None:
    accounts = ["--set", "accounts.secretName=accounts"] if value else []
    sets = [*accounts, *(["--set", value] if value else [])]
    done = subprocess.run((helm, *_TEMPLATE, *sets), capture_output=True, text=True)
    assert done.returncode != 0 and text in done.stderr


def test_the_charts_flags_are_those_of_serve(helm: str, tmp_path: Path) -> None:
    every = ("metrics.enabled=true", "smb.enabled=true", "accounts.developmentKey=true")
    found = _rendered(helm, *every)
    [container] = found["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    command, serve, *flags = container["args"]
    assert (command, serve) == ("strongroom", "serve")
    [smb] = [one for one in container["ports"] if one["name"] == "smb"]
    replaced = {"--data=/data": f"--data={tmp_path}", "--host=0.0.0.0": "--host=127.0.0.1"}
    _serves([*(replaced.get(flag, flag) for flag in flags), "--port-base=0", "--smb-port=0"])
    assert f"--smb-port={smb['containerPort']}" in flags


def _serves(flags: list[str]) -> None:
    """Start the server with some flags, and end it when it says that it is ready."""
    process = subprocess.Popen(
        (sys.executable, "-m", "strongroom", "serve", *flags), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "/.strongroom/health" in line:
                return
        pytest.fail(f"the server ended with {process.wait()}")
    finally:
        process.terminate()
        process.wait(60)


# systemd.


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with the program of this virtual environment."""
    program = Path(sys.executable).with_name("strongroom")
    text = (_DEPLOY / "systemd" / "strongroom.service").read_text(encoding="utf-8")
    path = tmp_path / "strongroom.service"
    path.write_text(text.replace("/opt/strongroom/bin/strongroom", str(program)), encoding="utf-8")
    return path


def test_the_unit_is_valid(unit: Path) -> None:
    assert shutil.which("systemd-analyze"), "systemd-analyze is missing: apt install systemd"
    found = _output("systemd-analyze", "verify", "--man=no", unit)
    assert unit.name not in found, found


def test_the_unit_is_hardened(unit: Path) -> None:
    _output("systemd-analyze", "security", "--offline=true", "--threshold=15", unit)


def test_the_unit_waits_longer_than_the_server_drains() -> None:
    text = (_DEPLOY / "systemd" / "strongroom.service").read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert int(settings["TimeoutStopSec"]) > Settings().drain_timeout_s


# Containers.


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    with Podman() as found:
        found.load(image_file(tmp_path_factory.mktemp("image")))
        yield found


def _answers(port: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", "/.strongroom/health")
            assert connection.getresponse().status == 200
        except OSError:
            time.sleep(0.1)
        else:
            return
        finally:
            connection.close()
    pytest.fail("nothing answers")


def test_the_compose_file_starts_a_server(podman: Podman, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    _output(
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        f"--target={packages}",
        "podman-compose==1.6.0",
    )
    ports = {str(port): free_port() for port in (10000, 10001, 10002)}
    text = (_DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")
    for inside, outside in ports.items():
        text = text.replace(f"127.0.0.1:{inside}:", f"127.0.0.1:{outside}:")
    path = tmp_path / "compose.yaml"
    path.write_text(text, encoding="utf-8")
    environment = podman.environment | {"PYTHONPATH": str(packages)}
    compose = (sys.executable, packages / "podman_compose.py", "--file", path)
    parsed = yaml.safe_load(_output(*compose, "config", env=environment))
    assert [*parsed["services"]] == ["strongroom"]
    _output(*compose, "up", "--detach", env=environment)
    try:
        for port in ports.values():
            _answers(port)
        [name] = podman.run("ps", "--quiet").split()
        podman.run("healthcheck", "run", name)
    finally:
        _output(*compose, "down", "--volumes", env=environment)


def test_the_containerfile_builds_an_image_that_serves(podman: Podman, tmp_path: Path) -> None:
    """Its base comes from a registry; here Debian's packages make one of the same name."""
    for program in ("buildah", "mmdebstrap"):
        assert shutil.which(program), f"{program} is missing: apt install {program}"
    base = tmp_path / "base.tar"
    _output("mmdebstrap", "--quiet", "--variant=minbase", "trixie", base)
    podman.run("import", "--quiet", str(base), "docker.io/library/debian:trixie-slim")
    context = tmp_path / "context"
    context.mkdir()
    shutil.copy(ROOT / "constraints.txt", context)
    shutil.copytree(_DEPLOY, context / "deploy")
    (context / "dist").mkdir()
    for wheel in _own_wheels(tmp_path):
        shutil.copy(wheel, context / "dist")
    # The certificates that this machine trusts, for pip alone: the image installs its own.
    (tmp_path / "pip.conf").write_text("[global]\ncert = /trusted.crt\n", encoding="utf-8")
    trusted = (
        "--volume=/etc/ssl/certs/ca-certificates.crt:/trusted.crt:ro",
        f"--volume={tmp_path / 'pip.conf'}:/etc/pip.conf:ro",
    )
    _output(
        *("buildah", "build", "--isolation=chroot", "--network=host", "--format=docker"),
        *(*trusted, "--file", context / "deploy/image/Containerfile"),
        *("--tag", "by-containerfile", context),
        env=podman.environment,
    )
    port = free_port()
    command = ("strongroom", "serve", "--host=0.0.0.0", "--allow-development-key")
    published = f"--publish=127.0.0.1:{port}:10000"
    with podman.container(published, "localhost/by-containerfile", *command) as name:
        _answers(port)
        podman.run("healthcheck", "run", name)
        podman.in_it(
            name, "sh", "-c", "for one in azurite grep nc wget; do command -v $one || exit 1; done"
        )
        assert "10001" in podman.in_it(name, "grep", "Uid", "/proc/1/status")


def _own_wheels(folder: Path) -> list[Path]:
    from deploy.image.build import contents, own_wheels
    from deploy.image.wheels import Pip

    return own_wheels(ROOT / "dist", Pip(folder / "wheels", "amd64", contents().python))


@pytest.mark.parametrize(
    "path",
    [
        "image/Containerfile",
        "compose/compose.yaml",
        "systemd/strongroom.service",
        "helm/strongroom/values.yaml",
        "helm/strongroom/templates/statefulset.yaml",
        "grafana/strongroom.json",
    ],
)
def test_each_file_says_what_the_volume_must_be(path: str) -> None:
    text = " ".join((_DEPLOY / path).read_text(encoding="utf-8").replace("#", " ").split())
    assert _NOT_NFS in text or "local or block file system, not NFS" in text
