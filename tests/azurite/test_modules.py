"""What other people's programs start, and what they wait for: the six modules of Testcontainers,
.NET Aspire, `func start`, compose files. Their lines are started here without containers.

Each line is as its program sends it, with free ports added, and a folder in place of `/data`. The
address 0.0.0.0 is the one that they use: the lines that they wait for contain it. Sources: the
modules' repositories as of 2026, Testcontainers for Java, .NET, Node, Python, Go and Rust;
microsoft/aspire; Azure/azure-functions-core-tools, version 5.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.ports import HOST
from tests.azurite.started import WAIT_S, Started, clean_environment, ports

ALL = ("blob", "queue", "table")
EVERYWHERE = ("--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0")
IMAGE_COMMAND = ("azurite", "-l", "/data", *EVERYWHERE)
VERSION_ASKED = "2021-12-02"
FUNC_READY_S = 30
FUNC_VERSION_S = 5
FUNC_POLL_S = 0.25

Ports = dict[str, int]
Wait = Callable[[Started, Ports], None]


def texts(*patterns: str) -> Wait:
    """Wait for lines in which these patterns are found, in any order."""

    def wait(started: Started, found: Ports) -> None:
        for pattern in patterns:
            started.wait_for(pattern.format(**found))

    return wait


def first_port(started: Started, found: Ports) -> None:
    """Wait for the first port."""
    started.wait_for_port(next(iter(found.values())))


def each_port(started: Started, found: Ports) -> None:
    """Wait for each port."""
    for port in found.values():
        started.wait_for_port(port)


def ports_from_inside(started: Started, found: Ports) -> None:
    """Wait for each port as a shell inside of the container looks for it."""
    for port in found.values():
        started.wait_for_port(port)
        script = f"cat /proc/net/tcp* | awk '{{print $2}}' | grep -i ':0*{port:x}'"
        assert subprocess.run(["/bin/sh", "-c", script], check=False).returncode == 0
        script = f"exec 3<>/dev/tcp/localhost/{port}"
        assert subprocess.run(["/bin/bash", "-c", script], check=False).returncode == 0


@dataclass(frozen=True)
class Module:
    """A program: the line that it starts, the services it uses, and what it waits for."""

    name: str
    line: tuple[str, ...]
    wait: Wait
    services: tuple[str, ...] = ALL
    environment: tuple[tuple[str, str], ...] = ()


NODE_WAITS = texts(
    r".*Blob service is successfully listening.*",
    r".*Queue service is successfully listening.*",
    r".*Table service is successfully listening.*",
)
ACCOUNTS = (("AZURITE_ACCOUNTS", f"{DEVELOPMENT_ACCOUNT_NAME}:{DEVELOPMENT_ACCOUNT_KEY}"),)
MODULES = (
    Module("Java", ("azurite", *EVERYWHERE), ports_from_inside),
    Module(".NET", ("azurite", *EVERYWHERE), NODE_WAITS),
    Module(".NET in memory", ("azurite", *EVERYWHERE, "--inMemoryPersistence"), NODE_WAITS),
    Module(
        ".NET with a limit",
        ("azurite", *EVERYWHERE, "--inMemoryPersistence", "--extentMemoryLimit", "64"),
        NODE_WAITS,
    ),
    Module("Node", ("azurite", *EVERYWHERE), NODE_WAITS),
    Module(
        "Node in memory",
        (
            *("azurite", *EVERYWHERE, "--inMemoryPersistence", "--extentMemoryLimit", "64"),
            "--skipApiVersionCheck",
        ),
        NODE_WAITS,
    ),
    Module("Python", IMAGE_COMMAND, first_port, environment=ACCOUNTS),
    Module("Go", ("azurite", *EVERYWHERE), each_port),
    Module(
        "Go in memory",
        ("azurite", *EVERYWHERE, "--inMemoryPersistence", "--extentMemoryLimit", "64.5"),
        each_port,
    ),
    Module("Go, blobs only", ("azurite-blob", "--blobHost", "0.0.0.0"), each_port, ("blob",)),
    Module("Go, queues only", ("azurite-queue", "--queueHost", "0.0.0.0"), each_port, ("queue",)),
    Module(
        "Rust",
        ("azurite", *EVERYWHERE, "--loose", "--skipApiVersionCheck", "--disableTelemetry"),
        texts(r"^Azurite Table service is successfully listening at http://0\.0\.0\.0:{table}$"),
    ),
    Module(
        "Aspire",
        (*IMAGE_COMMAND, "--disableProductStyleUrl", "--skipApiVersionCheck"),
        each_port,
    ),
    Module(
        "compose, port of azurite-blob",
        ("azurite-blob", "--blobHost", "0.0.0.0"),
        texts(r"^Azurite Blob service successfully listens on http://[^:]+:{blob}$"),
        ("blob",),
    ),
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_a_module_starts_it_and_uses_it(module: Module, commands: Path, tmp_path: Path) -> None:
    line = [word.replace("/data", str(tmp_path / "data")) for word in module.line]
    found, flags = ports(*module.services)
    line += flags
    with Started(commands, line, tmp_path, environment=module.environment) as started:
        module.wait(started, found)
        _use(found)
        assert started.stop() == 0


def _use(found: Ports) -> None:
    """Create something in each service, as a program does after its module has waited."""
    text = _connection_string(found)
    if "blob" in found:
        with BlobServiceClient.from_connection_string(text) as blobs:
            blob = blobs.create_container("container").get_blob_client("blob")
            blob.upload_blob(b"content")
            assert blob.download_blob().readall() == b"content"
    if "queue" in found:
        with QueueServiceClient.from_connection_string(text) as queues:
            queues.create_queue("queue").send_message("message")
    if "table" in found:
        with TableServiceClient.from_connection_string(text) as tables:
            tables.create_table("table").create_entity({"PartitionKey": "p", "RowKey": "r"})


def _connection_string(found: Ports) -> str:
    account = DEVELOPMENT_ACCOUNT_NAME
    endpoints = "".join(
        f"{service.title()}Endpoint=http://{HOST}:{port}/{account};"
        for service, port in found.items()
    )
    return (
        f"DefaultEndpointsProtocol=http;AccountName={account};"
        f"AccountKey={DEVELOPMENT_ACCOUNT_KEY};{endpoints}"
    )


def test_services_that_are_not_asked_for_are_not_opened(commands: Path, tmp_path: Path) -> None:
    """The ports of the others, which the flags of `azurite` would name, refuse connections."""
    found, flags = ports("blob")
    with Started(commands, ["azurite-blob", *flags, "-l", "data"], tmp_path) as started:
        started.wait_for(r"successfully listens on")
        assert _listening_ports(started) == {found["blob"]}


def _listening_ports(started: Started) -> set[int]:
    """Return the ports that the process listens on, from the system's tables."""
    inodes = set()
    for link in Path(f"/proc/{started.pid}/fd").iterdir():
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", str(link.readlink()))
        except FileNotFoundError:
            continue  # it was closed meanwhile
        if found:
            inodes.add(found[1])
    rows = [
        row.split()
        for table in ("tcp", "tcp6")
        for row in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
    ]
    return {
        int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes
    }


