"""`strongroom serve --setup`: what is printed, exit codes, and a start that is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.testing import Server
from strongroom.testing.ports import port_flags
from tests.cli.command import in_process
from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.durability.rounds import CREDENTIAL

CONTAINERS = 40


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A setup of many containers, each with a policy."""
    path = tmp_path / "setup.toml"
    rows = [
        f'[[accounts.containers]]\nname = "box-{number}"\npolicies = [{{ id = "p" }}]\n'
        for number in range(CONTAINERS)
    ]
    path.write_text('[[accounts]]\nname = "devstoreaccount1"\n' + "".join(rows))
    path.chmod(0o600)
    return path


def test_the_lines_come_before_the_server_is_ready(file: Path, tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data", flags=("--setup", str(file))) as server:
        setup, ready, _ = server.output().partition("Strongroom")
        assert ready
        assert setup.count("created  container ") == setup.count("created  policy ") == CONTAINERS
        assert complete(server.port)


def complete(port: int) -> bool:
    client = Client(port, CREDENTIAL)
    try:
        found = [
            expect(client.get(f"/box-{number}?restype=container&comp=acl"), 200).body
            for number in range(CONTAINERS)
        ]
    finally:
        client.close()
    return all(b"<Id>p</Id>" in body for body in found)


def test_a_start_that_is_killed_half_way_is_completed_by_the_next(
    file: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    command = [sys.executable, "-m", "strongroom", "serve", "--data", str(data), *port_flags()]
    with subprocess.Popen([*command, "--setup", str(file)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(CONTAINERS):
            assert process.stdout.readline().startswith(b"created ")
        process.kill()
    with Server.start(data=data, test_clock=False, flags=("--setup", str(file))) as server:
        created = server.output().count("created ")
        assert 0 < created < 2 * CONTAINERS
        assert complete(server.port)


def test_setup_only_applies_the_file_and_ends(file: Path, tmp_path: Path) -> None:
    given = ("serve", "--data", tmp_path / "data", "--setup", file, "--setup-only")
    first = in_process(*given)
    assert first.code == Exit.DONE
    assert first.out.count("created ") == 2 * CONTAINERS + 1
    again = in_process(*given)
    assert (again.code, again.out.count("created ")) == (Exit.DONE, 0)
    assert again.out.count("left ") == CONTAINERS + 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--setup-only",), "--setup-only does nothing without --setup"),
        (("--setup-overwrite",), "--setup-overwrite does nothing without --setup"),
        (("--in-memory", "--setup-only"), "--setup-only"),
    ],
)
def test_flags_that_do_not_go_together(flags: tuple[str, ...], message: str) -> None:
    ran = in_process("serve", *flags)
    assert ran.code == Exit.USAGE
    assert message in ran.err


def test_a_mistake_ends_the_command_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "setup.toml"
    path.write_text('[[accounts]]\nname = "shop"\nkey = "a2V5"\n')
    path.chmod(0o600)
    ran = in_process("serve", "--data", tmp_path / "data", "--setup", path, "--setup-only")
    assert ran.code == Exit.SETTINGS
    assert f"{path}, line 3: accounts[0].key: there is no such key" in ran.err
    assert not (tmp_path / "data").exists()
