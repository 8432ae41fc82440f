"""The wheel in an empty environment: it starts, serves, checks its data, and lacks nothing."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom import __version__
from strongroom.cli.exits import Exit
from strongroom.testing.ports import port_flags
from tests.installed.environments import TIMEOUT_S, Environment, outside

# What only tests or an extra need; the modules that import these are used with them.
_OPTIONAL = frozenset({"pytest", "hypothesis", "azure", "nats", "opentelemetry", "pika", "psycopg"})
_IMPORT_ALL = """
import importlib, json, pkgutil, strongroom
missing = {}
for one in pkgutil.walk_packages(strongroom.__path__, "strongroom."):
    if one.name.endswith(".__main__"):
        continue
    try:
        importlib.import_module(one.name)
    except ModuleNotFoundError as error:
        missing[one.name] = error.name
print(json.dumps([strongroom.__file__, missing]))
"""


def test_the_version_is_one(environment: Environment, tmp_path: Path) -> None:
    asked = "from importlib.metadata import version; print(version('strongroom'))"
    assert environment.run("strongroom", "--version", cwd=tmp_path) == f"strongroom {__version__}\n"
    assert environment.run("python", "-c", asked, cwd=tmp_path).strip() == __version__


def test_it_serves_and_doctor_finds_its_data_sound(
    environment: Environment, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    flags = ("serve", "--data", str(data), *port_flags())
    command = [str(environment.command("strongroom")), *flags]
    with subprocess.Popen(
        command, cwd=tmp_path, env=outside(), stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            printed = iter(server.stdout.readline, "")
            (text,) = [next(line for line in printed if "DefaultEndpointsProtocol" in line)]
            client = BlobServiceClient.from_connection_string(text.split()[-1])
            client.create_container("wiki").upload_blob("page", b"first")
            server.send_signal(signal.SIGTERM)
            assert server.wait(TIMEOUT_S) == 0
        finally:
            server.kill()
    assert ": whole (1 container, 1 blob," in environment.run(
        "strongroom", "doctor", data, cwd=tmp_path
    )


@pytest.mark.parametrize("command", [("serve", "--data"), ("doctor",), ("upgrade",)])
def test_a_downgrade_is_refused(
    environment: Environment, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A directory of a format that only later versions know is left as it is."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "FORMAT").write_text("strongroom 999\n")
    done = subprocess.run(
        [environment.command("strongroom"), *command, data],
        env=outside(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == Exit.DATA, done.stderr
    assert "strongroom 999" in done.stderr
    assert (data / "FORMAT").read_text() == "strongroom 999\n"
    # The lock is empty, and taken before anything is read.
    assert {path.name for path in data.iterdir()} <= {"FORMAT", "LOCK"}


def test_every_module_is_there_with_what_it_needs(environment: Environment, tmp_path: Path) -> None:
    where, missing = json.loads(environment.run("python", "-c", _IMPORT_ALL, cwd=tmp_path))
    assert Path(where).is_relative_to(environment.folder)
    others = {
        name: package
        for name, package in missing.items()
        if package.partition(".")[0] not in _OPTIONAL
    }
    assert others == {}
    assert "strongroom.testing.pytest_plugin" in missing


def test_what_is_installed_fits_together(environment: Environment, tmp_path: Path) -> None:
    assert "No broken requirements found" in environment.pip("check", cwd=tmp_path)


def test_the_emulators_commands_come_with_all_that_they_need(
    built: Path, wheel: Path, tmp_path: Path
) -> None:
    """Elsewhere the tests of these commands borrow what they need from the checkout's packages."""
    own = built / f"strongroom_azurite-{__version__}-py3-none-any.whl"
    made = Environment.create(tmp_path / "venv", wheel, own)
    made.pip("check", cwd=tmp_path)
    assert "--blobPort" in made.run("azurite", "--help", cwd=tmp_path)