def test_func_starts_it(commands: Path, tmp_path: Path) -> None:
    """The sequence of `func start`: the version, the start, three GETs until all are answered."""
    asked = subprocess.run(
        [commands / "azurite", "--version"],
        capture_output=True,
        text=True,
        timeout=FUNC_VERSION_S,
        env=clean_environment(),
        check=True,
    )
    first_line = asked.stdout.splitlines()[0]
    assert re.fullmatch(r"\d+\.\d+\.\d+", first_line) and len(first_line) <= 64
    found, flags = ports(*ALL)
    log = tmp_path / "azurite.log"
    hosts = [word.replace("0.0.0.0", HOST) for word in EVERYWHERE]
    line = ["azurite", "-l", tmp_path / "data", *hosts, *flags]
    line += ["--disableProductStyleUrl", "--skipApiVersionCheck", "--disableTelemetry"]
    line += ["--silent", "--debug", log]
    with Started(commands, line, tmp_path) as started:
        until_s = time.monotonic() + FUNC_READY_S
        while not all(_looks_like_storage(service, port) for service, port in found.items()):
            assert started.is_running, started.err
            assert time.monotonic() < until_s
            time.sleep(FUNC_POLL_S)
        _use(found)
        assert started.stop() == 0
        assert started.err == ""
    assert " DEBUG strongroom.requests: " in log.read_text(encoding="utf-8")
    assert log.stat().st_mode & 0o777 == 0o600


def _looks_like_storage(service: str, port: int) -> bool:
    path = "/Tables" if service == "table" else "?comp=list"
    request = urllib.request.Request(
        f"http://{HOST}:{port}/{DEVELOPMENT_ACCOUNT_NAME}{path}",
        headers={"x-ms-version": VERSION_ASKED},
    )
    try:
        with urllib.request.urlopen(request, timeout=2) as answer:
            headers = answer.headers
    except urllib.error.HTTPError as refused:
        headers = refused.headers
        refused.close()
    except OSError:
        return False
    return bool(headers.get("x-ms-request-id") or headers.get("x-ms-error-code"))


def test_the_checks_of_compose_files(commands: Path, tmp_path: Path) -> None:
    """`nc -z` needs the port only. `wget` of the statistics ends with 8, as it does with the peer:
    both refuse an anonymous request, the peer with 403 and this server, as Azure does, with 404."""
    for program in ("nc", "wget"):
        assert shutil.which(program), f"install {program}: apt install netcat-openbsd wget"
    found, flags = ports(*ALL)
    with Started(commands, ["azurite", *flags, "--inMemoryPersistence"], tmp_path) as started:
        started.wait_for("Table service is successfully listening")
        for port in found.values():
            subprocess.run(["nc", HOST, str(port), "-z"], timeout=WAIT_S, check=True)
        url = f"http://{HOST}:{found['blob']}/{DEVELOPMENT_ACCOUNT_NAME}-secondary/"
        done = subprocess.run(
            ["wget", "--tries=1", "--output-document=-", f"{url}?restype=service&comp=stats"],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert (done.returncode, "awaiting response... 404" in done.stderr) == (8, True)
