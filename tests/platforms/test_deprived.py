"""The package keeps its promises without the calls of Linux, or refuses to start and says why.

A process of its own takes the calls away before it imports the package (deprived.py). What Windows
gives instead is simulated (windows_kernel.py). docs/platforms.md says what that proves, and what it
does not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import strongroom
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.testing.engine_contract import CONTRACT, SHARED_CONTRACT, STOPPING_CONTRACT
from strongroom.testing.ports import free_port, port_flags
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client, Credential

_ROOT: Final = Path(__file__).parents[2]
_LARGE_BYTES: Final = 3 * 1024 * 1024 + 5
SYSTEMS: Final = pytest.mark.parametrize("system", ["windows", "macos"])


def _command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "tests.platforms.deprived", *map(str, arguments)]


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(*arguments), cwd=_ROOT, capture_output=True, text=True, check=False, timeout=110
    )


def _whole(*arguments: str | Path) -> str:
    ran = _run(*arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("system", ["windows", "macos", "neither"])
def test_every_module_is_imported(system: str) -> None:
    files = len(list(Path(strongroom.__path__[0]).rglob("*.py")))
    # The package itself and __main__ are not counted; on Windows posix.py is left out.
    assert int(_whole(system, "import_all")) == files - (2 if system == "macos" else 3)


@SYSTEMS
def test_the_engines_keep_the_contract(system: str, tmp_path: Path) -> None:
    cases = len(CONTRACT) + len(STOPPING_CONTRACT) + len(SHARED_CONTRACT)
    assert int(_whole(system, "contract", tmp_path)) == cases


@SYSTEMS
def test_a_store_lives_on_real_files(system: str, tmp_path: Path) -> None:
    _whole(system, "life", tmp_path)
    open_to_others = [str(path) for path in tmp_path.rglob("*") if path.stat().st_mode & 0o077]
    assert not open_to_others


@SYSTEMS
def test_files_in_use_are_renamed_and_removed(system: str, tmp_path: Path) -> None:
    _whole(system, "files_in_use", tmp_path)


@SYSTEMS
def test_bytes_become_a_file_that_others_cannot_use(system: str, tmp_path: Path) -> None:
    _whole(system, "bytes_as_files", tmp_path)


def _holder(system: str, data: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        _command(system, "hold", data),
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@SYSTEMS
def test_one_server_at_a_time_has_a_directory_and_a_killed_one_leaves_it(
    system: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with _holder(system, data) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with _holder(system, data) as second:
            assert second.communicate()[0] == "in use\n"
        first.kill()
        first.wait()
        with _holder(system, data) as third:
            assert third.communicate("")[0] == "held\n"


@SYSTEMS
def test_a_server_serves_until_a_signal(system: str, tmp_path: Path) -> None:
    port = free_port()
    log = tmp_path / "log"
    flags = ("--data", str(tmp_path / "data"), "--tls", *port_flags(port))
    with log.open("wb") as output:
        server = subprocess.Popen(
            _command(system, "command", "serve", *flags),
            cwd=_ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _await_ready(server, log)
        client = Client(port, Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY))
        body = os.urandom(_LARGE_BYTES)
        expect(client.put("/box?restype=container", {}), 201)
        expect(client.put("/box/large", PUT_BLOB, body), 201)
        assert expect(client.get("/box/large"), 200).body == body
        client.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == Exit.DONE, log.read_text()
    finally:
        server.kill()
        server.wait()
    assert not (tmp_path / "data/tls-key.pem").stat().st_mode & 0o077


def _await_ready(server: subprocess.Popen[bytes], log: Path) -> None:
    while "/.strongroom/health\n" not in log.read_text():
        try:
            server.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(log.read_text())


@SYSTEMS
def test_a_key_file_is_readable_by_its_owner_only(system: str, tmp_path: Path) -> None:
    file = tmp_path / "accounts.json"
    _whole(system, "command", "account", "add", "one", "--accounts-file", file)
    _whole(system, "command", "account", "add", "two", "--accounts-file", file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "two" in _whole(system, "command", "account", "list", "--accounts-file", file)


@pytest.mark.parametrize(
    ("system", "reason"), [("neither", "neither the locks of POSIX"), ("fat", "exFAT")]
)
def test_a_server_refuses_to_keep_data_where_it_could_break_a_promise(
    system: str, reason: str, tmp_path: Path
) -> None:
    ran = _run(system, "command", "serve", "--data", tmp_path / "data", *port_flags())
    assert ran.returncode == Exit.DATA
    assert reason in ran.stderr
    assert "--in-memory" in ran.stderr
    assert "Traceback" not in ran.stderr


@SYSTEMS
def test_a_command_under_a_lock_is_refused_before_it_begins(system: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    store = f"file://{tmp_path}/store"
    ran = _run(system, "command", "lock", "--store", store, "one", "--", "touch", str(made))
    assert ran.returncode == Exit.USAGE, ran.stderr
    assert "needs Linux" in ran.stderr
    assert not made.exists()


@SYSTEMS
def test_processes_meet_in_a_folder(system: str, tmp_path: Path) -> None:
    store = f"file://{tmp_path}/store"
    numbers = {
        int(_whole(system, "command", "ids", "orders", "take", "1", "--store", store))
        for _ in range(3)
    }
    assert len(numbers) == 3
