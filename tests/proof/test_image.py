"""The container image: what is in it, who the server is in it, its data, its start and its end."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient, generate_blob_sas

from deploy.image import lock
from deploy.image.build import contents
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY
from strongroom.clock import SystemClock
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.testing.ports import free_port
from tests.proof.podman import Podman
from tests.tidy.sources import ROOT

USER = contents().user
_IMAGE = "localhost/strongroom:latest"
_SERVE = ("strongroom", "serve", "--host", "0.0.0.0", "--allow-development-key")
_LOCKED_DOWN = (
    *("--read-only", "--read-only-tmpfs=false", "--cap-drop=ALL"),
    "--security-opt=no-new-privileges",
)


def build(output: Path) -> Path:
    """Build the image for this machine; return its file."""
    command = (sys.executable, "-m", "deploy.image.build", f"--output={output}")
    subprocess.run(command, cwd=ROOT, check=True)
    [found] = output.glob("*.tar")
    return found


def image_file(folder: Path) -> Path:
    """The image to test: the file that STRONGROOM_IMAGE names, else one that is built."""
    given = os.environ.get("STRONGROOM_IMAGE")
    return build(folder) if given is None else Path(given)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return image_file(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def podman(archive: Path) -> Iterator[Podman]:
    with Podman() as found:
        found.load(archive)
        yield found


@pytest.fixture
def port() -> int:
    return free_port()


def _published(port: int) -> str:
    return f"--publish=127.0.0.1:{port}:10000"


def _wait_until_served(podman: Podman, name: str, port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/.strongroom/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            assert podman.inspect(name)["State"]["Running"], podman.logs(name)
            assert time.monotonic() < deadline, podman.logs(name)
            time.sleep(0.02)
        finally:
            connection.close()


@contextmanager
def _serving(podman: Podman, port: int, *arguments: str) -> Iterator[str]:
    """A container whose Blob service answers on a port of loopback; yields its id."""
    with podman.container(_published(port), *arguments) as name:
        _wait_until_served(podman, name, port)
        yield name


def _blobs(port: int) -> BlobServiceClient:
    account = "devstoreaccount1"
    return BlobServiceClient(
        f"http://127.0.0.1:{port}/{account}",
        credential={"account_name": account, "account_key": DEVELOPMENT_ACCOUNT_KEY},
    )


def _status(podman: Podman, name: str) -> dict[str, str]:
    """The facts of the container's first process."""
    lines = podman.in_it(name, "cat", "/proc/1/status").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _has_no_rights(status: dict[str, str]) -> bool:
    nothing = all(int(status[f"Cap{which}"], 16) == 0 for which in ("Inh", "Prm", "Eff", "Amb"))
    return nothing and status["NoNewPrivs"] == "1"


# What is in it.


def test_two_builds_are_equal_and_small(archive: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == archive.read_bytes()
    assert archive.stat().st_size < 100_000_000


def test_the_commands_that_others_rely_on_are_there(podman: Podman) -> None:
    commands = ["sh", "grep", "awk", "nc", "wget", "cat", "python3", "strongroom"]
    commands += ["azurite", "azurite-blob", "azurite-queue", "azurite-table"]
    each = f"for one in {' '.join(commands)}; do command -v $one; done"
    found = podman.run("run", "--rm", _IMAGE, "sh", "-c", each)
    assert [os.path.basename(line) for line in found.split()] == commands


def test_time_is_utc_and_certificates_are_trusted(podman: Podman) -> None:
    code = (
        "import ssl, time; print(time.tzname, ssl.create_default_context().cert_store_stats()"
        "['x509_ca'] > 100)"
    )
    found = podman.run("run", "--rm", _IMAGE, "python3", "-c", code)
    assert found.strip() == "('UTC', 'UTC') True"


def test_the_bill_of_materials_is_the_list_of_packages(podman: Podman) -> None:
    path = "/usr/share/sbom/strongroom.cdx.json"
    parts = json.loads(podman.run("run", "--rm", _IMAGE, "cat", path))["components"]
    urls = {part["purl"].partition("@")[0]: part["version"] for part in parts}
    kinds = {"deb": "pkg:deb/debian/", "wheel": "pkg:pypi/"}
    for package in lock.read(podman.inspect(_IMAGE, "image")["Architecture"]).packages:
        assert urls.pop(kinds[package.kind] + package.name) == package.version
    assert set(urls) <= {"pkg:pypi/strongroom", "pkg:pypi/strongroom-azurite"}


def test_no_module_is_compiled_at_the_start_and_none_is_broken(podman: Podman) -> None:
    code = (
        "import glob, importlib.util, os, sys\n"
        "for top in sys.argv[1:]:\n"
        "    for path in glob.glob(top + '/**/*.py', recursive=True):\n"
        "        if not os.path.exists(importlib.util.cache_from_source(path)): print(path)\n"
    )
    folders = ("/usr/lib/python3.13", "/usr/local/lib/python3.13/dist-packages")
    assert podman.run("run", "--rm", _IMAGE, "python3", "-c", code, *folders) == ""
    imported = "import apsw, awscrt.checksums, cryptography.x509, httptools, msgspec, sqlite3, uuid"
    podman.run("run", "--rm", _IMAGE, "python3", "-c", imported)


def test_the_labels_and_the_settings_are_kept_by_an_engine(podman: Podman) -> None:
    found = podman.inspect(_IMAGE, "image")
    assert found["Labels"]["org.springframework.boot.service-connection"] == "azure-storage/azurite"
    assert found["Config"]["Volumes"] == {"/data": {}}
    assert set(found["Config"]["ExposedPorts"]) == {f"{port}/tcp" for port in contents().ports}
    assert found["Healthcheck"]["Test"] == ["CMD", "/usr/lib/strongroom/healthcheck"]


# Who the server is.


def test_started_by_root_it_keeps_none_of_roots_rights(podman: Podman, port: int) -> None:
    with _serving(podman, port, _IMAGE, *_SERVE) as name:
        status = _status(podman, name)
        processes = podman.in_it(name, "sh", "-c", "ls -d /proc/[0-9]*; cat /proc/1/cmdline")
    assert status["Uid"].split() == status["Gid"].split() == [str(USER)] * 4
    assert _has_no_rights(status) and int(status["CapBnd"], 16) == 0
    assert status["Groups"] == ""
    # The server itself, and the shell that looks.
    assert len(re.findall(r"/proc/\d+\n", processes)) == 2
    assert "/usr/lib/strongroom/bin/strongroom" in processes


def test_another_entry_point_gives_up_roots_rights_too(podman: Podman, port: int) -> None:
    command = (*_SERVE[1:], "--in-memory")
    with _serving(podman, port, "--entrypoint=strongroom", _IMAGE, *command) as name:
        status = _status(podman, name)
    assert status["Uid"].split() == [str(USER)] * 4 and _has_no_rights(status)


@pytest.mark.parametrize("user", [f"{USER}:{USER}", "4242:0"])
def test_started_by_a_user_it_needs_no_rights(podman: Podman, port: int, user: str) -> None:
    arguments = (f"--user={user}", *_LOCKED_DOWN, "--volume=locked-down:/data", _IMAGE, *_SERVE)
    with _serving(podman, port, *arguments) as name:
        status = _status(podman, name)
        _blobs(port).create_container("box").upload_blob("b", b"1")
    podman.run("volume", "rm", "locked-down")
    assert status["Uid"].split()[0] == user.partition(":")[0] and _has_no_rights(status)


def test_root_that_cannot_become_the_user_is_refused(podman: Podman) -> None:
    code, output = podman.attempt("run", "--rm", "--cap-drop=ALL", _IMAGE, *_SERVE)
    assert code == 3
    assert f"root cannot become user {USER}" in output and "SETUID" in output


def test_a_key_that_only_root_can_read_is_used_and_said_once(
    podman: Podman, port: int, tmp_path: Path
) -> None:
    certificate, key = self_signed_certificate(tmp_path, SystemClock())
    key.chmod(0o600)
    certificate.chmod(0o644)
    mounts = [f"--volume={path}:/tls/{path.name}:ro" for path in (certificate, key)]
    flags = ("--cert", f"/tls/{certificate.name}", f"--key=/tls/{key.name}")
    with _serving(podman, port, *mounts, _IMAGE, *_SERVE, *flags) as name:
        trusted = ssl.create_default_context(cafile=str(certificate))
        served = socket.create_connection(("127.0.0.1", port), timeout=20)
        with trusted.wrap_socket(served, server_hostname="localhost") as secure:
            assert secure.version() == "TLSv1.3"
        logs = podman.logs(name)
        visible = podman.in_it(name, "cat", "/proc/1/cmdline")
    assert logs.count(f"only root can read /tls/{key.name}") == 1
    assert f"only root can read /tls/{certificate.name}" not in logs
    assert key.read_text().splitlines()[1] not in logs + visible


def test_without_a_command_it_serves_as_the_emulator_does(podman: Podman, port: int) -> None:
    with _serving(podman, port, _IMAGE) as name:
        _blobs(port).create_container("box").upload_blob("b", b"1")
        status = _status(podman, name)
        podman.run("stop", "--time=30", name)
        assert podman.inspect(name)["State"]["ExitCode"] == 0
        logs = podman.logs(name)
    for line in (
        "Azurite Blob service is successfully listening at http://0.0.0.0:10000",
        "Azurite Queue service is successfully listening at http://0.0.0.0:10001",
        "Azurite Table service is successfully listening at http://0.0.0.0:10002",
        "Azurite Blob service successfully closed",
    ):
        assert line in logs
    assert status["Uid"].split() == [str(USER)] * 4 and _has_no_rights(status)


# The data.


def test_data_in_a_named_volume_outlives_the_container(podman: Podman, port: int) -> None:
    mount = "--volume=kept:/data"
    with _serving(podman, port, mount, _IMAGE, *_SERVE) as name:
        _blobs(port).create_container("box").upload_blob("b", b"kept")
        podman.run("stop", "--time=30", name)
        assert podman.inspect(name)["State"]["ExitCode"] == 0
    with _serving(podman, port, mount, _IMAGE, *_SERVE):
        assert _blobs(port).get_blob_client("box", "b").download_blob().readall() == b"kept"
    podman.run("volume", "rm", "kept")


def test_an_empty_folder_of_the_host_becomes_the_servers(
    podman: Podman, port: int, tmp_path: Path
) -> None:
    with _serving(podman, port, f"--volume={tmp_path}:/data", _IMAGE, *_SERVE):
        _blobs(port).create_container("box")
    assert tmp_path.stat().st_uid == USER
    assert {path.stat().st_uid for path in tmp_path.rglob("*")} == {USER}


def test_a_folder_that_others_use_is_left_and_the_text_says_what_to_do(
    podman: Podman, port: int, tmp_path: Path
) -> None:
    (tmp_path / "accounts.json").write_text("{}")
    mount = f"--volume={tmp_path}:/data"
    code, output = podman.attempt("run", "--rm", mount, _IMAGE, *_SERVE)
    assert code == 4
    assert f"user {USER} cannot write /data, which belongs to user 0" in output
    assert {path.stat().st_uid for path in (tmp_path, *tmp_path.rglob("*"))} == {0}
    (tmp_path / "accounts.json").unlink()
    (tmp_path / "lost+found").mkdir()
    command = re.search(r"docker run (.*?) - or", output)
    assert command is not None
    words = command[1].replace("VOLUME", str(tmp_path)).replace("IMAGE", _IMAGE).split()
    podman.run("run", *words)
    with _serving(podman, port, mount, _IMAGE, *_SERVE):
        _blobs(port).create_container("box")


def test_a_command_in_a_running_container_leaves_nothing_that_the_server_cannot_read(
    podman: Podman, port: int
) -> None:
    with _serving(podman, port, _IMAGE, *_SERVE) as name:
        podman.in_it(name, "strongroom", "account", "add", "orders", "--data", "/data")
        owners = podman.in_it(name, "sh", "-c", "stat -c %u /data/*").split()
    assert set(owners) == {str(USER)}


# Its start and its end.


def test_a_request_in_flight_is_finished_when_the_container_is_stopped(
    podman: Podman, port: int
) -> None:
    with _serving(podman, port, _IMAGE, *_SERVE, "--log-level=info") as name:
        _blobs(port).create_container("box")
        token = generate_blob_sas(
            *("devstoreaccount1", "box", "b"),
            account_key=DEVELOPMENT_ACCOUNT_KEY,
            permission="cw",
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        upload = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        upload.putrequest("PUT", f"/devstoreaccount1/box/b?{token}")
        for header in (("Content-Length", "200000"), ("x-ms-blob-type", "BlockBlob")):
            upload.putheader(*header)
        upload.endheaders(bytes(100_000))
        command = ("podman", "stop", "--time=30", name)
        with subprocess.Popen(command, env=podman.environment) as stop:
            _wait_until_drains(podman, name)
            upload.send(bytes(100_000))
            assert upload.getresponse().status == 201
            assert stop.wait(60) == 0
        upload.close()
        assert podman.inspect(name)["State"]["ExitCode"] == 0


def _wait_until_drains(podman: Podman, name: str) -> None:
    deadline = time.monotonic() + 60
    while "no new connections" not in podman.logs(name):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_container_is_healthy_and_what_compose_files_ask_for_is_answered(
    podman: Podman, port: int
) -> None:
    stats = "http://127.0.0.1:10000/devstoreaccount1-secondary/?restype=service&comp=stats"
    with _serving(podman, port, _IMAGE, *_SERVE) as name:
        podman.run("healthcheck", "run", name)
        podman.in_it(name, "nc", "127.0.0.1", "10000", "-z")
        podman.in_it(name, "sh", "-c", "nc -vz -w 1 localhost 10000")
        podman.in_it(name, "sh", "-c", "cat /proc/net/tcp* | awk '{print $2}' | grep -i :0*2710")
        _, answer = podman.attempt("exec", name, "wget", "-S", "-q", "-O", "-", stats)
        assert "HTTP/1.1 40" in answer  # it is asked without a signature
        code, _ = podman.attempt("exec", name, "nc", "127.0.0.1", "9", "-z")
        assert code == 1
    with podman.container(_IMAGE, "sleep", "60") as name:
        assert podman.attempt("healthcheck", "run", name)[0] != 0


def test_how_long_a_start_takes(podman: Podman, port: int) -> None:
    """Prints figures; the test itself is that it starts each time."""
    for what, arguments in (("in memory", ("--in-memory",)), ("on a new volume", ())):
        begun = time.monotonic()
        with _serving(podman, port, _IMAGE, *_SERVE, *arguments):
            print(f"\n{what}: {time.monotonic() - begun:.2f} s with podman's own part")
